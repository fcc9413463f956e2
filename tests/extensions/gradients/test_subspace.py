"""Products with vectors, the preconditioner and the subspace they make, against whole matrices."""

from itertools import pairwise

import numpy as np
import pytest

from streamkern.extensions.gradients.gram import Gram
from streamkern.extensions.gradients.gram_products import GramProducts
from streamkern.extensions.gradients.preconditioner import (
    BlockPreconditioner,
    NystroemPreconditioner,
)
from streamkern.extensions.gradients.remainder import LeadingPart, Remainder
from streamkern.extensions.gradients.subspace import Subspace
from streamkern.features import RandomFourierFeatures, gradients, kernel_diagonal
from streamkern.features.kernel_map import Combinations
from streamkern.kernels import Gaussian
from streamkern.solve.solution import LeadingEquations
from streamkern.sources import Block
from streamkern.statistics import FoldStatistics, Moments, Triangle
from streamkern.statistics.folds import block_folds

N, P, D, ALPHA = 200, 2, 24, 0.3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((N, P)), rng.integers(0, 4, N).astype(float)
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] + 3.0]), weights


@pytest.fixture(scope="module")
def feature_map():
    return RandomFourierFeatures(Gaussian(1.0), D).draw(P)


def gram_of(X, weights, feature_map):
    """Return G about the means and its features, by the formula."""
    phi = feature_map.transform(X)
    mean = weights @ phi / weights.sum()
    return (phi * weights[:, None]).T @ phi - weights.sum() * np.outer(mean, mean), phi


def test_a_block_preconditions_as_the_whole_matrix_with_nothing_between_the_block_and_the_rest():
    rng = np.random.default_rng(0)
    factor, diagonal = rng.standard_normal((6, 9)), rng.random(10) + 0.5
    block, columns = factor @ factor.T, rng.standard_normal((10, 2))
    found = BlockPreconditioner(Triangle.of(block), diagonal[6:])
    whole = np.diag(diagonal)
    whole[:6, :6] = block
    for alpha in 4.0 ** np.array([-1, 0, -1, 1, 2, 3, 4, 5, -1]):  # factors are kept, and dropped
        expected = np.linalg.solve(whole + alpha * np.eye(10), columns)
        np.testing.assert_allclose(found.solve(columns, alpha), expected)
    indefinite = block - 2.0 * np.eye(6)
    shifted = BlockPreconditioner(Triangle.of(indefinite), diagonal[6:])
    assert np.isfinite(shifted.solve(columns, 0.01)).all()


