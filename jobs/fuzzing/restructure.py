"""HDF5 files whose structure is strange while every byte of them is in order.

An object is replaced by a link, a virtual dataset, a dataset of another type, shape or filters, or
something else that HDF5 allows and nobody expects.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

if TYPE_CHECKING:
    import random
    from pathlib import Path

GZIP, SHUFFLE, LZF = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_LZF
UNKNOWN = 31_999
MANY = 4_000_000
PIPELINES = [(GZIP, GZIP), (GZIP,), (SHUFFLE,) * 4, (LZF, GZIP), (GZIP,) * 8, (SHUFFLE, GZIP)]
TYPES = ["S5", "?", "i1", ">f8", "f2", "longdouble", "c16", "i8,f4", "V7", "text", "reference"]
FIFO = "fifo"
BESIDE = {"beside.h5", FIFO}


def prepare(folder: Path, whole: bytes) -> None:
    """Put beside the files what links may lead to."""
    (folder / "beside.h5").write_bytes(whole)
    with suppress(FileExistsError):
        os.mkfifo(folder / FIFO)


def restructure(path: Path, chance: random.Random) -> str:
    """Replace an object of a file by something strange, and return what was done."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = chance.choice(names)
        what = chance.choice(CHANGES)
        with suppress(OSError, ValueError, TypeError, LookupError, RuntimeError, AttributeError):
            what(file, name, path, chance)
    return f"{what.__name__.strip('_')} {name}"


def _soft_link(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink(chance.choice(["/elsewhere", f"/{name}", "/", "/nowhere"]))


def _external_link(file: h5py.File, name: str, path: Path, chance: random.Random) -> None:
    del file[name]
    to = chance.choice(["beside.h5", path.name, FIFO, "/dev/zero", "/", "gone.h5"])
    file[name] = h5py.ExternalLink(to, f"/{name}")


def _hard_link(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    del file[name]
    file[name] = file[chance.choice(["/", *file])]


def _filters(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    values = np.atleast_1d(file[name][()])
    filters = chance.choice(PIPELINES)
    chunks = [max(n // 2, 1) for n in values.shape]
    if chance.random() < 0.5:  # a small file of many bytes
        n_rows = MANY // max(int(np.prod(values.shape[1:])), 1)
        values = np.broadcast_to(values.flat[0], (n_rows, *values.shape[1:]))
        chunks[0] = max(n_rows // 4, 1)
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(tuple(chunks))
    for each in filters:
        options = (9,) if each == GZIP else ()
        properties.set_filter(each, h5py.h5z.FLAG_OPTIONAL, options)
    if chance.random() < 0.1:
        properties.set_filter(UNKNOWN, h5py.h5z.FLAG_OPTIONAL, ())
    del file[name]
    space = h5py.h5s.create_simple(values.shape)
    made = h5py.h5d.create(
        file.id, f"/{name}".encode(), h5py.h5t.py_create(values.dtype), space, properties
    )
    h5py.Dataset(made)[...] = values


def _virtual(file: h5py.File, name: str, path: Path, chance: random.Random) -> None:
    shape, dtype = file[name].shape, file[name].dtype
    del file[name]
    layout = h5py.VirtualLayout(shape, dtype)
    to = chance.choice([*["beside.h5"] * 5, path.name, ".", FIFO, "/dev/zero", "gone.h5"])
    source = h5py.VirtualSource(to, name, shape, dtype)
    last = chance.choice([shape[0], shape[0] // 2, 0])
    layout[:last] = source[:last]
    file.create_virtual_dataset(name, layout)


def _external_storage(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    shape, dtype = file[name].shape, file[name].dtype
    del file[name]
    to = chance.choice(["beside.h5", FIFO, "/dev/zero", "/etc/hosts"])
    file.create_dataset(name, shape, dtype, external=[(to, 0, h5py.h5f.UNLIMITED)])


def _other_type(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    shape = file[name].shape
    del file[name]
    kind = chance.choice(TYPES)
    special = {"text": h5py.string_dtype(), "reference": h5py.ref_dtype}
    file.create_dataset(name, shape, special.get(kind) or np.dtype(kind))


def _other_shape(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    shape, dtype = file[name].shape, file[name].dtype
    del file[name]
    shapes = [(), (0,), (0, *shape[1:]), (*shape, 2), shape[::-1], (1 << 40, *shape[1:])]
    made: Any = chance.choice(shapes)
    file.create_dataset(name, made, dtype, chunks=True if len(made) else None)


def _group(file: h5py.File, name: str, _: Path, __: random.Random) -> None:
    del file[name]
    file.create_group(name)


def _attributes(file: h5py.File, name: str, _: Path, chance: random.Random) -> None:
    item = chance.choice([file, file[name]])
    for key in list(item.attrs):
        item.attrs[key] = chance.choice([0, 1e308, "x", b"\xff", [1, 2], "{" * 2000, "9" * 5000])


CHANGES = [
    *(_soft_link, _external_link, _hard_link, _filters, _virtual),
    *(_external_storage, _other_type, _other_shape, _group, _attributes),
]
