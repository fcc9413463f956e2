"""Requests to object stores and web servers through fsspec, asked again where that may help.

URLs, options and the errors of other libraries may hold secrets.  So their errors end here, in
words of our own.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from streamkern.sources.stored_files import StoreError

# Seconds to wait before asking again; some libraries ask again on their own besides.
_WAITS = (0.1, 0.4, 1.6, 6.4)
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "http": "http", "https": "http"}
_NO_CREDENTIALS = {  # by name, since their libraries need not be installed
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
    *("DefaultCredentialsError", "RefreshError", "TokenRetrievalError", "SSOTokenLoadError"),
}
_MISTAKES = (TypeError, ValueError, LookupError, AttributeError, NotImplementedError)
_ABSENT, _DENIED, _SHORTER, _FOR_NOW = {404, 410}, {401, 403}, {416}, {408, 425, 429}
CHANGED = "changed while it was in use; start again."

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """Where a file is, and as whom to ask for it; none of it is shown."""

    url: str = field(repr=False, compare=False)
    options: Mapping[str, Any] = field(repr=False, compare=False)
    path: str = field(repr=False)


def request(target: Target, ask: Callable[[Any, str], T]) -> T:
    """Return what a file system answers, asked again after errors that may pass."""
    from fsspec.core import url_to_fs

    for wait in (*_WAITS, None):
        try:
            # fsspec keeps one of a kind, and no other than this process's own.
            fs, path = url_to_fs(target.url, **target.options)
            return ask(fs, target.path or path)
        except Exception as error:  # noqa: BLE001  each store has errors of its own
            words, passes = _reason(error, target)
        if wait is None or not passes:
            break
        time.sleep(wait)
    raise StoreError(words)  # out of the handler, to take nothing along


def protocol_of(url: str) -> str:
    return url.rpartition("::")[2].partition("://")[0]


def _reason(error: BaseException, target: Target) -> tuple[str, bool]:
    """Say in words what an error means, and whether to ask again."""
    status, cause, passes = _status(error), error.__cause__, False
    if status is None and isinstance(error, FileNotFoundError) and isinstance(cause, Exception):
        error = cause  # fsspec says of any trouble on the web that there is no such file
    what = f"HTTP status {status}" if status else type(error).__name__.removeprefix("_")
    if isinstance(error, ImportError):
        words = f"needs a package that is not installed; {_remedy(target)}."
    elif type(error).__name__ in _NO_CREDENTIALS:
        words = "cannot be read: no credentials were found; give some, or ask its owner."
    elif status in _DENIED or (status is None and isinstance(error, PermissionError)):
        words = "cannot be read: access denied; check the credentials, or ask its owner."
    elif status in _ABSENT or (status is None and isinstance(error, FileNotFoundError)):
        words = "does not exist; check the URL."
    elif status in _SHORTER:
        words = CHANGED
    elif isinstance(error, _MISTAKES) or not (
        passes := status is None or status in _FOR_NOW or status >= 500
    ):
        words = f"cannot be asked for ({what}); check the URL and the storage options."
    else:
        times = f"{len(_WAITS) + 1} times"
        words = f"cannot be read ({what}, {times}); try again when its server is well."
    return words, passes


def _status(error: BaseException) -> int | None:
    """Return the HTTP status behind an error, wherever the library of the store has put it."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        answer = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
        named = vars(each) if each is not None else {}
        for status in (answer.get("HTTPStatusCode"), named.get("status"), named.get("code")):
            if isinstance(status, int) and 400 <= status < 600:
                return status
    return None


def _remedy(target: Target) -> str:
    from fsspec.registry import known_implementations

    protocol = protocol_of(target.url)
    if protocol in _EXTRAS:
        return f"pip install 'streamkern[{_EXTRAS[protocol]}]'"
    known = known_implementations.get(protocol, {}).get("err", "see fsspec's documentation")
    return str(known).rstrip(".")
