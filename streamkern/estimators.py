"""The scikit-learn face: random-feature ridge regression on arrays, Dask arrays and files."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from streamkern._version import __version__
from streamkern.errors import ModelFileError, StreamkernWarning
from streamkern.fitting import FitOptions, fit_moments
from streamkern.kernels import Gaussian, Kernel, kernel_from
from streamkern.prediction import evaluate, predict_to_hdf5, predicted_shards
from streamkern.predictor import Predictor
from streamkern.solve import checked_alpha, solve_ridge
from streamkern.sources import ArraySource, Source, as_source
from streamkern.sources.arrays import is_dask_array
from streamkern.storage import ModelFile, read_model, write_model
from streamkern.threads import blas_threads

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Floats

_LIBRARIES = ("dask", "distributed", "h5py", "numpy", "scikit-learn", "scipy")
DEFAULT_ALPHA = 0.1


class RandomFeatureRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression by random features, in two passes over the rows.

    Minimises sum_i |y_i - mu - phi(x_i)^T w|^2 + alpha |w|^2, with phi(x)^T phi(x') equal to the
    kernel in expectation.  Rows may be more than memory holds: memory grows with D^2, not with n.
    Work runs on the current Dask scheduler.

    Parameters
    ----------
    kernel : Kernel
        By default Gaussian with the median length scale.
    n_components : int
        D, the number of features; with pairs, of D / 2 frequencies.
    alpha : float
        The penalty, in the units of the sum of squares: not divided by n.
    feature_map : {'orthogonal', 'iid', 'identity'}
        How frequencies are drawn; 'identity' takes the inputs as features, D = p of them.
    paired : bool
        Cosine and sine of every frequency, or cosines with random phases.
    standardize : bool
        Take inputs less their means, over their standard deviations.
    fit_intercept : bool
    precision : {'single', 'double'}
        Of features and products, which are summed in double.
    on_bad_rows : {'error', 'skip'}
        What to do about rows with values that are not finite.
    random_state : int

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (D, q)
    intercept_ : float or ndarray of shape (q,)
    feature_map_ : FeatureMap
        From raw rows to features, standardisation included.
    kernel_ : Kernel
        With its length scale resolved.
    alpha_ : float
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit.
    n_features_in_ : int

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian("median"),  # noqa: B008  immutable
        *,
        n_components: int = 2048,
        alpha: float = DEFAULT_ALPHA,
        feature_map: str = "orthogonal",
        paired: bool = True,
        standardize: bool = True,
        fit_intercept: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.alpha = alpha
        self.feature_map = feature_map
        self.paired = paired
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.precision = precision
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state

    def options(self) -> FitOptions:
        """Return the checked options of the passes.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        """
        values = self.get_params(deep=False)
        checked_alpha(values.pop("alpha"))
        return FitOptions(**values)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Source, array_like or dask.array.Array, of shape (n, p)
            A source, such as `open_hdf5` returns, brings its own targets.
        y : array_like or dask.array.Array of shape (n,) or (n, q)
        sample_weight : array_like of shape (n,), optional

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        InsufficientMemoryError
            If the job cannot fit; before the first read.
        SingularSystemError
            If `alpha` is 0 and the features are not independent.
        """
        options = self.options()
        source = as_source(X, y, sample_weight)
        fitted = fit_moments(source, options)
        begun = time.perf_counter()
        with blas_threads(1):  # the bits do not depend on the number of cores
            moments = fitted.moments.centred(intercept=self.fit_intercept)
            solution = solve_ridge(moments, self.alpha)
        if solution.note:
            warnings.warn(solution.note, StreamkernWarning, stacklevel=2)
        solving = time.perf_counter() - begun
        report = fitted.report
        report["seconds"]["solve"] = solving
        report["seconds"]["total"] += solving
        self.report_ = report | {
            "n_components": len(solution.coef),
            "kernel": fitted.kernel.name,
            "kernel_parameters": fitted.kernel.parameters(),
            "length_scale": fitted.kernel.parameters().get("length_scale"),
            "alpha": solution.alpha,
            "train_rmse": _as_stored(np.sqrt(solution.train_rss / moments.weight), source),
            "cv_rmse": None,
            "effective_dof": solution.effective_dof,
            "condition": solution.condition if np.isfinite(solution.condition) else None,
            "precision_floor": solution.floor,
            "precision": self.precision,
            "solver": solution.solver,
            "dropped_columns": fitted.dropped,
            "note": solution.note,
            "data": source.describe(),
        }
        self._take(
            Predictor(
                fitted.moments.feature_map,
                solution.coef,
                solution.intercept,
                precision=self.precision,
                flat=source.target_ndim == 1,
            )
        )
        return self

    def _take(self, predictor: Predictor) -> None:
        """Set the fitted attributes from a predictor and the report."""
        self.predictor_ = predictor
        self.feature_map_ = predictor.feature_map
        self.coef_ = predictor.coef[:, 0] if predictor.flat else predictor.coef
        self.intercept_ = float(predictor.intercept[0]) if predictor.flat else predictor.intercept
        self.kernel_ = kernel_from(self.report_["kernel"], self.report_["kernel_parameters"])
        self.alpha_ = self.report_["alpha"]
        self.n_features_in_ = predictor.feature_map.n_features

    def predict(self, X: Any) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array_like, dask.array.Array or Source, of shape (n, p)

        Returns
        -------
        ndarray of shape (n,) or (n, q); a lazy Dask array for a Dask array

        Raises
        ------
        DataError
            If X has another number of columns than the rows that were fitted.
        """
        check_is_fitted(self)
        if isinstance(X, Source):
            return np.concatenate([rows for _, rows in predicted_shards(self.predictor_, X)])
        if not is_dask_array(X):
            return self.predictor_.predict(ArraySource(X).X)
        self.feature_map_.check(X.shape)
        targets = () if self.predictor_.flat else (self.predictor_.coef.shape[1],)
        return X.rechunk({1: -1}).map_blocks(
            self.predictor_.predict,
            dtype=float,
            drop_axis=None if targets else 1,
            chunks=(X.chunks[0], *((q,) for q in targets)),
            meta=np.empty((0,) * (1 + len(targets))),
        )

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p): standardised, mapped, and scaled.

        A Dask array gives a lazy Dask array.
        """
        check_is_fitted(self)
        if not is_dask_array(X):
            return self.feature_map_.transform(X)
        self.feature_map_.check(X.shape)
        return X.rechunk({1: -1}).map_blocks(
            self.feature_map_.transform,
            dtype=float,
            chunks=(X.chunks[0], (self.feature_map_.n_components,)),
            meta=np.empty((0, 0)),
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, averaged over targets, in one pass.

        Parameters are those of `fit`.
        """
        return float(np.mean(self.evaluate(as_source(X, y, sample_weight))["r2"]))

    def evaluate(self, source: Source) -> dict[str, Any]:
        """Compare predictions with the targets of a source, in one pass.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `rmse`, `mae` and `r2`: numbers for targets (n,), else lists,
            with their means as `rmse_mean` and so on.
        """
        check_is_fitted(self)
        return evaluate(self.predictor_, source, skip_bad_rows=self.on_bad_rows == "skip")

    def predict_to_hdf5(self, source: Source, path: str | Path, *, force: bool = False) -> int:
        """Predict every row of a source into the dataset `y_pred` of a new HDF5 file.

        Returns
        -------
        int
            How many rows were predicted as NaN, because `on_bad_rows` is 'skip'.
        """
        check_is_fitted(self)
        skip = self.on_bad_rows == "skip"
        return predict_to_hdf5(self.predictor_, source, path, skip_bad_rows=skip, force=force)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads.

        Raises
        ------
        OutputError
            If the file exists and `force` is not given, or cannot be written.
        """
        check_is_fitted(self)
        options = self.get_params(deep=False)
        kernel = options.pop("kernel")
        card = {
            "kind": type(self).__name__,
            "options": options,
            "option_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "report": self.report_,
            "versions": {"streamkern": __version__} | {name: version(name) for name in _LIBRARIES},
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_model(path, ModelFile(self.predictor_, card), force=force)


def load(path: str | Path) -> RandomFeatureRidge:
    """Read a model that `RandomFeatureRidge.save` or `streamkern fit` wrote.

    Raises
    ------
    ModelFileError
        If the file is missing, is not a model, is damaged, or has a newer format.
    """
    file = read_model(path)
    try:
        kernel = file.card["option_kernel"]
        model = RandomFeatureRidge(
            kernel_from(kernel["name"], kernel["parameters"]), **file.card["options"]
        )
        model.report_ = file.card["report"]
        model._take(file.predictor)  # noqa: SLF001  a constructor of its own class
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is a damaged model ({error}); copy it again.") from error
    return model


def _as_stored(per_target: Floats, source: Source) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if source.target_ndim == 1 else per_target.tolist()
