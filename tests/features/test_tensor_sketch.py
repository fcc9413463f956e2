"""TensorSketch: count sketches of products of inputs."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import MAPS, Chosen, TensorSketch
from streamkern.kernels import Gaussian, Polynomial

P, D = 3, 12
ROWS = np.random.default_rng(0).standard_normal((30, P))
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def drawn(degree=2, constant=0.5, n_components=D, **options) -> TensorSketch:
    return TensorSketch(Polynomial(degree, constant), n_components, **options).draw(P)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("n_components", [1, 2, 12, 13])
@every_dtype
def test_every_product_of_inputs_is_added_where_its_hashes_say(degree, n_components, dtype):
    phi = drawn(degree, n_components=n_components)
    expected = [
        naive.tensor_sketch([*x, 0.5**0.5], phi.places, phi.signs, n_components) for x in ROWS
    ]
    assert_close(phi.transform(ROWS, dtype), expected, dtype=dtype)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_features_have_no_bias(degree, constant):
    X, Z = ROWS[:6], ROWS[6:12]
    exact = np.diagonal(Polynomial(degree, constant)(X, Z))
    found = np.array([
        (phi.transform(X) * phi.transform(Z)).sum(axis=1)
        for phi in (drawn(degree, constant, 16, random_state=seed) for seed in range(1500))
    ])  # fmt: skip
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - exact) < 4 * error).all()


def test_the_error_falls_as_the_root_of_the_number_of_features():
    exact = Polynomial(2, 1.0)(ROWS, ROWS)
    errors = []
    for n_components in (64, 256, 1024):
        maps = [drawn(2, 1.0, n_components, random_state=seed) for seed in range(40)]
        features = [phi.transform(ROWS) for phi in maps]
        errors.append(np.sqrt(np.mean([np.square(F @ F.T - exact).mean() for F in features])))
    assert 1.7 < errors[0] / errors[1] < 2.3
    assert 1.7 < errors[1] / errors[2] < 2.3


@every_dtype
def test_evaluating_subtracts_the_shift(dtype):
    phi, shift = drawn(), np.arange(D, dtype=dtype)
    out = np.empty((len(ROWS), D), dtype=dtype)
    phi.evaluate(ROWS.astype(dtype), out, shift)
    assert_close(out, phi.transform(ROWS, dtype) - shift, dtype=dtype)


def test_a_part_is_refused_and_some_entries_are_not():
    with pytest.raises(ParameterError, match="a sketch has no part of 4 features"):
        drawn().first(4)
    phi, indices = drawn(), np.array([7, 0, 3])
    part = phi.subset(indices)
    assert isinstance(part, Chosen)
    assert np.array_equal(part.transform(ROWS), phi.transform(ROWS)[:, indices])
    again = part.subset(np.array([2]))
    assert np.array_equal(again.transform(ROWS), phi.transform(ROWS)[:, [3]])
    with pytest.raises(ParameterError, match="chosen have no part of 2"):
        part.first(2)


@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_a_restored_map_is_the_map(some):
    phi = drawn().subset(np.array([5, 1])) if some else drawn()
    back = MAPS[phi.name].restore(json.loads(json.dumps(phi.parameters())), phi.arrays())
    assert back.equals(phi)
    assert np.array_equal(back.transform(ROWS), phi.transform(ROWS))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"places": a["places"][:1]},
        lambda a: {"signs": a["signs"][:, :2]},
        lambda a: {"places": a["places"] + D},
        lambda a: {"places": a["places"] - D},
        lambda a: {"places": a["places"] + 0.5},
        lambda a: {"signs": 0 * a["signs"]},
    ],
)
def test_a_damaged_map_is_refused(change):
    phi = drawn()
    with pytest.raises(ParameterError, match="the file is damaged"):
        TensorSketch.restore(phi.parameters(), phi.arrays() | change(phi.arrays()))


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="a sketch is of the polynomial kernel, not of Gauss"):
        TensorSketch(Gaussian(1.0), D)
    with pytest.raises(ParameterError, match="at least 1 input, not 0"):
        TensorSketch(Polynomial(), D).draw(0)
    with pytest.raises(ParameterError, match="not drawn yet"):
        TensorSketch(Polynomial(), D).transform(ROWS)
    with pytest.raises(DataError, match="must have 3 columns"):
        drawn().transform(ROWS[:, :2])
