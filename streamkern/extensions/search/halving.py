"""Choosing kernel, map and length scale on a sample of the rows, before the pass that fits.

The column pass brings a spread sample along.  On it, many length scales of every kernel and family
of maps are tried at a reduced number of features, by cross-validation over the whole grid of
penalties; the best of them, and what is near, go on to twice as many features, and so on.  The
winner gets the one full pass.
"""

from typing import NamedTuple

import numpy as np

from streamkern.choice.trials import N_FOLDS
from streamkern.extensions.search.budget import Budget
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import Setting, near, octaves
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.sources import Source

# Length scales are tried at these powers of 2 times the kernel's own.
_OCTAVES = (np.arange(-6, 7) / 2).tolist()
# With a budget in this order, so that a small one has the widest choice.
_LEVELS = [0, 1, -1, 2, -2, 3, -3], [0.5, -0.5, 1.5, -1.5, 2.5, -2.5], np.arange(-11, 12, 2) / 4


class Rung(NamedTuple):
    """One round of trials: its share of D, and what goes on from it."""

    share: float
    # Half octaves about the best that are tried next: more features resolve smaller scales.
    steps: tuple[int, ...]
    kernels_left: int  # of every map


_RUNGS = (Rung(1 / 8, (-2, -1, 0, 1), 3), Rung(1 / 4, (-1, 0), 2), Rung(1 / 2, (0,), 1))
# Maps that go on to the last rung, where there are several.
_FINALISTS = 3
# Rows for every feature of that rung, unless the sample is all there is; half octaves there that
# are left to a budget.
_ROWS_A_COMPONENT = 4
_REFINED = (-0.5, 0.5)
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
    default = plain[0] if plain else settings[0]
    D = options.n_components
    if search.is_guarded and len(settings) == 1:  # chosen where rows crowd, at its own length scale
        few = _even(min(D, max(n // _ROWS_A_COMPONENT, 2)), options)
        search.ranked(search.try_some([default], few, last=True))
        return
    sizes = [
        _even(int(max(rung.share * D, min(_FEWEST_COMPONENTS, D))), options) for rung in _RUNGS
    ]
    # The largest number of features that the sample says something of.
    most = _even(D if n >= ledger.plan.n_rows else min(D, n // _ROWS_A_COMPONENT), options)
    if most > sizes[-1]:
        sizes.append(most)
    going_on, finer = octaves(settings, _OCTAVES), list[Setting]()
    if ledger.budget is not None:
        sizes = ledger.payable(sorted(set(sizes)), n, search.n_folds)
        going_on, *rest = [
            [one for octave in level for one in octaves(settings, [octave])] for level in _LEVELS
        ]
        finer = [one for level in rest for one in level]
    for i, size in enumerate(sizes):
        share = (i + 1) / len(sizes)
        if not i:
            best = search.first_rung(going_on, finer, size, share)
        elif i + 1 < len(sizes):
            best = search.ranked(search.try_some(going_on, size, share))
        else:
            search.last_rung(going_on, default, size)
            break
        if not best:
            continue
        rung = _RUNGS[min(i, len(_RUNGS) - 1)]
        if ledger.budget is None:
            chosen = [one for tier in best[: rung.kernels_left] for one in tier]
            going_on = near(chosen[:_FINALISTS] if i >= 2 else chosen, rung.steps)
        else:
            ranked = [one for tier in best for one in tier]
            last = i + 2 >= len(sizes)
            going_on = near(ranked, (0,) if last else rung.steps)
            going_on += near(ranked, _REFINED) if last else []


def _even(n_components: int, options: FitOptions) -> int:
    return n_components - (n_components % 2 if options.paired and n_components > 1 else 0)


def budgeted_rows(source: Source, options: FitOptions, n_settings: int, budget: Budget) -> int:
    """Return as many rows as let all settings go through all rungs, up to D, within a budget."""
    p, D = source.n_features, options.n_components
    a_pass = fit_flops(source.n_samples, p, D, options.n_folds)
    flops = budget.amount * a_pass
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
