"""Kernel principal components, as scikit-learn's users meet them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin

from streamkern.kernels import Gaussian, Kernel
from streamkern.models.component_fit import (
    ComponentOptions,
    principal_components,
)
from streamkern.models.estimators.base import TableEstimator, fitted
from streamkern.models.estimators.conventions import KernelParameters
from streamkern.models.estimators.set_output import LazyTransformer
from streamkern.runtime.events import job
from streamkern.sources import as_source

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern.models.component_fit import FittedComponents
    from streamkern.models.data_moments import DataMoments


class RandomFeaturePCA(
    KernelParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    LazyTransformer,
    TableEstimator,
):
    """Kernel principal component analysis by random features, in two passes over the rows.

    The principal components of the features phi(x), from their centred moments.  As phi(x)^T
    phi(x') is the kernel in expectation, scores are those of kernel PCA; of the identity map they
    are those of plain PCA.  Memory grows with D^2, not with n.

    Parameters
    ----------
    kernel : Kernel or str
        As in `RandomFeatureRidge`.
    n_components : int or float, optional
        K, the number of principal components that are kept, as in scikit-learn's `PCA`; or the
        share of the variance, between 0 and 1, that they explain at least; or all whose variance
        is more than rounding.
    n_random_features : int
        D, which the regressions here call n_components; the identity map has p.
    feature_map, paired, standardize, precision, on_bad_rows, random_state
        As in `RandomFeatureRidge`.

    Attributes
    ----------
    components_ : ndarray of shape (K, D)
        Of the features, in orthonormal rows; the number of largest size in each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (K,)
    mean_ : ndarray of shape (D,)
        Of the features.
    n_components_ : int
        K.
    n_samples_ : int
        n, without rows that were skipped.
    feature_map_ : FeatureMap
        From raw rows to features, standardisation included.
    kernel_ : Kernel
        With its length scale resolved.
    report_ : dict
        Rows, seconds and memory of the fit.
    n_features_in_ : int

    References
    ----------
    Schoelkopf, Smola and Mueller (1998), "Nonlinear component analysis as a kernel eigenvalue
    problem".
    Lopez-Paz, Sra, Smola, Ghahramani and Schoelkopf (2014), "Randomized nonlinear component
    analysis".
    """

    principal_ = fitted("components", "The components, as a function of rows.")
    components_ = fitted("components.components", "Of the features, in orthonormal rows, (K, D).")
    mean_ = fitted("components.mean", "Of the features, (D,).")
    explained_variance_ = fitted("components.explained_variance", "Descending, (K,).")
    explained_variance_ratio_ = fitted("components.explained_variance_ratio", "The shares, (K,).")
    singular_values_ = fitted("components.singular_values", "Lengths of columns of scores, (K,).")
    feature_map_ = fitted("components.feature_map", "From raw rows to features.")
    kernel_ = fitted("kernel", "The kernel, with its length scale resolved.")

    def __init__(
        self,
        kernel: Kernel | str = Gaussian("median"),  # noqa: B008  immutable
        *,
        n_components: int | float | None = None,
        n_random_features: int = 2048,
        feature_map: str = "orthogonal",
        paired: bool = True,
        standardize: bool = True,
        precision: str = "single",
        on_bad_rows: str = "error",
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_random_features = n_random_features
        self.feature_map = feature_map
        self.paired = paired
        self.standardize = standardize
        self.precision = precision
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state

    @job("pca")
    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Find the components of the features of some rows.

        Parameters
        ----------
        X : Source, array_like or dask.array.Array, of shape (n, p)
            A source needs no targets; those that it has must be finite.
        y
            Not taken; pipelines hand it on.
        sample_weight : array_like of shape (n,), optional
            How many times each row counts.
        checkpoint : path, optional
            A folder where sums are saved as they are made, as in `RandomFeatureRidge.fit`.

        Raises
        ------
        ParameterError
            If an option has a value that it cannot have.
        DataError
            If the rows cannot be used.
        CheckpointError
            If the folder is in use, or belongs to a fit that differs.
        InsufficientMemoryError
            If the job cannot fit; before the first read.
        """
        options = self._options()
        options.passes()  # refused before rows are looked at
        source = as_source(self._rows(X, first=True, fewest=2), None, sample_weight)
        return self.set_fitted(options.fit(source, checkpoint=checkpoint))

    @job("solve")
    def solve(self, moments: DataMoments) -> Self:
        """Find the components of the features that moments are of, without reading rows.

        The map, and what else the moments were made by, is theirs, whatever this object's options.

        Parameters
        ----------
        moments : DataMoments
            Such as `RandomFeatureRidge.moments` returns, or `load_moments`.

        Raises
        ------
        ParameterError
            If there are fewer rows or features than components asked for.
        """
        return self.set_fitted(principal_components(moments, self._options()))

    def _options(self) -> ComponentOptions:
        names = [each.name for each in fields(ComponentOptions)]
        return ComponentOptions(**{name: getattr(self, name) for name in names})

    def _current_model(self) -> FittedComponents:
        model: FittedComponents = self.model_
        return replace(model, options=self._options())

    @property
    def n_samples_(self) -> int:
        """The rows that were fitted, n."""
        return int(self.report_["rows"])

    @property
    def n_components_(self) -> int:
        """The number of components, K."""
        return len(self.principal_.components)

    def transform(self, X: Any) -> Any:
        """Return the scores of rows along the components.

        Parameters
        ----------
        X : array_like, dask.array.Array or Source, of shape (n, p)

        Returns
        -------
        ndarray of shape (n, K), or what `set_output` asks for
            Of a Dask collection a lazy Dask array, or a lazy DataFrame where 'pandas' is asked for.
            A row with a value that is not finite, where these are skipped, is NaN.

        Raises
        ------
        DataError
            If X has another number of columns than the rows that were fitted.
        """
        model = self.model_
        return model.transform(self._rows(X))

    def transform_to_hdf5(self, X: Any, path: str | Path, *, force: bool = False) -> int:
        """Write the scores of the rows of a source or an array as `X` of a new HDF5 file.

        Returns
        -------
        int
            How many rows are NaN, because `on_bad_rows` is 'skip'.
        """
        model, skip = self.model_, self.on_bad_rows == "skip"
        n_bad: int = model.transform_to_hdf5(self._source(X), path, skip_bad_rows=skip, force=force)
        return n_bad

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the components to an HDF5 file, which `streamkern.load` reads.

        Raises
        ------
        OutputError
            If the file exists and `force` is not given, or cannot be written.
        """
        self._current_model().save(path, force=force)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
