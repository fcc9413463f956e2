"""Every private name of another library that is used, with why.

They were seen in dask 2026.8.0 and scikit-learn 1.9.1; of distributed there is none.
"""

from typing import Any


def meta_of(frame: Any, *, with_rows: bool = False) -> Any:
    """Return the empty frame that a Dask DataFrame is like, or one with rows made up.

    dask.dataframe: the documented way to know columns and kinds without computing a partition.
    """
    return frame._meta_nonempty if with_rows else frame._meta


def output_container(estimator: Any) -> str:
    """Return what `set_output` asked of an estimator: 'default', 'pandas' or 'polars'.

    scikit-learn applies it to rows in memory by itself, and computes lazy ones.
    """
    from sklearn.utils._set_output import _get_output_config  # noqa: PLC0415  slow

    found: str = _get_output_config("transform", estimator)["dense"]
    return found
