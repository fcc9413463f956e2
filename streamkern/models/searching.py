"""Dask-ML's incremental searches, where Dask has moved on from them."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


_LOCK = Lock()
_open = 0


@contextmanager
def mended_searches() -> Iterator[None]:
    """Let Dask-ML's searches through `partial_fit` run with Dask 2025.3 and later.

    `HyperbandSearchCV`, `IncrementalSearchCV` and their like, of any estimator, persist data and
    models by `dask.persist` from the event loop of the client, which Dask refuses since then
    (dask/dask-ml issue 1016; Dask-ML 2025.1).  Inside this context they ask the client instead.

        with mended_searches():
            search = HyperbandSearchCV(RandomFeatureRidge(), {"alpha": [0.1, 1.0]}).fit(X, y)

    Dask-ML is changed for the whole process, and put back when the last context in any thread ends.
    """
    import dask  # noqa: PLC0415  slow, as the next
    from dask_ml.model_selection import _incremental  # noqa: PLC0415
    from distributed import default_client  # noqa: PLC0415

    def persist(*collections: Any) -> tuple[Any, ...]:
        client = default_client()

        def kept(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: kept(each) for key, each in value.items()}
            return client.persist(value) if dask.is_dask_collection(value) else value

        return tuple(kept(value) for value in collections)

    _count(+1, _incremental, _Dask(dask, persist))
    try:
        yield
    finally:
        _count(-1, _incremental, dask)


def _count(change: int, module: Any, dask: Any) -> None:
    """Have a module take `dask` when the first context begins, and when the last one ends."""
    global _open  # noqa: PLW0603  one module of Dask-ML's, one count
    with _LOCK:
        _open += change
        if _open == max(change, 0):
            module.dask = dask


class _Dask:
    """Dask, but for one function."""

    def __init__(self, dask: Any, persist: Any) -> None:
        self.dask = dask
        self.persist = persist

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dask, name)
