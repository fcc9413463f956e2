"""What a task on a shard tells: where its time went, and what it could attain."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

import streamkern
from streamkern.engine.reduction import accumulate
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.runtime.events import observed
from streamkern.sources import ArraySource
from streamkern.statistics import ColumnStatistics, Moments


def told_of(source, statistic):
    events = []
    with observed(events.append):
        accumulate(source, statistic, shard_rows=4096, block_rows=1024)
    return [event for event in events if event["kind"] == "shard done"]


def moments():
    return Moments(RandomFourierFeatures(Gaussian(1.0), 64, random_state=0).draw(3), 1)


def rows(n=20_000):
    X = np.random.default_rng(0).standard_normal((n, 3))
    return X, X[:, 0]


def assert_seconds_add_up(events):
    for event in events:
        seconds = dict(event["seconds"])
        seconds.pop("reading")
        assert set(seconds) == {"waiting", "features", "products", "other"}
        assert sum(seconds.values()) == pytest.approx(event["elapsed"])
        assert all(value >= 0 for value in seconds.values())


def test_seconds_of_a_shard_add_up_to_what_it_took():
    assert_seconds_add_up(told_of(ArraySource(*rows()), moments()))


@pytest.mark.cluster
def test_seconds_add_up_on_workers_too_where_a_task_begins_within_another(
    tmp_path, external_scheduler
):
    X, y = rows(200_000)
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["X"], file["y"] = X, y
    with streamkern.connect(scheduler=external_scheduler):
        events = told_of(streamkern.open_hdf5(tmp_path / "data.h5"), moments())
    assert len(events) > 10
    assert_seconds_add_up(events)


def test_products_are_compared_with_what_can_be_attained_and_other_sums_with_nothing():
    assert all(event["attainable"] > 1e8 for event in told_of(ArraySource(*rows()), moments()))
    X, _ = rows()
    assert all(
        event["attainable"] == 0 for event in told_of(ArraySource(*rows()), ColumnStatistics(4))
    )
    assert ColumnStatistics(X.shape[1]).work is None


def test_operations_are_those_of_the_products():
    # Of 64 features with each other, half of them, and with a target and a one.
    assert moments().work.flops_per_row == 64 * 65 + 2 * 64 * 2
    wide = Moments(RandomFourierFeatures(Gaussian(1.0), 1200, random_state=0).draw(3), 1)
    strips = [strip.work.flops_per_row - 2 * strip.work.order * 2 for strip in wide.strips(2)]
    assert sum(strips) == 1200 * 1201


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_decoding_is_told_from_reading_where_there_is_any(tmp_path, compression):
    X, y = rows()
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(1024, 3), compression=compression)
        file.create_dataset("y", data=y, chunks=(1024,))
    for event in told_of(streamkern.open_hdf5(tmp_path / "data.h5"), moments()):
        assert event["seconds"]["reading"] > 0
        assert ("decoding" in event["seconds"]) == (compression is not None)
