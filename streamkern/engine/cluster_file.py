"""Files that say where a job runs, checked before anything in them is used.

A cluster file is shared and copied, so it may start clusters but not run code.  It is read with a
safe loader, its module must be in a known package, and its options must be among those that anybody
may choose (`clusteroptions.py`), unless the user trusts whoever wrote it.
"""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from streamkern.engine.cluster_options import refuse_untrusted
from streamkern.errors import ParameterError
from streamkern.errors.urls import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PACKAGES = (
    "distributed",
    "dask_jobqueue",
    "dask_kubernetes",
    "dask_cloudprovider",
    "dask_gateway",
    "dask_yarn",
    "dask_cuda",
)
# Of a file that anybody may have written; YAML takes long to read.
_MOST_BYTES, _MOST_BRACKETS = 32 << 10, 1000
_KEYS = ("version", "module", "class", "args", "kwargs", "scale", "adapt", "config")
_SIXTIES = ("tag:yaml.org,2002:str", re.compile(r"\d+(:[0-5]?\d)+$"))
_ADDRESS = re.compile(r"(?:(tcp|tls|ws|wss)://)?(\[[^]]+\]|[^:/\s@]+):(\d{1,5})")


class _Loader(yaml.SafeLoader):
    """Reads 10:00:00 as the text that job schedulers mean, not as a number to the base 60."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as its base has it
        first: [_SIXTIES, *others]
        for first, others in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    number: int = loader.construct_yaml_int(node)
    if number.bit_length() > 31:  # and too many digits to be shown
        raise yaml.constructor.ConstructorError(
            problem="found too large a number", problem_mark=node.start_mark
        )
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


@dataclass(frozen=True)
class ClusterFile:
    """What a cluster file says, well-formed, and harmless or trusted.

    Parameters
    ----------
    path : Path
    module, name : str
        Where the cluster class is, and what it is called.
    args, kwargs : list, dict
        What it is called with.
    scale : int, optional
        Workers, or jobs, to ask for.
    adapt : dict, optional
        `minimum` and `maximum` of workers.
    config : dict
        Values of the Dask configuration, by dotted key.
    trusted : bool
        Whether the user vouches for all of it.
    """

    path: Path
    module: str
    name: str
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    scale: int | None = None
    adapt: dict[str, int] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    trusted: bool = False


def read_cluster_file(path: Path, *, trusted: bool = False) -> ClusterFile:
    """Read and check a cluster file.

    Parameters
    ----------
    path : Path
    trusted : bool
        Whether whoever wrote it may run code as the user, so that its options are not checked.

    Raises
    ------
    ParameterError
        If the file is missing, is not YAML of the expected form, names a module outside the known
        packages, or holds an option that takes trust.
    """
    content = _mapping_in(path)
    unknown = sorted(str(key) for key in content if key not in _KEYS)
    if unknown:
        raise ParameterError(
            f"{path} has the unknown key {unknown[0]!r}; the known keys are {', '.join(_KEYS)}."
        )
    version = content.get("version")
    if version != 1 or isinstance(version, bool):
        raise ParameterError(f"{path} must say version: 1, but says {version!r}; correct it.")
    for key, kind, form in (
        ("module", str, "a module such as dask.distributed"),
        ("class", str, "a class such as LocalCluster"),
        ("args", list, "a list"),
        ("kwargs", dict, "a mapping"),
        ("scale", int, "a whole number"),
        ("adapt", dict, "a mapping of minimum and maximum"),
        ("config", dict, "a mapping"),
    ):
        value = content.get(key)
        if value is None and key not in ("module", "class"):
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ParameterError(f"{path}: {key} must be {form}, not {value!r}; correct it.")
    scale = content.get("scale")
    if scale is not None and scale < 1:
        raise ParameterError(f"{path}: scale must be 1 or more, not {scale}; correct it.")
    module, name = content["module"], content["class"]
    package, *inner = module.removeprefix("dask.").split(".")
    if package not in _PACKAGES or not all(part.isidentifier() for part in inner):
        raise ParameterError(
            f"{path}: module must be in one of dask.distributed, {', '.join(_PACKAGES)}, not "
            f"{module!r}; other code is not run from a cluster file."
        )
    if not name.isidentifier():
        raise ParameterError(f"{path}: class must be the name of one class, not {name!r}.")
    file = ClusterFile(
        path,
        module,
        name,
        content.get("args") or [],
        content.get("kwargs") or {},
        scale,
        _limits(path, content.get("adapt"), scale),
        dict(_dotted(content.get("config") or {})),
        trusted,
    )
    if not trusted:
        refuse_untrusted(path, name, file.args, file.kwargs, file.config)
    return file


def read_scheduler_file(path: Path) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` wrote.

    Raises
    ------
    ParameterError
        If the file is missing, or is not such a file.
    """
    try:
        return str(json.loads(_text_of(path))["address"])
    except FileNotFoundError as error:
        raise ParameterError(
            f"{path} does not exist; start the scheduler with --scheduler-file first."
        ) from error
    except (OSError, RecursionError, ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            f"{path} must be the JSON that `dask scheduler --scheduler-file` writes, with an "
            f"address, but is not; name another file."
        ) from error


