"""What would be wrong without a sign: each is right, or is told."""

import numpy as np
import pandas
import pytest

import streamkern
from streamkern import Gaussian, Matern, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import DataError, InsufficientMemoryError, ParameterError

N = 400


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_a_search_without_an_intercept_sees_the_targets_as_they_are(random):
    X = random.normal(size=(300, 4))
    y = 20 + X @ [1, 2, -1, 0.5] + 0.1 * random.normal(size=300)
    model = RandomFeatureRidge(n_components=128, fit_intercept=False).tune(
        X, y, kernels="auto", maps="auto"
    )
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("scale", ["robust", "quantile", "robust-grouped"])
def test_weights_are_repeats_where_quartiles_are_between_two_values(random, scale):
    X = np.column_stack([random.normal(size=N), np.arange(N) < N / 4])
    y = np.sin(X[:, 0]) + X[:, 1]
    model = RandomFeatureRidge(Gaussian(1.0), alpha=1.0, n_components=64, scale=scale)
    model.set_params(precision="double")
    weighted = model.fit(X, y, sample_weight=np.full(N, 2.0)).predict(X)
    repeated = model.fit(np.vstack([X, X]), np.append(y, y)).predict(X)
    assert np.allclose(weighted, repeated, atol=1e-12)


@pytest.mark.parametrize("scale", ["robust", "quantile"])
def test_a_value_however_far_out_is_no_median_and_infinity_no_number(random, scale):
    X = random.normal(size=(N, 2))
    y = X[:, 0] + random.normal(size=N)
    model = RandomFeatureRidge("gaussian", n_components=64, scale=scale).fit(X, y)
    rows = np.array([[np.inf, 0.0], [0.0, -np.inf], [np.nan, 0.0]])
    assert np.isnan(model.feature_map_.standardizer(rows)).any(axis=1).all()
    near, far, farther = model.predict([[0.0, 0.0], [1e150, 0.0], [np.finfo(float).max, 0.0]])
    assert far == pytest.approx(farther, rel=1e-6)  # the same bound, rounded
    assert abs(far - near) > 0.1


def test_rows_that_are_skipped_do_not_count_for_a_choice(random):
    X = random.normal(size=(N, 2))
    X[3:] = np.nan
    model = RandomFeatureRidge(n_components=16, on_bad_rows="skip", alpha=1.0)
    report = model.fit(X, np.arange(N)).report_
    assert (report["rows"], report["kernel"], report["scale"]) == (3, "gaussian", "standard")
    assert model.set_params(feature_map="sorf").fit(X, np.arange(N)).report_["rows"] == 3


def test_what_cannot_be_right_is_refused(random):
    X, y = random.normal(size=(N, 2)), random.normal(size=N)
    with pytest.raises(DataError, match="mean weight is 1e-43"):
        RandomFeatureRidge(n_components=8).fit(X, y, sample_weight=np.full(N, 1e-43))


def test_digits_of_features_are_no_prior(random):
    X = np.column_stack([random.integers(1990, 2024, N), random.normal(size=(N, 3))])
    y = 0.1 * (X[:, 0] - 2000) + X[:, 1] + 0.3 * random.normal(size=N)
    model = RandomFeatureRidge("linear", feature_map="identity", standardize=False, alpha=0.01)
    made = [
        model.set_params(solver=solver).fit(X, y).predict(X, return_std=True)[1]
        for solver in ("direct", "cg")
    ]
    assert np.allclose(*made, rtol=1e-3)


@pytest.mark.parametrize("alphas", [np.logspace(-8, 8, 100), np.logspace(-3, 3, 100)])
def test_a_fine_grid_of_penalties_is_gone_down_as_far(random, alphas):
    X = random.normal(size=(1500, 3))
    y = np.sin(3 * X[:, 0]) + random.normal(size=1500)
    model = RandomFeatureRidge("gaussian", n_components=128, alphas=alphas, precision="double")
    direct, cg = (model.set_params(solver=each).fit(X, y).alpha_ for each in ("direct", "cg"))
    assert cg == direct


def test_without_an_intercept_the_bound_is_in_deviations_of_the_targets(random):
    X = random.normal(size=(N, 3))
    y = np.sin(2 * X[:, 0]) + 0.2 * random.normal(size=N) + 1000.0
    both = np.column_stack([y, np.full(N, 5.0)])
    model = RandomFeatureRidge("matern12", n_components=200, feature_map="nystroem", alpha=0.1)
    model.set_params(fit_intercept=False, precision="double")
    direct, cg = (model.set_params(solver=s).fit(X, both).predict(X) for s in ("direct", "cg"))
    assert (np.sqrt(np.mean((direct - cg) ** 2, axis=0)) < 1e-5 * np.array([y.std(), 5.0])).all()


def test_a_model_by_gradients_is_a_template_of_its_features_or_of_nothing(random):
    X = random.uniform(size=(N, 2))
    y = np.cos(15 * X[:, 1]) * np.sin(10 * X[:, 0])
    model = RandomFeatureRidge(Matern(0.5, nu=1.5), n_components=200, alpha=0.1, solver="cg")
    model.set_params(feature_map="grid").fit(X, X[:, 0])
    again = RandomFeatureRidge(Matern(0.5, nu=1.5), n_components=200, alpha=0.1)
    assert again.set_params(feature_map="grid").fit(X, y, like=model).report_["n_components"] == 200
    model.set_params(feature_map="nystroem").fit(X, X[:, 0])
    with pytest.raises(ParameterError, match="conjugate gradients solved"):
        again.set_params(feature_map="nystroem").fit(X, y, like=model)
    with pytest.raises(ParameterError, match="knows few directions"):
        streamkern.sparsify(model, 10)


