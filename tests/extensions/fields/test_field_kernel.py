"""Kernel and length scales of a field are those of most evidence in windows of it."""

from functools import cache

import numpy as np
import pytest

from streamkern import Gaussian, Matern, RandomFeatureRidge, load
from streamkern.features import innermost
from streamkern.models.report_rows import fit_rows

# Of the usual kernel, whose errors go on falling.
pytestmark = pytest.mark.filterwarnings("ignore:the error still falls")

N = 6000


def waves(kernel, X, seed=0, L=1000):
    """Return values of a random function of that kernel at rows."""
    rng = np.random.default_rng(seed)
    frequencies = rng.standard_normal((L, X.shape[1])) / kernel.length_scale
    if isinstance(kernel, Matern):
        frequencies /= np.sqrt(rng.chisquare(2 * kernel.nu, (L, 1)) / (2 * kernel.nu))
    angles = X @ frequencies.T + rng.uniform(0, 2 * np.pi, L)
    return np.sqrt(2 / L) * np.cos(angles) @ rng.standard_normal(L)


@cache
def field(kernel, p=2, noise=0.1):
    X = np.random.default_rng(1).uniform(0, np.sqrt(12), (N + 1000, p))
    f = waves(kernel, X)
    return X, f, f + noise * np.random.default_rng(2).standard_normal(len(X))


@pytest.fixture
def small_windows(monkeypatch):
    """Few rows choose the kernel, where it does not matter which."""
    monkeypatch.setattr("streamkern.extensions.fields.field_kernel._ROWS", 100)


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
    assert rmse[0] < 0.7 * rmse[2]
    report = chosen.report_
    assert report["passes"] == 3
    evidence = report["kernel_evidence"]
    assert list(evidence) == ["matern12", "matern32", "matern52", "gaussian"]
    assert report["kernel"] == max(evidence, key=evidence.get)
    assert rmse[0] < 1.02 * rmse[1]
    assert report["seconds"]["kernels"] > 0


