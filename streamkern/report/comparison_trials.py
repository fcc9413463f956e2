"""Trials of a comparison: a uniform sample of rows, and models fitted to them, map by map."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge
from streamkern.kernels import Kernel
from streamkern.models.scoring import scored
from streamkern.sources import Source
from streamkern.statistics import RowSample

CONFIDENCE = 0.95
INTERVAL = (
    f"mean over the seeds of the map, and the {CONFIDENCE:.0%} interval of that mean by Student's "
    f"t; the rows are the same for every seed"
)
# Rows whose kernel errors are found.
_KERNEL_ROWS = 512
# The fewest rows to draw from, and to test on, and how many are tested at least if there are.
_FEWEST, _FEWEST_TESTED, _TEST_ROWS = 10, 2, 1000


@dataclass(frozen=True)
class Split:
    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats
    weights: Floats | None = None
    test_weights: Floats | None = None


def check_split(source: Source, test: Source | None, n_train: int, *, fewest: int) -> int:
    """Return how many rows there will be to fit, or raise before any is read."""
    for rows, needed in ((source, _FEWEST), (test, _FEWEST_TESTED)):
        if rows is not None and rows.n_samples < needed:
            which = "to test" if rows is test else "to fit"
            raise DataError(
                f"a comparison needs {needed} rows {which}, but there are {rows.n_samples}; add "
                f"rows."
            )
    shape = source.n_features, source.n_targets
    if test is not None and (test.n_features, test.n_targets) != shape:
        raise DataError(
            f"the test rows must have {shape[0]} inputs and {shape[1]} targets, as those to fit, "
            f"not {test.n_features} and {test.n_targets}; name rows of the same kind."
        )
    n_train = min(n_train, source.n_samples if test is not None else 4 * source.n_samples // 5)
    if n_train < fewest:
        raise ParameterError(
            f"a comparison must fit at least {fewest} rows, not {n_train}; ask for more rows."
        )
    return n_train


def sampled_split(
    source: Source, test: Source | None, n_train: int, *, random_state: int, skip_bad_rows: bool
) -> Split:
    how: dict[str, Any] = {"random_state": random_state, "skip_bad_rows": skip_bad_rows}
    if test is not None:
        X, y, s = _sample(source, n_train, _FEWEST, **how)
        tested = _sample(test, max(n_train, _TEST_ROWS), _FEWEST_TESTED, **how)
        return Split(X, y, tested[0], tested[1], s, tested[2])
    n_train = min(n_train, 4 * source.n_samples // 5)
    X, y, s = _sample(source, n_train + max(n_train // 4, _FEWEST_TESTED), _FEWEST, **how)
    n = min(n_train, len(X) - len(X) // 5)  # fewer than asked for where rows are skipped
    weights = (None, None) if s is None else (s[:n], s[n:])
    return Split(X[:n], y[:n], X[n:], y[n:], *weights)


def _sample(
    source: Source, n_rows: int, fewest: int, *, random_state: int, skip_bad_rows: bool
) -> tuple[Floats, Floats, Floats | None]:
    empty = RowSample(n_rows, random_state)
    found, drawn, _ = scored(source, empty, empty, source.row_bytes, "sample", skip_bad_rows)
    if found.n_rows < fewest:
        weightless = f" or have weight 0 in {source.weighted_by}" * (found.n_weightless > 0)
        raise DataError(
            f"{source.n_samples - found.n_rows:,} of {source.n_samples:,} rows hold NaN or "
            f"infinite values{weightless}, and {found.n_rows} are left, but a comparison needs "
            f"{fewest}; add rows."
        )
    weights = None if source.weighted_by is None else drawn.weights
    return drawn.X.astype(float), drawn.y[:, 0] if source.target_ndim == 1 else drawn.y, weights


@dataclass(frozen=True)
class Run:
    """One model, fitted and tested; errors are in units of the target, over all targets.

    `kernel_error` is the mean of |phi(x)^T phi(x') - k(x, x')| over pairs of held-out rows.  Below
    the penalty `precision_floor` the rounding of sums decides.  A fit includes choosing alpha.
    `matrix_bytes` are of the system in double, or of the vectors of conjugate gradients.
    """

    seed: int | None
    solver: str | None
    alpha: float
    test_rmse: float
    cv_rmse: float | None
    loo_rmse: float | None
    kernel_error: float | None
    precision_floor: float | None
    fit_seconds: float
    predict_seconds: float
    matrix_bytes: int


@dataclass(frozen=True)
class Trial:
    """One line of a comparison: a model, over the seeds of its map.

    Errors and seconds are means over the runs; their definitions are those of `Run`.
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
    runs: tuple[Run, ...]

    @classmethod
    def of(
        cls,
        method: str,
        runs: Sequence[Run],
        reference: float,
        *,
        n_components: int | None = None,
        map_name: str | None = None,
    ) -> Self:
        values = {name: [getattr(run, name) for run in runs] for name in Run.__dataclass_fields__}
        errors = ("test_rmse", "cv_rmse", "loo_rmse", "kernel_error")
        means: dict[str, Any] = {
            name: None if None in values[name] else float(np.mean(values[name]))
            for name in (*errors, "fit_seconds", "predict_seconds")
        }
        intervals = ("test_rmse", "kernel_error")
        return cls(
            **means,
            method=method,
            map=map_name,
            n_components=n_components,
            solver=runs[0].solver,
            seeds=tuple(seed for seed in values["seed"] if seed is not None),
            relative_rmse=means["test_rmse"] / reference,
            interval={name: confidence_interval(values[name]) for name in intervals},
            alpha=float(np.median(values["alpha"])),
            matrix_bytes=max(values["matrix_bytes"]),
            runs=tuple(runs),
        )


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds."""

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

    def by_map(self) -> dict[str, list[Trial]]:
        """Return the trials of random features, by map and in the order of their numbers."""
        lines: dict[str, list[Trial]] = {}
        for trial in self.trials:
            if trial.map is not None:
                lines.setdefault(trial.map, []).append(trial)
        return lines


def confidence_interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Return the 95% interval of the mean of normal values of unknown variance, low and high.

    mean -+ t s / sqrt(m), with the standard deviation s of m values and the 97.5% quantile t of
    Student's distribution of m - 1 degrees of freedom.  None for fewer than two known values.
    """
    known = [value for value in values if value is not None]
    m = len(known)
    if m < 2:
        return None
    half = float(stdtrit(m - 1, 0.5 + CONFIDENCE / 2.0) * np.std(known, ddof=1) / np.sqrt(m))
    mean = float(np.mean(known))
    return mean - half, mean + half


