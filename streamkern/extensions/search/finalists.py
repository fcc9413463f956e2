"""The end of a search within seconds: metrics, compared at the number of features of the fit.

Rough kernels need many features, so that few of them would prefer the smooth.  They have the length
scales that they were learnt with; of the best, what is near is tried as well.  Then
kernels are added, each in its own metric: what is smooth along some directions is often rough along
others.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamkern.choice.cross_validated_fit import Result, fit_bytes
from streamkern.choice.time_limit import TimeLimit
from streamkern.extensions.search.budget import A_TRIAL
from streamkern.extensions.search.search import Search
from streamkern.extensions.search.settings import ADDED, MetricSettings, Setting, by_error, near
from streamkern.kernels import ShiftInvariantKernel, Sum
from streamkern.parameters.cost_estimate import fit_seconds
from streamkern.statistics import dtype_of_features

# What trials take of the first ones: those that follow are sums, or all at landmarks.
_TIMES = 1.4
# Half octaves from the length scale of a metric that are tried at the most.
_FARTHEST = 6
# Features that metrics have at the most, and those that they always may have.
_MOST_COMPONENTS, FEWEST_COMPONENTS = 4096, 512
# What two trials side by side may take of the seconds.
_MOST = 0.8
# Kernels that are added to the best, one at a time; weights are powers of this, up to that one.
_MOST_ADDED, _ODDS, _MOST_POWER = 2, 4.0, 3
_LANDMARKS = "nystroem"


def compare(search: Search, n_components: int, *, adds: bool) -> None:
    """Choose among metrics, the best of which comes first and a plain fit last, and their sums.

    Of noise any of them may come out best: the plain fit stays unless others beat it.
    """
    D = _affordable(n_components, search)
    linear = [each for each in search.settings if each.is_linear]
    several = [each for each in search.settings if not each.is_linear]
    first, plain, others = several[0], several[-1], several[1:-1]
    # The best so far, the plain fit and linear ridge are compared whatever time is left.
    always = [*dict.fromkeys([first, plain]), *linear]
    limit = TimeLimit() if D <= FEWEST_COMPONENTS else search.clock.limit()
    if len(tried := search.try_all(limit, always, D, last=True)) < len(always):
        D = FEWEST_COMPONENTS
        tried = search.try_all(TimeLimit(), always, D, last=True)
    search.clock.taken[D, True] = _TIMES * max(sum(each.cost) for each in tried)
    if adds:
        tried += _sums(search, first, others, D)
    tried += search.try_some(others, D, last=True)
    while more := _beside(tried):
        tried += (made := search.try_some(more, D, last=True))
        if len(made) < len(more):
            break
    search.ranked(tried, default=plain)


def _affordable(n_components: int, search: Search) -> int:
    """Return as many features as memory and most of the seconds allow two trials.

    These are no more than the rows of a sample, unless that is all rows.
    """
    plan, n, K = search.plan, search.n_rows, search.n_folds
    seconds = search.clock.left() / search.clock.slowness
    itemsize = dtype_of_features(plan.precision).itemsize
    D = min(n_components, _MOST_COMPONENTS, max(n // 2 * 2, 2) if n < plan.n_rows else n_components)
    while D > FEWEST_COMPONENTS and (
        fit_bytes(n, plan.n_features, D, itemsize, K) > plan.allowed_bytes
        or A_TRIAL * fit_seconds(n, plan.n_features, D, K, plan.precision, 1) > _MOST * seconds
    ):
        D = max(D // 4 * 2, FEWEST_COMPONENTS)
    return D


def _beside(tried: Sequence[Result]) -> list[Setting]:
    """Return untried length scales beside the best setting, or else beside one as good."""
    ranked = by_error(tried)
    enough = ranked[0].relative_mse + ranked[0].standard_error
    known = {_place(each.setting) for each in tried}
    for each in ranked:
        untried = [one for one in near([each.setting], (-0.5, 0.5)) if _place(one) not in known]
        beside = [one for one in untried if abs(_place(one)[1]) <= _FARTHEST]
        if each.relative_mse <= enough and beside and not each.setting.is_linear:
            return beside
    return []


def _place(setting: Setting) -> tuple[int, int]:
    """Return which setting it is, and its half octaves from the kernel's own length scale."""
    return setting.number, round(2.0 * setting.octave)


def _sums(search: Search, best: Setting, others: Sequence[Setting], D: int) -> list[Result]:
    """Try the best kernel plus less, and more, of the next two; then weights beside the best."""
    firsts: dict[str, Setting] = {}  # of every kernel
    for other in others:
        if _may_be_added(search, best, other):
            firsts.setdefault(other.tried.name, other)
    found: dict[tuple[str, int], Result] = {}
    wanted = [(name, power) for power in (-1, 1) for name in [*firsts][:_MOST_ADDED]]
    while wanted:
        sums = [_sum_of(search, best, firsts[name], _ODDS**power) for name, power in wanted]
        new = [setting for each in sums for setting in search.add(each)]
        made = search.try_some(new, D, last=True)
        found |= zip(wanted, made, strict=False)
        if len(made) < len(new):
            break
        name, power = min(found, key=lambda place: found[place].relative_mse)
        beside = [(name, power - 1), (name, power + 1)]
        wanted = [one for one in beside if one not in found and abs(one[1]) <= _MOST_POWER]
    return [*found.values()]


def _may_be_added(search: Search, first: Setting, second: Setting) -> bool:
    """Say whether a sum has one length scale and landmarks of inputs that are scaled alike."""
    scales = {search.metrics[each.place].scale for each in (first, second)}
    are_scaled = all(isinstance(each.tried, ShiftInvariantKernel) for each in (first, second))
    return first.feature_map == _LANDMARKS and are_scaled and len(scales) == 1


def _sum_of(search: Search, best: Setting, other: Setting, weight: float) -> MetricSettings:
    """Return one kernel plus another times a weight, each on inputs in its own metric.

    Both length scales are scaled so that distances in all inputs say how far the sum falls off at
    first: landmarks are chosen there.
    """
    first, second = (search.metrics[each.place] for each in (best, other))
    scales = np.sqrt(np.array([1.0, weight]) / (1.0 + weight))
    factors = scales / [each.tried.length_scale for each in (best, other)]
    standardizer = first.summary.standardizer
    both = standardizer.beside(second.summary.standardizer, factors)
    r = standardizer.n_outputs
    kernels = [
        each.tried.with_length_scale(float(scale))
        for each, scale in zip((best, other), scales, strict=True)
    ]
    columns = tuple(range(r)), tuple(range(r, both.n_outputs))
    kernel = Sum(kernels=tuple(kernels), weights=(1.0, weight), columns=columns)
    summary, parts = replace(first.summary, standardizer=both), (best.place, other.place)
    return MetricSettings(ADDED, summary, [(kernel, _LANDMARKS)], first.scale, parts=parts)
