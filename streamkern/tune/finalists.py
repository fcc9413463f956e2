"""The end of a search within seconds: contenders, compared at the number of features of the fit.

Rough kernels need many features, so that few of them would prefer the smooth.  Contenders have the
length scales that their metrics were learnt with; of the best, what is near is tried as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.tune.budget import Budget, Ledger, Spent
from streamkern.tune.candidates import Candidate, Contender, near
from streamkern.tune.search_trials import SearchTrials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.tune.search_result import Search
    from streamkern.tune.trials import Attempt

# Half octaves to either side of the best that are tried, one after the other.
_MOST_STEPS = 4


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
    """Choose among contenders, the best of which comes first and a plain fit last."""
    trials = SearchTrials(contenders, n_rows, options, Ledger(budget, plan, spent), folds)
    first, *others = [Candidate(arm, 1.0) for arm in range(len(trials.arms))]
    candidates: list[Candidate] = [first, *others[-1:], *others[:-1]]
    tried: list[Attempt] = []
    for _ in range(1 + _MOST_STEPS):
        before = len(tried)
        tried += trials.try_some(candidates[before:], options.n_components, 1.0, last=not before)
        candidates = candidates[: len(tried)]
        best = candidates[int(np.argmin([each.relative_mse for each in tried]))]
        more = [
            each
            for each in near([best], (-1, 1))
            if not any(
                each.arm == one.arm and np.isclose(each.factor, one.factor) for one in candidates
            )
        ]
        if len(tried) == before or not more:
            break
        candidates += more
    trials.ranked(candidates[: len(tried)], tried)
    return trials.found()
