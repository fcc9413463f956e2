"""Plain values come back from a file as they were, or not at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamkern.errors import CheckpointError
from streamkern.statistics.triangle import Triangle
from streamkern.storage.plain_values import read_plain, write_plain

KINDS = st.sampled_from([np.float32, np.float64, np.int64, np.uint64, np.uint8, bool])
LEAVES = (
    st.none()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | KINDS.flatmap(lambda kind: arrays.arrays(kind, st.sampled_from([(0,), (3,), (2, 4)])))
)
NAMES = st.text("abcdefgh_", min_size=1, max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
        | st.dictionaries(st.integers(0, 99), inner, max_size=3)
    ),
    max_leaves=8,
)
SUMS = {
    "gram": Triangle.of(np.arange(9.0).reshape(3, 3) + np.arange(9.0).reshape(3, 3).T),
    "parts": {0: [1, 2.5], 3: None},
    "labels": np.arange(5, dtype=np.uint8),
    "empty": np.empty((0, 4), dtype=np.float32),
}


def exact(value):
    """A value with the types and bytes of what is in it, to be compared."""
    if isinstance(value, Triangle):
        return value.order, exact(value.panels)
    if isinstance(value, dict):
        return {name: exact(item) for name, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return type(value), value


@settings(max_examples=50)
@given(value=VALUES)
def test_values_come_back_as_they_were(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "a.h5"
    write_plain(path, value)
    assert exact(read_plain(path)) == exact(value)


@pytest.mark.parametrize("value", ["text", {"a": object()}, [1 + 2j], np.array(["x"])])
def test_what_is_not_plain_is_not_written(tmp_path, value):
    with pytest.raises(TypeError, match="cannot be saved"):
        write_plain(tmp_path / "a.h5", value)
    assert not list(tmp_path.iterdir())


def test_a_changed_byte_is_noticed_wherever_it_counts(tmp_path):
    path = tmp_path / "a.h5"
    for value in ([1], SUMS):  # the second replaces the first
        write_plain(path, value)
    assert [path] == list(tmp_path.iterdir())
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 61):
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        try:
            # Bytes between what is stored count for nothing.
            assert exact(read_plain(path)) == exact(SUMS)
        except CheckpointError as error:
            assert str(path) in str(error)  # noqa: PT017  either is right
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("length", [0, 1, 500, 2000])
def test_a_file_that_was_cut_short_or_is_missing_is_refused(tmp_path, length):
    path = tmp_path / "a.h5"
    write_plain(path, SUMS)
    path.write_bytes(path.read_bytes()[:length])
    for place in (path, tmp_path / "nothing.h5"):
        with pytest.raises(CheckpointError, match=r"h5 (does not|is a trunc)"):
            read_plain(place)
