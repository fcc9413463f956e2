"""Kernel principal components, as scikit-learn's users meet them."""

from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from streamkern.estimators.base import TableEstimator, fitted, with_state
from streamkern.estimators.conventions import KernelFeatures, keep_parameters
from streamkern.estimators.docstrings import documented
from streamkern.extensions.components.fitted_components import (
    ComponentOptions,
    principal_components,
)
from streamkern.kernels import Kernel
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.parameters import DEFAULT_KERNEL
from streamkern.runtime.events import job
from streamkern.sources import as_source


@documented
class RandomFeaturePCA(KernelFeatures, TableEstimator):
    """Kernel principal component analysis by random features, in two passes over the rows.

    The principal components of the features phi(x), from their centred moments.  As phi(x)^T
    phi(x') is the kernel in expectation, scores are those of kernel PCA; of the identity map they
    are those of plain PCA.  Memory grows with D^2, not with n.

    Parameters
    ----------
    n_components : int or float, optional
        K, the number of principal components that are kept, as in scikit-learn's `PCA`; or the
        share of the variance, between 0 and 1, that they explain at least; or all whose variance
        is more than rounding.
    n_random_features : int
        D, which the regressions here call n_components; the identity map has p.

    References
    ----------
    Schoelkopf, Smola and Mueller (1998), "Nonlinear component analysis as a kernel eigenvalue
    problem".
    Lopez-Paz, Sra, Smola, Ghahramani and Schoelkopf (2014), "Randomized nonlinear component
    analysis".
    """

    principal_ = fitted("components", "The components, as a function of rows.")
    components_ = fitted(
        "components.components",
        "Of the features, in orthonormal rows (K, D), whose largest numbers are positive.",
    )
    mean_ = fitted("components.mean", "Of the features, (D,).")
    explained_variance_ = fitted("components.explained_variance", "Descending, (K,).")
    explained_variance_ratio_ = fitted("components.explained_variance_ratio", "The shares, (K,).")
    singular_values_ = fitted("components.singular_values", "Lengths of columns of scores, (K,).")
    feature_map_ = fitted("components.feature_map", "From raw rows to features.")
    kernel_ = fitted("kernel", "The kernel, with its length scale resolved.")
    n_samples_ = property(lambda self: int(self.report_["rows"]), doc="Rows that were fitted, n.")
    n_components_ = property(lambda self: len(self.components_), doc="The number of components, K.")
    _n_features_out = n_components_

    def __init__(
        self,
        kernel: Kernel | str = DEFAULT_KERNEL,
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
        keep_parameters(self, locals())

    @job("pca")
    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Find the components of the features of rows.

        A source needs no targets; those that it has must be finite.  Errors are those of
        `RandomFeatureRidge.fit`.

        Parameters
        ----------
        y : object, not looked at
        sample_weight : array_like or Dask collection of shape (n,), optional
            How often each row counts; with a path or frame the name of what holds it.
        """
        options = self._options()
        options.pass_options()  # refused before rows are looked at
        more: Any = {"first": True, "fewest": 2, "targets": False}
        source = as_source(*self._tables(X, None, sample_weight, **more))
        return with_state(self, options.fit(source, checkpoint=checkpoint))

    @job("solve")
    def solve(self, moments: DataMoments) -> Self:
        """Find the components of the features that moments are of, without reading rows.

        Parameters
        ----------
        moments : DataMoments
            Their map is taken, whatever the parameters of this object.

        Raises
        ------
        ParameterError
            If there are fewer rows or features than components asked for.
        """
        return with_state(self, principal_components(moments, self._options()))

    def _options(self) -> ComponentOptions:
        return ComponentOptions(*(getattr(self, each.name) for each in fields(ComponentOptions)))

    def transform(self, X: Any) -> Any:
        """Return the scores of rows along the components.

        Returns
        -------
        ndarray of shape (n, K), or what `set_output` asks for
            Of a Dask collection a Dask array or DataFrame.  A row with a value that is not finite,
            where these are skipped, is NaN.
        """
        return self.model_.transform(self._rows(X))

    def transform_to_hdf5(self, X: Any, path: str | Path, *, force: bool = False) -> int:
        """Write the scores of rows as the dataset `X` (n, K) of a new HDF5 file."""
        source = self._source(X, targets=False)
        return self.model_.transform_to_hdf5(source, path, skip_bad_rows=self._skips, force=force)
