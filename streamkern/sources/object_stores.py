"""Object stores and web servers: their files, found and read by blocks through fsspec.

URLs, options and the errors of other libraries may hold secrets.  So their errors end here, in
words of our own.
"""

import io
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar

from streamkern.errors import DataError
from streamkern.errors.urls import shown

# Of the cache of a file: what one request brings, and how many of these are kept.
BLOCK_BYTES, BLOCKS = 2 << 20, 16
# Requests under way at a time.
_AT_ONCE = 16
# Seconds to wait before asking again; some libraries ask again on their own besides.
_WAITS = (0.1, 0.4, 1.6, 6.4)
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "http": "http", "https": "http"}
_NO_CREDENTIALS = {  # by name, since their libraries need not be installed
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
    *("DefaultCredentialsError", "RefreshError", "TokenRetrievalError", "SSOTokenLoadError"),
}
_MISTAKES = (TypeError, ValueError, LookupError, AttributeError, NotImplementedError)
_ABSENT, _DENIED, _SHORTER, _FOR_NOW = {404, 410}, {401, 403}, {416}, {408, 425, 429}
# What stores call the tag of a content, or the time of its last change, the best first.
_VERSIONS = (
    *("ETag", "etag", "generation", "Last-Modified", "LastModified", "last_modified"),
    *("updated", "mtime", "modified", "created"),
)
_CHANGED = "changed while it was in use; start again."
_NO_PARTS = "is on a server that does not serve parts of files; copy it here first."

T = TypeVar("T")


class StoreError(OSError):
    """A store failed; the text is the rest of a sentence that begins with the file's name."""


@dataclass(frozen=True)
class Target:
    """Where a file is, and as whom to ask for it; none of it is shown."""

    url: str = field(repr=False, compare=False)
    options: Mapping[str, Any] = field(repr=False, compare=False)
    path: str = field(repr=False)


class StoredFile(str):
    """The URL of a file in a store as it may be shown, with what it takes to read the file."""

    target: Target
    size: int
    version: str

    def __new__(cls, name: str, target: Target, size: int, version: str) -> Self:
        made = super().__new__(cls, name)
        made.target, made.size, made.version = target, size, version
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.target, self.size, self.version

    @property
    def place(self) -> tuple[str, str]:
        return _protocol(self.target.url), self.target.path

    def is_unchanged(self) -> bool:
        try:
            now = _request(self.target, _info)
        except StoreError:
            return False
        return (int(now["size"]), _version(now)) == (self.size, self.version)


def files_at(url: str, options: Mapping[str, Any]) -> list[StoredFile]:
    """Return the file at a URL, or those that a pattern stands for, sorted by name."""
    try:
        at = Target(url, options, "")
        at = replace(at, path=_request(at, lambda _, path: path))
        magic = "*[" if _protocol(url) in ("http", "https") else "*?["
        listed = _request(at, _listed) if any(sign in url for sign in magic) else []
        found = [(name, replace(at, path=path), info) for name, path, info in listed]
        found.sort(key=lambda each: each[0])
        return in_threads(_found, found or [(shown(url), at, {})])
    except StoreError as error:
        message = f"{shown(url)} {error}"
    raise DataError(message)  # out of the handler, to take nothing along


def read(file: StoredFile, start: int, stop: int) -> bytes:
    """Return bytes `start` to `stop` of a file, or raise StoreError after some attempts."""
    size = min(stop, file.size) - start
    found: bytes = _request(
        file.target, lambda fs, path: fs.cat_file(path, start=start, end=start + size)
    )
    if len(found) != size:
        raise StoreError(_CHANGED if len(found) < size else _NO_PARTS)
    return found


class RangeFile(io.RawIOBase):
    """A file in a store as HDF5 reads it, in one thread: by blocks, which fsspec's cache keeps."""

    failure: StoreError | None = None  # the first, whatever HDF5 made of it

    def __init__(self, file: StoredFile) -> None:
        from fsspec.caching import BlockCache  # noqa: PLC0415  where there are URLs

        self._file, self._position = file, 0
        self._blocks = BlockCache(BLOCK_BYTES, partial(read, file), file.size, BLOCKS)

    def __repr__(self) -> str:
        """Return what may be shown; HDF5 takes it for the name of the file."""
        return str(self._file)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}.get(whence, self._file.size)
        self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, with zeros beyond the end, because HDF5 does not look how much it got."""
        view = memoryview(buffer).cast("B")
        if self.failure is not None:  # HDF5 may try once more
            raise self.failure
        try:
            found = self._blocks._fetch(self._position, self._position + len(view))  # noqa: SLF001
        except StoreError as error:
            self.failure = error
            raise
        view[:] = found + bytes(len(view) - len(found))
        self._position += len(view)
        return len(view)


def in_threads(function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """Return the values of a function that waits for answers, in order."""
    with ThreadPoolExecutor(_AT_ONCE, "ask") as pool:
        return list(pool.map(lambda each: function(*each), arguments))


def _found(name: str, target: Target, info: Mapping[str, Any]) -> StoredFile:
    if info.get("size") is None:
        info = _request(target, _info)
    if info.get("type") == "directory":
        raise StoreError("is a folder, not an HDF5 file; name the files in it.")
    if info.get("size") is None:
        raise StoreError("is on a server that does not say how long it is; copy it here first.")
    size = int(info["size"])
    if size and not _request(target, lambda fs, path: _serves_parts(fs, path, size)):
        raise StoreError(_NO_PARTS)
    return StoredFile(name, target, size, _version(info))


def _version(info: Mapping[str, Any]) -> str:
    return next((str(info[key]) for key in _VERSIONS if info.get(key)), "")


def _info(fs: Any, path: str) -> dict[str, Any]:
    fs.invalidate_cache()
    return fs.info(path)


def _listed(fs: Any, path: str) -> list[tuple[str, str, dict[str, Any]]]:
    fs.invalidate_cache()
    found = fs.glob(path, detail=True)
    return [(shown(fs.unstrip_protocol(path)), path, info) for path, info in found.items()]


def _serves_parts(fs: Any, path: str, size: int) -> bool:
    """Say whether the last byte comes alone: web servers may send all of a file."""
    if "http" not in fs.protocol:
        return True
    with fs.open(path, size=size, cache_type="none") as file:
        file.seek(size - 1)
        try:
            return len(file.read(1)) == 1
        except ValueError:
            return False


def _protocol(url: str) -> str:
    return url.rpartition("::")[2].partition("://")[0]


def _request(target: Target, ask: Callable[[Any, str], T]) -> T:
    """Return what a file system answers, asked again after errors that may pass."""
    from fsspec.core import url_to_fs  # noqa: PLC0415  where there are URLs

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
        words = _CHANGED
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
    from fsspec.registry import known_implementations  # noqa: PLC0415

    protocol = _protocol(target.url)
    if protocol in _EXTRAS:
        return f"pip install 'streamkern[{_EXTRAS[protocol]}]'"
    known = known_implementations.get(protocol, {}).get("err", "see fsspec's documentation")
    return str(known).rstrip(".")
