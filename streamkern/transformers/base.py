"""What every map has as a transformer: it is drawn when it is fitted, and a function from then on.

The maps themselves are in `streamkern.features`, which knows no scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from streamkern.blockwise import features_of
from streamkern.containers import LazyTransformer
from streamkern.conventions import KernelParameters, checked_rows
from streamkern.engine import accumulate
from streamkern.errors import DataError
from streamkern.fitoptions import sample_size
from streamkern.kernels import ShiftInvariantKernel
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows
from streamkern.statistics import ColumnStatistics, RowSample, Together
from streamkern.survey import check_rows
from streamkern.threads import blas_threads

if TYPE_CHECKING:
    from streamkern._typing import Array
    from streamkern.features import FeatureMap
    from streamkern.kernels import Kernel

_PRECISIONS = [np.float64, np.float32]


class MapTransformer(LazyTransformer, BaseEstimator):  # type: ignore[misc]
    """A map whose parameters are those that the map of the same name in `features` is made with.

    A new one is a class with a constructor and these two.

    Attributes
    ----------
    makes : type of FeatureMap
    rows_a_feature : int
        Rows of a spread sample for every feature, for a map that is made from rows.
    """

    makes: ClassVar[type[FeatureMap]]
    rows_a_feature: ClassVar[int] = 0

    feature_map_: FeatureMap

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Draw the map for rows such as these.

        What is made from rows (landmarks, cells of a grid, a median length scale) is made from a
        uniform sample of them, in one light pass; else rows are not read.

        Parameters
        ----------
        X : Source, dask.array.Array, data frame or array_like, of shape (n, p)
        y : object
            Is not looked at.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        """
        made, reads = self.makes(**self.get_params(deep=False)), self._reads_rows()
        rows = checked_rows(
            self, X, first=True, finite=True, dtype=_PRECISIONS, fewest=2 if reads else 1
        )
        source = as_source(rows)
        made.check_inputs(source.n_features)
        self.feature_map_ = self.draw(source.n_features, self._sample(source) if reads else None)
        self.n_features_in_ = source.n_features
        return self

    def draw(self, n_features: int, rows: Array | None = None) -> FeatureMap:
        """Return the map, drawn for rows of p inputs; the transformer stays as it is.

        Parameters
        ----------
        n_features : int
            p.
        rows : ndarray of shape (m, p), optional
            Spread over the data, in random order, for what is made from rows.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have, or there are no rows to make it from.
        """
        with blas_threads(1):  # so that the number of cores does not matter
            return self.makes(**self._resolved(n_features, rows)).draw(n_features, rows)

    def transform(self, X: Any) -> Any:
        """Return the features of some rows.

        Parameters
        ----------
        X : array_like, data frame or dask.array.Array, of shape (n, p)
            Of single precision, if the features are to be.

        Returns
        -------
        ndarray of shape (n, D), or what `set_output` asks for
            Of a Dask collection a lazy Dask array, or a lazy DataFrame where 'pandas' is asked for.

        Raises
        ------
        DataError
            If the rows are of other columns than those that were fitted.
        """
        check_is_fitted(self)
        if isinstance(X, Source):
            raise DataError(
                "the features of a source would not fit in memory; transform arrays, or fit a "
                "model with this feature_map to the source."
            )
        rows = as_rows(checked_rows(self, X, first=False, finite=True, dtype=_PRECISIONS))
        single = rows.dtype == np.float32
        return features_of(self.feature_map_, rows, np.float32 if single else np.float64)

    def _resolved(self, n_features: int, rows: Array | None) -> dict[str, Any]:  # noqa: ARG002
        """Return the options for rows of p inputs such as these."""
        options: dict[str, Any] = self.get_params(deep=False)
        return options

    def _reads_rows(self) -> bool:
        """Say whether anything is made from rows."""
        return self.rows_a_feature > 0

    def _sample(self, source: Source) -> Array:
        """Return a uniform sample of the rows, in random order."""
        n_components = getattr(self, "n_components", source.n_features)
        n_sample = sample_size(self.rows_a_feature, n_components, source.n_features)
        seed = getattr(self, "random_state", 0)
        found = accumulate(
            source,
            Together(
                ColumnStatistics(source.n_features + source.n_targets), RowSample(n_sample, seed)
            ),
            label="sample",
        )
        columns, sample = found.statistic.parts
        assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
        assert isinstance(sample, RowSample)  # noqa: S101
        check_rows(source, columns, found)
        return np.asarray(sample.X, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelTransformer(
    KernelParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    MapTransformer,
):
    """A map of a kernel.

    Attributes
    ----------
    kernel_ : Kernel
        With its length scale resolved.
    n_components_ : int
        D of the map that was drawn.
    """

    kernel: Kernel

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its length scale resolved."""
        kernel: Kernel = self.feature_map_.kernel  # type: ignore[attr-defined]
        return kernel

    @property
    def n_components_(self) -> int:
        """D of the map that was drawn."""
        return self.feature_map_.n_components

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _reads_rows(self) -> bool:
        scale = getattr(self.kernel, "length_scale", None)
        return self.rows_a_feature > 0 or scale == "median"

    def _resolved(self, n_features: int, rows: Array | None) -> dict[str, Any]:
        options: dict[str, Any] = self.get_params(deep=False)
        if isinstance(self.kernel, ShiftInvariantKernel):
            self.kernel.check_inputs(n_features)
            if rows is not None:
                options["kernel"] = self.kernel.resolved(rows)
        return options
