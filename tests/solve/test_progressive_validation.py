"""The error on rows to come, from sums, is that of the same model fitted and scored on rows."""

import numpy as np
import pytest

from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.solve.progressive_validation import _ALPHAS, _COMPONENTS, progressive_error
from streamkern.sources import Block
from streamkern.statistics import FoldStatistics, Moments, RowFolds, moment_strips


def rows(n, p=3, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(X[:, :q]) + 0.3 * rng.standard_normal((n, q)) + 5.0


def summed(X, y, feature_map, start=0, n_folds=3):
    folds = FoldStatistics(
        RowFolds(n_folds, 0), Moments(feature_map, y.shape[1], precision="double")
    ).zero()
    folds.update([Block(X, y, start)])
    return folds


def expected(feature_map, before, coming):
    """The least error over the penalties of a ridge regression that is made of all rows."""
    (X, y), (X_new, y_new) = before, coming
    phi, phi_new = feature_map.transform(X), feature_map.transform(X_new)
    size = min(_COMPONENTS, phi.shape[1])
    scale = np.sqrt(phi.shape[1] / size) if phi.shape[1] > size else 1.0
    phi, phi_new = phi[:, :size] * scale, phi_new[:, :size] * scale
    centred, means = phi - phi.mean(axis=0), y.mean(axis=0)
    mse = []
    for alpha in np.array(_ALPHAS) * len(X):
        gram = centred.T @ centred + alpha * np.eye(size)
        coef = np.linalg.solve(gram, centred.T @ (y - means))
        found = means + (phi_new - phi.mean(axis=0)) @ coef
        mse.append(((y_new - found) ** 2).mean(axis=0))
    return np.sqrt(np.min(mse, axis=0).mean())


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("D", [16, _COMPONENTS + 64])
def test_it_is_the_error_of_a_model_of_the_rows_before(D, q):
    feature_map = RandomFourierFeatures(Gaussian(1.5), D, random_state=0).draw(3)
    (X, y), (X_new, y_new) = rows(900, q=q), rows(400, q=q, seed=1)
    before, coming = (X, 1e5 * y), (X_new, 1e5 * y_new)
    found = progressive_error(summed(*before, feature_map), summed(*coming, feature_map, start=900))
    assert found == {
        "error": pytest.approx(expected(feature_map, before, coming), rel=1e-6),
        "leading": min(D, _COMPONENTS),
        "n_components": D,
    }


def test_it_falls_with_more_rows():
    feature_map = RandomFourierFeatures(Gaussian(1.0), 64, random_state=0).draw(3)
    coming = summed(*rows(2000, seed=1), feature_map)
    before = [summed(*rows(n), feature_map) for n in (80, 400, 4000)]
    gram = before[0].parts[0].gram.dense()
    errors = [progressive_error(each, coming)["error"] for each in before]
    assert errors[0] > errors[1] > errors[2] > 0
    assert np.array_equal(before[0].parts[0].gram.dense(), gram)  # the sums stay as they are


def test_it_is_unknown_of_a_strip_a_constant_target_or_a_map_without_leading_part():
    feature_map = RandomFourierFeatures(Gaussian(1.0), 1200, random_state=0).draw(3)
    X, y = rows(300)
    strips = moment_strips(Moments(feature_map, 1, precision="double"), 2)
    halves = [FoldStatistics(RowFolds(2, 0), strip).zero() for strip in strips]
    for half in halves:
        half.update([Block(X, y, 0)])
    assert progressive_error(halves[1], halves[1]) is None
    small = RandomFourierFeatures(Gaussian(1.0), 16, random_state=0).draw(3)
    flat = summed(X, np.ones((300, 1)), small)
    assert progressive_error(summed(X, y, small), flat) is None
    wide = np.random.default_rng(0).standard_normal((700, _COMPONENTS + 8))
    both = [summed(wide, wide[:, :1], Identity().draw(wide.shape[1])) for _ in range(2)]
    assert progressive_error(*both) is None
