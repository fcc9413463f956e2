"""The checkpoint of a fit, which the sums of its passes are saved in."""

import hashlib
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern._version import __version__
from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import OutputError
from streamkern.parameters.template import Template
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.memory import in_words
from streamkern.sources import Reader, Shard, Source
from streamkern.storage.checkpoints import opened_checkpoint

# Places in the rows that are looked at, and how many rows there.
_PLACES, _ROWS = 8, 64


@contextmanager
def checkpointed(context: FitContext) -> Iterator[FitContext]:
    """Hold the checkpoint of a fit for its passes, where there is a folder for one."""
    folder, options, plan, like = context.folder, context.options, context.plan, context.like
    if folder is None:
        yield context
        return
    source = context.source.skip_invalid() if context.skips else context.source
    shards: dict[str, Any] = {"rows": plan.shard_rows, "blocks": plan.block_rows}
    shards |= {"number": plan.n_shards, "folds by": plan.fold_by}
    versions = {"streamkern": __version__, "numpy": np.__version__}
    versions["processor"] = platform.machine()
    given = {**options.parameters(), "kernel": "auto" if options.chooses_kernel else options.kernel}
    if options.scale in ("standard", "none"):
        del given["scale"]  # jobs of before had no name for them, nor for a trend
    if options.trend is None:
        del given["trend"]
    if options.gap == 0:
        del given["gap"]
    job = {
        "data": source.describe() | {"values": _hash_of_values(source)},
        "options": {name: _plain(value) for name, value in given.items()},
        "searched": [_plain(each) for each in context.searched],
        "like": None if like is None else _hash_of_map(like),
        "indexed": context.indexed,
        "shards": shards,
        "versions": versions,
    }
    with opened_checkpoint(folder, job) as checkpoint:
        _check_space(folder, plan.checkpoint_bytes)
        yield replace(context, checkpoint=checkpoint)


def _check_space(folder: str | Path, needed: int) -> None:
    """Raise OutputError unless a folder has room for a checkpoint, counting what is in it."""
    held = sum(path.lstat().st_size for path in Path(folder).iterdir())
    free = shutil.disk_usage(folder).free
    if needed > held + free:
        raise OutputError(
            f"a checkpoint needs up to {in_words(needed)} in {folder}, but {in_words(free)} is "
            f"free; make room, or name a folder elsewhere."
        )


def _plain(value: Any) -> Any:
    if hasattr(value, "parameters"):
        return {"name": value.name, **value.parameters()}
    return value


def _hash_of_values(source: Source) -> str:
    """Return a token of rows, or a hash of some; of lazy ones both.

    The token of these may only say where they are, and the hash is of three of their chunks.
    """
    token = source.token() or ""
    return token if token and not source.loads_whole_shards else token + hash_of_rows(source)


def hash_of_rows(source: Source) -> str:
    """Return a hash of some rows, spread over the source."""
    starts = sorted({i * max(source.n_samples - _ROWS, 0) // (_PLACES - 1) for i in range(_PLACES)})
    shards = [Shard(i, s, min(s + _ROWS, source.n_samples)) for i, s in enumerate(starts)]
    if source.loads_whole_shards:
        every = source.shards(1)
        shards = [every[i] for i in sorted({0, len(every) // 2, len(every) - 1})]
    parts = compute_all([delayed(_rows_hashed, source.reader(s), name="sample") for s in shards])
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _rows_hashed(reader: Reader) -> bytes:
    arrays = (each for block in reader.blocks(_ROWS) for each in (block.X, block.y, block.weights))
    return _hash_of(arrays).encode()


def _hash_of_map(like: Template) -> str:
    arrays = [array for _, array in sorted(like.feature_map.arrays().items())]
    if like.empty is not None:
        arrays += [like.empty.feature_shift, like.empty.target_shift, like.empty.target_unit]
    return _hash_of(arrays)


def _hash_of(arrays: Iterable[Array | None]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
