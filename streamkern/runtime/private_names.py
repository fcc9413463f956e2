"""Every private name of another library that is used, with why.

All were seen in dask and distributed 2026.8.0, and scikit-learn 1.9.1.
"""

from collections.abc import Awaitable, Collection
from typing import Any


def instances_of(kind: Any) -> Collection[Any]:
    """Return the clients, or the clusters, that there are in this process.

    distributed.Client, distributed.SpecCluster: a client may be in use by another thread alone, and
    a cluster whose start is interrupted is known nowhere else.
    """
    return list(kind._instances)


def forget_current_client() -> None:
    """Leave no client current, in a process that was forked: its threads are its parent's."""
    from distributed.client import _current_client  # noqa: PLC0415  where it is used

    _current_client.set(None)


def begun_parts(cluster: Any) -> list[Any]:
    """Return the workers that a cluster has begun to start.

    distributed.SpecCluster: `workers` has them only when all of them run.
    """
    return list(getattr(cluster, "_created", ()))


def closed(cluster: Any) -> Awaitable[None]:
    """Return what closes a cluster from its own loop; `close` would wait for that loop."""
    awaited: Awaitable[None] = cluster._close()
    return awaited


def stop_loop(cluster: Any) -> None:
    """Stop the loop of a cluster that was never ready, which `close` does for others alone."""
    cluster._loop_runner.stop()


async def closed_at_once(client: Any) -> None:
    """Close a client whose scheduler does not answer; closing in order would ask it."""
    await client._close(fast=True)


def asked_of_workers(client: Any, function: Any, seconds: float) -> dict[str, Any]:
    """Return what a function returns on workers that answer in so many seconds.

    distributed.Client: `run` takes no limit, and one worker that hangs holds it for ever.
    """
    found: dict[str, Any] = client.sync(
        client._run, function, on_error="ignore", callback_timeout=seconds
    )
    return found


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
