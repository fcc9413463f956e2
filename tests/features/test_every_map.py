"""What holds of every map: shifts, subsets, pieces, files, gradients, and what is refused."""

import json
import math
from functools import cache, partial

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import DataError, ParameterError
from streamkern.features import (
    FAMILIES,
    MAPS,
    Identity,
    RandomFourierFeatures,
    Standardized,
    Standardizer,
    base,
    gradients,
    has_gradients,
)
from streamkern.kernels import Gaussian, Matern
from streamkern.runtime.scratch import Scratch

P, D = 3, 16
OWN = {"nystroem": Gaussian(1.5)}
FORMS = [
    (name, form)
    for name, family in FAMILIES.items()
    if name not in ("identity", "nystroem")  # which have rows of their own below
    for form in (True, False)[: 1 + family.has_phases]
]
ROWS = np.random.default_rng(7).standard_normal((160, P))
# Three of five inputs, and three of three, as kept and turned in every way.
SOME = Standardizer(np.array([0, 2, 3]), np.array([1.0, -2.0, 0.5]), np.array([0.5, 4.0, 1.5]), 5)
LINEAR = {
    "diagonal": np.array([2.0, 0.5, 1.0]),
    "full": np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 1.0], [0.0, 1.0, 1.0]]),
    "to fewer": np.array([[1.0, -0.5, 0.1]]),
    "to more": np.concatenate([np.eye(3), [[0.5, 0.5, -1.0]]]),
}


@cache
def drawn(name, paired=True, n_components=D, p=P):
    kernel = OWN.get(name, Matern((1.0, 2.0, 0.8) if p == P else 2.0))
    family = FAMILIES[name]
    phi = family.map_of(kernel, n_components, paired=paired, precision="single", random_state=3)
    return phi.draw(p, ROWS)


def in_metric(linear):
    standardizer = SOME.with_linear(linear)
    return Standardized(standardizer, drawn("orthogonal", p=standardizer.n_outputs))


MAKE = {
    **{f"{n} {'pairs' if f else 'phases'}": lambda n=n, f=f: drawn(n, f) for n, f in FORMS},
    "nystroem": lambda: drawn("nystroem"),
    **{f"metric {n}": lambda linear=linear: in_metric(linear) for n, linear in LINEAR.items()},
    "odd": lambda: drawn("orthogonal", True, 7),
    "cosines": lambda: drawn("orthogonal").subset(np.arange(D)[::-1]),
    "similarities": lambda: drawn("nystroem").similarities,
    "projected": lambda: drawn("nystroem").subset(np.array([11, 3, 0])),
    "levelled": lambda: drawn("nystroem").gram_map(),
    "identity": lambda: Identity().draw(P),
    "standardized": lambda: Standardized(SOME, drawn("sorf")),
    "standardized identity": lambda: Standardized(SOME, Identity().draw(3)),
    "standardized landmarks": lambda: Standardized(SOME, drawn("nystroem")),
    "standardized twice": lambda: Standardized(
        Standardizer(np.arange(5), np.zeros(5), np.arange(1.0, 6.0), 5), in_metric(None)
    ),
}
if "grid" in FAMILIES:
    MAKE["a single wave"] = lambda: drawn("grid", True, 1)
    MAKE["cosines of a grid"] = lambda: drawn("grid").subset(np.arange(3, D))
every_map = pytest.mark.parametrize("make", list(MAKE.values()), ids=list(MAKE))
every_subset = pytest.mark.parametrize(
    "make", [m for n, m in MAKE.items() if n not in ("levelled", "a single wave")]
)
every_gradient = pytest.mark.parametrize("make", [m for n, m in MAKE.items() if has_gradients(m())])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(phi, n=40) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, phi.n_features))