def checked_address(address: str) -> tuple[str, int, bool]:
    """Return the host and port in a scheduler's address, and whether it is encrypted.

    Raises
    ------
    ParameterError
        If it is not such an address.
    """
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[3]) < 1 << 16:
        raise ParameterError(
            f"a scheduler address looks like tcp://host:8786, but {shown(address)!r} was given; "
            f"correct it."
        )
    return match[2].strip("[]"), int(match[3]), match[1] in ("tls", "wss")


def _text_of(path: Path) -> str:
    """Return what a small file holds; nobody may ever write to a pipe, or end what is in it."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise OSError(f"it is no plain file of at most {_MOST_BYTES >> 10} KiB")
    return path.read_text(encoding="utf-8")


def _mapping_in(path: Path) -> dict[Any, Any]:
    try:
        text = _text_of(path)
    except FileNotFoundError as error:
        raise ParameterError(f"{path} does not exist; name a cluster file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} cannot be read ({error}); name a cluster file.") from error
    try:
        # A few lines of aliases can stand for more values than memory holds.
        # And brackets within brackets take the square of their number to read.
        is_tangled = sum(map(text.count, "[{")) > _MOST_BRACKETS or any(
            isinstance(token, yaml.AliasToken) for token in yaml.scan(text)
        )
        content = None if is_tangled else yaml.load(text, _Loader)  # noqa: S506  a safe one
    # PyYAML lets errors through of values that are not what they look like, or are tagged.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        # Not the line itself, which may hold a password.
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        problem = f"{getattr(error, 'problem', None) or type(error).__name__}{place}"
        raise ParameterError(f"{path} is not plain YAML ({problem}); correct it.") from error
    if is_tangled:
        raise ParameterError(
            f"{path} uses YAML aliases, or more than {_MOST_BRACKETS} brackets; write the values "
            f"out in lines."
        )
    if not isinstance(content, dict):
        raise ParameterError(
            f"{path} must be a mapping with version, module and class, not "
            f"{type(content).__name__}; write it as in the example cluster.yaml."
        )
    return content


def _limits(path: Path, adapt: dict[str, Any] | None, scale: int | None) -> dict[str, int] | None:
    if adapt is None:
        return None
    if scale is not None:
        raise ParameterError(f"{path} has both scale and adapt; keep one of them.")
    low, high = adapt.get("minimum", 0), adapt.get("maximum")
    whole = all(isinstance(number, int) and number is not True for number in (low, high))
    if set(adapt) - {"minimum", "maximum"} or not whole or not 0 <= low <= high or not high:
        raise ParameterError(
            f"{path}: adapt must be {{minimum: 0 or more, maximum: at least that}}, not {adapt}; "
            f"correct it."
        )
    return {"minimum": low, "maximum": high}


def _dotted(config: dict[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by dotted key: merged so, they replace no neighbours."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
