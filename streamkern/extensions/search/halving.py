"""Choosing kernel, map and length scale on a sample of the rows, before the pass that fits.

The column pass brings a spread sample along.  On it, many length scales of every kernel and family
of maps are tried at a reduced number of features, by cross-validation over the whole grid of
penalties; the best of them, and what is near, go on to twice as many features, and so on.  The
winner gets the one full pass.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern.choice.small_fit import N_FOLDS, Result
from streamkern.extensions.search.budget import Budget
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import Setting, beyond, near, sober
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.sources import Source

# Octaves from the kernel's own length scale, and with a budget in this order, so that a small one
# has the widest choice.
_OCTAVES, _QUARTERS = (np.arange(-6, 7) / 2).tolist(), np.arange(-11, 12, 2) / 4
_LEVELS: Any = [0, 1, -1, 2, -2, 3, -3], [0.5, -0.5, 1.5, -1.5, 2.5, -2.5], _QUARTERS


class Rung(NamedTuple):
    """One round of small fits: its share of D, and what goes on from it."""

    share: float
    # Octaves about the best that are tried next: more features resolve smaller scales.
    steps: tuple[float, ...]
    kernels_left: int  # of every map


_RUNGS = (Rung(1 / 8, (-1.0, -0.5, 0.0, 0.5), 3), Rung(1 / 4, (-0.5, 0.0), 2), Rung(1 / 2, (0,), 1))
# Maps that go on to the last rung, where there are several.
_FINALISTS = 3
# Rows for every feature of that rung, unless the sample is all there is; octaves there that are
# left to a budget.
_ROWS_A_COMPONENT, _REFINED = 4, (-0.25, 0.25)
_FEWEST_COMPONENTS = 128
# What a budget may make of the sample: these rows at the least, and so many times as many.
_FEWEST_ROWS, _TIMES = 2048, 4


def halve(search: Search, feature_map: str | None) -> None:
    """Choose among metrics, kernels, maps and length scales on the sample of a column pass.

    The map is that of a plain fit, which is compared on the last rung.
    Jamieson and Talwalkar (2016), "Non-stochastic best arm identification and hyperparameter
    optimization", for successive halving.
    """
    settings, options, ledger, n = search.settings, search.options, search.ledger, search.n_rows
    plain = [each for each in settings if each.feature_map == feature_map]
    plain.sort(key=lambda each: not search.contenders[each.place].is_default)
    default, D = plain[0] if plain else settings[0], options.n_components
    if search.is_guarded and len(settings) == 1:  # chosen where rows crowd, at its own length scale
        few = _even(min(D, max(n // _ROWS_A_COMPONENT, 2)), options)
        search.ranked(search.try_some([default], few, last=True))
        return
    least = min(_FEWEST_COMPONENTS, D)
    sizes = [_even(int(max(rung.share * D, least)), options) for rung in _RUNGS]
    # The largest number of features that the sample says something of.
    most = _even(D if n >= ledger.plan.n_rows else min(D, n // _ROWS_A_COMPONENT), options)
    sizes += [most] * (most > sizes[-1])
    going_on, finer = near(settings, _OCTAVES), list[Setting]()
    if ledger.budget is not None:
        sizes = ledger.payable(sorted(set(sizes)), n, search.n_folds)
        going_on, *rest = [_one_by_one(settings, level) for level in _LEVELS]
        finer = rest[0] + rest[1]
    for i, size in enumerate(sizes):
        share, n_left = (i + 1) / len(sizes), len(sizes) - i - 1
        if i and not n_left:
            own = (default.number, 1.0)
            others = [one for one in going_on if (one.number, round(one.factor, 9)) != own]
            several = [*others[:1], default, *others[1:]] if others else []
            search.ranked(search.try_some(several, size, last=True, fewest=2))
            return
        tried = search.try_some(going_on, size, share) if i else list[Result]()
        if not i:
            tried = _widest(search, going_on, finer, size, share)
        best = search.ranked(tried, among=tried if i else sober(tried))
        rung = _RUNGS[min(i, len(_RUNGS) - 1)]
        kept = best if ledger.budget is not None else best[: rung.kernels_left]
        ranked = [one for tier in kept for one in tier]
        if ranked and ledger.budget is None:
            going_on = near(ranked[:_FINALISTS] if i >= 2 else ranked, rung.steps)
        elif ranked:
            going_on = near(ranked, rung.steps if n_left > 1 else (0,))
            going_on += near(ranked, _REFINED) if n_left <= 1 else []


def _even(n_components: int, options: FitOptions) -> int:
    return n_components - (n_components % 2 if options.paired and n_components > 1 else 0)


def _one_by_one(settings: Sequence[Setting], octaves: Sequence[float]) -> list[Setting]:
    return [one for octave in octaves for one in near(settings, [octave])]


def _widest(
    search: Search, settings: Sequence[Setting], finer: Sequence[Setting], D: int, share: float
) -> list[Result]:
    """Try settings, those beyond them while the last do as well as any, and finer ones."""
    tried, more = list[Result](), settings
    while more:
        tried += (made := search.try_some(more, D, share))
        if len(made) < len(more):
            return tried
        more = beyond(tried)
    return tried + search.try_some(finer, D, share)


def budgeted_rows(source: Source, options: FitOptions, n_settings: int, budget: Budget) -> int:
    """Return as many rows as let all settings go through all rungs, up to D, within a budget."""
    p, D = source.n_features, options.n_components
    flops = budget.amount * fit_flops(source.n_samples, p, D, options.n_folds)
    usual = large_sample(p + source.n_targets)
    least = min(_FEWEST_ROWS, usual)
    fixed = each = 0.0
    shares = *(rung.share for rung in _RUNGS), 1.0
    numbers = len(_OCTAVES), *(len(rung.steps) for rung in _RUNGS)
    for share, number in zip(shares, numbers, strict=True):
        size = max(int(share * D), 1)
        without, one = (fit_flops(m, p, size, N_FOLDS) for m in (0, 1))
        fixed += n_settings * number * without
        each += n_settings * number * (one - without)
    return int(min(max((flops - fixed) / each, least), _TIMES * usual))
