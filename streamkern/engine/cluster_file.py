"""Cluster files, checked before anything in them is used.

A cluster file is shared and copied, so it may start clusters but not run code: its module must be
in a known package, its options in `cluster_options.py`, unless the user trusts whoever wrote it.
"""

import importlib
import inspect
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import SpecCluster, SSHCluster
from distributed.deploy import Cluster

from streamkern.engine.cluster_options import OWN_OPTIONS, refuse_untrusted
from streamkern.engine.plain_yaml import mapping_in
from streamkern.errors import ClusterError, ParameterError, first_line
from streamkern.errors.checks import is_integer
from streamkern.runtime.signals import handlers_kept

_PACKAGES = (
    *("distributed", "dask_jobqueue", "dask_kubernetes", "dask_cloudprovider", "dask_gateway"),
    *("dask_yarn", "dask_cuda"),
)
_FORMS = (
    ("module", str, "a module such as dask.distributed"),
    ("class", str, "a class such as LocalCluster"),
    ("args", list, "a list"),
    ("kwargs", dict, "a mapping"),
    ("scale", int, "a whole number"),
    ("adapt", dict, "a mapping of minimum and maximum"),
    ("config", dict, "a mapping"),
)
_KEYS = ("version", *(key for key, _, _ in _FORMS))
# What a file adds to, rather than replaces, of the configuration of a site.
_OF_SITE = (
    *("scheduler-options", "worker-extra-args", "job-extra-directives", "interface"),
    "local-directory",
)


@dataclass(frozen=True)
class ClusterFile:
    """What a cluster file says, well-formed, and harmless or trusted; `config` by dotted key."""

    path: Path
    module: str
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    scale: int | None
    adapt: dict[str, int] | None
    config: dict[str, Any]
    trusted: bool

    def cluster_class(self) -> Any:
        package = self.module.split(".")[0]
        try:
            with handlers_kept():  # which dask_jobqueue replaces by its own
                found = getattr(importlib.import_module(self.module), self.name, None)
        except ImportError as error:
            raise ClusterError(
                f"{self.path} needs {self.module}, which cannot be imported ({first_line(error)}); "
                f"install it with pip install {package.replace('_', '-')}."
            ) from error
        # SpecCluster takes classes by name; SSHCluster is a function, GatewayCluster stands alone.
        is_cluster = inspect.isclass(found) and (
            (issubclass(found, Cluster) and found not in (Cluster, SpecCluster))
            or (package == "dask_gateway" and self.name == "GatewayCluster")
        )
        if not is_cluster and found is not SSHCluster:
            raise ParameterError(
                f"{self.path}: class must be a cluster class of {self.module}, such as "
                f"LocalCluster of dask.distributed, but {self.name} is not; correct it."
            )
        return found

    def options(self, start: Any) -> dict[str, Any]:
        """Return the file's options, with those of the user's own configuration beside them."""
        own = {}
        if job := getattr(start, "job_cls", None):
            # A scheduler that waits for jobs listens on the network.
            if not shutil.which(job.submit_command):
                raise ClusterError(
                    f"{self.path} needs {job.submit_command}, which is not on this machine; run "
                    f"the command where jobs are submitted."
                )
            site = dask.config.get(f"jobqueue.{job.config_name}", {})
            own = {key: site[key] for key in _OF_SITE if site.get(key)}
        own |= dask.config.get(f"{OWN_OPTIONS}.{self.name}", None) or {}
        own = {key.replace("-", "_"): value for key, value in own.items()}
        options = own | self.kwargs
        for key in own.keys() & self.kwargs.keys():
            if isinstance(own[key], dict):
                options[key] = own[key] | (self.kwargs[key] or {})
            elif not self.trusted and isinstance(own[key], list):
                options[key] = [*own[key], *self.kwargs[key]]
            elif not self.trusted and key in ("interface", "local_directory"):
                options[key] = own[key]
        return options


def read_cluster_file(path: Path, *, trusted: bool = False) -> ClusterFile:
    """Read and check a cluster file; that is trusted whose writer may run code as the user."""
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
    package, *inner = module.removeprefix("dask.").split(".")
    if package not in _PACKAGES or not all(part.isidentifier() for part in inner):
        raise ParameterError(
            f"{path}: module must be in one of dask.distributed, {', '.join(_PACKAGES)}, not "
            f"{module!r}; other code is not run from a cluster file."
        )
    if not name.isidentifier():
        raise ParameterError(f"{path}: class must be the name of one class, not {name!r}.")
    args, kwargs = content.get("args") or [], content.get("kwargs") or {}
    config = dict(_dotted(content.get("config") or {}))
    if not trusted:
        refuse_untrusted(path, name, args, kwargs, config)
    return ClusterFile(path, module, name, args, kwargs, scale, adapt, config, trusted)


def _dotted(config: dict[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by dotted key: merged so, they replace no neighbours."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
