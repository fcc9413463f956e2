"""scikit-learn transformers of feature maps: options that are drawn when they are fitted.

Every transformer takes its parameters and its docstring from the map that it makes, which knows no
scikit-learn.
"""

from __future__ import annotations

import re
from inspect import Parameter, cleandoc, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from streamkern import features
from streamkern.engine.reduction import accumulate
from streamkern.errors import DataError
from streamkern.features import FeatureMap, KernelMap
from streamkern.kernels import ShiftInvariantKernel, as_kernel, length_scale_of
from streamkern.models.blockwise import features_of
from streamkern.models.estimators.conventions import KernelParameters, checked_rows
from streamkern.models.estimators.set_output import LazyTransformer
from streamkern.parameters.fit_options import sample_size
from streamkern.runtime.threads import blas_threads
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows
from streamkern.statistics import ColumnStatistics, RowSample, Together
from streamkern.tune.column_pass import check_rows

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.kernels import Kernel

__all__ = [
    "GridFourierFeatures",
    "Identity",
    "Nystroem",
    "QuasiRandomFourierFeatures",
    "RandomBinning",
    "RandomFourierFeatures",
    "StructuredFourierFeatures",
    "TensorSketch",
]

_PRECISIONS = [np.float64, np.float32]
_KERNEL = r"""\1 or str
    Its length scale 'median' is that of the rows that the map is fitted to."""
_ATTRIBUTES = """
Attributes
----------
feature_map_ : FeatureMap
kernel_ : Kernel
    With its length scale resolved.
n_components_ : int
    D of the map that was drawn.
n_features_in_ : int
feature_names_in_ : ndarray of shape (p,)
    Names of the columns, where they were fitted as a data frame.
"""


class MapTransformer(LazyTransformer, BaseEstimator):  # type: ignore[misc]
    """A map whose parameters are those that its class in `features` is made with.

    A transformer of your own map is `class Mine(KernelTransformer, makes=MyMap)`.
    """

    makes: ClassVar[type[FeatureMap]]

    feature_map_: FeatureMap

    def __init_subclass__(cls, makes: type[FeatureMap] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if makes is None:
            return
        cls.makes = makes
        taken = signature(makes).parameters.values()
        usual = {"kernel": makes.usual_kernel} if issubclass(makes, KernelMap) else {}
        own = [each.replace(default=usual.get(each.name, each.default)) for each in taken]

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  the class's
            given = signature(type(self)).bind(*args, **kwargs)
            given.apply_defaults()
            vars(self).update(given.arguments)

        this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = signature(makes).replace(parameters=[this, *own])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign]
        if usual:
            before, *after = re.split("(?=\nReferences\n)", cleandoc(makes.__doc__ or ""))
            before = re.sub("(?m)^(kernel : .*)$", _KERNEL, before).strip()
            cls.__doc__ = f"{before}\n{_ATTRIBUTES}{''.join(after)}"

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
        options = self._options()
        kernel = options.get("kernel")
        with blas_threads(1):  # so that the number of cores does not matter
            if isinstance(kernel, ShiftInvariantKernel):
                kernel.check_inputs(n_features)
                if rows is not None:
                    options["kernel"] = kernel.resolved(rows, weights=weights)
            made = self.makes(**options)
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

    def _source(self, X: Any, sample_weight: Any = None, *, fewest: int = 1) -> Source:
        """Return the rows of a fit, checked like the options, which go first."""
        made = self.makes(**self._options())
        rows = checked_rows(self, X, first=True, finite=True, dtype=_PRECISIONS, fewest=fewest)
        source = as_source(rows, None, sample_weight)
        made.check_inputs(source.n_features)
        return source

    def _take(self, feature_map: FeatureMap) -> Self:
        self.feature_map_, self.n_features_in_ = feature_map, feature_map.n_features
        return self

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


class FeaturesOut(KernelParameters, ClassNamePrefixFeaturesOutMixin):  # type: ignore[misc]
    """What a transformer tells of a map of a kernel."""

    feature_map_: FeatureMap

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


class KernelTransformer(FeaturesOut, MapTransformer):
    """A map of a kernel that is drawn for the rows that it is fitted to."""

    n_components: int
    # Rows of a spread sample for every feature, for a map that is made from rows.
    rows_a_feature: ClassVar[int] = 0

    def __init_subclass__(cls, makes: type[FeatureMap] | None = None, **options: Any) -> None:
        super().__init_subclass__(makes, **options)
        if makes is not None and "rows_a_feature" not in vars(cls):
            cls.rows_a_feature = makes.rows_a_feature

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: Any = None,
    ) -> Self:
        """Draw the map for rows such as these.

        What is made from rows (landmarks, cells of a grid, a median length scale) is made from a
        uniform sample of them, in one light pass; else rows are not read.

        Parameters
        ----------
        X : Source, dask.array.Array, data frame or array_like, of shape (n, p)
        y : object
            Is not looked at.
        sample_weight : array_like or Dask collection of shape (n,), optional
            Numbers of at least 0: a row of weight 0 counts as none, and one of weight s as s equal
            rows in the median length scale, exactly where the equal rows are 1,024 or fewer.
            Landmarks are chosen by weight from rows that are drawn by their places, and a grid
            follows from the range of these.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        """
        reads = self.rows_a_feature > 0 or length_scale_of(as_kernel(self.kernel)) == "median"
        source = self._source(X, sample_weight, fewest=2 if reads else 1)
        sample = self._sample(source) if reads else (None, None)
        return self._take(self.draw(source.n_features, *sample))

    def _sample(self, source: Source) -> tuple[Array, Floats | None]:
        """Return a uniform sample of the rows, in random order, and what they count."""
        n_sample = sample_size(self.rows_a_feature, self.n_components, source.n_features)
        seed = getattr(self, "random_state", 0)  # a grid has none
        empty = ColumnStatistics(source.n_features + source.n_targets), RowSample(n_sample, seed)
        found = accumulate(source, Together(*empty), label="sample")
        columns, sample = found.statistic.parts
        assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
        assert isinstance(sample, RowSample)  # noqa: S101
        check_rows(source, columns, found)
        return np.asarray(sample.X, dtype=np.float64), sample.counts


class RandomFourierFeatures(KernelTransformer, makes=features.RandomFourierFeatures): ...  # noqa: D101


class QuasiRandomFourierFeatures(KernelTransformer, makes=features.QuasiRandomFourierFeatures): ...  # noqa: D101


class StructuredFourierFeatures(KernelTransformer, makes=features.StructuredFourierFeatures): ...  # noqa: D101


class GridFourierFeatures(KernelTransformer, makes=features.GridFourierFeatures):  # noqa: D101
    rows_a_feature = 1


class Nystroem(KernelTransformer, makes=features.Nystroem): ...  # noqa: D101


class RandomBinning(KernelTransformer, makes=features.RandomBinning): ...  # noqa: D101


class TensorSketch(FeaturesOut, ShapeTransformer, makes=features.TensorSketch): ...  # noqa: D101


class Identity(OneToOneFeatureMixin, ShapeTransformer, makes=features.Identity):  # type: ignore[misc]
    """The inputs as features, computed by someone else already: models of them are linear ridge.

    Attributes
    ----------
    feature_map_ : FeatureMap
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        Names of the columns, where they were fitted as a data frame.
    """
