"""Texts and names that others gave, fit to be shown."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def printable(text: str) -> str:
    """Return a text with nothing in it that a terminal would obey, whoever named what is in it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


def listed(values: Iterable[object], most: int = 20) -> str:
    """Return the first of some values in words, and how many more there are."""
    every = list(values)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(str, every[:most])) + more


def unknown(name: object, names: Iterable[str]) -> str:
    """Return how to show a name that is none of those that there are: with the nearest of them."""
    near = get_close_matches(str(name), list(names), 1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def listed_apart(mine: Sequence[str], theirs: Sequence[str], most: int = 20) -> tuple[str, str]:
    """Return two lists of names that differ; where they are long, from the first difference on."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    alike = next((i for i, (left, right) in pairs if left != right), min(len(mine), len(theirs)))
    start = alike if max(len(mine), len(theirs)) > most else 0
    begun = "..., " * (start > 0)
    return begun + listed(mine[start:], most), begun + listed(theirs[start:], most)