def some(phi) -> np.ndarray:
    """Half of the features, not in order."""
    return np.random.default_rng(2).permutation(phi.n_components)[: -(-phi.n_components // 2)]


@every_map
@every_dtype
def test_evaluating_leaves_out_the_scale_and_subtracts_the_shift(make, dtype):
    phi, X = make(), rows(make()).astype(dtype)
    shift = np.linspace(-1, 1, phi.n_components).astype(dtype)
    plain, shifted = np.empty((2, 40, phi.n_components), dtype=dtype)
    phi.evaluate(X, plain)
    phi.evaluate(X, shifted, shift)
    assert_close(shifted, plain - shift, dtype=dtype, steps=4)
    assert_close(phi.transform(X, dtype), plain * phi.scale, dtype=dtype, steps=2)
    assert phi.transform(X, dtype).dtype == dtype


@every_map
@every_dtype
def test_cuts_and_lent_memory_change_nothing(make, dtype, monkeypatch):
    phi, scratch = make(), Scratch()
    X, alone = rows(phi), np.empty((2, 40, phi.n_components), dtype=dtype)
    shift = np.linspace(-1, 1, phi.n_components).astype(dtype)
    phi.evaluate(X, alone[0], shift)
    monkeypatch.setattr(base, "_CACHED_VALUES", 1)
    for name in ("angles", "cosines", "transform 0", "similarities", "centred"):
        scratch.array(name, (999,), dtype)[:] = np.nan
    for _ in range(2):
        done = [part.stop for part in phi.evaluated(X, alone[1], shift, scratch)]
    assert done[-1] == 40
    assert len(done) > 1
    assert_close(alone[1], alone[0], dtype=dtype, size=100.0)


@every_subset
@every_dtype
def test_a_subset_is_the_columns_that_were_named_in_that_order(make, dtype):
    phi = make()
    chosen, X = some(phi), rows(phi)
    part = phi.subset(chosen)
    # An angle of 10 is known to 10 eps.
    assert_close(
        part.transform(X, dtype), phi.transform(X, dtype)[:, chosen], dtype=dtype, size=50.0
    )
    assert (part.n_features, part.n_components) == (phi.n_features, len(chosen))
    assert part.scale == phi.scale
    twice = part.subset(np.array([len(chosen) - 1]))
    assert_close(twice.transform(X), part.transform(X)[:, -1:], size=50.0)


@every_subset
def test_what_does_not_name_different_features_is_refused(make):
    for indices in ([0, 0], [-1], [99], [], [0.0, 1.0], [[0, 1]], [True, False]):
        with pytest.raises(ParameterError, match="a list of different whole numbers from 0 to"):
            make().subset(np.array(indices))


@every_map
def test_a_restored_map_is_the_map_bit_for_bit(make):
    phi = make()
    subsets = [] if phi.name == "flattened" else [phi.subset(some(phi))]
    for each in (phi, *subsets):
        parameters = json.loads(json.dumps(each.parameters(), allow_nan=False))
        back = MAPS[each.name].restore(parameters, each.arrays())
        assert back.equals(each)
        for dtype in (np.float32, np.float64):
            found, expected = (one.transform(rows(phi), dtype) for one in (back, each))
            assert np.array_equal(found, expected)


@every_map
def test_a_damaged_file_is_refused(make):
    phi = make()
    for name, array in phi.arrays().items():
        if (phi.name, name) == ("similarities", "landmarks"):  # fewer are another map of its kind
            continue
        with pytest.raises(ParameterError):
            type(phi).restore(phi.parameters(), {**phi.arrays(), name: array[:-1]})


@every_map
def test_rows_of_another_width_are_refused(make):
    phi = make()
    p = phi.n_features
    for shape in ((4, p - 1), (4, p + 1), (p,), (1, 1, p)):
        with pytest.raises(DataError, match=rf"rows must have {p} columns, .* but X has shape"):
            phi.transform(np.zeros(shape))


@every_map
def test_inputs_of_any_real_type_are_taken_as_their_values(make):
    phi = make()
    for dtype in (np.int8, np.uint16, np.int64, np.float32, np.bool_):
        X = (np.abs(rows(phi, 9)) > 0.7).astype(dtype)
        assert np.array_equal(phi.transform(X), phi.transform(X.astype(float)))


# Gradients.


def function(phi, coef, X) -> np.ndarray:
    features = np.empty((len(X), phi.n_components))
    phi.evaluate(X, features)
    return features @ coef


@every_gradient
def test_gradients_are_the_differences_of_the_function(make):
    phi = make()
    X, coef = rows(phi, 12), np.random.default_rng(5).standard_normal(phi.n_components)
    expected = naive.differences(partial(function, phi, coef), X)
    found = gradients(phi, X, coef)
    assert found.shape == X.shape
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    single = gradients(phi, X.astype(np.float32), coef)
    assert single.dtype == np.float32
    assert_close(single, found, dtype=np.float32, size=50 * np.abs(found).max())
    left_out = np.setdiff1d(np.arange(phi.n_features), SOME.columns)
    if phi.name == "standardized":
        assert not found[:, left_out].any()


@every_gradient
def test_gradients_of_many_rows_come_in_memory_that_is_lent(make, monkeypatch):
    phi, scratch = make(), Scratch()
    X, coef = rows(phi, 100), np.random.default_rng(5).standard_normal(phi.n_components)
    alone = gradients(phi, X, coef).copy()
    monkeypatch.setattr(base, "_CACHED_VALUES", 1)
    first = gradients(phi, X, coef, scratch)
    size = 100 * np.abs(alone).max()
    assert_close(first, alone, size=size)
    again = gradients(phi, X[:9], coef, scratch)
    assert np.shares_memory(first, again)
    assert_close(again, alone[:9], size=size)


# Families.


@pytest.mark.parametrize(("name", "family"), FAMILIES.items())
def test_a_map_is_nested_if_it_has_leading_parts(name, family):
    phi = family.map_of(OWN.get(name, Gaussian(1.0)), 64).draw(P, ROWS[:80])
    part = phi.nesting or 2
    if phi.nesting:
        assert phi.first(part).n_components == part
    else:
        with pytest.raises(ParameterError, match="no part of 2 features"):
            phi.first(part)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "identity"])
