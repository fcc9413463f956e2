"""What `set_output` asks transformers for, of rows that are lazy."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _get_output_config

from streamkern.errors import ParameterError
from streamkern.sources.lazy import is_dask_frame, is_lazy, lazy_frame

if TYPE_CHECKING:
    from collections.abc import Callable


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

    def fit_transform(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """Fit to rows, and return what `transform` makes of them.

        Parameters
        ----------
        X, y
            As in `fit`.
        **parameters
            Of `fit`.
        """
        fitted: Any = self
        return fitted.fit(X, y, **parameters).transform(X)


def _lazily(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `transform` that hands lazy rows past scikit-learn."""
    plain = getattr(method, "__wrapped__", method)

    @wraps(method)
    def transform(self: Any, X: Any, *more: Any, **named: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *more, **named)
        return _in_columns(self, plain(self, X, *more, **named), X)

    return transform


def _in_columns(estimator: Any, made: Any, X: Any) -> Any:
    """Return what was made of lazy rows as the container that was asked for."""
    wanted = _get_output_config("transform", estimator)["dense"]
    if wanted not in {"default", "pandas"}:
        raise ParameterError(
            f"set_output(transform={wanted!r}) would compute all rows, which are a Dask "
            f"collection; take 'pandas' for a Dask DataFrame, 'default' for a Dask array, or "
            f"compute the rows first."
        )
    if wanted == "default":
        return made
    index = X.index if is_dask_frame(X) else None
    return lazy_frame(made, estimator.get_feature_names_out(), index)
