"""What a fit says of itself, under the names of the command line's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from streamkern.kernels import length_scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats
    from streamkern.kernels import Kernel
    from streamkern.solve import NormalEquations, RidgeSolution
    from streamkern.tune.penalty_search import Size


class FitReport(TypedDict, total=False):
    """What a fit reports; a value for every target is a number where there is one target."""

    # The rows.
    rows: int  # that were used
    n_features: int  # p
    n_targets: int  # q
    skipped_rows: int  # with values that are not finite
    weightless_rows: int  # of weight 0
    forgotten_rows: int  # taken out of the moments again
    weight: float  # the sum of the weights of rows
    weights: str | None  # what rows are weighted by, in words
    data: dict[str, Any]  # where the rows are from: kind, datasets, files, recipe, names of targets
    feature_names: list[str]  # of the inputs, where they have names
    dropped_columns: list[int]  # constant inputs
    nearly_constant_columns: list[int]  # inputs whose deviation was enlarged
    # The work.
    seconds: dict[str, float]  # by the part of the fit, with their total
    rows_per_second: float  # of the pass for moments
    peak_worker_bytes: int  # measured
    projected_worker_bytes: int  # planned
    retried_shards: int
    resumed_shards: int  # from a checkpoint
    # The map and the kernel.
    kernel: str  # its name
    kernel_parameters: dict[str, Any]
    length_scale: Any  # a number, one for every input, or None
    feature_map: str  # its family
    n_components: int  # features that have coefficients, or principal components
    n_random_features: int  # D of principal components
    precision: str  # "single" or "double"
    metric: dict[str, Any] | None  # what a metric says of the inputs
    # The solution.
    n_folds: int  # with rows; 0 for none
    fold_by: str | None  # what is dealt to folds: "shards", "blocks" or "rows"
    alpha: Any  # the penalty, for every target where they differ
    alpha_curve: dict[str, Any] | None  # the criterion at every penalty
    components_curve: dict[str, Any] | None  # the error at every number of features
    sparse_of: int | None  # features before the selection of some
    sparse_method: str | None
    sparse_curve: dict[str, Any] | None  # the error at every number of selected features
    cv_rmse: Any  # cross-validated, or leave-one-out
    train_rmse: Any
    noise: Any  # the standard deviation of the targets about the function
    effective_dof: Any
    condition: float | None  # of the penalised Gram matrix
    precision_floor: float  # the penalty below which rounding decides
    solver: str
    errors_from: str  # "moments", "rows" or "bound"
    note: str  # sentences of what to know
    # A search.
    tuning: list[dict[str, Any]]  # the trials
    tuning_note: str
    tuning_passes: float
    tuning_kernels: list[dict[str, Any]]
    tuning_maps: list[str]
    tuning_budget: str | None
    frontier: list[dict[str, Any]]  # the best errors against time
    # Classes.
    classes: dict[str, Any]
    class_factors: list[float] | None  # what weights of rows are multiplied by
    class_counts: list[float]  # rows or weights
    calibration: str | None
    # Rounds of boosting.
    n_estimators: int  # asked for
    algorithm: str
    learning_rate: float
    rounds: list[dict[str, Any]]
    stopped: str | None  # why there are fewer rounds
    train_error: float  # of the labels of the rows
    train_error_bound: float | None
    # Principal components.
    rank: int  # of the centred Gram matrix
    explained_variance: list[float]
    explained_variance_ratio: list[float]


def with_seconds(report: dict[str, Any], **parts: float) -> dict[str, Any]:
    """Return a report with the seconds of more parts of the work, which the total counts too."""
    seconds = report["seconds"]
    added = {name: seconds.get(name, 0.0) + spent for name, spent in parts.items()}
    total = seconds["total"] + sum(parts.values())
    return report | {"seconds": seconds | added | {"total": total}}


def kernel_facts(kernel: Kernel) -> FitReport:
    return {
        "kernel": kernel.name,
        "kernel_parameters": kernel.parameters(),
        "length_scale": length_scale_of(kernel),
    }


def facts_of(solution: RidgeSolution, equations: NormalEquations, flat: bool) -> FitReport:
    return {
        "n_components": len(solution.coef),
        "alpha": plain(solution.alpha),
        "train_rmse": as_stored(np.sqrt(equations.train_rss / equations.weight), flat),
        "effective_dof": plain(solution.effective_dof),
        "noise": as_stored(np.sqrt(equations.noise_variance), flat),
        "condition": solution.condition if np.isfinite(solution.condition) else None,
        "precision_floor": solution.floor,
        "solver": solution.solver,
    }


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def as_stored(per_target: Floats, flat: bool) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if flat else per_target.tolist()


def sizes_as_dict(sizes: Sequence[Size], flat: bool) -> dict[str, Any]:
    if len(sizes) < 2:
        return {}
    scores = [size.curve.combined(size.chosen) for size in sizes]
    return {
        "n_components": [size.n_components for size in sizes],
        "cv_rmse": [as_stored(size.cv_rmse, flat) for size in sizes if size.cv_rmse is not None],
        "relative_mse": [score for score, _ in scores],
        "standard_errors": [error for _, error in scores],
        "alpha": [size.curve.alphas[size.chosen].tolist() for size in sizes],
    }
