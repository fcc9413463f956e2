"""scikit-learn's conventions: what its estimators check of tables, and how parameters are named."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    is_classifier,
)
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from streamkern.containers import LazyTransformer
from streamkern.errors import DataError
from streamkern.kernels import as_kernel
from streamkern.kernels.naming import split_names
from streamkern.numeric import as_numbers
from streamkern.sources import Source
from streamkern.sources.lazy import is_dask_frame, is_lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.features import FeatureMap
    from streamkern.kernels import Kernel


class KernelParameters:
    """An estimator whose parameter `kernel` has parameters, such as `kernel__length_scale`.

    Kernels do not change, so that one may be the default of many estimators: another one takes its
    place.
    """

    kernel: Kernel | str

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, those of the kernel included.

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        of_kernel = split_names(parameters)[1].get("kernel", {})
        others = {name: v for name, v in parameters.items() if not name.startswith("kernel__")}
        estimator: Any = super()
        estimator.set_params(**others)
        if of_kernel:
            self.kernel = as_kernel(self.kernel).with_params(**of_kernel)
        return self


class TableEstimator(BaseEstimator):  # type: ignore[misc]
    """A model that is an estimator of scikit-learn's, whose tables are checked as those are.

    It comes before the model among the bases of a class.
    """

    on_bad_rows: str

    def _tables(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        first: bool = False,
        fewest: int = 1,
    ) -> tuple[Any, Any, Any]:
        finite = not (first or self.on_bad_rows == "skip")
        X = checked_rows(self, X, first=first, finite=finite, fewest=fewest)
        if not isinstance(X, Source) and (first or y is not None):
            y = checked_targets(self, y, labels=is_classifier(self))
        return X, y, sample_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.on_bad_rows == "skip"
        return tags


class FeatureEstimator(
    KernelParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    LazyTransformer,
    TableEstimator,
):
    """A model with a feature map that is an estimator and a transformer of scikit-learn's too.

    Attributes
    ----------
    feature_map_ : FeatureMap
    """

    feature_map_: FeatureMap

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p): standardised, mapped, and scaled.

        Parameters
        ----------
        X : array_like, data frame or Dask collection, of shape (n, p)

        Returns
        -------
        ndarray of shape (n, D), or what `set_output` asks for
            Of a Dask collection a lazy Dask array, or a lazy DataFrame where 'pandas' is asked for.
        """
        model: Any = super()
        return model.transform(X)

    @property
    def _n_features_out(self) -> int:
        return self.feature_map_.n_components


def checked_rows(
    estimator: BaseEstimator,
    X: Any,
    *,
    first: bool,
    finite: bool,
    dtype: Any = "numeric",
    fewest: int = 1,
) -> Any:
    """Return a table of rows as an array, with its columns noted, or compared with those noted.

    Parameters
    ----------
    estimator : BaseEstimator
    X : Source, Dask collection, data frame or array_like, of shape (n, p)
        The first two stay what they are.
    first : bool
        Whether these are the rows of a fit: their columns are noted in `n_features_in_` and, of a
        frame, `feature_names_in_`.
    finite : bool
        Whether to look for NaN and infinite values; passes look for them on their own.
    dtype
        As in scikit-learn's `check_array`.
    fewest : int
        How many rows there must be.

    Raises
    ------
    DataError
        If the rows are no table of numbers, or one of other columns.
    TypeError
        If it has objects that are no numbers.
    """
    if isinstance(X, Source):
        if first:
            vars(estimator).pop("feature_names_in_", None)
        return X
    with data_errors():
        if is_lazy(X):
            columns = X._meta if is_dask_frame(X) else X  # noqa: SLF001  Dask's own protocol
            validate_data(estimator, columns, reset=first, skip_check_array=True)
            return X
        rows = validate_data(
            estimator,
            X,
            reset=first,
            dtype=dtype,
            ensure_all_finite=finite,
            ensure_min_samples=fewest,
        )
    return as_numbers(rows)


def checked_targets(estimator: BaseEstimator, y: Any, *, labels: bool = False) -> Any:
    """Return numeric targets as an array (n,) or (n, q), or labels (n,); what is Dask's as it is.

    Passes look for values that are not finite and for labels that are missing, and say where.

    Parameters
    ----------
    estimator : BaseEstimator
    y : array_like or Dask collection
    labels : bool
        Labels of classes, of any kind.

    Raises
    ------
    DataError
        If there are none, they are no numbers, or more than one label a row.
    """
    if y is None:
        raise DataError(
            f"a fit needs targets: {type(estimator).__name__} requires y to be passed, but the "
            f"target y is None; pass y."
        )
    if is_lazy(y):
        return y
    with data_errors():
        if labels:
            return column_or_1d(y, warn=True)
        targets = check_array(
            y, ensure_2d=False, dtype="numeric", ensure_all_finite=False, input_name="y"
        )
    return as_numbers(targets)


@contextmanager
def data_errors() -> Iterator[None]:
    """Have what scikit-learn finds wrong with a table be a DataError, in its words."""
    try:
        yield
    except ValueError as error:
        raise DataError(str(error)) from error
