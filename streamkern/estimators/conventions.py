"""scikit-learn's conventions: parameters and their names, checks of tables, and `set_output`."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from streamkern.errors import DataError, ParameterError
from streamkern.estimators.paths import are_paths
from streamkern.kernels import Kernel
from streamkern.parameters.parameters import first_kernel_of
from streamkern.runtime.private_names import meta_of, output_container
from streamkern.runtime.sparse_rows import SparseRows
from streamkern.sources import Source
from streamkern.sources.containers import (
    as_numbers,
    as_table,
    is_dask_frame,
    is_lazy,
    lazy_frame,
    unwrapped,
    with_coordinates,
)
from streamkern.sources.nonfinite_rows import bad_columns


def keep_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Keep the locals of an `__init__` as attributes, as they were given."""
    vars(estimator).update({name: value for name, value in given.items() if name != "self"})


def initializer(parameters: Iterable[Parameter]) -> Any:
    """Return an `__init__` that keeps what it is given under the names of its parameters."""
    known = Signature(list(parameters))

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  the class's
        try:
            given = known.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        given.apply_defaults()
        vars(self).update(given.arguments)

    this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([this, *parameters])  # type: ignore[attr-defined]
    return __init__


class KernelParameters:
    """An estimator whose `kernel` is a value: to set `kernel__length_scale` replaces the kernel."""

    kernel: Kernel | str

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, those of the kernel included."""
        own = "kernel__"
        names = [name for name in parameters if name.startswith(own)]
        of_kernel = {name.removeprefix(own): parameters.pop(name) for name in names}
        super().set_params(**parameters)  # type: ignore[misc]
        if of_kernel:
            self.kernel = first_kernel_of(self.kernel).with_params(**of_kernel)
        return self


@contextmanager
def data_errors() -> Iterator[None]:
    """Have what scikit-learn finds wrong with a table be a DataError, in its words."""
    try:
        yield
    except np.exceptions.DTypePromotionError as error:
        raise DataError(
            "X must hold numbers only, but has columns of dates or times; convert them to numbers, "
            "as by RandomFeatureRidge().fit(X, y).recipe_.transform(X)."
        ) from error
    except TypeError as error:
        if not str(error).startswith("Sparse"):  # of odd objects its checks ask for a TypeError
            raise
        raise DataError(str(error)) from error
    except ValueError as error:
        raise DataError(str(error)) from error


def checked_rows(
    estimator: BaseEstimator,
    X: Any,
    *,
    first: bool,
    finite: bool,
    dtype: Any = "numeric",
    fewest: int = 1,
) -> Any:
    """Return a table of at least `fewest` rows as an array; sources and Dask collections stay.

    Its columns are noted where these are the `first` rows, of a fit, and else compared with those
    noted.  Passes look for values that are not finite on their own: only with `finite` is it done
    here.
    """
    refuse_paths(estimator, X)
    X = unwrapped("X", X)
    if isinstance(X, Source):
        if first:
            vars(estimator).pop("feature_names_in_", None)
        return X
    with data_errors():
        if is_lazy(X):
            columns = meta_of(X) if is_dask_frame(X) else X
            validate_data(estimator, columns, reset=first, skip_check_array=True)
            return X
        limits = {"ensure_all_finite": False, "ensure_min_samples": fewest}
        limits["accept_sparse"] = get_tags(estimator).input_tags.sparse
        rows = as_table("X", validate_data(estimator, X, reset=first, dtype=dtype, **limits))
    check_finite(estimator, rows, getattr(estimator, "feature_names_in_", None), finite=finite)
    return rows


def refuse_paths(estimator: BaseEstimator, X: Any) -> None:
    if are_paths(X):
        raise DataError(
            f"{type(estimator).__name__} takes rows themselves, but X is a path or text ({X!r}); "
            f"read them first: `pandas.read_csv`, or `streamkern.open_hdf5` for a fit."
        )


def check_finite(estimator: Any, rows: Any, names: Any, *, finite: bool) -> None:
    if not finite or rows.dtype.kind not in "fc":
        return
    if isinstance(rows, SparseRows):
        found, counts = rows.nonfinite()
        n_bad = len(found)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(rows.sum()):  # which is quick to look at
                return
        bad = ~np.isfinite(rows)
        n_bad, counts = int(bad.any(axis=1).sum()), bad.sum(axis=0)
    if n_bad:
        may_skip = "on_bad_rows 'skip' leaves them out, or " * hasattr(estimator, "on_bad_rows")
        raise DataError(
            f"Input X contains NaN or infinity in {n_bad:,} of {len(rows):,} rows, in "
            f"{bad_columns(names, counts.tolist())}; {may_skip}fill missing cells, as "
            f"`streamkern convert` and a fit to a data frame with missing cells do."
        )


def checked_targets(estimator: BaseEstimator, y: Any, *, labels: bool) -> Any:
    """Return targets (n,) or (n, q) as an array of numbers, or labels (n,) of any kind; lazy stay.

    Passes look for values that are not finite and for labels that are missing, and say where.
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
        limits = {"ensure_2d": False, "ensure_all_finite": False}
        y = check_array(y, dtype="numeric", input_name="y", **limits)
        if y.ndim == 2 and y.shape[1] == 1 and not get_tags(estimator).target_tags.multi_output:
            y = column_or_1d(y, warn=True)
        return as_numbers(y)


class LazyTransformer(TransformerMixin, auto_wrap_output_keys=None):  # type: ignore[call-arg, misc]
    """A transformer whose output is lazy for a Dask collection, whatever `set_output` asks for.

    scikit-learn makes a data frame of what a transformer returns, in memory, so it would compute
    all rows.  Here 'pandas' asks for a Dask DataFrame.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)  # here scikit-learn puts its own around `transform`
        method = vars(cls).get("transform")
        if method is not None:
            cls.transform = _lazily(method)

    def fit_transform(self: Any, X: Any, y: Any = None, **parameters: Any) -> Any:
        """Fit to rows, and return what `transform` makes of them.

        Parameters
        ----------
        X, y : array_like, data frame or Dask collection
            As in `fit` and `transform`.
        **parameters : dict
            Others of `fit`, by their names.
        """
        return self.fit(X, y, **parameters).transform(X)


def _lazily(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `transform` that hands lazy rows past scikit-learn, in the container asked for."""
    plain = getattr(method, "__wrapped__", method)

    @wraps(method)
    def transform(self: Any, X: Any, *more: Any, **named: Any) -> Any:
        rows = unwrapped("X", X)
        if not is_lazy(rows):
            return with_coordinates(method(self, rows, *more, **named), X)
        made = with_coordinates(plain(self, rows, *more, **named), X)
        wanted = output_container(self)
        if wanted == "default":
            return made
        if wanted != "pandas":
            raise ParameterError(
                f"set_output(transform={wanted!r}) would compute all rows, which are a Dask "
                f"collection; take 'pandas' for a Dask DataFrame, 'default' for a Dask array, or "
                f"compute the rows first."
            )
        return lazy_frame(made, self.get_feature_names_out(), rows)

    return transform


class KernelFeatures(KernelParameters, ClassNamePrefixFeaturesOutMixin, LazyTransformer):  # type: ignore[misc]
    """A transformer to features of a kernel, which are called after its class."""
