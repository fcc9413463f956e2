"""Texts and names that others gave, fit to be shown; and values as JSON."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def printable(text: str) -> str:
    """Return a text with nothing in it that a terminal would obey, whoever named what is in it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


def turned_by(names: Iterable[str], file: str = "FILE") -> str:
    """Return how datasets of an HDF5 file that lie along the last axis are turned."""
    turned = ", ".join(f"{name!r}: da.from_array(f[{name!r}]).T" for name in names)
    return (
        f"as MATLAB writes HDF5; turn them in Python: import h5py, dask.array as da; "
        f"f = h5py.File({file}); da.to_hdf5('turned.h5', {{{turned}}})"
    )


def json_text(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] = str) -> str:
    """Return plain values and arrays as JSON, which has null for numbers that are not finite.

    What is neither is passed to `default`.
    """
    return json.dumps(_finite(value), indent=indent, default=default, allow_nan=False)


def _finite(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value


def listed(values: Iterable[object], most: int = 20) -> str:
    """Return the first of some values in words, and how many more there are."""
    every = list(values)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(str, every[:most])) + more


def unknown(name: object, names: Iterable[str]) -> str:
    """Return how to show a name that is none of those that there are: with the nearest of them."""
    return f"{name!r}{meant(str(name), names)}"


def meant(name: str, names: Iterable[str]) -> str:
    """Return a question about the nearest of the names, or nothing if none is near."""
    near = get_close_matches(name, list(names), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def listed_apart(mine: Sequence[str], theirs: Sequence[str], most: int = 20) -> tuple[str, str]:
    """Return two lists of names that differ; where they are long, from the first difference on."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    alike = next((i for i, (left, right) in pairs if left != right), min(len(mine), len(theirs)))
    start = alike if max(len(mine), len(theirs)) > most else 0
    begun = "..., " * (start > 0)
    return begun + listed(mine[start:], most), begun + listed(theirs[start:], most)
