"""The end of a search within seconds: contenders, compared at the number of features of the fit.

Rough kernels need many features, so that few of them would prefer the smooth.  Contenders have the
length scales that their metrics were learnt with; of the best, what is near is tried as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.parameters.cost_estimate import fit_seconds
from streamkern.statistics import dtype_of_features
from streamkern.tune.budget import Budget, Ledger, Spent
from streamkern.tune.candidates import Candidate, Contender, near
from streamkern.tune.search_trials import SearchTrials
from streamkern.tune.trials import trial_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.tune.search_result import Search
    from streamkern.tune.trials import Attempt

# Octaves from the length scale of a metric that are tried at the most.
_FARTHEST = 3
# Features that contenders have at the most, and those that they always may have.
_MOST_COMPONENTS, _FEWEST_COMPONENTS = 4096, 512


def compare(
    contenders: Sequence[Contender],
    options: FitOptions,
    *,
    plan: Plan,
    n_rows: int,
    budget: Budget,
    spent: Spent,
    folds: Array | None,
) -> Search:
    """Choose among contenders, the best of which comes first and a plain fit last.

    Of noise any of them may come out best, so the plain fit stays if it is within a standard error.
    """
    trials = SearchTrials(contenders, n_rows, options, Ledger(budget, plan, spent), folds)
    D = _affordable(options.n_components, trials, budget.amount - spent.seconds)
    first, *others = [Candidate(arm, 1.0) for arm in range(len(trials.arms))]
    # The best so far and the plain fit are compared whatever time is left.
    candidates = [first, *others[-1:]]
    tried = trials.try_all(candidates, D, last=True)
    more = others[:-1] or _beside(candidates, tried)
    while more:
        made = trials.try_some(more, D, 1.0, last=True)
        candidates, tried = [*candidates, *more[: len(made)]], [*tried, *made]
        more = _beside(candidates, tried) if len(made) == len(more) else []
    trials.ranked(candidates, tried, default=len(others[:1]))  # the last contender is the second
    return trials.found()


def _affordable(n_components: int, trials: SearchTrials, seconds: float) -> int:
    """Return as many features as rows, memory and half of the seconds allow two trials."""
    plan, n, K = trials.ledger.plan, trials.n_rows, trials.n_folds
    itemsize = dtype_of_features(plan.precision).itemsize
    D = min(n_components, _MOST_COMPONENTS, max(n // 2 * 2, 2))
    while D > _FEWEST_COMPONENTS and (
        trial_bytes(n, plan.n_features, D, itemsize, K) > plan.allowed_bytes
        or fit_seconds(n, plan.n_features, D, K, plan.precision, 1) > seconds / 2
    ):
        D = max(D // 4 * 2, _FEWEST_COMPONENTS)
    return D


def _beside(candidates: Sequence[Candidate], tried: Sequence[Attempt]) -> list[Candidate]:
    """Return untried length scales beside the best candidate, or else beside one as good."""
    order = np.argsort([each.relative_mse for each in tried], kind="stable").tolist()
    enough = tried[order[0]].relative_mse + tried[order[0]].standard_error
    known = {(each.arm, round(2.0 * np.log2(each.factor))) for each in candidates}
    for i in order:
        beside = [
            each
            for each in near([candidates[i]], (-1, 1))
            if (each.arm, round(2.0 * np.log2(each.factor))) not in known
            and abs(np.log2(each.factor)) <= _FARTHEST
        ]
        if tried[i].relative_mse <= enough and beside:
            return beside
    return []
