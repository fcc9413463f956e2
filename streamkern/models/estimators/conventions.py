"""scikit-learn's conventions: what its estimators check of tables, and how parameters are named."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from streamkern.errors import DataError, StreamkernWarning
from streamkern.errors.formatting import listed
from streamkern.kernels import as_kernel
from streamkern.kernels.base import split_names
from streamkern.sources import Source
from streamkern.sources.lazy import as_numbers, is_dask_frame, is_lazy
from streamkern.sources.preprocessing.column_encoders import Tally
from streamkern.sources.preprocessing.column_names import bad_columns
from streamkern.sources.preprocessing.discovery import is_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sklearn.base import BaseEstimator

    from streamkern.kernels import Kernel
    from streamkern.sources.preprocessing import Recipe


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
            ensure_all_finite=False,
            ensure_min_samples=fewest,
        )
    check_finite(estimator, rows, getattr(estimator, "feature_names_in_", None), finite=finite)
    return as_numbers(rows)


def check_finite(estimator: Any, rows: Any, names: Any, *, finite: bool) -> None:
    """Raise DataError if rows (n, p) are to be finite and are not; it names the columns (p,)."""
    if not finite or rows.dtype.kind not in "fc":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):  # which is quick to look at
            return
    bad = ~np.isfinite(rows)
    if bad.any():
        may_skip = "on_bad_rows 'skip' leaves them out, or " * hasattr(estimator, "on_bad_rows")
        raise DataError(
            f"Input X contains NaN or infinity in {int(bad.any(axis=1).sum()):,} of {len(rows):,} "
            f"rows, in {bad_columns(names, bad.sum(axis=0))}; {may_skip}fill missing cells, as "
            f"`streamkern convert` and a fit to a data frame with missing cells do."
        )


def encoded(recipe: Recipe, X: Any, *, told: bool) -> Any:
    """Return the inputs that a table becomes, lazily for one of Dask; other rows are inputs.

    With `told` it warns of cells of tables in memory that the recipe did not expect.
    """
    if is_dask_frame(X):
        return X.map_partitions(_encoded_part, recipe, meta=_encoded_part(X._meta, recipe))  # noqa: SLF001
    if not is_frame(X):
        if told and not recipe.is_plain:
            names = recipe.feature_names
            warnings.warn(
                f"X has no names of columns, so it is taken for the {len(names)} inputs that are "
                f"made of a table: {listed(names, 5)}; give a data frame to have them made.",
                StreamkernWarning,
                stacklevel=5,
            )
        return X
    tally = Tally()
    rows = recipe.transform(X, tally)
    if told:
        tally.warn(stacklevel=5)
    return rows


def _encoded_part(part: Any, recipe: Recipe) -> Any:
    import pandas as pd  # noqa: PLC0415  slow, and whoever has a Dask frame has imported it

    return pd.DataFrame(recipe.transform(part), index=part.index)


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
