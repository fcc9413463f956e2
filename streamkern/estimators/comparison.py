"""Exact kernel ridge regression beside random features, over their number, on the same rows."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import stdtrit

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import DataError, ParameterError, StreamkernWarning, warn
from streamkern.errors.checks import check_choice, checked_integer
from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge, check_memory
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.features import FAMILIES
from streamkern.kernels import Kernel, ShiftInvariantKernel, length_scale_of
from streamkern.models.scoring import scored
from streamkern.parameters.parameters import Parameters, first_kernel_of
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.parameters.planning import plan_here
from streamkern.runtime.threads import blas_threads
from streamkern.solve.solution import are_below
from streamkern.sources import ArraySource, Source
from streamkern.statistics import RowSample

CONFIDENCE = 0.95
INTERVAL = (
    f"mean over the seeds of the map, and the {CONFIDENCE:.0%} interval of that mean by Student's "
    f"t; the rows are the same for every seed"
)
# Rows whose kernel errors are found.
_KERNEL_ROWS = 512
# The fewest rows to draw from, and to test on.
_FEWEST, _FEWEST_TESTED = 10, 2

Rows = tuple[Floats, Floats, Floats | None]  # inputs, targets and weights


@dataclass(frozen=True)
class Trial:
    """One line of a comparison: a model, over the seeds of its map.

    Errors, in units of the target, and seconds are means over the `runs`, one a seed, `alpha` is
    the median; `interval` has the 95% intervals of the means by Student's t.  `kernel_error` is the
    mean of |phi(x)^T phi(x') - k(x, x')| over pairs of held-out rows.  `matrix_bytes` are of the
    system in double, or of the vectors of conjugate gradients.
    """

    method: str
    map: str | None
    n_components: int | None
    solver: str | None
    seeds: tuple[int, ...]
    test_rmse: float
    relative_rmse: float
    cv_rmse: float | None
    loo_rmse: float | None
    kernel_error: float | None
    interval: dict[str, tuple[float, float] | None]
    alpha: float
    fit_seconds: float
    predict_seconds: float
    matrix_bytes: int
    runs: tuple[dict[str, Any], ...]


def _trial(name: str | None, n_components: int | None, runs: list[Any], reference: float) -> Trial:
    """Return what runs of a map by its name, or of the exact model, tell together."""
    values = {field: [run[field] for run in runs] for field in runs[0]}
    averaged = (
        "test_rmse",
        "cv_rmse",
        "loo_rmse",
        "kernel_error",
        "fit_seconds",
        "predict_seconds",
    )
    means: dict[str, Any] = {
        field: None if None in values[field] else float(np.mean(values[field]))
        for field in averaged
    }
    return Trial(
        **means,
        method="exact" if name is None else "random features",
        map=name,
        n_components=n_components,
        solver=runs[0]["solver"],
        seeds=tuple(seed for seed in values["seed"] if seed is not None),
        relative_rmse=means["test_rmse"] / reference,
        interval={each: _interval(values[each]) for each in ("test_rmse", "kernel_error")},
        alpha=float(np.median(values["alpha"])),
        matrix_bytes=max(values["matrix_bytes"]),
        runs=tuple(runs),
    )


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return mean -+ t s / sqrt(m), with the standard deviation s of m values, if m > 1."""
    if (m := len(values)) < 2:
        return None
    half = float(stdtrit(m - 1, 0.5 + CONFIDENCE / 2.0) * np.std(values, ddof=1) / np.sqrt(m))
    mean = float(np.mean(values))
    return mean - half, mean + half


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds: the trial of the exact model, and those of random features."""

    trials: tuple[Trial, ...]
    n_train: int
    n_test: int
    kernel: dict[str, Any]
    alpha: float | tuple[float, ...] | str
    target_deviation: float
    interval: str = INTERVAL

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)


def compare(
    source: Source,
    model: RandomFeatureRidge,
    *,
    n_components: Sequence[int] = (64, 128, 256, 512, 1024, 2048),
    maps: Sequence[str] = ("orthogonal", "iid"),
    n_seeds: int = 5,
    n_train: int = 4000,
) -> Comparison:
    """Fit exact kernel ridge regression and random features to the same rows.

    Where the model chooses its alpha, so does every model here, from these rows alone: the exact
    one by leave-one-out, the others by the model's criterion.  Rows and folds are the same for all;
    only the map is drawn again for every seed.  While models are fitted, BLAS has one thread.

    Parameters
    ----------
    source : Source
        A uniform sample of its rows is used; they count by their weights, in fits and in errors.
    model : RandomFeatureRidge
        The options of all models, except for map, number of components, and `fold_by`: folds
        are blocks of the sampled rows, which are in random order.
    n_components : sequence of int
    maps : sequence of str
        As the option `feature_map` of a model.
    n_seeds : int
        How often every map is drawn, with the seed of the model and those that follow it.
    n_train : int
        Rows to fit, at most 4/5 of all; a fourth as many others are tested.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If there is nothing to compare, or an option has a value that it cannot have.
    InsufficientMemoryError
        If some model does not fit, before the first is fitted.
    DataError
        If there are fewer than ten rows, or rows that are not finite.
    """
    penalty = checked_comparison(model, n_components, maps, n_seeds)
    if not source.n_targets:
        raise DataError(
            "a comparison needs targets that are numbers, but the source has none; name a dataset "
            "of them with y."
        )
    exact = ExactKernelRidge(
        alpha=penalty.grid or ("loo" if isinstance(penalty.alpha, str) else penalty.alpha),
        standardize=False,  # the rows are, for all models
        fit_intercept=model.fit_intercept,
        leave_one_out=True,
    )
    if source.n_samples < _FEWEST:
        raise DataError(
            f"a comparison needs {_FEWEST} rows, but there are {source.n_samples}; add rows."
        )
    n_train = min(n_train, 4 * source.n_samples // 5)
    fewest = model.n_folds if penalty.needs_folds else 2
    if n_train < fewest:
        raise ParameterError(
            f"a comparison must fit at least {fewest} rows, not {n_train}; ask for more rows."
        )
    check_memory(n_train, exact.alpha)
    train, tested, kernel = _standardized(source, n_train, model)
    options = model.get_params(deep=False) | {"kernel": kernel, "metric": None}
    options |= {"standardize": False, "scale": "standard", "fold_by": "blocks"}
    drawn = {
        (name, D): options | {"feature_map": name, "n_components": D}
        for name in maps
        for D in sorted(n_components)
    }
    largest = Parameters(**drawn[maps[0], max(n_components)])
    passes = largest.pass_options()
    plan_here(ArraySource(*train), passes, **largest.solution_by_passes(passes)).accepted()
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {key: [] for key in drawn}
    with blas_threads(1):
        exact_run = _run_of(exact.set_params(kernel=kernel), train, tested)
        for seed in range(model.random_state, model.random_state + n_seeds):
            for key, found in runs.items():
                sized = RandomFeatureRidge(**drawn[key] | {"random_state": seed})
                found.append(_run_of(sized, train, tested, seed, kernel))
    _warn_of_rounding(list(chain.from_iterable(runs.values())))
    reference = exact_run["test_rmse"]
    trials = [_trial(*key, found, reference) for key, found in runs.items()]
    _, y, weights = tested
    return Comparison(
        trials=(_trial(None, None, [exact_run], reference), *trials),
        n_train=len(train[1]),
        n_test=len(y),
        kernel={"name": kernel.name, **kernel.parameters()}
        | {"length_scale": length_scale_of(kernel)},
        alpha=penalty.alpha,
        target_deviation=_rmse(y - np.average(y, axis=0, weights=weights), weights),
    )


def checked_comparison(
    model: RandomFeatureRidge, n_components: Sequence[int], maps: Sequence[str], n_seeds: Any
) -> PenaltyOptions:
    """Return how alpha is chosen, or raise ParameterError; parameters are those of `compare`."""
    if not isinstance(model, RandomFeatureRidge):
        raise ParameterError(
            f"a comparison is of a RandomFeatureRidge, not of {type(model).__name__}; compare the "
            f"regression on labels that are numbers, such as 1 and -1."
        )
    kernel = first_kernel_of(model.kernel)
    if not isinstance(kernel, ShiftInvariantKernel) or model.feature_map == "identity":
        name = kernel.name if model.feature_map != "identity" else "linear"
        raise ParameterError(f"the {name} kernel has no random features; compare another kernel.")
    if model.per_target or model.one_standard_error:
        raise ParameterError(
            "a comparison takes the one alpha of least error for all targets; leave per_target and "
            "one_standard_error out."
        )
    sentence = (
        "n_seeds must be a whole number of at least 1, not {!r}; give how often to draw every map."
    )
    checked_integer(n_seeds, sentence, 1)
    for what, values in (("n_components", list(n_components)), ("maps", list(maps))):
        if not values:
            raise ParameterError(f"{what} must name at least one; name some.")
        if len(set(values)) < len(values):
            raise ParameterError(f"{what} must name each once, not {values}; leave the others out.")
    for name in maps:
        check_choice("maps", name, [each for each in FAMILIES if each != "identity"])
        for D in n_components:
            options = model.get_params(deep=False) | {"feature_map": name, "n_components": D}
            parameters = Parameters(**options)
            parameters.pass_options()
    return parameters.penalty


def _standardized(
    source: Source, n_train: int, model: RandomFeatureRidge
) -> tuple[Rows, Rows, Kernel]:
    """Return rows to fit and to test, in units that all models share, and the kernel of these."""
    n_rows = n_train + max(n_train // 4, _FEWEST_TESTED)
    empty, skip = RowSample(n_rows, model.random_state), model.on_bad_rows == "skip"
    found, drawn, _ = scored(source, empty, empty, source.row_bytes, "sample", skip)
    if found.n_rows < _FEWEST:
        raise DataError(
            f"a comparison needs {_FEWEST} rows, but {found.n_rows} of {source.n_samples:,} are "
            f"finite and have a weight above 0; add rows."
        )
    y = drawn.y[:, 0] if source.target_ndim == 1 else drawn.y
    weights = None if source.weighted_by is None else drawn.weights
    n = min(n_train, len(y) - len(y) // 5)  # fewer than asked for where rows are skipped
    smallest: dict[str, Any] = {"n_components": 2, "alpha": 1.0, "alphas": None}
    smallest["kernel"] = first_kernel_of(model.kernel)
    fitted = RandomFeatureRidge(**model.get_params(deep=False) | smallest)
    fitted.fit(drawn.X[:n].astype(float), y[:n], None if weights is None else weights[:n])
    X = fitted.feature_map_.standardizer(drawn.X.astype(float))
    train, tested = (
        (X[part], y[part], None if weights is None else weights[part])
        for part in (slice(n), slice(n, None))
    )
    return train, tested, fitted.kernel_


def _run_of(
    model: Any, train: Rows, tested: Rows, seed: int | None = None, kernel: Kernel | None = None
) -> dict[str, Any]:
    """Fit a model and test it; with a kernel, find the error of its features about that."""
    begun, is_exact = time.perf_counter(), isinstance(model, ExactKernelRidge)
    X, y, weights = tested
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        if is_exact:
            # On a worker, where there are any: it factorises an n x n matrix.
            model = compute(delayed(ExactKernelRidge.fit, model, *train, name="exact"))
        else:
            model.fit(*train)
    fitted = time.perf_counter()
    errors = model.predict(X) - y
    predicted = time.perf_counter()
    report: dict[str, Any] = {} if is_exact else model.report_
    held_out, kernel_error = report.get("cv_rmse"), None
    order = columns = len(train[1]) if is_exact else report["n_components"]
    if gradients := report.get("gradients"):
        columns = gradients["vectors"] + (gradients.get("block") or gradients["sketch"])
    if kernel is not None:
        some = X[:_KERNEL_ROWS]
        features = model.transform(some)
        pairs = np.triu_indices(len(some), 1)
        kernel_error = float(np.abs(features @ features.T - kernel(some, some))[pairs].mean())
    return {
        "seed": seed,
        "solver": report.get("solver"),
        "alpha": model.alpha_,
        "test_rmse": _rmse(errors, weights),
        "cv_rmse": None if held_out is None else _rmse(np.array(held_out)),
        "loo_rmse": _rmse(model.loo_residuals_, train[2]) if is_exact else None,
        "kernel_error": kernel_error,
        "precision_floor": report.get("precision_floor"),
        "fit_seconds": fitted - begun,
        "predict_seconds": predicted - fitted,
        "matrix_bytes": 8 * order * columns,
    }


def _rmse(errors: Floats, weights: Floats | None = None) -> float:
    """Return the root of the mean square over rows and targets."""
    return float(np.sqrt(np.average(np.atleast_1d(errors) ** 2, axis=0, weights=weights).mean()))


def _warn_of_rounding(runs: Sequence[dict[str, Any]]) -> None:
    floors = [(run["precision_floor"] or 0.0, run["alpha"]) for run in runs]
    lost = [floor for floor, alpha in floors if are_below(floor, alpha)]
    if lost:
        warn(
            f"{len(lost)} of {len(runs)} models with random features have an alpha below the "
            f"precision floor of their sums, up to {max(lost):.3g}, and leave out "
            f"what lies below it; a larger alpha or double precision keeps it."
        )
