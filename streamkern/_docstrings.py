"""Numpydoc sections of methods: what several say alike is written once, in a table.

A table is the text of a Parameters section, in which `method()` stands for what that returns, and
`Self()` for what all return whose annotation is Self.  That of errors says after each which methods
raise it.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import cleandoc, signature
from itertools import groupby
from typing import Any, Self, TypeVar

Kind = TypeVar("Kind", bound=type)


def described(table: str, errors: str = "", /, **special: str) -> Callable[[Kind], Kind]:
    """Return a decorator that completes the docstrings of a class's own public methods.

    What a method says itself goes first, then its `special` table, then that of all.  Errors that
    it does not name itself come before those that it does.
    """
    common, known = entries(table), {name: entries(text) for name, text in special.items()}

    def complete(cls: Kind) -> Kind:
        for name, value in vars(cls).items():
            method: Any = getattr(value, "__func__", value)
            if name[0] != "_" and hasattr(method, "__code__") and method.__doc__:
                title, parts = sections(method.__doc__)
                texts = ChainMap(entries(parts.pop("Parameters", "")), known.get(name, {}), common)
                called = signature(method)
                taken = [re.split("[:=]", str(each))[0] for each in called.parameters.values()]
                alike = "Self()" if called.return_annotation in (Self, "Self") else ""
                returned = texts.get(f"{name}()", texts.get(alike, "")).removeprefix(" : ")
                raised = _raised(errors, name, parts.pop("Raises", ""))
                first = {"Parameters": listed(texts, taken), "Returns": returned, "Raises": raised}
                method.__doc__ = joined(title, first | parts)
        return cls

    return complete


def _raised(table: str, name: str, own: str) -> str:
    """Return what a method raises by a table, and by itself."""
    found = re.findall(r"(?m)^(\w+) : (.*)\n((?: .*\n?)+)", table)
    told = [
        f"{error}\n{text.rstrip()}"
        for error, methods, text in found
        if name in methods.split(", ") and error not in re.findall(r"(?m)^\w+", own)
    ]
    return "\n".join([*told, own])


def sections(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring begins with, and its sections by name."""
    title, *parts = re.split(r"(?m)^(\w+)\n-+\n", cleandoc(text))
    return title, dict(zip(parts[::2], parts[1::2], strict=True))


def joined(title: str, parts: Mapping[str, str]) -> str:
    """Return a docstring of these, without sections that are empty."""
    texts = [f"{n}\n{'-' * len(n)}\n{text.strip()}" for n, text in parts.items() if text.strip()]
    return "\n\n".join([title.strip(), *texts]) + "\n"


@cache
def entries(text: str) -> dict[str, str]:
    """Return what a section says of each name."""
    found = re.findall(r"(?m)^(\S.*?)((?: : .*)?(?:\n(?=\s).*)*)$", text.strip())
    return {name.strip("* "): said.rstrip() for names, said in found for name in names.split(",")}


def listed(said: Mapping[str, str], names: Iterable[str]) -> str:
    """Return a section of names that are known; neighbours said to be the same share an entry."""
    shown = [name for name in names if name.lstrip("*") in said]
    told = groupby(shown, lambda name: said[name.lstrip("*")])
    return "\n".join(f"{', '.join(each)}{text}" for text, each in told)
