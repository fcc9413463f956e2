"""Cluster files: which of five classes, of what size; checked before anything in them is used.

A cluster file is shared and copied.  Whoever names a host, an image, an address, a folder or a
program in one can run code in the account of its reader, so all of these are for the user's own
Dask configuration.
"""

import importlib
import inspect
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask
import yaml
from distributed import Client, LocalCluster

from streamkern.engine.cluster import local_options, started, text_of, wait_for_worker
from streamkern.engine.scheduler import NO_WORKERS
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.errors.formatting import printable
from streamkern.runtime.stopping import handlers_kept

_OWN = "streamkern.cluster-options"  # of the user's own configuration
_MOST_BYTES = 4 << 10  # YAML takes long to read
# The classes, and where each is.
_CLASSES = {
    "LocalCluster": "dask.distributed",
    "SSHCluster": "dask.distributed",
    "SLURMCluster": "dask_jobqueue",
    "PBSCluster": "dask_jobqueue",
    "KubeCluster": "dask_kubernetes.operator",
}
_KEYS = ("version", "module", "class", "kwargs", "scale", "adapt")
_COUNTS = {"n_workers", "nthreads", "threads_per_worker", "cores", "processes", "job_cpu"}
_AMOUNTS = {"memory", "memory_limit", "cpu", "job_mem", "walltime"}
_GROUPS = {"resources", "requests", "limits", "worker_options"}
# They reach job scripts and command lines: a shell acts on none.
_AMOUNT = re.compile(r"\d[\d.:+-]*(?: ?[A-Za-z]+)?|auto")


@dataclass(frozen=True)
class ClusterFile:
    """What a cluster file says, well-formed and harmless."""

    path: Path
    name: str
    kwargs: dict[str, Any]
    scale: int | None
    adapt: dict[str, int] | None

    def cluster_class(self) -> Any:
        module = _CLASSES[self.name]
        try:
            with handlers_kept():  # which dask_jobqueue replaces by its own
                return getattr(importlib.import_module(module), self.name)
        except ImportError as error:
            package = module.split(".")[0].replace("_", "-")
            raise ClusterError(
                f"{self.path} needs {module}, which cannot be imported ({first_line(error)}); "
                f"install it with pip install {package}."
            ) from error

    def options(self, start: Any) -> dict[str, Any]:
        """Return the file's options, with those of the user's own configuration beside them."""
        job = getattr(start, "job_cls", None)
        # A scheduler that waits for jobs listens on the network.
        if job and not shutil.which(job.submit_command):
            raise ClusterError(
                f"{self.path} needs {job.submit_command}, which is not on this machine; run the "
                f"command where jobs are submitted."
            )
        own = dask.config.get(f"{_OWN}.{self.name}", None) or {}
        own = {key.replace("-", "_"): value for key, value in own.items()}
        if self.name == "KubeCluster":  # standard output is the program's, which may be killed
            own = {"quiet": True, "idle_timeout": 3600} | own
        groups = {key for key in own.keys() & self.kwargs.keys() if isinstance(own[key], dict)}
        return own | self.kwargs | {key: own[key] | self.kwargs[key] for key in groups}


def read_cluster_file(path: Path) -> ClusterFile:
    """Read and check a cluster file."""
    content = _mapping_in(path)
    unknown = sorted(key for key in content if key not in _KEYS)
    if unknown:
        raise ParameterError(
            f"{path} has the unknown key {printable(unknown[0])[:60]!r}; a file may have "
            f"{', '.join(_KEYS)}, and all else stands in your own Dask configuration, "
            f"~/.config/dask."
        )
    if content.get("version") != "1":
        raise ParameterError(f"{path} must say version: 1; correct it.")
    name = str(content.get("class"))
    where = _CLASSES.get(name)
    if where is None or content.get("module") not in (where, where.removeprefix("dask.")):
        known = ", ".join(f"{each} of {place}" for each, place in _CLASSES.items())
        raise ParameterError(
            f"{path}: class must be one of {known}; start other clusters yourself, and give the "
            f"address of the scheduler."
        )
    scale, adapt = content.get("scale"), content.get("adapt")
    if scale is not None and (adapt is not None or not _is_count(scale) or int(scale) < 1):
        raise ParameterError(
            f"{path}: scale must be a whole number of 1 or more, without adapt beside it; "
            f"correct it."
        )
    kwargs = _checked(path, content.get("kwargs", {}), "kwargs", name)
    limits = None if adapt is None else _limits(path, adapt)
    return ClusterFile(path, name, kwargs, None if scale is None else int(scale), limits)


def _mapping_in(path: Path) -> dict[str, Any]:
    """Return what a file holds in texts, lists and mappings alone: no tag or alias counts."""
    try:
        text = text_of(path, _MOST_BYTES)
    except FileNotFoundError as error:
        raise ParameterError(f"{path} does not exist; name a cluster file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} cannot be read ({error}); name a cluster file.") from error
    try:
        # A few lines of aliases can stand for more values than memory holds.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ParameterError(f"{path} uses YAML aliases; write the values out.")
        content = yaml.load(text, yaml.BaseLoader)  # noqa: S506  it makes texts alone
    except (yaml.YAMLError, RecursionError) as error:
        # Not the line itself, which may hold a password.
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise ParameterError(f"{path} is not plain YAML{place}; correct it.") from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ParameterError(
            f"{path} must be a mapping with version, module and class; write it as in the example "
            f"cluster.yaml."
        )
    return content


def _is_count(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) is not None


def _limits(path: Path, adapt: Any) -> dict[str, int]:
    given = {"minimum": "0"} | adapt if isinstance(adapt, dict) else {}
    if set(given) == {"minimum", "maximum"} and all(map(_is_count, given.values())):
        limits = {key: int(value) for key, value in given.items()}
        if max(limits["minimum"], 1) <= limits["maximum"]:
            return limits
    raise ParameterError(
        f"{path}: adapt must be {{minimum: 0 or more, maximum: at least that}}; correct it."
    )


def _checked(path: Path, values: Any, within: str, cluster: str) -> dict[str, Any]:
    """Return options as their class takes them, or raise ParameterError of one."""
    if not isinstance(values, dict):
        raise ParameterError(f"{path}: {within} must be a mapping; correct it.")
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{within}.{printable(str(key))[:60]}"
        if key in _GROUPS:
            found[key] = _checked(path, value, name, cluster)
        elif key in _COUNTS and _is_count(value):
            found[key] = int(value)
        elif key in _AMOUNTS and isinstance(value, str) and _AMOUNT.fullmatch(value):
            found[key] = value
        else:  # not the value, which may be a password
            form = "a whole number" if key in _COUNTS else "a number, or one with a unit"
            wrong = f"must be {form}; correct it, or"
            other = "is not allowed in a cluster file, which says sizes and resources alone;"
            raise ParameterError(
                f"{path}: {name} {wrong if key in _COUNTS | _AMOUNTS else other} set it in your "
                f"own Dask configuration, ~/.config/dask, as {_OWN}.{cluster}."
            )
    return found


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
