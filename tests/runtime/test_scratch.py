"""Arrays' memory: bits do not depend on where one lies, and what is worked in is taken once."""

from typing import NamedTuple

import dask
import numpy as np
import pytest

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.runtime.scratch import Scratch, aligned
from streamkern.solve import Eigenbasis, Spectrum

rng = np.random.default_rng(0)


def shifted(array):
    """Return an array that begins between two words, as in a buffer of bytes."""
    raw = np.empty(array.nbytes + 4, dtype=np.uint8)[4:]
    order = "C" if array.flags.c_contiguous else "F"
    there = raw.view(array.dtype).reshape(array.shape, order=order)
    there[...] = array
    assert not there.flags.aligned
    return there


class Pair(NamedTuple):
    left: object
    right: object


def basis(vectors):
    ones = np.ones(len(vectors))
    spectrum = Spectrum(ones, ones[:, None], ones[:1], 9.0, 0.1, intercept=True)
    return Eigenbasis(spectrum, vectors, ones, ones[:1])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_keeps_values_and_order(order):
    array = np.asarray(rng.standard_normal((6, 5)), order=order)
    moved = aligned(shifted(array))
    assert moved.flags.aligned
    assert moved.strides == array.strides
    assert np.array_equal(moved, array)


HOLDERS = {
    "list": (lambda array: [array], lambda held: held[0]),
    "tuple": (lambda array: (1, array), lambda held: held[1]),
    "named": (lambda array: Pair("left", array), lambda held: held.right),
    "nested": (lambda array: {"inside": [array]}, lambda held: held["inside"][0]),
    "object": (basis, lambda held: held.vectors),
    "object in a tuple": (lambda array: (basis(array),), lambda held: held[0].vectors),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_arrays_are_found_in_what_holds_them_and_moved_once(name):
    hold, array_in = HOLDERS[name]
    array = rng.standard_normal((4, 4)).T
    held = hold(shifted(array))
    found = aligned(held)
    assert type(found) is type(held)
    first = array_in(found)
    assert first.flags.aligned
    assert np.array_equal(first, array)
    assert aligned(found) is found
    assert array_in(found) is first


def test_what_is_aligned_stays_as_it_is():
    array = np.ones(3)
    held = (array, [array], {"a": array}, "text", None)
    assert aligned(held) is held
    assert held[1][0] is array


def test_what_holds_itself_ends():
    held = [shifted(np.ones(2))]
    held.append(held)
    assert aligned(held)[0].flags.aligned
    assert held[1] is held


def test_bits_are_the_same_where_workers_put_all_on_disk():
    from distributed import Client

    X = rng.standard_normal((1200, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1200)
    model = RandomFeatureRidge(Gaussian(1.5), n_components=48, precision="double")
    with dask.config.set(scheduler="synchronous"):
        moments = model.moments(X, y)
        here = model.solve(moments).coef_
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.worker.memory.target": 1e-7}),
        Client(processes=False, memory_limit="8 GB", **options) as client,
    ):
        there = model.solve(moments).coef_
        spilled = client.run(lambda dask_worker: dask_worker.data.cumulative_metrics)
    (metrics,) = spilled.values()
    assert metrics["disk-read", "count"] > 0
    assert np.array_equal(there, here)


def test_scratch_gives_the_same_memory_for_the_same_name():
    scratch = Scratch()
    first = scratch.array("a", (3, 4), np.float32)
    assert np.shares_memory(first, scratch.array("a", (2, 5), np.float32))
    assert not np.shares_memory(first, scratch.array("b", (3, 4), np.float32))
    assert scratch.array("a", (30, 4), np.float32).shape == (30, 4)
    assert scratch.array("a", (3,), np.float64).dtype == np.float64
