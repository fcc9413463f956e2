"""Files at URLs: found by name or pattern, and read by HDF5 in blocks."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from traceback import clear_frames
from typing import Any, Self

import h5py

from streamkern.errors import DataError
from streamkern.errors.urls import shown
from streamkern.extensions.stores import garbage_collector
from streamkern.extensions.stores.requests import CHANGED, Target, protocol_of, request
from streamkern.sources.hdf5_opening import why_not_opened
from streamkern.sources.stored_files import StoredFile, StoreError, in_threads

# Of the cache of a file: what one request brings, and how many of these are kept.
_BLOCK_BYTES, _BLOCKS = 2 << 20, 16
# Most between parts that one request brings, most of such a request, and least of one by itself.
_GAP_BYTES, _LOADED_BYTES, _LARGE_BYTES = 1 << 18, 8 << 20, 1 << 18
# Of URLs that are paths.
_LOCAL = ("file", "local")
# What stores call the tag of a content, or the time of its last change, the best first.
_VERSIONS = (
    *("ETag", "etag", "generation", "Last-Modified", "LastModified", "last_modified"),
    *("updated", "mtime", "modified", "created"),
)
_NO_PARTS = "is on a server that does not serve parts of files; copy it here first."


class FileAtURL(StoredFile):
    """A file that fsspec finds at a URL."""

    target: Target
    kept_bytes = _BLOCK_BYTES * _BLOCKS

    def __new__(cls, name: str, target: Target, size: int, version: str) -> Self:
        made = super().__new__(cls, name)
        made.target, made.size, made.version = target, size, version
        protocol = protocol_of(target.url)
        made.place, made.paths = (protocol, target.path), [target.path] * (protocol in _LOCAL)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.target, self.size, self.version

    def is_unchanged(self) -> bool:
        try:
            now = request(self.target, _info)
        except StoreError:
            return False
        return (int(now["size"]), _version(now)) == (self.size, self.version)

    def raw(self) -> io.RawIOBase:
        return RangeFile(self, pads=False)

    @contextmanager
    def opened(self, cache_bytes: int) -> Iterator[h5py.File]:
        """Open the file, for which the garbage collector is paused (see there)."""
        try:
            garbage_collector.pause()
            with RangeFile(self) as raw:
                try:
                    with _open_range(raw, cache_bytes) as file:
                        yield file
                except Exception as error:
                    if raw.failure is None or error.__cause__ is raw.failure:
                        raise
        finally:
            garbage_collector.resume()
        if raw.failure is not None:  # whatever HDF5 made of that
            raise DataError(f"{self} {raw.failure}")

    @contextmanager
    def in_use(self) -> Iterator[None]:
        garbage_collector.resume()
        try:
            yield
        finally:
            garbage_collector.pause()


def files_at(url: str, options: Mapping[str, Any]) -> list[FileAtURL]:
    """Return the file at a URL, or those that a pattern stands for, sorted by name."""
    try:
        at = Target(url, options, "")
        at = replace(at, path=request(at, lambda _, path: path))
        magic = "*[" if protocol_of(url) in ("http", "https") else "*?["
        listed = request(at, _listed) if any(sign in url for sign in magic) else []
        found = [(name, replace(at, path=path), info) for name, path, info in listed]
        found.sort(key=lambda each: each[0])
        return in_threads(_found, found or [(shown(url), at, {})])
    except StoreError as error:
        message = f"{shown(url)} {error}"
    raise DataError(message)  # out of the handler, to take nothing along


def read(file: FileAtURL, start: int, stop: int) -> bytes:
    """Return bytes `start` to `stop` of a file, or raise StoreError after some attempts."""
    size = min(stop, file.size) - start
    found: bytes = request(
        file.target, lambda fs, path: fs.cat_file(path, start=start, end=start + size)
    )
    if len(found) != size:
        raise StoreError(CHANGED if len(found) < size else _NO_PARTS)
    return found


class RangeFile(io.RawIOBase):
    """A file in a store, read in one thread: by blocks, which fsspec's cache keeps."""

    failure: StoreError | None = None  # the first, whatever HDF5 made of it

    def __init__(self, file: FileAtURL, *, pads: bool = True) -> None:
        from fsspec.caching import BlockCache

        self._file, self._position, self._pads = file, 0, pads
        self._loaded: list[tuple[int, bytes]] = []  # where each part begins
        self._blocks = BlockCache(_BLOCK_BYTES, partial(read, file), file.size, _BLOCKS)

    def __repr__(self) -> str:
        """Return what may be shown; HDF5 takes it for the name of the file."""
        return str(self._file)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}.get(whence, self._file.size)
        self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; for HDF5, which does not look how much it got, with zeros at the end."""
        view = memoryview(buffer).cast("B")
        if self.failure is not None:  # HDF5 may try once more
            raise self.failure
        try:
            found = self._fetch(self._position, self._position + len(view))
        except StoreError as error:
            self.failure = error
            raise
        n_found = len(view) if self._pads else len(found)
        view[:n_found] = found + bytes(n_found - len(found))
        self._position += n_found
        return n_found

    def load(self, starts: list[int], stops: list[int]) -> None:
        """Read parts of the file in few requests, unless these are many bytes, or hardly any."""
        from fsspec.utils import merge_offset_ranges

        self._loaded, paths = [], [""] * len(starts)
        if not _BLOCK_BYTES <= sum(stops) - sum(starts) <= self._file.kept_bytes // 2:
            return
        _, starts, ends = merge_offset_ranges(paths, starts, stops, _GAP_BYTES, _LOADED_BYTES)
        asked = [(self._file, *each) for each in zip(starts, ends, strict=True)]
        self._loaded = list(zip(starts, in_threads(read, asked), strict=True))

    def _fetch(self, start: int, stop: int) -> bytes:
        for begin, part in self._loaded:
            if begin <= start and stop <= begin + len(part):
                return part[start - begin : stop - begin]
        if not self._pads and start + _LARGE_BYTES <= min(stop, self._file.size):
            return read(self._file, start, stop)
        return self._blocks._fetch(start, stop)  # noqa: SLF001  a cache without a file


def _open_range(raw: RangeFile, cache_bytes: int) -> h5py.File:
    try:
        return h5py.File(raw, "r", rdcc_nbytes=cache_bytes)
    except OSError as error:
        unsigned = "signature not found" in str(error)
        why = why_not_opened(error, str(raw), lambda: not unsigned)
        # What its frames hold would crash h5py 3.16 if it lived to the end of the program.
        clear_frames(error.__traceback__)
    raise DataError(f"{raw} {why}")  # out of the handler, to take nothing along


def _found(name: str, target: Target, info: Mapping[str, Any]) -> FileAtURL:
    if info.get("size") is None:
        info = request(target, _info)
    if info.get("type") == "directory":
        raise StoreError("is a folder, not a file; name the files in it, or end it in a slash.")
    if info.get("size") is None:
        raise StoreError("is on a server that does not say how long it is; copy it here first.")
    size = int(info["size"])
    if size and not request(target, lambda fs, path: _serves_parts(fs, path, size)):
        raise StoreError(_NO_PARTS)
    return FileAtURL(name, target, size, _version(info))


def _version(info: Mapping[str, Any]) -> str:
    return next((str(info[key]) for key in _VERSIONS if info.get(key)), "")


def _info(fs: Any, path: str) -> dict[str, Any]:
    fs.invalidate_cache()
    return fs.info(path)


def _listed(fs: Any, path: str) -> list[tuple[str, str, dict[str, Any]]]:
    fs.invalidate_cache()
    found = fs.glob(path, detail=True)
    files = {path: info for path, info in found.items() if info.get("type") != "directory"}
    return [(shown(fs.unstrip_protocol(path)), path, info) for path, info in files.items()]


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
