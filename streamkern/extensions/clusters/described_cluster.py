"""The start of a cluster that a file describes."""

import inspect
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from distributed import Client, LocalCluster

from streamkern.engine.cluster import local_options, started, wait_for_worker
from streamkern.engine.scheduler import NO_WORKERS
from streamkern.errors import ParameterError
from streamkern.extensions.clusters.cluster_file import read_cluster_file


def started_by_file(stack: ExitStack, path: Path, patience: float) -> Client:
    """Return a client of the cluster of a file, which is closed with the stack."""
    file = read_cluster_file(path)
    start = file.cluster_class()
    try:
        call = inspect.signature(start).bind(**file.options(start))
    except TypeError as error:
        raise ParameterError(
            f"{file.path}: {file.name} does not take these kwargs ({error}); correct them."
        ) from error
    if start is LocalCluster:
        call.arguments = local_options(call.arguments)
    what = f"the {file.name} of {file.path}"
    client = started(stack, partial(start, *call.args, **call.kwargs), what)
    if file.scale is not None:
        client.cluster.scale(file.scale)
    if file.adapt is not None:
        client.cluster.adapt(**file.adapt)
    # An adaptive cluster may have no worker before there is work.
    if file.adapt is None or file.adapt["minimum"]:
        remedy = f" with scale or n_workers, or, where jobs queue, set {NO_WORKERS} in your Dask"
        wait_for_worker(client, patience, what, f"{remedy} configuration")
    return client
