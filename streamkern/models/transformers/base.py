"""What every map has as a transformer: it is drawn when it is fitted, and a function from then on.

The maps themselves are in `streamkern.features`, which knows no scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from streamkern.errors import DataError
from streamkern.kernels import as_kernel
from streamkern.models.blockwise import features_of
from streamkern.models.estimators.conventions import KernelParameters, checked_rows
from streamkern.models.estimators.set_output import LazyTransformer
from streamkern.runtime.threads import blas_threads
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.kernels import Kernel

_PRECISIONS = [np.float64, np.float32]


class MapTransformer(LazyTransformer, BaseEstimator):  # type: ignore[misc]
    """A map whose parameters are those that the map of the same name in `features` is made with.

    A new one is a class with a constructor, `makes`, and a `fit` that draws the map.

    Attributes
    ----------
    makes : type of FeatureMap
    """

    makes: ClassVar[type[FeatureMap]]

    feature_map_: FeatureMap

    def _source(self, X: Any, sample_weight: Any = None, *, fewest: int = 1) -> Source:
        """Return the rows of a fit, checked like the options, which go first."""
        made = self.makes(**self._options())
        rows = checked_rows(self, X, first=True, finite=True, dtype=_PRECISIONS, fewest=fewest)
        source = as_source(rows, None, sample_weight)
        made.check_inputs(source.n_features)
        return source

    def _take(self, feature_map: FeatureMap) -> Self:
        """Set the fitted attributes."""
        self.feature_map_, self.n_features_in_ = feature_map, feature_map.n_features
        return self

    def draw(
        self, n_features: int, rows: Array | None = None, weights: Floats | None = None
    ) -> FeatureMap:
        """Return the map, drawn for rows of p inputs; the transformer stays as it is.

        Parameters
        ----------
        n_features : int
            p.
        rows : ndarray of shape (m, p), optional
            Spread over the data, in random order, for what is made from rows.
        weights : ndarray of shape (m,), optional
            How often each row counts in a median length scale, and as a landmark; once by default.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have, or there are no rows to make it from.
        """
        with blas_threads(1):  # so that the number of cores does not matter
            made = self.makes(**self._resolved(n_features, rows, weights))
            return made.draw(n_features, rows if rows is None else made.chosen(rows, weights))

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

    def _resolved(
        self,
        n_features: int,  # noqa: ARG002  of a kernel
        rows: Array | None,  # noqa: ARG002
        weights: Floats | None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return the options for rows of p inputs such as these."""
        return self._options()

    def _options(self) -> dict[str, Any]:
        """Return what the map is made with: parameters, with a kernel for its name."""
        options: dict[str, Any] = self.get_params(deep=False)
        if "kernel" in options:
            options["kernel"] = as_kernel(options["kernel"])
        return options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class ShapeTransformer(MapTransformer):
    """A map that follows from the number of inputs."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Draw the map for rows of as many inputs; what they hold is not looked at.

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
            If the rows are no table.
        """
        return self._take(self.draw(self._source(X).n_features))


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

    kernel: Kernel | str

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
