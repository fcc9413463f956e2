"""scikit-learn transformers of feature maps: options that are drawn when they are fitted.

Every transformer takes its parameters and its docstring from the map that it makes, which knows no
scikit-learn.
"""

import re
from inspect import cleandoc, signature
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from streamkern import features
from streamkern._typing import Array, Floats
from streamkern.errors import DataError
from streamkern.estimators.conventions import (
    KernelFeatures,
    LazyTransformer,
    checked_rows,
    initializer,
)
from streamkern.estimators.docstrings import documented
from streamkern.features import FeatureMap, drawn_from
from streamkern.kernels import Gaussian, ShiftInvariantKernel, as_kernel, length_scale_of
from streamkern.models.prediction import features_of
from streamkern.models.scoring import scored
from streamkern.parameters.fit_options import sample_size
from streamkern.runtime.threads import blas_threads
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows
from streamkern.statistics import RowSample

_USUAL_KERNEL = Gaussian("median")
_PRECISIONS = [np.float64, np.float32]
_KERNEL = r"""\1 or str
    Its length scale 'median' is that of the rows that the map is fitted to."""
_MAP = """
Attributes
----------
feature_map_ : FeatureMap
"""


class MapTransformer(LazyTransformer, BaseEstimator):  # type: ignore[misc]
    """A map whose parameters are those that its class in `features` is made with.

    A transformer of your own map is `class Mine(KernelTransformer, makes=MyMap)`.
    """

    makes: ClassVar[type[FeatureMap]]
    # Rows of a spread sample for every feature, for a map that is made from rows.
    rows_a_feature: ClassVar[int]

    feature_map_: Any

    def __init_subclass__(cls, makes: type[FeatureMap] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if makes is None:
            return
        cls.makes = makes
        cls.rows_a_feature = vars(cls).get("rows_a_feature", getattr(makes, "rows_a_feature", 0))
        cls.__init__ = initializer(  # type: ignore[method-assign]
            [
                each.replace(default=_USUAL_KERNEL) if each.name == "kernel" else each
                for each in signature(makes).parameters.values()
            ]
        )
        text = cleandoc(cls.__doc__ or makes.__doc__ or "")
        cls.__doc__ = re.sub("(?m)^(kernel : .*)$", _KERNEL, text) + _MAP
        documented(cls)

    def draw(
        self, n_features: int, rows: Array | None = None, weights: Floats | None = None
    ) -> FeatureMap:
        """Return the map, drawn for rows of p inputs; the transformer stays as it is."""
        options = self._options()
        kernel = options.get("kernel")
        with blas_threads(1):  # so that the number of cores does not matter
            if isinstance(kernel, ShiftInvariantKernel):
                kernel.check_inputs(n_features)
                if rows is not None:
                    options["kernel"] = kernel.resolved(rows, weights=weights)
            made = self.makes(**options)
            return made.draw(n_features) if rows is None else drawn_from(made, rows, weights)

    def _fitted(self, source: Source, *sample: Any) -> Self:
        self.feature_map_ = self.draw(source.n_features, *sample)
        self.n_features_in_ = source.n_features
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of rows, in single precision of such rows.

        Parameters
        ----------
        X : array_like, data frame or Dask collection, of shape (n, p)
            Rows themselves: a source or a path is refused, by a DataError.
        """
        check_is_fitted(self)
        if isinstance(X, Source):
            raise DataError(
                "the features of a source would not fit in memory; transform arrays, or fit a "
                "model with this feature_map to the source."
            )
        rows = as_rows(checked_rows(self, X, first=False, finite=True, dtype=_PRECISIONS))
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        return features_of(self.feature_map_, rows, dtype)

    def _source(self, X: Any, sample_weight: Any = None, *, fewest: int = 1) -> Source:
        """Return the rows of a fit, checked like the options, which go first."""
        made = self.makes(**self._options())
        rows = checked_rows(self, X, first=True, finite=True, dtype=_PRECISIONS, fewest=fewest)
        source = as_source(rows, None, sample_weight)
        made.check_inputs(source.n_features)
        return source

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.get_params(deep=False)
        if "kernel" in options:
            options["kernel"] = as_kernel(options["kernel"])
        return options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelTransformer(KernelFeatures, MapTransformer):
    """A map of a kernel, set by its parameters too, and drawn for the rows it is fitted to."""

    kernel_ = property(attrgetter("feature_map_.kernel"), doc="With its length scale resolved.")
    n_components_ = property(attrgetter("feature_map_.n_components"), doc="D of the map.")
    _n_features_out = n_components_
    n_components: int

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: Any = None,
    ) -> Self:
        """Draw the map for rows such as these.

        What is made from rows (landmarks, a grid, a median length scale) is made from a
        uniform sample of them, in one light pass; else rows are not read.

        Parameters
        ----------
        X : Source, array_like, data frame or Dask collection, of shape (n, p), but no path
        y : object, not looked at
        sample_weight : array_like or Dask collection of shape (n,), optional
            A row of weight 0 counts as none, and one of weight s as s equal rows in the median
            length scale, exactly where the equal rows are 1,024 or fewer.  Landmarks are chosen by
            weight from rows that are drawn by their places, and a grid follows from the range of
            these.
        """
        reads = self.rows_a_feature > 0 or length_scale_of(as_kernel(self.kernel)) == "median"
        source = self._source(X, sample_weight, fewest=2 if reads else 1)
        return self._fitted(source, *(self._sample(source) if reads else ()))

    def _sample(self, source: Source) -> tuple[Array, Floats | None]:
        """Return a uniform sample of the rows, in random order, and what they count."""
        n_sample = sample_size(self.rows_a_feature, self.n_components, source.n_features)
        empty = RowSample(n_sample, getattr(self, "random_state", 0))  # a grid has none
        _, sample, _ = scored(source, empty, empty, source.row_bytes, "sample")
        return np.asarray(sample.X, dtype=np.float64), sample.counts


class RandomFourierFeatures(KernelTransformer, makes=features.RandomFourierFeatures): ...


class QuasiRandomFourierFeatures(KernelTransformer, makes=features.QuasiRandomFourierFeatures): ...


class StructuredFourierFeatures(KernelTransformer, makes=features.StructuredFourierFeatures): ...


class Nystroem(KernelTransformer, makes=features.Nystroem): ...


class Identity(OneToOneFeatureMixin, MapTransformer, makes=features.Identity):  # type: ignore[misc]
    """The inputs as features, computed by someone else already: models of them are linear ridge."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Count the inputs of the rows; what they hold is not looked at.

        Parameters
        ----------
        X : Source, array_like, data frame or Dask collection, of shape (n, p), but no path
        y : object, not looked at
        """
        return self._fitted(self._source(X))
