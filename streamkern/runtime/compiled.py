"""Functions compiled by Numba, which releases the interpreter's lock while they run."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called, and keep it for other processes if possible.

    Every operation is rounded as IEEE arithmetic says, so that results are the same anywhere.
    """

    @cache
    def made() -> Any:
        import numba  # noqa: PLC0415  slow to import

        try:
            return numba.njit(nogil=True, cache=True)(function)
        except RuntimeError:  # no folder that can be written to
            return numba.njit(nogil=True)(function)

    @wraps(function)
    def called(*arguments: Any) -> Any:
        return made()(*arguments)

    return called
