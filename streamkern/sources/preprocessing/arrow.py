"""Arrow, imported when it is first used, because that is slow."""

from importlib import import_module
from typing import Any


class _Lazy:
    """A module that is imported when something of it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


# Of type Any: Arrow has no types of its own that mypy could check.
pa: Any = _Lazy("pyarrow")
compute: Any = _Lazy("pyarrow.compute")
csv: Any = _Lazy("pyarrow.csv")
parquet: Any = _Lazy("pyarrow.parquet")
types: Any = _Lazy("pyarrow.types")
