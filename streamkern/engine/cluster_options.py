"""What a cluster file may say: how many workers, how large, for how long, under which plain names.

Whoever names a host, an image, an address, a folder or a program in a file can run code in the
account of its reader.  All of these are for the user's own Dask configuration.
"""

import re
from pathlib import Path
from typing import Any

from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable

OWN_OPTIONS = "streamkern.cluster-options"  # of the user's own configuration

# Patterns of values, whose texts reach job scripts and command lines: a shell acts on none.
_COUNT = r"\d+"
_AMOUNT = r"\d[\d.:+-]*(?: ?[A-Za-z]+)?|auto|None"
_NAME = r"\w[\w.,+-]*"
_SWITCH = "True|False"
_SETTING = f"{_AMOUNT}|{_SWITCH}"
# Of a port alone Dask makes one on all interfaces.
_PAGE = r"None|(?:127\.0\.0\.1|localhost):\d+"
_FORMS = {
    _COUNT: "a whole number",
    _AMOUNT: "a number, one with a unit, or null",
    _NAME: "a plain name",
    _SWITCH: "true or false",
    _SETTING: "a number, one with a unit, true or false",
    _PAGE: "null or a port of 127.0.0.1",
}
_GROUPS = {"resources", "requests", "limits", "worker_options"}
_OPTIONS = {
    key: pattern
    for pattern, keys in {
        _COUNT: "n_workers nthreads threads_per_worker cores processes job_cpu",
        _AMOUNT: "memory memory_limit cpu job_mem walltime death_timeout idle_timeout",
        _NAME: "name job_name queue project account",
        _SWITCH: "quiet",
        _PAGE: "dashboard_address",
    }.items()
    for key in keys.split()
}
_CONFIG = {
    "distributed.adaptive": "interval target-duration wait-count",
    "distributed.scheduler": "allowed-failures idle-timeout no-workers-timeout worker-ttl",
    "distributed.worker.memory": "pause spill target terminate transfer",
    "streamkern": "shard-attempts",
}
_SETTINGS = {f"{group}.{key}": _SETTING for group, keys in _CONFIG.items() for key in keys.split()}


def refuse_others(path: Path, name: str, kwargs: dict[str, Any], config: dict[str, Any]) -> None:
    """Raise ParameterError if a file says more than it may of a cluster class."""
    own = "set it in your own Dask configuration, ~/.config/dask"
    _check(path, kwargs, _OPTIONS, "kwargs", f"{own}, as {OWN_OPTIONS}.{name}")
    _check(path, config, _SETTINGS, "config", own)


def _check(
    path: Path, values: dict[str, Any], allowed: dict[str, str], within: str, remedy: str
) -> None:
    for key, value in values.items():
        name = f"{within}.{printable(str(key))[:60]}"
        if key in _GROUPS and isinstance(value, dict):
            _check(path, value, allowed, name, remedy)
        elif key not in allowed:
            raise _refused(path, name, remedy)
        elif not isinstance(value, str | int | float | None) or not re.fullmatch(
            allowed[key], str(value)
        ):
            # Without the value, which may be a password.
            words = f"write {_FORMS[allowed[key]]}, or {remedy}"
            raise _refused(path, f"this value of {name}", words)


def _refused(path: Path, what: str, remedy: str) -> ParameterError:
    return ParameterError(
        f"{path}: {what} is not allowed in a cluster file, because whoever chooses it could run "
        f"code in your account or open the cluster to others; {remedy}."
    )