def test_a_map_of_no_inputs_or_that_is_not_drawn_is_refused(name):
    phi = FAMILIES[name].map_of(OWN.get(name, Gaussian(1.0)), 8)
    for use in (lambda: phi.transform(ROWS), lambda: phi.subset(np.array([0]))):
        with pytest.raises(ParameterError, match=r"not drawn yet; call fit\(X\) or draw"):
            use()
    with pytest.raises(ParameterError, match=r"not 0|of 0 inputs"):
        phi.draw(0, np.empty((4, 0)))


def test_features_that_were_chosen_are_not_drawn_and_have_no_leading_part():
    for name in ("cosines", "similarities", "projected", "levelled"):
        part = MAKE[name]()
        assert part.draw(P) is part
        with pytest.raises(DataError, match="must have 3 columns"):
            part.draw(P + 1)
        with pytest.raises(ParameterError, match=r"no part of 2 |have no part of 2 "):
            part.first(2)


def test_a_restored_map_holds_what_was_drawn_not_a_new_draw():
    phi = drawn("orthogonal")
    arrays = {name: array + 1 for name, array in phi.arrays().items()}
    back = RandomFourierFeatures.restore(phi.parameters(), arrays)
    assert np.array_equal(back.frequencies, phi.frequencies + 1)


def test_a_map_without_derivatives_has_no_gradients():
    phi = MAKE["identity"]()
    with pytest.raises(ParameterError, match="have no gradients; take a map of Fourier"):
        gradients(phi, ROWS, np.ones(phi.n_components))


@pytest.mark.parametrize("name", ["identity", "standardized identity"])
def test_inputs_that_were_not_chosen_are_not_read(name):
    part = MAKE[name]().subset(np.array([2, 0]))
    assert isinstance(part.inner, Identity)
    assert len(part.standardizer.columns) == len(part.standardizer.mean) == 2
    X = rows(part)
    X[:, np.setdiff1d(np.arange(part.n_features), part.standardizer.columns)] = math.nan
    assert np.array_equal(part.transform(X), part.transform(rows(part)))