def run_of(model: Any, rows: Split, seed: int | None = None, kernel: Kernel | None = None) -> Run:
    """Fit a model and test it; with a kernel, find the error of its features about that."""
    begun, is_exact = time.perf_counter(), isinstance(model, ExactKernelRidge)
    fitted_to = rows.X, rows.y, rows.weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        if is_exact:
            # On a worker, where there are any: it factorises an n x n matrix.
            model = compute(delayed(ExactKernelRidge.fit, model, *fitted_to, name="exact"))
        else:
            model.fit(*fitted_to)
    fitted = time.perf_counter()
    errors = model.predict(rows.X_test) - rows.y_test
    predicted = time.perf_counter()
    report: dict[str, Any] = {} if is_exact else model.report_
    held_out, kernel_error = report.get("cv_rmse"), None
    order = columns = len(rows.X) if is_exact else report["n_components"]
    if gradients := report.get("gradients"):
        columns = gradients["vectors"] + (gradients.get("block") or gradients["sketch"])
    if kernel is not None:
        some = rows.X_test[:_KERNEL_ROWS]
        features = model.transform(some)
        pairs = np.triu_indices(len(some), 1)
        kernel_error = float(np.abs(features @ features.T - kernel(some, some))[pairs].mean())
    return Run(
        seed=seed,
        solver=report.get("solver"),
        alpha=model.alpha_,
        test_rmse=rmse_of(errors, rows.test_weights),
        cv_rmse=None if held_out is None else rmse_of(np.array(held_out)),
        loo_rmse=rmse_of(model.loo_residuals_, rows.weights) if is_exact else None,
        kernel_error=kernel_error,
        precision_floor=report.get("precision_floor"),
        fit_seconds=fitted - begun,
        predict_seconds=predicted - fitted,
        matrix_bytes=8 * order * columns,
    )


def rmse_of(errors: Floats, weights: Floats | None = None) -> float:
    """Return the root of the mean square over rows and targets."""
    return float(np.sqrt(np.average(np.atleast_1d(errors) ** 2, axis=0, weights=weights).mean()))
