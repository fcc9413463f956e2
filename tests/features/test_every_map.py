"""Some of the features of a map, as a map of their own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import (
    MAPS,
    Cosines,
    Identity,
    RandomFourierFeatures,
    Standardized,
    Standardizer,
)
from streamkern.kernels import Gaussian, Laplacian

P, D = 5, 22
STANDARDIZER = Standardizer(
    np.array([0, 1, 3, 4]), np.array([3.0, 0.5, -40.0, 1.0]), np.array([0.5, 1, 20, 2]), P
)


def fourier(p=P, **options):
    return RandomFourierFeatures(Gaussian(1.5), D, random_state=3, **options).draw(p)


MAKE = {
    "paired": fourier,
    "phase": lambda: fourier(paired=False),
    "independent": lambda: RandomFourierFeatures(Laplacian(1.0), D, orthogonal=False).draw(P),
    "cosines": lambda: fourier().subset(np.arange(D)[::-1]),
    "identity": lambda: Identity().draw(P),
    "standardized paired": lambda: Standardized(STANDARDIZER, fourier(4)),
    "standardized phase": lambda: Standardized(STANDARDIZER, fourier(4, paired=False)),
    "standardized identity": lambda: Standardized(STANDARDIZER, Identity().draw(4)),
}
every_map = pytest.mark.parametrize("make", list(MAKE.values()), ids=list(MAKE))
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(n=40):
    return np.random.default_rng(1).standard_normal((n, P)) * [1, 1, 1, 20, 1] - [0, 0, 0, 40, 0]


def some(phi) -> np.ndarray:
    """Half of the features, not in order."""
    return np.random.default_rng(2).permutation(phi.n_components)[: phi.n_components // 2]


@every_map
@every_dtype
def test_its_features_are_the_columns_that_were_named_in_that_order(make, dtype):
    phi = make()
    part = phi.subset(some(phi))
    whole = phi.transform(rows(), dtype)
    # An angle of 10 is known to 10 eps.
    assert_close(part.transform(rows(), dtype), whole[:, some(phi)], dtype=dtype, size=10.0)
    assert (part.n_features, part.n_components) == (P, len(some(phi)))


@every_map
@every_dtype
def test_evaluating_leaves_out_the_scale_and_subtracts_the_shift(make, dtype):
    part = make().subset(np.array([3, 0]))
    shift = np.array([0.25, -1.0], dtype=dtype)
    plain, shifted = np.empty((2, 40, 2), dtype=dtype)
    part.evaluate(rows(), plain)
    part.evaluate(rows(), shifted, shift)
    assert_close(shifted, plain - shift, dtype=dtype, steps=2)
    assert_close(part.transform(rows(), dtype), plain * part.scale, dtype=dtype, steps=2)


@every_map
def test_a_subset_of_a_subset_is_a_subset(make):
    phi = make()
    chosen = some(phi)
    twice, once = phi.subset(chosen).subset(np.array([1, 0])), phi.subset(chosen[[1, 0]])
    assert twice.equals(once)


@pytest.mark.parametrize("name", ["identity", "standardized identity"])
def test_inputs_that_were_not_chosen_are_not_read(name):
    phi = MAKE[name]()
    part = phi.subset(np.array([2, 0]))
    assert isinstance(part.inner, Identity)
    assert len(part.standardizer.columns) == len(part.standardizer.mean) == 2
    X = rows()
    X[:, np.setdiff1d(np.arange(P), part.standardizer.columns)] = np.nan
    assert np.array_equal(part.transform(X), part.transform(rows()))


@every_map
def test_a_restored_subset_is_the_subset_bit_for_bit(make):
    phi = make()
    part = phi.subset(some(phi))
    parameters = json.loads(json.dumps(part.parameters(), allow_nan=False))
    back = MAPS[part.name].restore(parameters, part.arrays())
    assert back.equals(part)
    for dtype in (np.float32, np.float64):
        assert np.array_equal(back.transform(rows(), dtype), part.transform(rows(), dtype))


@every_map
@pytest.mark.parametrize(
    "indices", [[0, 0], [-1], [99], [], [0.0, 1.0], [[0, 1]], [True, False]], ids=str
)
def test_what_does_not_name_different_features_is_refused(make, indices):
    with pytest.raises(ParameterError, match="a list of different whole numbers from 0 to"):
        make().subset(np.array(indices))


def test_a_map_that_is_not_drawn_has_no_subsets():
    with pytest.raises(ParameterError, match="not drawn yet"):
        RandomFourierFeatures(Gaussian(1.0), 8).subset(np.array([0]))


def test_drawing_again_changes_nothing_and_checks_the_inputs():
    part = fourier().subset(np.array([1, 2]))
    assert part.draw(P) is part
    with pytest.raises(DataError, match="must have 5 columns"):
        part.draw(P + 1)


@pytest.mark.parametrize("name", ["frequencies", "phases"])
def test_a_damaged_file_is_refused(name):
    part = fourier().subset(np.array([1, 2, 3]))
    arrays = {**part.arrays(), name: part.arrays()[name][:-1]}
    with pytest.raises(ParameterError, match="as many phases and amplitudes as frequencies"):
        Cosines.restore(part.parameters(), arrays)


def test_standardising_twice_is_standardising_once():
    other = Standardizer(np.array([2, 0]), np.array([0.5, -1.0]), np.array([2.0, 0.25]), 4)
    both = STANDARDIZER.then(other)
    assert_close(both(rows()), other(STANDARDIZER(rows())), size=100.0)
    assert (both.n_features, both.columns.tolist()) == (P, [3, 0])
