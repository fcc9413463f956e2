"""Sums of waves on a lattice have the moments of the features, without products of these."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from streamkern import Gaussian, Laplacian, Matern, RandomFeatureRidge, load_moments
from streamkern.errors import OverflowedError, ParameterError
from streamkern.extensions.fields.frequency_grid import GridFourierFeatures
from streamkern.extensions.fields.lattice import sums_of_pairs
from streamkern.extensions.fields.toeplitz_moments import ToeplitzMoments, is_summed_by_waves
from streamkern.extensions.fields.waves import lattice_of
from streamkern.features import Standardized, Standardizer
from streamkern.sources import Block
from streamkern.statistics import Moments

N = 400


def field(p, n=N, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 2.0, (n, p))
    y = np.sin(3.0 * X[:, [0]]) + X[:, [-1]] * np.arange(1.0, q + 1)
    return X, y + 5.0 + 0.1 * rng.standard_normal((n, q)), rng.integers(0, 3, n).astype(float)


@cache
def lattice_map(p, D=31, kernel=Matern(0.5, nu=1.5)):  # noqa: B008  immutable
    X = field(p)[0]
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    standardizer = Standardizer(np.arange(p), mean, deviation, p)
    return Standardized(standardizer, GridFourierFeatures(kernel, D).draw(p, standardizer(X)))


def moments_of(kind, phi, X, y, weights=None, *, cuts=(), **options):
    q = y.shape[1]
    target = {"target_shift": np.linspace(4.0, 5.0, q), "target_unit": np.linspace(0.5, 2.0, q)}
    found = kind(phi, q, **{"precision": "double"} | target | options)
    pieces = [slice(*pair) for pair in pairwise([0, *cuts, len(X)])]
    found.update(
        Block(X[k], y[k], k.start, None if weights is None else weights[k]) for k in pieces
    )
    return found


def assert_same(found, expected, digits=1e-11):
    assert found.n_rows == expected.n_rows
    for intercept in (True, False):
        mine, theirs = (each.centred(intercept=intercept) for each in (found, expected))
        assert mine.weight == pytest.approx(theirs.weight)
        scale = theirs.weight
        np.testing.assert_allclose(mine.gram.dense(), theirs.gram.dense(), atol=digits * scale)
        np.testing.assert_allclose(mine.cross, theirs.cross, atol=100 * digits * scale)
        np.testing.assert_allclose(mine.target, theirs.target, rtol=1e-10)
        np.testing.assert_allclose(mine.feature_mean, theirs.feature_mean, atol=digits)
        np.testing.assert_allclose(mine.target_mean, theirs.target_mean, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-9, 1e6])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_two_factors_of_a_transform_are_told_apart_whatever_their_sizes(k, size):
    rng, modes = np.random.default_rng(0), np.array([6, 4])
    angles = list(rng.uniform(-1.0, 1.0, (2, 50)))
    factors = rng.standard_normal((k, 50)) * np.geomspace(1.0, size, k)[:, None]
    factors[-1, :] *= k < 3  # of zeros alone there is none
    found = sums_of_pairs(angles, factors, modes, "single")
    halves = (np.indices(modes).reshape(2, -1).T - modes // 2) + 0.5
    expected = factors @ np.exp(1j * np.transpose(angles) @ halves.T)
    off = np.abs(found - expected).max(axis=1)
    assert (off <= 1e-8 * np.abs(factors).sum(axis=1)).all()


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("D", [1, 2, 31, 64, 1100])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_features(p, D, weighted):
    X, y, weights = field(p)
    phi = lattice_map(p, D)
    some = (phi, X, y, weights if weighted else None)
    found = moments_of(ToeplitzMoments, *some, cuts=(7, 300))
    assert_same(found, moments_of(Moments, *some))
    assert found.gram is None


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("D", "k"), [(2, 2), (31, 1), (200, 5)])
def test_transforms_multiply_vectors_by_the_gram_matrix(p, D, k):
    X, y, weights = field(p)
    found = moments_of(ToeplitzMoments, lattice_map(p, D), X, y, weights)
    vectors = np.random.default_rng(1).standard_normal((D, k))
    expected = found.with_gram().gram.dense() @ vectors
    for n_threads in (1, 2):
        products = found.gram_operator(n_threads).times(vectors)
        np.testing.assert_allclose(products, expected, atol=1e-11 * np.abs(expected).max())


def test_sums_are_merged_taken_away_and_made_dense():
    X, y, weights = field(2)
    phi = lattice_map(2, 40)
    parts = [slice(0, 150), slice(150, N)]
    one, other = (
        moments_of(ToeplitzMoments, phi, X[part], y[part], weights[part]) for part in parts
    )
    whole = moments_of(Moments, phi, X, y, weights)
    assert_same(one.merge(other), whole)
    assert_same(one.with_gram().merge(other), whole)
    assert_same(one.merge(other.with_gram()), whole)
    assert_same(one.merge(other).without(other), one)
    again = one.zero().attached(one.detached())
    assert_same(again, one)
    assert_same(one.leading(12), one.with_gram().leading(12))
    assert_same(one.solvable(12), one.with_gram().leading(12))
    with pytest.raises(ParameterError, match="do not go together"):
        one.subtracted(other.with_gram())
    assert one.is_finite()
    one.waves[0] = np.inf
    assert not one.is_finite()


def test_rows_are_transformed_some_at_a_time(monkeypatch):
    X, y, weights = field(1)
    phi = lattice_map(1, 20)
    together = moments_of(ToeplitzMoments, phi, X, y, weights, cuts=(100, 200))
    monkeypatch.setattr("streamkern.extensions.fields.toeplitz_moments.MOST_ROWS", 150)
    assert_same(moments_of(ToeplitzMoments, phi, X, y, weights, cuts=(100, 200)), together)


def test_wide_lattices_are_left_to_products():
    phi = lattice_map(3, 20_000, Laplacian(0.3))  # in the shape of a cross
    assert not is_summed_by_waves(phi, 1)
    assert is_summed_by_waves(lattice_map(3, 20_000), 1)
    assert not is_summed_by_waves(lattice_map(2, 100), 1)
    assert not is_summed_by_waves(lattice_map(2, 400), 32)
    assert not is_summed_by_waves(lattice_map(2, 4000), 33)


def test_the_lattice_of_a_smooth_kernel_with_more_waves_than_have_a_density_is_no_wider():
    phi = lattice_map(2, 20_000, Gaussian(5.0))
    assert (lattice_of(phi).amplitudes == 0).any()
    assert is_summed_by_waves(phi, 1)


def test_inputs_that_overflow_are_named():
    X, y, _ = field(2)
    X[7, 0] = 1e308
    phi = lattice_map.__wrapped__(2, 40)
    phi.standardizer.deviation[:] = 1e-3
    with pytest.raises(OverflowedError, match="inputs of rows 0 to 400 overflow"):
        moments_of(ToeplitzMoments, phi, X, y)
    with pytest.raises(ParameterError, match="about zero and for the whole"):
        ToeplitzMoments(phi, 1, feature_shift=np.ones(40))


@pytest.mark.parametrize("options", [{}, {"alpha": 0.1}, {"alpha": "gcv"}, {"fold_by": "rows"}])
def test_a_model_is_the_one_of_products(monkeypatch, options):
    X, y, weights = field(2, n=3000, q=1)

    def model():
        made = RandomFeatureRidge(
            Matern(0.5, nu=1.5), feature_map="grid", n_components=200, precision="double", **options
        )
        return made.fit(X, y[:, 0], weights)

    found = model()
    monkeypatch.setattr(
        "streamkern.extensions.fields.toeplitz.is_summed_by_waves", lambda *_: False
    )
    expected = model()
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-6)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-6)
    deviations = [each.predict(X[:50], return_std=True)[1] for each in (found, expected)]
    np.testing.assert_allclose(*deviations, rtol=1e-5)


def test_moments_are_saved_merged_and_forgotten(tmp_path):
    X, y, weights = field(2, n=3000, q=1)
    y = y[:, 0]
    model = RandomFeatureRidge(
        Matern(0.5, nu=1.5), feature_map="grid", n_components=200, precision="double", alpha=0.1
    )
    moments = model.moments(X, y, weights)
    moments.save(tmp_path / "moments.h5")
    again = load_moments(tmp_path / "moments.h5")
    expected = model.fit(X, y, weights).predict(X)
    np.testing.assert_allclose(model.solve(again).predict(X), expected, atol=1e-8)
    halves = [
        model.moments(X[k], y[k], weights[k], like=moments)
        for k in (slice(2000), slice(2000, None))
    ]
    np.testing.assert_allclose(
        model.solve(halves[0].merge(halves[1])).predict(X), expected, atol=1e-4
    )
    left = moments.forget(X[2000:], y[2000:], weights[2000:])
    alone = model.solve(halves[0]).predict(X)
    np.testing.assert_allclose(model.solve(left).predict(X), alone, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "by_waves"),
    [({}, True), ({"precision": "int8"}, False), ({"solver": "cg"}, True), ({"tune": "5s"}, True)],
)
def test_waves_are_summed_where_that_is_less(monkeypatch, options, by_waves):
    X, y, _ = field(2, q=1)
    summed = []
    add = ToeplitzMoments._add
    monkeypatch.setattr(
        ToeplitzMoments, "_add", lambda self, *rows: (summed.append(1), add(self, *rows))
    )
    budget = options.pop("tune", None)
    model = RandomFeatureRidge(
        Matern(0.5, nu=1.5), feature_map="grid", n_components=200, alpha=0.1, **options
    )
    if budget:
        model.tune(X, y, maps=["grid", "nystroem"])
        by_waves = model.report_["feature_map"] == "grid"
    else:
        model.fit(X, y)
    assert bool(summed) is by_waves
