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

# Octaves from the length scale of a metric that are tried at the most.
_FARTHEST = 3


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
    # The best so far and the plain fit are compared whatever time is left.
    candidates = [first, *others[-1:]]
    tried = trials.try_all(candidates, options.n_components, last=True)
    more = others[:-1] or _beside(candidates, tried)
    while more:
        made = trials.try_some(more, options.n_components, 1.0, last=True)
        candidates, tried = [*candidates, *more[: len(made)]], [*tried, *made]
        more = _beside(candidates, tried) if len(made) == len(more) else []
    trials.ranked(candidates, tried)
    return trials.found()


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