@pytest.mark.slow
def test_a_field_that_is_not_resolved_stays_near_in_gaps():
    X, f, y = field(Matern(0.15, nu=1.5))
    gap = ((X - np.sqrt(3)) ** 2).sum(axis=1) < 0.5
    model = RandomFeatureRidge(feature_map="grid", n_components=300).fit(X[~gap], y[~gap])
    assert model.report_["kernel"] == "matern32"
    assert "more components would resolve more" in model.report_["note"]
    assert model.alpha_ == pytest.approx(innermost(model.model_.feature_map).left_out)
    # Without the least penalty it is off by many deviations of the field there.
    assert np.sqrt(np.mean((model.predict(X[gap]) - f[gap]) ** 2)) < 1.5 * f.std()


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_length_scales_are_along_the_directions_of_a_field(solver, tmp_path):
    X, _, _ = field(Gaussian(0.5))
    way = np.array([0.8, 0.6])
    f = waves(Matern(1.0, nu=1.5), X @ np.column_stack([way, [-0.6, 0.8]]) / [0.3, 3.0])
    y = f + 0.1 * np.random.default_rng(2).standard_normal(len(X))
    options = {"feature_map": "grid", "n_components": 1200, "solver": solver}
    model = RandomFeatureRidge(**options).fit(X[:N], y[:N])
    metric = model.report_["metric"]
    np.testing.assert_allclose(metric["directions"][0], way, atol=0.05)
    assert metric["eigenvalues"][0] > 30 * metric["eigenvalues"][1]
    if solver == "cg":  # which is faster
        along = RandomFeatureRidge(Matern((0.4, 0.5), nu=1.5), **options).fit(X[:N], y[:N])
        errors = [np.sqrt(np.mean((m.predict(X[N:]) - f[N:]) ** 2)) for m in (model, along)]
        assert errors[0] < 0.8 * errors[1]
    (rows,) = (text for name, text in fit_rows(model.report_) if name == "length scales")
    assert "along +0.8" in rows
    model.save(tmp_path / "model.h5")
    made = load(tmp_path / "model.h5").predict_grid((5, 4))
    places = np.stack(np.meshgrid(*made.axes.values(), indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(made.y_pred.ravel(), model.predict(places), atol=1e-5)
    again = RandomFeatureRidge(**options | {"solver": "direct"}).fit(X[N:], y[N:], like=model)
    assert again.report_["metric"] == metric


@pytest.mark.slow
def test_a_field_that_is_alike_in_all_directions_is_not_turned():
    for seed, kernel in enumerate([Gaussian(0.5), Matern(0.6, nu=1.5), Matern(0.6, nu=0.5)]):
        X, _, _ = field(Gaussian(0.5))
        y = waves(kernel, X, seed) + 0.1 * np.random.default_rng(2).standard_normal(len(X))
        model = RandomFeatureRidge(feature_map="grid", n_components=100, alpha=0.1).fit(X, y)
        assert model.report_["metric"] is None


@pytest.mark.usefixtures("small_windows")
@pytest.mark.filterwarnings("ignore:1 constant column of X left out")
def test_beside_a_constant_input_there_is_one_length_scale_which_others_take(tmp_path):
    X, _, y = field(Matern(0.5, nu=0.5))
    X = np.insert(X, 1, 7.0, axis=1)
    options = {"feature_map": "grid", "n_components": 100}
    model = RandomFeatureRidge(**options).fit(X, y)
    assert isinstance(model.report_["length_scale"], float)
    again = RandomFeatureRidge(model.kernel_, **options).fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=0.02)
    like = RandomFeatureRidge().fit(X, y, like=model)
    np.testing.assert_allclose(like.predict(X), model.predict(X), atol=1e-3)
    smooth = np.sin(X[:, 0])
    assert np.isfinite(RandomFeatureRidge(precision="auto", **options).fit(X, smooth).alpha_)


@pytest.mark.usefixtures("small_windows")
def test_a_constant_target_says_nothing():
    X, _, y = field(Matern(0.5, nu=0.5))
    options = {"feature_map": "grid", "n_components": 100}
    alone = RandomFeatureRidge(**options).fit(X, y)
    beside = RandomFeatureRidge(**options).fit(X, np.column_stack([np.full(len(y), 0.1), y]))
    assert beside.kernel_ == alone.kernel_


@pytest.mark.usefixtures("small_windows")
@pytest.mark.filterwarnings("ignore:1 constant column of X left out")
def test_an_input_that_is_constant_in_the_sample_and_few_features_or_rows_are_enough():
    X, _, y = map(np.copy, field(Matern(0.5, nu=0.5)))
    X[:, 1] = 1.0
    X[13, 1] = 2.0
    for D in (1, 64):
        model = RandomFeatureRidge(feature_map="grid", n_components=D).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
    X[3:60] = np.nan
    few = RandomFeatureRidge(feature_map="grid", n_components=8, on_bad_rows="skip", alpha=1.0)
    assert few.fit(X[:60], y[:60]).report_["passes"] == 2


def test_noise_alone_is_not_taken_for_a_field():
    X, _, _ = field(Gaussian(0.5))
    y = np.random.default_rng(5).standard_normal((len(X), 2))
    model = RandomFeatureRidge(feature_map="grid", n_components=300).fit(X[:N], y[:N])
    assert np.abs(model.predict(X[N:])).max() < 0.3


@pytest.mark.parametrize("options", [{}, {"alpha": "gcv"}, {"solver": "cg"}])
def test_no_penalty_below_what_the_grid_leaves_out_is_tried_unless_it_is_given(options):
    X, _, y = field(Matern(0.15, nu=1.5))
    options = {"feature_map": "grid", "n_components": 300} | options
    model = RandomFeatureRidge(Matern(0.15, nu=1.5), **options).fit(X, y)
    assert (
        min(model.report_["alpha_curve"]["alphas"])
        >= innermost(model.model_.feature_map).left_out * 0.999
    )
    given = RandomFeatureRidge(Matern(0.15, nu=1.5), **options | {"alpha": 1e-3}).fit(X, y)
    assert given.alpha_ == 1e-3


@pytest.mark.parametrize(("solver", "weight"), [("direct", 1 / 800), ("cg", 1000.0)])
@pytest.mark.usefixtures("small_windows")
def test_weights_of_any_size_give_the_same_choice(solver, weight):
    X, _, y = field(Matern(0.15, nu=1.5))
    X, y = X[:2000], y[:2000]
    options = {"feature_map": "grid", "n_components": 200, "solver": solver}
    plain = RandomFeatureRidge(**options).fit(X, y)
    model = RandomFeatureRidge(**options).fit(X, y, sample_weight=np.full(len(y), weight))
    assert model.kernel_.name == plain.kernel_.name
    assert model.kernel_.length_scale == pytest.approx(plain.kernel_.length_scale, rel=0.01)
    assert model.alpha_ == pytest.approx(weight * plain.alpha_, rel=0.01)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-2)
