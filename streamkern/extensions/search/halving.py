"""Choosing kernel, map and length scale on a sample of the rows, before the pass that fits.

The column pass brings a spread sample along.  On it, many length scales of every kernel and family
of maps are tried at a reduced number of features, by cross-validation over the whole grid of
penalties; the best of them, and what is near, go on to twice as many features, and so on.  The
winner gets the one full pass.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from streamkern.choice.cross_validated_fit import Result
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import Setting, beyond, near, sober
from streamkern.parameters.cost_estimate import fit_flops, rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions

# Octaves from the kernel's own length scale.
_OCTAVES = (np.arange(-6, 7) / 2).tolist()


class Rung(NamedTuple):
    """One round of small fits: its share of D, and what goes on from it."""

    share: float
    # Octaves about the best that are tried next: more features resolve smaller scales.
    steps: tuple[float, ...]
    kernels_left: int  # of every map


_RUNGS = (Rung(1 / 8, (-1.0, -0.5, 0.0, 0.5), 3), Rung(1 / 4, (-0.5, 0.0), 2), Rung(1 / 2, (0,), 1))
# Maps that go on to the last rung, where there are several.
_FINALISTS = 3
# Rows for every feature of that rung, unless the sample is all there is.
_ROWS_A_COMPONENT, _FEWEST_COMPONENTS = 4, 128


def halve(search: Search, feature_map: str | None) -> None:
    """Choose among metrics, kernels, maps and length scales on the sample of a column pass.

    The map is that of a plain fit, which is compared on the last rung.
    Jamieson and Talwalkar (2016), "Non-stochastic best arm identification and hyperparameter
    optimization", for successive halving.
    """
    settings, options, n = search.settings, search.options, search.n_rows
    plain = [each for each in settings if each.feature_map == feature_map]
    plain.sort(key=lambda each: not search.metrics[each.place].is_default)
    default, D = plain[0] if plain else settings[0], options.n_components
    if search.is_guarded and len(settings) == 1:  # chosen where rows crowd, at its own length scale
        few = _even(min(D, max(n // _ROWS_A_COMPONENT, 2)), options)
        search.ranked(search.try_some([default], few, last=True))
        return
    least = min(_FEWEST_COMPONENTS, D)
    sizes = [_even(int(max(rung.share * D, least)), options) for rung in _RUNGS]
    # The largest number of features that the sample says something of.
    most = _even(D if n >= search.plan.n_rows else min(D, n // _ROWS_A_COMPONENT), options)
    sizes += [most] * (most > sizes[-1])
    going_on = near(settings, _OCTAVES)
    if search.clock is not None:
        sizes = _payable(search, sorted(set(sizes)))
        # Whole octaves and near ones first: a short time has a wide choice.
        going_on.sort(key=lambda one: (one.octave % 1 > 0, abs(one.octave)))
    for i, size in enumerate(sizes):
        share, n_left = (i + 1) / len(sizes), len(sizes) - i - 1
        if i and not n_left:
            own = (default.number, 1.0)
            others = [one for one in going_on if (one.number, round(one.factor, 9)) != own]
            several = [*others[:1], default, *others[1:]] if others else []
            search.ranked(search.try_some(several, size, last=True, fewest=2))
            return
        tried = (search.try_some if i else partial(_widest, search))(going_on, size, share)
        best = search.ranked(tried, among=tried if i else sober(tried))
        rung = _RUNGS[min(i, len(_RUNGS) - 1)]
        ranked = [one for tier in best[: rung.kernels_left] for one in tier]
        if ranked:
            going_on = near(ranked[:_FINALISTS] if i >= 2 else ranked, rung.steps)


def _even(n_components: int, options: FitOptions) -> int:
    return n_components - (n_components % 2 if options.paired and n_components > 1 else 0)


def _widest(search: Search, settings: Sequence[Setting], D: int, share: float) -> list[Result]:
    """Try settings, and those beyond them while the last do as well as any."""
    tried, more = list[Result](), settings
    while more:
        tried += (made := search.try_some(more, D, share))
        if len(made) < len(more):
            break
        more = beyond(tried)
    return tried


def _payable(search: Search, sizes: list[int]) -> list[int]:
    """Return the first rungs whose equal parts of the seconds pay for two trials on the last."""
    plan, left = search.plan, list(sizes)
    seconds = search.clock.left() / search.clock.slowness
    flops = seconds * plan.n_slots * rough_flops_per_second(plan.precision)

    def of_two(D: int) -> float:
        return 2 * fit_flops(search.n_rows, plan.n_features, D, search.n_folds)

    while len(left) > 1 and of_two(left[-1]) > flops / len(left):
        left.pop()
    return left
