"""A source in a user's own module is fitted as the same rows in memory, and its faults are told."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from streamkern import RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.sources import Block, Reader, Segment, Source

pytestmark = pytest.mark.usefixtures("in_this_thread", "small_shards")


@dataclass(frozen=True)
class NpyReader(Reader):
    path: str
    start: int
    stop: int
    step: int = 0  # rows of a block, 0 for as many as are asked for
    shift: int = 0  # of what blocks say they begin at

    def blocks(self, n_rows):
        table = np.load(self.path, mmap_mode="r")
        for start in range(self.start, self.stop, self.step or n_rows):
            rows = np.array(table[start : min(start + (self.step or n_rows), self.stop)])
            yield Block(rows[:, :-1], rows[:, -1:].astype(float), start + self.shift)


class NpyFile(Source):
    n_targets = target_ndim = 1

    def __init__(self, path, **fault):
        self.path, table = str(path), np.load(path, mmap_mode="r")
        self.n_samples, self.n_features = len(table), table.shape[1] - 1
        self.dtype, self.fault = table.dtype, fault

    def segments(self):
        return [Segment(0, self.n_samples, 1)]

    def reader(self, shard):
        return replace(NpyReader(self.path, shard.start, shard.stop), **self.fault)

    def locate(self, row):
        return f"row {row:,} of {self.path}"

    def describe(self):
        return {"kind": "npy", "path": self.path}


@pytest.fixture
def rows(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((2, 700, 3))
    np.save(tmp_path / "rows.npy", np.column_stack([X, y[:, 0]]))
    return X, y[:, 0], tmp_path / "rows.npy"


def fitted(*rows):
    return RandomFeatureRidge("gaussian", n_components=32).fit(*rows)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_source_of_ones_own_gives_the_bits_of_the_same_rows_in_memory(rows, dtype):
    X, y, path = rows
    np.save(path, np.load(path).astype(dtype))
    own, usual = fitted(NpyFile(path)), fitted(X.astype(dtype), y.astype(dtype))
    assert own.coef_.tobytes() == usual.coef_.tobytes()
    assert own.predict(NpyFile(path)).tobytes() == usual.predict(X.astype(dtype)).tobytes()
    assert own.report_["data"]["kind"] == "npy"


@pytest.mark.parametrize("fault", [{"step": 30}, {"step": 70}, {"shift": 1}])
def test_a_reader_whose_blocks_are_not_those_of_the_contract_is_refused(rows, fault):
    with pytest.raises(DataError, match=r"a reader must give rows .* but gave"):
        fitted(NpyFile(rows[-1], **fault))
