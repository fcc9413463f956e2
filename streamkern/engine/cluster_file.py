"""Cluster files, checked before anything in them is used.

A cluster file is shared and copied, so it may start clusters but not run code: it names one of five
classes, and of its options those that `cluster_options.py` allows.
"""

import importlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask

from streamkern.engine.cluster_options import OWN_OPTIONS, refuse_others
from streamkern.engine.plain_yaml import mapping_in
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.errors.checks import is_integer
from streamkern.runtime.stopping import handlers_kept

# The classes, and where each is.
_CLASSES = {
    "LocalCluster": "dask.distributed",
    "SSHCluster": "dask.distributed",
    "SLURMCluster": "dask_jobqueue",
    "PBSCluster": "dask_jobqueue",
    "KubeCluster": "dask_kubernetes.operator",
}
_FORMS = (
    ("module", str, "a module such as dask.distributed"),
    ("class", str, "a class such as LocalCluster"),
    ("kwargs", dict, "a mapping"),
    ("scale", int, "a whole number"),
    ("adapt", dict, "a mapping of minimum and maximum"),
    ("config", dict, "a mapping"),
)
_KEYS = ("version", *(key for key, _, _ in _FORMS))


@dataclass(frozen=True)
class ClusterFile:
    """What a cluster file says, well-formed and harmless; `config` by dotted key."""

    path: Path
    name: str
    kwargs: dict[str, Any]
    scale: int | None
    adapt: dict[str, int] | None
    config: dict[str, Any]

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
        own = dask.config.get(f"{OWN_OPTIONS}.{self.name}", None) or {}
        own = {key.replace("-", "_"): value for key, value in own.items()}
        groups = {key for key in own.keys() & self.kwargs.keys() if isinstance(own[key], dict)}
        return own | self.kwargs | {key: own[key] | (self.kwargs[key] or {}) for key in groups}


def read_cluster_file(path: Path) -> ClusterFile:
    """Read and check a cluster file."""
    content = mapping_in(path)
    unknown = sorted(str(key) for key in content if key not in _KEYS)
    if unknown:
        raise ParameterError(
            f"{path} has the unknown key {unknown[0]!r}; the known keys are {', '.join(_KEYS)}."
        )
    version = content.get("version")
    if version != 1 or isinstance(version, bool):
        raise ParameterError(f"{path} must say version: 1, but says {version!r}; correct it.")
    for key, kind, form in _FORMS:
        value = content.get(key)
        if value is None and key not in ("module", "class"):
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ParameterError(f"{path}: {key} must be {form}, not {value!r}; correct it.")
    scale, adapt = content.get("scale"), content.get("adapt")
    if scale is not None and scale < 1:
        raise ParameterError(f"{path}: scale must be 1 or more, not {scale}; correct it.")
    if scale is not None and adapt is not None:
        raise ParameterError(f"{path} has both scale and adapt; keep one of them.")
    if adapt is not None:
        limits = {"minimum": 0, "maximum": 0} | adapt
        low, high = limits["minimum"], limits["maximum"]
        whole = is_integer(low, 0) and is_integer(high, 1)
        if len(limits) > 2 or not whole or low > high:
            raise ParameterError(
                f"{path}: adapt must be {{minimum: 0 or more, maximum: at least that}}, not "
                f"{adapt}; correct it."
            )
        adapt = limits
    module, name = content["module"], content["class"]
    where = _CLASSES.get(name)
    if where is None or module not in (where, where.removeprefix("dask.")):
        known = ", ".join(f"{each} of {place}" for each, place in _CLASSES.items())
        raise ParameterError(
            f"{path}: class must be one of {known}, not {name} of {module}; start other clusters "
            f"yourself, and give the address of the scheduler."
        )
    kwargs = content.get("kwargs") or {}
    config = dict(_dotted(content.get("config") or {}))
    refuse_others(path, name, kwargs, config)
    return ClusterFile(path, name, kwargs, scale, adapt, config)


def _dotted(config: dict[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by dotted key: merged so, they replace no neighbours."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