@pytest.mark.parametrize("cuts", [(), (1, 90, 91)])
@pytest.mark.parametrize("n_vectors", [3, 13])
def test_products_with_vectors_are_those_of_the_sums(
    rows, feature_map, cuts, n_vectors, monkeypatch
):
    monkeypatch.setattr("streamkern.extensions.gradients.gram_products._FEATURES", 5)
    X, y, weights = rows
    vectors, shift = np.random.default_rng(1).standard_normal((D, n_vectors)), np.full(D, 0.2)
    found = GramProducts(feature_map, vectors, shift, "double")
    pieces = [slice(*pair) for pair in pairwise([0, *cuts, N])]
    found.update(Block(X[k], y[k], k.start, weights[k]) for k in pieces)
    f = feature_map.transform(X) / feature_map.scale - shift
    expected = sum(s * np.outer(row, row @ vectors) for s, row in zip(weights, f, strict=True))
    np.testing.assert_allclose(found.products, expected, rtol=1e-12)
    narrow = GramProducts(feature_map, vectors, shift)  # of features in single precision
    narrow.update([Block(X, y, 0, weights)])
    np.testing.assert_allclose(narrow.products, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("n_tests", [8, D])
def test_the_preconditioner_is_below_the_matrix_and_equal_where_it_was_tested(
    rows, feature_map, n_tests
):
    gram, _ = gram_of(rows[0], rows[2], feature_map)
    tests = np.linalg.qr(np.random.default_rng(1).standard_normal((D, n_tests)))[0]
    first = NystroemPreconditioner.none(D).extended(tests[:, :4], gram @ tests[:, :4])
    found = first.extended(tests[:, 4:], gram @ tests[:, 4:])
    near = found.vectors @ np.diag(found.values) @ found.vectors.T
    np.testing.assert_allclose(near @ tests, gram @ tests, atol=1e-9)
    assert np.linalg.eigvalsh(gram - near).min() > -1e-9
    columns = np.random.default_rng(2).standard_normal((D, 2))
    solved = np.linalg.solve(near + ALPHA * np.eye(D), columns)
    np.testing.assert_allclose(found.solve(columns, ALPHA), solved, atol=1e-9)


class Dense:
    """What multiplies vectors with Gram matrices that are there."""

    passes, leading = (), None

    def __init__(self, grams):
        self.grams = grams

    def products(self, vectors, label, *, by_fold):  # noqa: ARG002  as by passes
        return {k: gram @ vectors for k, gram in self.grams.items()}


@pytest.mark.parametrize("intercept", [True, False])
def test_systems_in_a_subspace_have_the_residuals_of_those_of_all_features(
    rows, feature_map, intercept
):
    X, y, weights = rows
    halves, sums = (slice(0, 80), slice(80, N)), {}
    for fold, part in enumerate(halves):
        sums[fold] = Moments(feature_map, 2, precision="double", feature_shift=np.full(D, 0.1))
        sums[fold].update([Block(X[part], y[part], 0, weights[part])])
    folds = FoldStatistics.of(block_folds(N, 2), sums)
    grams = Dense({k: part.gram.dense() for k, part in sums.items()})
    of_folds = Gram(grams, folds, feature_map, intercept=intercept)
    found = Subspace(of_folds)
    for b in (3, 4):
        assert found.grow([np.random.default_rng(b).standard_normal((D, b))])
    assert not found.grow([found.vectors])
    W = found.vectors
    np.testing.assert_allclose(W.T @ W, np.eye(7), atol=1e-12)
    inside = Combinations(feature_map, W)
    coefs, left = [], []
    for left_out, kept in ((None, [0, 1]), (0, [1]), (1, [0])):
        whole = sums[kept[0]] if len(kept) == 1 else sums[0].merge(sums[1])
        centred = whole.centred(intercept=intercept)
        small = [found.moments(inside)[k] for k in kept]
        small = small[0] if len(kept) == 1 else small[0].merge(small[1])
        gram, cross = centred.gram.dense(), centred.cross
        inner = small.centred(intercept=intercept).gram.dense()
        np.testing.assert_allclose(inner, W.T @ gram @ W, atol=1e-9)
        np.testing.assert_allclose(of_folds.cross(left_out), cross, atol=1e-9)
        coefs.append(np.linalg.solve(W.T @ gram @ W + ALPHA * np.eye(7), W.T @ cross))
        left.append(cross - (gram + ALPHA * np.eye(D)) @ W @ coefs[-1])
    np.testing.assert_allclose(found.residuals(ALPHA, coefs), left, atol=1e-9)
    mean = weights @ feature_map.transform(X) / weights.sum()
    np.testing.assert_allclose(of_folds.feature_mean * feature_map.scale, mean, atol=1e-12)


def test_what_is_left_has_the_degrees_of_freedom_of_equal_eigenvalues_or_fewer():
    for values in (np.full(50, 0.2), 0.9 ** np.arange(50)):
        found = Remainder(values.sum(), (values**2).sum()).effective_dof(ALPHA)
        expected = (values / (values + ALPHA)).sum()
        assert 0.8 * expected < found <= expected * (1 + 1e-12)
    assert Remainder().effective_dof(ALPHA) == 0.0


@pytest.mark.parametrize("order", [6, D])
def test_a_block_and_the_rest_bound_the_degrees_of_freedom(rows, feature_map, order):
    gram, _ = gram_of(rows[0], rows[2], feature_map)
    block = LeadingEquations(Triangle.of(gram[:order, :order]), np.zeros(order), 0.0, 0.0)
    found = LeadingPart(block, np.diagonal(gram)[order:], N, None).effective_dof(ALPHA)
    values = np.linalg.eigvalsh(gram)
    expected = (values / (values + ALPHA)).sum()
    assert found == pytest.approx(expected) if order == D else found > expected
    few = LeadingPart(block, np.diagonal(gram)[order:], 3, None).effective_dof(ALPHA)
    assert few == pytest.approx(np.trace(gram) / (np.trace(gram) / 3 + ALPHA))


def test_combinations_are_products_of_the_features(rows, feature_map):
    X = rows[0]
    weights = np.random.default_rng(1).standard_normal((D, 5))
    found = Combinations(feature_map, weights)
    np.testing.assert_allclose(found.transform(X), feature_map.transform(X) @ weights, atol=1e-12)
    coef = np.random.default_rng(2).standard_normal(5)
    np.testing.assert_allclose(
        gradients(found, X, coef), gradients(feature_map, X, weights @ coef), atol=1e-12
    )
    squares = np.square(feature_map.transform(X)).sum(axis=1)
    np.testing.assert_allclose(kernel_diagonal(found, X), squares)
    again = Combinations.restore(found.parameters(), found.arrays())
    assert again.equals(found)
    some = found.subset(np.array([3, 1]))
    np.testing.assert_allclose(some.transform(X), found.transform(X)[:, [3, 1]], atol=1e-12)
    more = np.random.default_rng(3).standard_normal((5, 2 * D))
    both = Combinations(found, more)
    np.testing.assert_allclose(both.transform(X), found.transform(X) @ more, atol=1e-11)
