"""The end of a search within seconds: contenders, compared at the number of features of the fit.

Rough kernels need many features, so that few of them would prefer the smooth.  Contenders have the
length scales that their metrics were learnt with; of the best, what is near is tried as well.  Then
kernels are added, each in its own metric: what is smooth along some directions is often rough along
others.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamkern.kernels import ScaledKernel
from streamkern.parameters.cost_estimate import fit_seconds
from streamkern.statistics import dtype_of_features
from streamkern.tune.budget import A_TRIAL
from streamkern.tune.candidates import MetricSettings, ScaledSetting, near
from streamkern.tune.search_result import Search
from streamkern.tune.search_trials import SearchTrials
from streamkern.tune.time_limit import TimeLimit
from streamkern.tune.trials import ADDED, Result, trial_bytes

# Half octaves from the length scale of a metric that are tried at the most.
_FARTHEST = 6
# Features that contenders have at the most, and those that they always may have.
_MOST_COMPONENTS, _FEWEST_COMPONENTS = 4096, 512
# What two trials side by side may take of the seconds.
_MOST = 0.8
# Kernels that are added to the best, one at a time; weights are powers of this, up to that one.
_MOST_ADDED, _ODDS, _MOST_POWER = 2, 4.0, 3
_LANDMARKS = "nystroem"


def compare(trials: SearchTrials, n_components: int, *, adds: bool) -> Search:
    """Choose among contenders, the best of which comes first and a plain fit last, and their sums.

    Of noise any of them may come out best: the plain fit stays unless others beat it.
    """
    D = _affordable(n_components, trials)
    settings = trials.settings
    linear = [
        ScaledSetting(setting, 1.0) for setting, each in enumerate(settings) if each.is_linear
    ]
    several = [
        ScaledSetting(setting, 1.0) for setting, each in enumerate(settings) if not each.is_linear
    ]
    first, plain, others = several[0], several[-1], several[1:-1]
    # The best so far, the plain fit and linear ridge are compared whatever time is left.
    candidates = [*dict.fromkeys([first, plain]), *linear]
    limit = TimeLimit() if D <= _FEWEST_COMPONENTS else trials.ledger.clock.limit()
    if len(tried := trials.try_all(limit, candidates, D, last=True)) < len(candidates):
        D = _FEWEST_COMPONENTS
        tried = trials.try_all(TimeLimit(), candidates, D, last=True)
    if adds:
        sums, made = _sums(trials, first, others, D)
        candidates += sums
        tried += made
    made = trials.try_some(others, D, 1.0, last=True)
    candidates += others[: len(made)]
    tried += made
    while more := _beside(trials, candidates, tried):
        made = trials.try_some(more, D, 1.0, last=True)
        candidates += more[: len(made)]
        tried += made
        if len(made) < len(more):
            break
    trials.ranked(candidates, tried, default=candidates.index(plain))
    return trials.found()


def _affordable(n_components: int, trials: SearchTrials) -> int:
    """Return as many features as memory and most of the seconds allow two trials.

    These are no more than the rows of a sample, unless that is all rows.
    """
    ledger, n, K = trials.ledger, trials.n_rows, trials.n_folds
    plan, seconds = ledger.plan, ledger.clock.left() / ledger.clock.slowness
    itemsize = dtype_of_features(plan.precision).itemsize
    D = min(n_components, _MOST_COMPONENTS, max(n // 2 * 2, 2) if n < plan.n_rows else n_components)
    while D > _FEWEST_COMPONENTS and (
        trial_bytes(n, plan.n_features, D, itemsize, K) > plan.allowed_bytes
        or A_TRIAL * fit_seconds(n, plan.n_features, D, K, plan.precision, 1) > _MOST * seconds
    ):
        D = max(D // 4 * 2, _FEWEST_COMPONENTS)
    return D


def _beside(
    trials: SearchTrials, candidates: Sequence[ScaledSetting], tried: Sequence[Result]
) -> list[ScaledSetting]:
    """Return untried length scales beside the best candidate, or else beside one as good."""
    order = np.argsort([each.relative_mse for each in tried], kind="stable").tolist()
    enough = tried[order[0]].relative_mse + tried[order[0]].standard_error
    known = {_place(each) for each in candidates}
    for i in order:
        if trials.settings[candidates[i].setting].is_linear:
            continue
        untried = [one for one in near([candidates[i]], (-1, 1)) if _place(one) not in known]
        beside = [one for one in untried if abs(_place(one)[1]) <= _FARTHEST]
        if tried[i].relative_mse <= enough and beside:
            return beside
    return []


def _sums(
    trials: SearchTrials, best: ScaledSetting, others: Sequence[ScaledSetting], D: int
) -> tuple[list[ScaledSetting], list[Result]]:
    """Try the best kernel plus less, and more, of the next two; then weights beside the best."""
    names: dict[str, int] = {}  # one arm of every kernel, the first
    for one in others:
        if _may_be_added(trials, best.setting, one.setting):
            names.setdefault(trials.settings[one.setting].tried.name, one.setting)
    found: dict[tuple[int, int], tuple[ScaledSetting, Result]] = {}
    wanted = [(setting, power) for power in (-1, 1) for setting in [*names.values()][:_MOST_ADDED]]
    while wanted:
        sums = [_sum_of(trials, best.setting, setting, _ODDS**power) for setting, power in wanted]
        new = [ScaledSetting(trials.add(each), 1.0) for each in sums]
        made = trials.try_some(new, D, 1.0, last=True)
        found |= zip(wanted, zip(new, made, strict=False), strict=False)
        if len(made) < len(new):
            break
        setting, power = min(found, key=lambda place: found[place][1].relative_mse)
        beside = [(setting, power - 1), (setting, power + 1)]
        wanted = [one for one in beside if one not in found and abs(one[1]) <= _MOST_POWER]
    return [one for one, _ in found.values()], [attempt for _, attempt in found.values()]


def _may_be_added(trials: SearchTrials, *numbers: int) -> bool:
    """Say whether kernels have a length scale for inputs of one scale, the first at landmarks."""
    settings = [trials.settings[number] for number in numbers]
    scales = {trials.contenders[setting.place].scale for setting in settings}
    are_scaled = all(isinstance(setting.tried, ScaledKernel) for setting in settings)
    return settings[0].feature_map == _LANDMARKS and are_scaled and len(scales) == 1


def _sum_of(trials: SearchTrials, best: int, other: int, weight: float) -> MetricSettings:
    """Return one kernel plus another times a weight, on inputs that are turned for each.

    Numbers of both are scaled so that distances in all of them say how far the sum falls off at
    first: landmarks are chosen there.
    """
    settings = [trials.settings[number] for number in (best, other)]
    first, second = (trials.contenders[setting.place] for setting in settings)
    scales = np.sqrt(np.array([1.0, weight]) / (1.0 + weight))
    factors = scales / [setting.tried.length_scale for setting in settings]
    summary = first.summary
    both = summary.standardizer.beside(second.summary.standardizer, factors)
    r = summary.standardizer.n_outputs
    terms = [
        setting.tried.with_length_scale(float(scale))
        for setting, scale in zip(settings, scales, strict=True)
    ]
    kernel = terms[0].on(range(r)) + weight * terms[1].on(range(r, both.n_outputs))
    summary, places = (
        replace(summary, standardizer=both),
        tuple(setting.place for setting in settings),
    )
    return MetricSettings(ADDED, summary, [(kernel, _LANDMARKS)], first.scale, parts=places)


def _place(candidate: ScaledSetting) -> tuple[int, int]:
    """Return the arm of a candidate, and its half octaves from the length scale there."""
    return candidate.setting, round(2.0 * np.log2(candidate.factor))
