"""Texts that others gave, fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with nothing in it that a terminal would obey, whoever named what is in it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )
