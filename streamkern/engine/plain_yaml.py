"""Plain YAML: small files of whoever wrote them, read without aliases, tags and long waits."""

import re
import stat
from pathlib import Path
from typing import Any

import yaml

from streamkern.errors import ParameterError

# Of a file that anybody may have written; YAML takes long to read.
_MOST_BYTES, _MOST_BRACKETS = 32 << 10, 1000
_SIXTIES = ("tag:yaml.org,2002:str", re.compile(r"\d+(:[0-5]?\d)+$"))


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


def text_of(path: Path) -> str:
    """Return what a small file holds; nobody may ever write to a pipe, or end what is in it."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise OSError(f"it is no plain file of at most {_MOST_BYTES >> 10} KiB")
    return path.read_text(encoding="utf-8")


def mapping_in(path: Path) -> dict[Any, Any]:
    try:
        text = text_of(path)
    except FileNotFoundError as error:
        raise ParameterError(f"{path} does not exist; name a cluster file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} cannot be read ({error}); name a cluster file.") from error
    try:
        # A few lines of aliases can stand for more values than memory holds, and brackets within
        # brackets take the square of their number to read.
        is_tangled = sum(map(text.count, "[{")) > _MOST_BRACKETS or any(
            isinstance(token, yaml.AliasToken) for token in yaml.scan(text)
        )
        content = None if is_tangled else yaml.load(text, _Loader)  # noqa: S506  a safe one
    # PyYAML lets errors through of values that are not what they look like, or are tagged.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        # Not the line itself, which may hold a password.
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ParameterError(f"{path} is not plain YAML ({problem}{place}); correct it.") from error
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
