"""Numpydoc sections of methods: what several say alike is written once, in a table.

A table is the text of a Parameters section, in which `method()` stands for what that returns.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import CO_VARKEYWORDS, cleandoc, unwrap
from itertools import groupby
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)


def described(table: str, **special: str) -> Callable[[Kind], Kind]:
    """Return a decorator that completes the docstrings of a class's own public methods.

    What a method says itself goes first, then its `special` table, then that of all.
    """
    common, known = entries(table), {name: entries(text) for name, text in special.items()}

    def complete(cls: Kind) -> Kind:
        for name, value in vars(cls).items():
            method: Any = getattr(value, "__func__", value)
            if name[0] != "_" and hasattr(method, "__code__") and method.__doc__:
                title, parts = sections(method.__doc__)
                own, code = entries(parts.pop("Parameters", "")), unwrap(method).__code__
                texts = ChainMap(own, known.get(name, {}), common)
                n_taken = code.co_argcount + code.co_kwonlyargcount
                n_taken += bool(code.co_flags & CO_VARKEYWORDS)
                taken = [each for each in code.co_varnames[1:n_taken] if each[0] != "_"]
                first = {"Parameters": listed(texts, taken)} if taken else {}
                if f"{name}()" in texts:
                    first["Returns"] = texts[f"{name}()"].removeprefix(" : ")
                method.__doc__ = joined(title, first | parts)
        return cls

    return complete


def sections(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring begins with, and its sections by name."""
    title, *parts = re.split(r"(?m)^(\w+)\n-+\n", cleandoc(text))
    return title, dict(zip(parts[::2], parts[1::2], strict=True))


def joined(title: str, parts: Mapping[str, str]) -> str:
    texts = [f"{name}\n{'-' * len(name)}\n{text.strip()}" for name, text in parts.items()]
    return "\n\n".join([title.strip(), *texts]) + "\n"


@cache
def entries(text: str) -> dict[str, str]:
    """Return what a section says of each name."""
    found = re.findall(r"(?m)^(\S.*?)((?: : .*)?(?:\n(?=\s).*)*)$", text.strip())
    return {name.strip("* "): said for names, said in found for name in names.split(",")}


def listed(said: Mapping[str, str], names: Iterable[str]) -> str:
    """Return a section of some names; neighbours of which the same is said share an entry."""
    return "\n".join(f"{', '.join(each)}{text}" for text, each in groupby(names, said.__getitem__))
