"""Exact kernel ridge regression against random features, on rows that both can take."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine import accumulate
from streamkern.errors import DataError, ParameterError
from streamkern.estimators import RandomFeatureRidge
from streamkern.exact import ExactKernelRidge
from streamkern.features import Standardized
from streamkern.kernels import Kernel, Linear, ShiftInvariantKernel
from streamkern.statistics import ColumnStatistics, RowSample, Together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats
    from streamkern.sources import Source

COMPONENTS = (64, 128, 256, 512, 1024, 2048, 4096)
_KERNEL_ROWS = 512


@dataclass(frozen=True)
class Trial:
    """One model of a comparison.

    Parameters
    ----------
    method : {'exact', 'random features', 'linear'}
    n_components : int or None
        D, None for the exact model.
    test_rmse : float
        On the held-out rows, in the units of the target; over all targets.
    relative_rmse : float
        The same over that of the exact model.
    kernel_error : float or None
        Mean of |phi(x)^T phi(x') - k(x, x')| over pairs of held-out rows.
    fit_seconds, predict_seconds : float
    matrix_bytes : int
        What the system of equations takes.
    """

    method: str
    n_components: int | None
    test_rmse: float
    relative_rmse: float
    kernel_error: float | None
    fit_seconds: float
    predict_seconds: float
    matrix_bytes: int


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds.

    Parameters
    ----------
    trials : tuple of Trial
        The exact model first, then the linear one, then random features by their number.
    n_train, n_test : int
    kernel : dict
        Name and parameters, the length scale resolved.
    alpha : float
    target_deviation : float
        Standard deviation of the held-out targets, the error of predicting their mean.
    """

    trials: tuple[Trial, ...]
    n_train: int
    n_test: int
    kernel: dict[str, Any]
    alpha: float
    target_deviation: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)


def compare(
    source: Source,
    model: RandomFeatureRidge,
    *,
    n_components: Sequence[int] = COMPONENTS,
    n_train: int = 4000,
    test: Source | None = None,
) -> Comparison:
    """Fit exact kernel ridge regression and random features to the same rows.

    Parameters
    ----------
    source : Source
        A uniform sample of its rows is used.
    model : RandomFeatureRidge
        The options of all models; its number of components is not used.
    n_components : sequence of int
    n_train : int
        Rows to fit, at most; without `test`, at most 4/5 of the rows.
    test : Source, optional
        Rows to test on; otherwise sampled from `source`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If the kernel is linear, or there is nothing to compare.
    DataError
        If there are fewer than ten rows, or rows that are not finite.
    """
    if not isinstance(model.kernel, ShiftInvariantKernel) or model.feature_map == "identity":
        raise ParameterError("the linear kernel has no random features; compare another kernel.")
    if not n_components:
        raise ParameterError("n_components must name at least one number of features.")
    if source.n_samples < 10:
        raise DataError(f"a comparison needs 10 rows, but there are {source.n_samples}; add rows.")
    raw = _sampled(source, test, n_train, model)
    # The smallest model standardises the rows and resolves the length scale for all the others.
    first = RandomFeatureRidge(**_options(model) | {"n_components": 2}).fit(raw.X, raw.y)
    kernel, feature_map = first.kernel_, first.feature_map_
    assert isinstance(feature_map, Standardized)  # noqa: S101  for the type checker
    standardizer = feature_map.standardizer
    rows = replace(raw, X=standardizer(raw.X), X_test=standardizer(raw.X_test))

    exact = ExactKernelRidge(kernel, alpha=model.alpha, fit_intercept=model.fit_intercept)
    options = _options(model) | {"kernel": kernel, "standardize": False}
    linear = RandomFeatureRidge(**options | {"kernel": Linear(), "paired": True})
    trials = [_trial("exact", exact, rows), _trial("linear", linear, rows)]
    for D in n_components:
        sized = RandomFeatureRidge(**options | {"n_components": D})
        trials.append(_trial("random features", sized, rows, kernel))
    reference = trials[0].test_rmse
    trials = [replace(trial, relative_rmse=trial.test_rmse / reference) for trial in trials]
    return Comparison(
        trials=tuple(trials),
        n_train=len(rows.X),
        n_test=len(rows.X_test),
        kernel={"name": kernel.name, **kernel.parameters()},
        alpha=float(model.alpha),
        target_deviation=float(np.sqrt(rows.y_test.var(axis=0).mean())),
    )


@dataclass(frozen=True)
class _Rows:
    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats


def _options(model: RandomFeatureRidge) -> dict[str, Any]:
    options: dict[str, Any] = model.get_params(deep=False)
    return options


def _sampled(source: Source, test: Source | None, n_train: int, model: RandomFeatureRidge) -> _Rows:
    skip = model.on_bad_rows == "skip"

    def sample(rows: Source, n_rows: int) -> tuple[Floats, Floats]:
        statistic = Together(
            ColumnStatistics(rows.n_features + rows.n_targets),
            RowSample(n_rows, model.random_state),
        )
        found = accumulate(rows, statistic, skip_bad_rows=skip, label="sample")
        columns, drawn = found.statistic.parts
        assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
        assert isinstance(drawn, RowSample)  # noqa: S101
        if columns.n_bad_rows:
            raise rows.bad_rows_error(columns.n_bad_rows, columns.first_bad_row or 0)
        return drawn.X.astype(float), drawn.y[:, 0] if rows.target_ndim == 1 else drawn.y

    if test is not None:
        return _Rows(*sample(source, n_train), *sample(test, max(n_train, 1000)))
    n_train = min(n_train, 4 * source.n_samples // 5)
    X, y = sample(source, n_train + max(n_train // 4, 2))
    return _Rows(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _trial(method: str, model: Any, rows: _Rows, kernel: Kernel | None = None) -> Trial:
    begun = time.perf_counter()
    model.fit(rows.X, rows.y)
    fitted = time.perf_counter()
    errors = model.predict(rows.X_test) - rows.y_test
    predicted = time.perf_counter()
    order = len(rows.X) if method == "exact" else len(model.coef_)
    kernel_error = None
    if kernel is not None:
        some = rows.X_test[:_KERNEL_ROWS]
        features = model.transform(some)
        kernel_error = float(np.abs(features @ features.T - kernel(some, some)).mean())
    return Trial(
        method=method,
        n_components=None if method == "exact" else order,
        test_rmse=float(np.sqrt(np.mean(errors**2))),
        relative_rmse=1.0,
        kernel_error=kernel_error,
        fit_seconds=fitted - begun,
        predict_seconds=predicted - fitted,
        matrix_bytes=8 * order**2,
    )
