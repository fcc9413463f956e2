"""Kernel and length scale of a grid are chosen from the sums of one pass."""

import numpy as np
import pytest

from streamkern import Gaussian, Matern, RandomFeatureRidge, load
from streamkern.features import GridFourierFeatures
from streamkern.sources import Block
from streamkern.statistics import ToeplitzMoments

# Of the usual kernel, whose errors go on falling.
pytestmark = pytest.mark.filterwarnings("ignore:the error still falls")

N = 6000


def waves(kernel, X, seed=0, L=3000):
    """Return values of a random function of that kernel at rows."""
    rng = np.random.default_rng(seed)
    frequencies = rng.standard_normal((L, X.shape[1])) / kernel.length_scale
    if isinstance(kernel, Matern):
        frequencies /= np.sqrt(rng.chisquare(2 * kernel.nu, (L, 1)) / (2 * kernel.nu))
    angles = X @ frequencies.T + rng.uniform(0, 2 * np.pi, L)
    return np.sqrt(2 / L) * np.cos(angles) @ rng.standard_normal(L)


def field(kernel, p=2, noise=0.1):
    X = np.random.default_rng(1).uniform(0, np.sqrt(12), (N + 1000, p))
    f = waves(kernel, X)
    return X, f, f + noise * np.random.default_rng(2).standard_normal(len(X))


def test_sums_of_one_kernel_are_those_of_another():
    X, _, y = field(Gaussian(0.5))
    X, y = X[:500], y[:500, None]
    drawn = GridFourierFeatures(Matern(0.7, nu=0.5), 201).draw(2, X)
    other = drawn.of_kernel(Gaussian(0.4))
    assert np.array_equal(other.frequencies, drawn.frequencies)
    made, expected = (ToeplitzMoments(each, 1, precision="double") for each in (drawn, other))
    for moments in (made, expected):
        moments.update([Block(X, y, 0)])
    found = made.of_amplitudes(other).with_gram().centred()
    wanted = expected.with_gram().centred()
    np.testing.assert_allclose(found.gram.dense(), wanted.gram.dense(), atol=1e-10)
    np.testing.assert_allclose(found.cross, wanted.cross, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "p"), [(Gaussian(0.5), 2), (Matern(0.6, nu=1.5), 1), (Matern(0.4, nu=0.5), 2)]
)
def test_the_chosen_kernel_does_as_well_as_the_true_one(kernel, p):
    X, f, y = field(kernel, p)
    options = {"feature_map": "grid", "n_components": 400}
    chosen = RandomFeatureRidge(**options).fit(X[:N], y[:N])
    true = RandomFeatureRidge(kernel, **options).fit(X[:N], y[:N])
    usual = RandomFeatureRidge(Gaussian(), **options).fit(X[:N], y[:N])
    rmse = [np.sqrt(np.mean((m.predict(X[N:]) - f[N:]) ** 2)) for m in (chosen, true, usual)]
    assert rmse[0] < 1.1 * rmse[1]
    assert rmse[0] < 0.7 * rmse[2]
    report = chosen.report_
    assert report["passes"] == 3
    assert report["kernel"] in report["kernel_errors"]
    assert set(report["kernel_errors"]) >= {"matern12", "matern32"}
    assert report["seconds"]["kernels"] > 0


def test_a_field_that_is_not_resolved_gets_a_rough_kernel_and_stays_near_in_gaps():
    X, f, y = field(Matern(0.15, nu=1.5))
    gap = ((X - np.sqrt(3)) ** 2).sum(axis=1) < 0.5
    model = RandomFeatureRidge(feature_map="grid", n_components=300).fit(X[~gap], y[~gap])
    assert model.report_["kernel"] == "matern12"
    assert set(model.report_["kernel_errors"]) == {"matern12", "matern32"}
    assert "more components would resolve more" in model.report_["note"]
    assert model.alpha_ == pytest.approx(model.model_.feature_map.left_out)
    # Without the least penalty it is off by many deviations of the field there.
    assert np.sqrt(np.mean((model.predict(X[gap]) - f[gap]) ** 2)) < 2 * f.std()


@pytest.mark.parametrize("options", [{}, {"alpha": "gcv"}, {"solver": "cg"}])
def test_no_penalty_below_what_the_grid_leaves_out_is_tried_unless_it_is_given(options):
    X, _, y = field(Matern(0.15, nu=1.5))
    options = {"feature_map": "grid", "n_components": 300} | options
    model = RandomFeatureRidge(Matern(0.15, nu=1.5), **options).fit(X, y)
    assert min(model.report_["alpha_curve"]["alphas"]) >= model.model_.feature_map.left_out * 0.999
    given = RandomFeatureRidge(Matern(0.15, nu=1.5), **options | {"alpha": 1e-3}).fit(X, y)
    assert given.alpha_ == 1e-3


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_weights_of_any_size_give_the_same_choice(solver):
    X, _, y = field(Matern(0.15, nu=1.5))
    X, y = X[:2000], y[:2000]
    options = {"feature_map": "grid", "n_components": 200, "solver": solver}
    plain = RandomFeatureRidge(**options).fit(X, y)
    for weight in (1 / 800, 1000.0):
        model = RandomFeatureRidge(**options).fit(X, y, sample_weight=np.full(len(y), weight))
        assert model.kernel_.name == plain.kernel_.name
        assert model.kernel_.length_scale == pytest.approx(plain.kernel_.length_scale)
        assert model.alpha_ == pytest.approx(weight * plain.alpha_, rel=1e-3)
        assert "more components would resolve more" in model.report_["note"]
        np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-2)


def test_the_scale_of_inputs_is_chosen_beside_the_kernel():
    X, _, y = field(Gaussian(0.5))
    report = (
        RandomFeatureRidge(feature_map="grid", n_components=100, scale="auto").fit(X, y).report_
    )
    assert set(report["scale_errors"]) == {"standard", "robust", "common"}
    assert set(report["kernel_errors"]) >= {"matern12", "matern32"}
    assert report["passes"] == 3


def test_the_choice_is_the_same_again_and_in_files(tmp_path):
    X, _, y = field(Gaussian(0.5))
    options = {"feature_map": "grid", "n_components": 100}
    one, two = (RandomFeatureRidge(**options).fit(X, y) for _ in range(2))
    assert np.array_equal(one.predict(X), two.predict(X))
    one.save(tmp_path / "model.h5")
    again = load(tmp_path / "model.h5")
    assert again.kernel_ == one.kernel_
    assert again.kernel == "auto"
    more = RandomFeatureRidge().fit(X, y, like=tmp_path / "model.h5")
    assert more.kernel_ == one.kernel_


@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"alpha": "gcv"}])
def test_without_folds_no_kernel_is_chosen(options):
    X, _, y = field(Gaussian(0.5))
    model = RandomFeatureRidge(feature_map="grid", n_components=64, **options).fit(X, y)
    assert model.report_["kernel"] == "gaussian"
    assert model.report_["passes"] == 2