def test_a_grid_is_laid_for_all_rows_and_told_of_rows_beyond_it(random):
    X = random.uniform(0, 1, (60_000, 1))
    X[-20:] += 3.0  # hardly any of which is in a sample
    model = RandomFeatureRidge(Matern(0.5, nu=1.5), feature_map="grid", n_components=100, alpha=1.0)
    model.fit(X, np.where(X[:, 0] > 2, 5.0, 0.0))
    assert model.predict([[0.5]])[0] == pytest.approx(0.0, abs=0.1)
    assert model.predict([[3.5]])[0] > 2.0
    first = RandomFeatureRidge(Matern(0.5, nu=1.5), feature_map="grid", n_components=100, alpha=1.0)
    first.partial_fit(X[:1000], X[:1000, 0])
    again = RandomFeatureRidge(alpha=1.0).fit(X[:1000] + 50.0, X[:1000, 0], like=first)
    assert again.predict([[50.5]])[0] == pytest.approx(0.5, abs=0.1)
    with pytest.warns(UserWarning, match="beyond the period"):
        first.partial_fit(X[:1000] + 50.0, X[:1000, 0])


def test_a_grid_of_too_many_points_is_refused_before_it_is_made(random):
    X = random.uniform(size=(100, 2))
    model = RandomFeatureRidge(Matern(0.6), feature_map="grid", n_components=32, alpha=0.1)
    with pytest.raises(InsufficientMemoryError):
        model.fit(X, X[:, 0]).predict_grid((10**13, 2))


def test_few_rows_that_come_again_and_again_go_to_all_folds_whatever_their_order(random):
    X, n_first = random.normal(size=(80, 3)), 20
    y = X[:, 0] > 0
    alphas, sizes = [], []
    for order in (np.arange(n_first, 80), np.arange(n_first, 80)[::-1]):
        model = RandomFeatureClassifier("gaussian", n_components=16).partial_fit(X[:20], y[:20])
        for i in order:
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        sizes.append([part.n_rows for part in model.moments_.folds.parts.values()])
        alphas.append(model.alpha_)
    assert min(sizes[0]) > 8
    assert sizes[0] == sizes[1]
    assert alphas[0] == pytest.approx(alphas[1])


def test_moments_of_other_classes_weights_or_targets_do_not_merge(random):
    X = random.normal(size=(N, 3))
    options = {"kernel": Gaussian(1.0), "n_components": 16, "standardize": False}

    def moments(weights):
        model = RandomFeatureClassifier(class_weight=weights, **options)
        return model.moments(X[: N // 2], X[: N // 2, 0] > 0)

    with pytest.raises(DataError, match="weigh the same and the second have classes that weigh"):
        moments(None).merge(moments({True: 5.0}))
    targets = pandas.DataFrame({"u": X[:, 0], "v": 100 + X[:, 1]})
    model = RandomFeatureRidge(**options).partial_fit(X, targets)
    for call in (model.partial_fit, model.evaluate):
        with pytest.raises(DataError, match="targets must be those of the model"):
            call(X + 1.0, targets[["v", "u"]])


def test_few_rows_have_no_more_degrees_of_freedom_than_there_are(random):
    X = random.normal(size=(50, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * random.normal(size=50)
    model = RandomFeatureRidge(Gaussian(1.0), n_components=256, alpha=[1e-6]).fit(X, y)
    assert 49 < model.report_["effective_dof"] < 50
    assert np.isfinite(model.predict(X[:1], return_std=True)[1]).all()


@pytest.mark.parametrize("given", ["m.h5", None])
def test_what_is_no_moments_is_told(random, given):
    model = RandomFeatureRidge("gaussian", n_components=16)
    moments = model.moments(random.normal(size=(N, 2)), random.normal(size=N))
    for call in (model.solve, moments.merge):
        with pytest.raises(ParameterError, match="moments are what an estimator's `moments` or"):
            call(given)


def test_weights_of_labels_in_bytes_are_saved(random, tmp_path):
    X = random.normal(size=(N, 2))
    model = RandomFeatureClassifier("gaussian", n_components=16, class_weight={b"a": 2.0})
    model.fit(X, np.where(X[:, 0] > 0, b"a", b"b")).save(tmp_path / "m.h5")
    assert streamkern.load(tmp_path / "m.h5").class_weight == {b"a": 2.0}


def test_units_of_targets_and_numbers_of_rows_are_checked(random):
    X = random.normal(size=(N, 2))
    model = RandomFeatureRidge("gaussian", n_components=16).fit(X, X[:, 0])
    for unit in ([1, 1, 1], 1.0, [0.0], [-1.0], [np.nan]):
        with pytest.raises(ParameterError, match="target_unit must be positive numbers of shape"):
            model.gradient_outer_product(X, target_unit=unit)
    for number in (-1, 2.5, None):
        with pytest.raises(ParameterError, match="n_largest must be a whole number"):
            model.diagnose(X, X[:, 0], n_largest=number)
