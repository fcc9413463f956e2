"""What a fitted ridge regression can do, however it was fitted."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._version import __version__
from streamkern.engine.scheduler import is_task, run, shared, task
from streamkern.errors import ModelFileError
from streamkern.features.metric import described_metric, metric_of_map
from streamkern.kernels import as_kernel, kernel_from
from streamkern.models.blockwise import by_rows, features_of
from streamkern.models.fitted_inputs import TakesRows
from streamkern.models.model_files import ModelFile, write_model
from streamkern.models.prediction import predict_to_hdf5, predicted_rows, predicted_shards
from streamkern.models.scoring import diagnose, evaluate, gradient_outer_product
from streamkern.predict.deviation import Deviation
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows
from streamkern.sources.lazy import is_dask_array

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.predict.predictor import Predictor
    from streamkern.solve import NormalEquations

LIBRARIES = ("dask", "distributed", "h5py", "numpy", "scikit-learn", "scipy")


class FittedRidge(TakesRows):
    """Predictions, their deviations and errors, and the file of a fitted model.

    A class that fits sets `report_` and `equations_`, and then calls `_take`.
    """

    _fitted_by = "predictor_"
    on_bad_rows: str
    report_: dict[str, Any]
    equations_: NormalEquations | None

    def _take(self, predictor: Predictor) -> None:
        """Set the fitted attributes from a predictor and the report."""
        self.predictor_ = predictor
        self._deviation: Deviation | None = None
        self.feature_map_ = predictor.feature_map
        self.coef_ = predictor.coef[:, 0] if predictor.flat else predictor.coef
        self.intercept_ = float(predictor.intercept[0]) if predictor.flat else predictor.intercept
        self.kernel_ = kernel_from(self.report_["kernel"], self.report_["kernel_parameters"])
        self.alpha_ = self.report_["alpha"]
        self._note_inputs(predictor.feature_map.n_features)

    @property
    def metric_(self) -> Floats:
        """M (p, p): kernels take (x - x')^T M (x - x') of standardised rows; 0 where left out."""
        return metric_of_map(self.feature_map_)

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array_like, Source, dask.array.Array or dask.dataframe.DataFrame, of shape (n, p)
        return_std : bool
            Return the standard deviations of new targets too: the noise's, and what the
            coefficients are uncertain by.

        Returns
        -------
        ndarray of shape (n,) or (n, q), or two of them; lazy Dask arrays for a Dask collection

        Raises
        ------
        DataError
            If X has another number of columns than the rows that were fitted.
        ModelFileError
            If standard deviations are asked of a model that was saved without them.
        """
        self._check_fitted()
        X, *_ = self._tables(X)
        if not return_std:
            return predicted_rows(self.predictor_, X)
        if isinstance(X, Source):
            parts = [
                made for _, made in predicted_shards(self.predictor_, X, self.normal_equations())
            ]
            return tuple(np.concatenate([part[name] for part in parts]) for name in parts[0])
        rows = as_rows(X)
        means = predicted_rows(self.predictor_, rows)
        if is_dask_array(rows):
            n_columns = None if self.predictor_.flat else self.predictor_.n_targets
            deviation = self._deviation_task()
            return means, by_rows(_deviations, rows, n_columns, deviation=deviation)
        if self._deviation is None:  # as costly as a solve, and as lasting
            self._deviation = run(self._deviation_task())
        return means, self._deviation.standard_deviations(rows)

    def _deviation_task(self) -> Any:
        arguments = self.feature_map_, shared(self.normal_equations()), self.predictor_.flat
        return task(Deviation.of, *arguments, name="deviation")

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again, and moments that are not in this process."""
        state: Any = super().__getstate__()
        left = {"_deviation"}
        if is_task(getattr(state.get("moments_"), "folds", None)):  # on a cluster, or as good as
            left.add("moments_")
        kept: dict[str, Any] = state | dict.fromkeys(state.keys() & left)
        return kept

    def normal_equations(self) -> NormalEquations:
        """Return the normal equations, or raise ModelFileError if they were not saved."""
        if self.equations_ is None:
            raise ModelFileError(
                "standard deviations, leverages and sparse models need the normal equations, but "
                "the model was saved without them; fit it again, and save it with compact=False."
            )
        return self.equations_

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p): standardised, mapped, and scaled.

        A Dask array or DataFrame gives a lazy Dask array.
        """
        self._check_fitted()
        X, *_ = self._tables(X)
        return features_of(self.feature_map_, X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, averaged over targets, in one pass.

        Parameters are those of `fit`.
        """
        return float(np.mean(self.evaluate(X, y, sample_weight)["r2"]))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, Any]:
        """Compare predictions with targets, in one pass; parameters are those of `fit`.

        Returns
        -------
        dict
            `rows`, `skipped_rows`, `rmse`, `mae` and `r2`: numbers for targets (n,), else lists,
            with their means as `rmse_mean` and so on.  A row of weight s counts as s equal rows,
            but once in `rows`, and there only if s is above 0.
        """
        self._check_fitted()
        source = as_source(*self._tables(X, y, sample_weight))
        return evaluate(self.predictor_, source, skip_bad_rows=self.on_bad_rows == "skip")

    def gradient_outer_product(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target_unit: Any = None
    ) -> Floats:
        """Return the mean of grad f(x) grad f(x)^T over rows, in one pass.

        It says which inputs and directions predictions change along.  Gradients are with respect to
        standardised rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; targets may be left out.
        target_unit : array_like of shape (q,), optional
            What targets are divided by before their outer products are added, such as their
            standard deviations; 1 by default.

        Returns
        -------
        ndarray of shape (p, p)
            With 0 for inputs that are left out.

        Raises
        ------
        ParameterError
            If the features have no gradients.
        """
        self._check_fitted()
        return gradient_outer_product(
            self.predictor_,
            as_source(*self._tables(X, y, sample_weight)),
            target_unit=None if target_unit is None else np.asarray(target_unit, dtype=float),
            skip_bad_rows=self.on_bad_rows == "skip",
        )

    def diagnose(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, n_largest: int = 10
    ) -> dict[str, Any]:
        """Say how the model does on each of its own rows without that row, in one pass.

        A row is left out with all its weight: not as one of several equal rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was fitted on, as in `fit`.
        n_largest : int
            How many rows of largest leverage and of largest error to name.

        Returns
        -------
        dict
            `rows`, `loo_rmse`, `effective_dof`, `rows_of_leverage_one`, `largest_leverages` and
            `largest_errors`.

        Raises
        ------
        DataError
            If these are not the rows that the model was fitted on.
        """
        self._check_fitted()
        return diagnose(
            self.predictor_,
            self.normal_equations(),
            as_source(*self._tables(X, y, sample_weight)),
            n_largest=n_largest,
            skip_bad_rows=self.on_bad_rows == "skip",
        )

    def predict_to_hdf5(
        self, X: Any, path: str | Path, *, return_std: bool = False, force: bool = False
    ) -> int:
        """Predict the rows of a source or an array into the dataset `y_pred` of a new HDF5 file.

        With `return_std`, a dataset `y_std` holds the standard deviations of new targets.

        Returns
        -------
        int
            How many rows were predicted as NaN, because `on_bad_rows` is 'skip'.
        """
        self._check_fitted()
        skip = self.on_bad_rows == "skip"
        equations = self.normal_equations() if return_std else None
        source = as_source(*self._tables(X))
        return predict_to_hdf5(
            self.predictor_, source, path, equations=equations, skip_bad_rows=skip, force=force
        )

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads.

        Parameters
        ----------
        path : path
        compact : bool
            Leave out the normal equations, D (D + 1) / 2 numbers, without which there are no
            standard deviations and no leverages.
        force : bool
            Replace an existing file.

        Raises
        ------
        OutputError
            If the file exists and `force` is not given, or cannot be written.
        """
        self._check_fitted()
        kept = None if compact else self.equations_
        write_model(path, ModelFile(self.predictor_, self._card(), kept), force=force)

    def _card(self) -> dict[str, Any]:
        """Return what a model file says of the fitted model, as plain JSON values."""
        options = self._parameters()
        kernel = as_kernel(options.pop("kernel"))
        options["metric"] = described_metric(options.get("metric"))
        return {
            "kind": "RandomFeatureRidge",
            "options": options,
            "option_kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "report": self.report_,
            "versions": versions(),
            "feature_names": self._feature_names(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def versions() -> dict[str, str]:
    """Return the versions of this library, and of those that it computes with."""
    return {"streamkern": __version__} | {name: version(name) for name in LIBRARIES}


def _deviations(X: Array, deviation: Deviation) -> Floats:
    return deviation.standard_deviations(X)
