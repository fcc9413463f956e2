"""What a search found: kernel, map and metric, and error against cost of what was tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern.kernels import Combined
from streamkern.parameters.cost_estimate import fit_flops, solve_flops
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.job_plan import Plan
from streamkern.tune.candidates import Setting
from streamkern.tune.trials import ISOTROPIC, Result

# Fewer length scales than these have edges that say nothing: rounds of a metric tried others.
_FEWEST_TRIED = 3
# What an attempt says of its trial alone.
_OF_TRIAL = ("n_rows", "alpha", "n_folds")


@dataclass(frozen=True)
class Search:
    """What a search found: the arm, with the chosen length scale, and all that was tried."""

    setting: Setting
    attempts: Sequence[Result]
    configurations: Sequence[dict[str, Any]]
    passes: float
    seconds: float

    @property
    def note(self) -> str:
        """One sentence where the chosen length scale is the shortest or longest tried, else ''."""
        tried = self.setting.tried
        if self.setting.is_linear:
            return ""
        name = (self.setting.metric, self.setting.feature_map, tried.name)
        mine = [a for a in self.attempts if (a.metric, a.feature_map, a.kernel) == name]
        # Of several length scales, the first: all are multiplied alike.
        scales = [float(np.atleast_1d(a.length_scale)[0]) for a in mine]
        chosen = float(np.atleast_1d(tried.length_scale)[0])
        if min(scales) < chosen < max(scales) or len(scales) < _FEWEST_TRIED:
            return ""
        if isinstance(tried, Combined):
            return (
                f"the best length scales, {chosen:.4g} and those in proportion to it, are at the "
                f"edge of those tried; search again with length scales about them in the kernel."
            )
        return (
            f"the best length scale, {chosen:.4g}, is at the edge of those tried; search again "
            f"about it with length_scale {chosen:.4g}."
        )

    def as_dict(self) -> FitReport:
        return {
            "tuning": [attempt.as_dict() for attempt in self.attempts],
            "tuning_note": self.note,
            "tuning_passes": self.passes,
            "frontier": list(self.configurations),
        }


def map_in_words(tried: Mapping[str, Any]) -> str:
    """Return the map of an attempt or a configuration as a report keeps it, with its metric."""
    name: str = tried["feature_map"]
    return name if tried["metric"] == ISOTROPIC else f"{name}, {tried['metric']}"


def configurations(
    attempts: Sequence[Result], chosen: Result, plan: Plan, n_folds: int
) -> list[dict[str, Any]]:
    """Return what was tried at the best length scale of each, the cheapest first, for JSON."""
    ascending = sorted(attempts, key=lambda each: each.relative_mse)
    best = {
        (each.metric, each.feature_map, each.kernel, each.n_components): each
        for each in (*reversed(ascending), chosen)
    }
    found = [_configuration(each, each is chosen, plan, n_folds) for each in best.values()]
    found.sort(key=lambda each: (each["seconds"], each["relative_mse"]))
    least = np.inf
    for each in found:  # the best are those that nothing cheaper is as good as
        each["is_best"] = each["relative_mse"] < least
        least = min(least, each["relative_mse"])
    return found


def _configuration(attempt: Result, is_chosen: bool, plan: Plan, n_folds: int) -> dict[str, Any]:
    """Return an attempt with the passes and seconds, on all threads, of a fit to all rows."""
    D, cost, facts = attempt.n_components, attempt.cost, attempt.as_dict()
    solving = solve_flops(D, n_folds) / solve_flops(D, attempt.n_folds)
    shared = cost.sums * plan.n_rows / attempt.n_rows + cost.errors * solving
    return {name: facts[name] for name in facts if name not in _OF_TRIAL} | {
        "passes": fit_flops(plan.n_rows, plan.n_features, D, n_folds) / plan.flops,
        "seconds": cost.drawing + shared / plan.n_slots,
        "is_best": False,
        "is_chosen": is_chosen,
    }
