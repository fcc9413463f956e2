"""The average gradient outer product: the formula, whatever the cuts, weights and targets."""

import numpy as np
import pytest
from tolerances import assert_close

from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.features import RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian, Matern
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.sources import Block

N, P, D = 23, 4, 16
COLUMNS = np.array([0, 1, 3])
MEAN, DEVIATION = np.array([3.0, -40.0, 0.1]), np.array([0.5, 20.0, 1.5])
LINEAR = {
    "plain": None,
    "diagonal": np.array([2.0, 0.0, 0.5]),
    "full": np.random.default_rng(3).standard_normal((3, 3)),
    "to fewer": np.random.default_rng(4).standard_normal((2, 3)),
}
in_every_metric = pytest.mark.parametrize("linear", list(LINEAR.values()), ids=list(LINEAR))


def predictor(linear=None, q=2, precision="double") -> Predictor:
    standardizer = Standardizer(COLUMNS, MEAN, DEVIATION, P, linear)
    inner = RandomFourierFeatures(Matern(1.3, nu=1.5), D, random_state=1)
    feature_map = Standardized(standardizer, inner.draw(standardizer.n_outputs))
    rng = np.random.default_rng(5)
    return Predictor(feature_map, rng.standard_normal((D, q)), np.ones(q), precision)


def rows(n: int = N) -> np.ndarray:
    spread = np.array([0.5, 20.0, 1.0, 1.5])
    return np.array([3.0, -40.0, 7.0, 0.1]) + spread * np.random.default_rng(0).standard_normal(
        (n, P)
    )


def expected(model: Predictor, X: np.ndarray, weights: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """M by central differences, for standardised steps along every column that is kept."""
    step, total = 1e-5, np.zeros((3, 3))
    for x, weight in zip(X, weights, strict=True):
        gradients = []
        for j, deviation in zip(COLUMNS, DEVIATION, strict=True):
            there, here = x.copy(), x.copy()
            there[j] += step * deviation
            here[j] -= step * deviation
            change = model.predict(there[None]) - model.predict(here[None])
            gradients.append(change[0] / (2 * step) / unit)
        for k in range(len(unit)):
            g = [gradient[k] for gradient in gradients]
            total += weight * np.array([[a * b for b in g] for a in g])
    return total / weights.sum()


def accumulated(statistic, X, weights=None, size=7):
    def blocks():
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            y = np.zeros((len(X[part]), 2))
            yield Block(X[part], y, start, None if weights is None else weights[part])

    statistic.update(blocks())
    return statistic


@in_every_metric
def test_it_is_the_mean_of_outer_products_of_differences(linear):
    model, unit = predictor(linear), np.array([1.0, 5.0])
    found = accumulated(GradientOuterProduct(model, unit), rows())
    wanted = expected(model, rows(), np.ones(N), unit)
    np.testing.assert_allclose(found.mean, wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())


def test_rows_count_as_often_as_they_weigh():
    weights = np.random.default_rng(1).integers(0, 4, N).astype(float)
    repeated = np.repeat(rows(), weights.astype(int), axis=0)
    once = accumulated(GradientOuterProduct(predictor()), rows(), weights)
    often = accumulated(GradientOuterProduct(predictor()), repeated)
    assert once.weight == weights.sum()
    assert_close(once.mean, often.mean)


@in_every_metric
def test_single_precision_is_close_to_double(linear):
    single = accumulated(GradientOuterProduct(predictor(linear, precision="single")), rows())
    double = accumulated(GradientOuterProduct(predictor(linear)), rows())
    assert single.sums.dtype == np.float64
    assert_close(single.mean, double.mean, dtype=np.float32, steps=20, size=double.mean.max())


def test_the_work_grows_with_targets():
    one, three = GradientOuterProduct(predictor(q=1)), GradientOuterProduct(predictor(q=3))
    assert three.work.flops_per_row == 3 * one.work.flops_per_row > 0


def test_a_map_of_rows_that_are_not_standardised_is_refused():
    bare = RandomFourierFeatures(Gaussian(1.0), D).draw(P)
    with pytest.raises(ParameterError, match="the map 'fourier' is not one of standardised rows"):
        GradientOuterProduct(Predictor(bare, np.ones((D, 1)), np.zeros(1)))


KERNELS = {
    "gaussian": True, "matern32": True, "matern(nu=1.01)": True, "rational-quadratic": True,
    "inverse-multiquadric": True, "cauchy": True, "periodic": True, "matern12": False,
    "matern(nu=1)": False, "laplacian": False,
}  # fmt: skip


@pytest.mark.parametrize(("kernel", "has_gradients"), KERNELS.items(), ids=list(KERNELS))
def test_only_kernels_whose_frequencies_have_a_variance_have_mean_square_gradients(
    kernel, has_gradients
):
    X = rows(60)
    model = RandomFeatureRidge(kernel, n_components=32, alpha=1.0).fit(X, X[:, 0])
    if has_gradients:
        assert (model.gradient_outer_product(X).diagonal() > 0).any()
    else:
        with pytest.raises(ParameterError, match=r"no mean square.*take permutation_importance"):
            model.gradient_outer_product(X)
