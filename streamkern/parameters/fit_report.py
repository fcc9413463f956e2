"""Fit report: what a fit says of itself, under the names of the command line's JSON."""

from typing import Any, TypedDict


class FitReport(TypedDict, total=False):
    """What a fit reports; a value for every target is a number where there is one target."""

    # The rows.
    rows: int  # that were used
    n_features: int  # p
    input_range: list[list[float]]  # the least and the largest value of every one of few inputs
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
    rows_per_second: float  # that were read in the main passes
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
    precision: str  # "single", "double", "int8" or "int16"
    products: str  # what made products of integers
    metric: dict[str, Any] | None  # what a metric says of the inputs
    scale: str  # of the inputs, one of the choices but "auto"
    scale_errors: dict[str, float]  # of rows held out, by the scales that were tried
    crowding: dict[str, Any]  # errors of a small fit near rows and far from them, where they differ
    kernel_errors: dict[str, float]  # likewise by kernels, in the scale that was chosen
    kernel_evidence: dict[str, float]  # its logarithm for a row of a field, by kernels
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
    feature_rounding: float  # root mean square error of a rounded feature, in units of a level
    weight_unit: float  # of which integers stand for weights
    rounding_rmse: Any  # what rounded features move predictions by
    trend: list[dict[str, Any]]  # the coefficient of every term with its deviation
    precision_floor: float  # the penalty below which rounding decides
    solver: str  # "cholesky", "eigen" or "cg"
    passes: int  # readings of the rows
    iterations: int  # of these, iterations of conjugate gradients
    gradients: dict[str, Any]  # conjugate gradients: vectors, sketch, what is left to solve
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
    cv_accuracy: float  # of rows left out, by the largest score
    calibration: str  # what makes probabilities of scores
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
    # The file that a command wrote or read, as it prints it.
    model: str
    moments: str
    pca: str
    bytes: int


def with_seconds(report: FitReport, **parts: float) -> FitReport:
    """Return a report with the seconds of more parts of the work, which the total counts too."""
    seconds = report["seconds"]
    added = {name: seconds.get(name, 0.0) + spent for name, spent in parts.items()}
    total = seconds["total"] + sum(parts.values())
    return report | {"seconds": seconds | added | {"total": total}}
