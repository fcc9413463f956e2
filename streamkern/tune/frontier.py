"""Error against cost: what every kernel and map that was tried would take on all rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.parameters.cost_estimate import fit_flops, solve_flops
from streamkern.tune.kernel_trials import ISOTROPIC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamkern.parameters.plan import Plan
    from streamkern.tune.kernel_trials import Attempt


@dataclass(frozen=True)
class Configuration:
    """A metric, kernel, family of maps and number of features, with its best length scale.

    Parameters
    ----------
    metric, feature_map, kernel : str
    length_scale : float or tuple of float
    n_components : int
    relative_mse, standard_error : float
        On rows of the sample that were left out, as of an `Attempt`.
    passes : float
        The multiply-adds of a fit to all rows, over those of the fit that was asked for.
    seconds : float
        Of a fit to all rows: to draw the map, and what the trial took of one thread, for as many
        rows and folds, over the threads there are.
    is_best : bool
        No configuration is both cheaper, in seconds, and at least as good.
    is_chosen : bool
        It is what was chosen, at the largest number of features that it was tried at.
    """

    metric: str
    feature_map: str
    kernel: str
    length_scale: Any
    n_components: int
    relative_mse: float
    standard_error: float
    passes: float
    seconds: float
    is_best: bool = False
    is_chosen: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self) | {"length_scale": np.asarray(self.length_scale).tolist()}


def map_in_words(tried: Mapping[str, Any]) -> str:
    """Return the map of an attempt or a configuration as a report keeps it, with its metric."""
    name: str = tried["feature_map"]
    return name if tried["metric"] == ISOTROPIC else f"{name}, {tried['metric']}"


def configurations(
    attempts: Sequence[Attempt], chosen: Attempt, plan: Plan, n_folds: int
) -> tuple[Configuration, ...]:
    """Return what was tried, the best length scale of each, the cheapest first."""
    best: dict[tuple[str, str, str, int], Attempt] = {}
    for attempt in attempts:
        name = _name_of(attempt)
        if name not in best or attempt.relative_mse < best[name].relative_mse:
            best[name] = attempt
    best[_name_of(chosen)] = chosen
    found = sorted(
        (_configuration(each, chosen, plan, n_folds) for each in best.values()),
        key=lambda each: (each.seconds, each.relative_mse),
    )
    least = np.inf
    for i, each in enumerate(found):
        if each.relative_mse < least:
            least = each.relative_mse
            found[i] = replace(each, is_best=True)
    return tuple(found)


def _name_of(attempt: Attempt) -> tuple[str, str, str, int]:
    return attempt.metric, attempt.feature_map, attempt.kernel, attempt.n_components


def _configuration(attempt: Attempt, chosen: Attempt, plan: Plan, n_folds: int) -> Configuration:
    D = attempt.n_components
    solving = solve_flops(D, n_folds) / solve_flops(D, attempt.n_folds)
    cost = attempt.cost
    shared = cost.sums * plan.n_rows / attempt.n_rows + cost.errors * solving
    return Configuration(
        attempt.metric,
        attempt.feature_map,
        attempt.kernel,
        attempt.length_scale,
        D,
        attempt.relative_mse,
        attempt.standard_error,
        fit_flops(plan.n_rows, plan.n_features, D, n_folds) / plan.flops,
        cost.drawing + shared / plan.n_slots,
        is_chosen=attempt is chosen,
    )
