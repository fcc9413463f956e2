"""Fits of other losses against scikit-learn's on the same features, and what must not matter."""

import os
import signal
import threading
import time
from functools import cache, partial

import dask
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from hearing import When
from sklearn import linear_model
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, log_loss, mean_pinball_loss

import streamkern
from streamkern import RandomFeatureRegressor, RandomFeatureRidge
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.extensions.losses import newton_steps
from streamkern.runtime.events import observed

N, D = 3000, 64
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 3))
ETA = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
TARGETS = {
    "logistic": (RNG.random(N) < 1 / (1 + np.exp(-2 * ETA))) * 1.0,
    "poisson": RNG.poisson(np.exp(ETA)) * 1.0,
    "gamma": RNG.gamma(2.0, np.exp(ETA) / 2),
    "tweedie:1.5": np.where(RNG.random(N) < 0.3, 0.0, RNG.gamma(2.0, np.exp(ETA))),
    "huber": ETA + 0.3 * RNG.standard_t(1.5, size=N),
    "quantile:0.2": ETA + 0.3 * RNG.standard_t(3, size=N),
}
WEIGHTS = RNG.integers(1, 4, N).astype(float)
RandomFeatureClassifier = partial(streamkern.RandomFeatureClassifier, "gaussian")


def model(loss, **how):
    given = {"n_components": D, "kernel": "gaussian", "precision": "double", **how}
    return RandomFeatureRegressor(loss, **given)


@cache
def fitted_to_all(loss):
    """The model of all rows, which no test changes."""
    return model(loss).fit(X, TARGETS.get(loss, TARGETS["quantile:0.2"]))


def of_sklearn(loss, alpha, weight):
    """Return the estimator of scikit-learn with this objective, which needs more iterations."""
    newton = {"tol": 1e-12, "max_iter": 1000, "solver": "newton-cholesky"}
    return {
        "logistic": linear_model.LogisticRegression(C=1 / alpha, **newton),
        "poisson": linear_model.PoissonRegressor(alpha=alpha / weight, **newton),
        "gamma": linear_model.GammaRegressor(alpha=alpha / weight, **newton),
        "tweedie:1.5": linear_model.TweedieRegressor(
            power=1.5, alpha=alpha / weight, link="log", **newton
        ),
        "huber": linear_model.HuberRegressor(alpha=alpha, epsilon=1.35, tol=1e-8, max_iter=10_000),
    }[loss]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", [name for name in TARGETS if name != "quantile:0.2"])
def test_the_objective_is_that_of_scikit_learn(loss, weights):
    y, s = TARGETS[loss], np.ones(N) if weights is None else weights
    mine = fitted_to_all(loss) if weights is None else model(loss).fit(X, y, weights)
    alpha, features = mine.alpha_, mine.transform(X)
    theirs = of_sklearn(loss, alpha, s.sum()).fit(features, y, s)
    scale = {"scale": theirs.scale_} if loss == "huber" else {}

    def objective(coef, intercept, **scale):
        own = mine.model_.losses[0]
        own = type(own)(**{**vars(own), **scale})
        return s @ own.values(y, features @ coef + intercept) + alpha / 2 * coef @ coef

    found = objective(mine.coef_, mine.intercept_)
    expected = objective(theirs.coef_.ravel(), float(np.ravel(theirs.intercept_)[0]), **scale)
    assert found <= expected * (1 + 1e-6)
    assert mine.report_["passes"] <= 10  # that of columns and that of losses are two
    assert mine.report_["objective"] == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_pinball_losses_are_those_of_scikit_learn(level):
    y = TARGETS["quantile:0.2"][:800]
    few = {"n_components": 16, "alpha": 1e-4}
    mine = model(f"quantile:{level}", **few).fit(X[:800], y)
    features = mine.transform(X[:800])
    theirs = linear_model.QuantileRegressor(quantile=level, alpha=0.0).fit(features, y)
    best = mean_pinball_loss(y, theirs.predict(features), alpha=level)
    assert mean_pinball_loss(y, mine.predict(X[:800]), alpha=level) <= 1.005 * best


def test_errors_are_those_of_scikit_learn():
    train, test = slice(2000), slice(2000, None)
    for loss, score in {
        "poisson": lambda y, p: d2_tweedie_score(y, p, power=1),
        "gamma": lambda y, p: d2_tweedie_score(y, p, power=2),
    }.items():
        y = TARGETS[loss]
        fitted = model(loss).fit(X[train], y[train])
        found = fitted.evaluate(X[test], y[test])
        assert found["d2"] == pytest.approx(score(y[test], fitted.predict(X[test])), abs=1e-9)
    y = TARGETS["logistic"]
    fitted = model("logistic").fit(X[train], y[train])
    found = fitted.evaluate(X[test], y[test])
    assert found["log_loss"] == pytest.approx(log_loss(y[test], fitted.predict(X[test])))
    y = TARGETS["quantile:0.2"]
    fitted = model("quantile:0.2").fit(X[train], y[train])
    found, predicted = fitted.evaluate(X[test], y[test]), fitted.predict(X[test])
    assert found["coverage"] == pytest.approx(np.mean(y[test] <= predicted))
    assert found["d2"] == pytest.approx(d2_pinball_score(y[test], predicted, alpha=0.2), abs=0.01)


def test_held_out_losses_are_near_those_of_refits():
    for loss in ("poisson", "logistic", "gamma"):
        y = TARGETS[loss]
        whole = model(loss, fold_by="blocks").fit(X, y)
        name = {"logistic": "log_loss"}.get(loss, "deviance")
        parts = np.array_split(np.arange(N), 5)
        lost = 0.0
        for part in parts:
            others = np.setdiff1d(np.arange(N), part)
            one = model(loss, alpha=whole.alpha_).fit(X[others], y[others])
            lost += len(part) * one.evaluate(X[part], y[part])[name]
        assert whole.report_[f"cv_{name}"] == pytest.approx(lost / N, rel=0.02)


def test_quantiles_do_not_cross_and_hold_their_share():
    fitted = fitted_to_all("quantile:0.05,0.5,0.95")
    predicted = fitted.predict(X)
    assert predicted.shape == (N, 3)
    assert (np.diff(predicted, axis=1) >= 0).all()
    np.testing.assert_allclose(fitted.report_["cv_coverage"], [0.05, 0.5, 0.95], atol=0.02)


def test_standard_deviations_are_those_of_new_targets():
    for loss in ("poisson", "gamma"):
        y = TARGETS[loss]
        fitted = model(loss).fit(X[:2000], y[:2000])
        mean, deviation = fitted.predict(X[2000:], return_std=True)
        assert np.mean(((y[2000:] - mean) / deviation) ** 2) == pytest.approx(1.0, abs=0.2)
    with pytest.raises(ParameterError, match="quantile:Q,Q"):
        model("huber").fit(X, TARGETS["huber"]).predict(X, return_std=True)


@pytest.mark.parametrize("loss", ["gamma", "quantile:0.05,0.5,0.95", "huber"])
def test_models_come_back_from_files(loss, tmp_path):
    fitted = fitted_to_all(loss)
    fitted.save(tmp_path / "model.h5")
    again = streamkern.load(tmp_path / "model.h5")
    assert again.loss == fitted.model_.loss
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.evaluate(X, TARGETS["gamma"]) == fitted.evaluate(X, TARGETS["gamma"])


def test_a_fit_goes_on_from_a_model():
    y = TARGETS["poisson"]
    first = fitted_to_all("poisson")
    more = np.vstack([X, X[:50]]), np.append(y, y[:50])
    again = model("poisson").fit(*more, like=first)
    assert again.report_["passes"] <= 5
    fresh = model("poisson", alpha=again.alpha_).fit(*more)
    assert again.report_["deviance"] == pytest.approx(fresh.report_["deviance"], rel=0.02)
    other = model("gamma").fit(X, y + 1, like=first)  # the features alone
    assert other.feature_map_.inner is first.feature_map_.inner


@pytest.mark.parametrize("feature_map", ["nystroem", "orthogonal"])
def test_features_that_were_tuned_by_squares_serve_another_loss(feature_map):
    y = TARGETS["poisson"] * 100.0  # far from constant
    squares = RandomFeatureRidge(n_components=D, feature_map=feature_map, kernel="laplacian")
    squares.fit(X, np.log(y + 1.0))
    found = model("poisson").fit(X, y, like=squares)
    assert found.report_["passes"] <= 8
    assert found.score(X, y) > 0.4
    labels = np.digitize(ETA + 0.5 * RNG.normal(size=N), [-0.5, 0.5])
    kinds = RandomFeatureClassifier(n_components=D, loss="multinomial", feature_map=feature_map)
    assert kinds.fit(X, labels).score(X, labels) > 0.7


@pytest.mark.parametrize("asked", [{"alpha": [0.1, 1.0, 10.0]}, {"one_standard_error": True}])
def test_penalties_of_classes_are_chosen_together(asked):
    labels = np.digitize(ETA + 0.5 * RNG.normal(size=N), [-0.5, 0.5])
    how = {"n_components": D, "loss": "multinomial"}
    found = RandomFeatureClassifier(**how, **asked).fit(X, labels)
    assert found.report_["weight"] == N
    if "alpha" in asked:
        assert found.alpha_ in asked["alpha"]
    else:
        assert found.alpha_ > RandomFeatureClassifier(**how).fit(X, labels).alpha_


def test_a_model_of_other_units_or_another_loss_gives_its_features_alone():
    y = TARGETS["quantile:0.2"]
    first = model("quantile:0.9").fit(X, y)
    again = model("quantile:0.9").fit(X, 0.01 * y, like=first)
    fresh = model("quantile:0.9").fit(X, 0.01 * y)
    assert again.report_["pinball"] < 1.02 * fresh.report_["pinball"]
    labels = np.digitize(ETA, [-0.5, 0.5])
    classes = RandomFeatureClassifier(n_components=D, loss="logistic", alpha=0.5)
    for other in (first, fitted_to_all("logistic")):
        assert classes.fit(X, labels, like=other).score(X, labels) > 0.8


def test_a_warm_start_takes_few_passes():
    labels = TARGETS["logistic"] > 0
    classes = RandomFeatureClassifier(n_components=D, loss="logistic").fit(X, labels)
    again = RandomFeatureClassifier(n_components=D, loss="logistic").fit(X, labels, like=classes)
    assert again.report_["passes"] <= 6
    assert again.report_["log_loss"] == pytest.approx(classes.report_["log_loss"], rel=0.01)


def test_classes_go_on_from_a_model():
    labels = np.digitize(ETA + 0.5 * RNG.normal(size=N), [-0.5, 0.5])
    how = {"n_components": D, "loss": "multinomial", "alpha": 0.5, "precision": "double"}
    first = RandomFeatureClassifier(**how).fit(X, labels)
    again = RandomFeatureClassifier(**how).fit(X, labels, like=first)
    assert again.report_["passes"] <= 2 + 3 * 2
    assert again.report_["objective"] <= first.report_["objective"] * (1 + 1e-6)
    assert again.predict_proba(X) == pytest.approx(first.predict_proba(X), abs=1e-3)


def fitted_bits(loss):
    fitted = model(loss, precision="single").fit(X, TARGETS[loss])
    return fitted.coef_.tobytes(), fitted.report_["passes"]


@pytest.mark.cluster
@pytest.mark.usefixtures("small_shards")
def test_the_same_bits_of_any_workers():
    expected = fitted_bits("poisson")
    for n_workers in (1, 3):
        with (
            LocalCluster(n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            assert fitted_bits("poisson") == expected


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("loss", ["poisson", "multinomial"])
def test_workers_that_are_killed_in_steps_change_no_bit(loss):
    labels = np.digitize(ETA, [-0.5, 0.5])
    fits = {
        "poisson": lambda: model("poisson").fit(X, TARGETS["poisson"]),
        "multinomial": lambda: RandomFeatureClassifier(
            n_components=D, loss="multinomial", alpha=0.5
        ).fit(X, labels),
    }
    expected, deaths = fits[loss]().coef_.tobytes(), []

    def kill(client):
        (alive, *_) = client.run(os.getpid, on_error="ignore").values()
        os.kill(alive, signal.SIGKILL)
        deaths.append(alive)

    patient = {"distributed.deploy.lost-worker-timeout": "5 minutes"}
    with dask.config.set(patient), streamkern.connect(n_workers=2) as client:
        threads = []

        def begin_to_kill():  # in another thread than the client's own
            threads.append(threading.Thread(target=kill, args=[client]))
            threads[-1].start()

        whens = [When(begin_to_kill, after, "moments") for after in (5, 50, 95)]
        with observed(lambda event: [when(event) for when in whens]):
            found = fits[loss]()
        for thread in threads:
            thread.join()
    assert len(deaths) == 3
    assert found.coef_.tobytes() == expected


@pytest.mark.usefixtures("small_shards")
def test_a_stopped_fit_goes_on_in_the_step_where_it_was(tmp_path, monkeypatch):
    expected = model("huber").fit(X, TARGETS["huber"])
    n_steps = expected.report_["passes"] - 2
    assert n_steps >= 5
    read, n_read = newton_steps.sum_features, []

    def stopping(context, *given):
        if context.checkpoint is not None:
            n_read.append(1)
            if len(n_read) == 5:
                raise KeyboardInterrupt
        return read(context, *given)

    monkeypatch.setattr(newton_steps, "sum_features", stopping)
    with pytest.raises(KeyboardInterrupt):
        model("huber").fit(X, TARGETS["huber"], checkpoint=tmp_path / "saved")
    found = model("huber").fit(X, TARGETS["huber"], checkpoint=tmp_path / "saved")
    assert found.report_["resumed_shards"] > 4
    assert (found.coef_ == expected.coef_).all()


def test_sums_of_a_loss_are_not_kept():
    fitted = fitted_to_all("poisson")
    for call in (fitted.moments, fitted.update, fitted.forget):
        with pytest.raises(ParameterError, match="weighted by the coefficients"):
            call(X, TARGETS["poisson"])
    with pytest.raises(ParameterError, match="weighted by the coefficients"):
        fitted.solve(streamkern.RandomFeatureRidge(n_components=D).moments(X, TARGETS["poisson"]))
    classes = RandomFeatureClassifier(n_components=D, loss="logistic")
    with pytest.raises(ParameterError, match="weighted by the coefficients"):
        classes.moments(X, TARGETS["logistic"] > 0)
    for each, y in ((fitted, TARGETS["poisson"]), (classes, TARGETS["logistic"] > 0)):
        with pytest.raises(ParameterError, match="tune chooses by squared errors"):
            each.tune(X, y)


@pytest.mark.parametrize(
    "asked",
    [{"alpha": "gcv"}, {"n_components": "auto"}, {"precision": "int8"}, {"feature_map": "grid"}],
)
def test_what_reweighted_passes_do_not_have_is_refused(asked):
    with pytest.raises(ParameterError, match="weigh anew in every pass"):
        model("poisson", **asked).fit(X, TARGETS["poisson"])


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:.*may fall by")
def test_hard_targets_are_fitted_or_refused_in_a_sentence():
    few = X[:200]
    apart = (few[:, 0] > 0) * 1.0
    found = model("logistic").fit(few, apart)
    assert np.isfinite(found.coef_).all()
    assert ((found.predict(few) > 0.5) == apart).all()
    low = model("quantile:0.001").fit(few, TARGETS["quantile:0.2"][:200])
    assert np.mean(TARGETS["quantile:0.2"][:200] <= low.predict(few)) <= 0.05
    for loss, y in {"poisson": np.zeros(200), "logistic": np.ones(200)}.items():
        with pytest.raises(DataError, match=r"nothing to learn|all targets are"):
            model(loss).fit(few, y)
    far = model("poisson", precision="single").fit(few, np.append(1e6, np.ones(199)))
    assert np.isfinite(far.predict(few)).all()
    with pytest.raises(ParameterError, match="one target"):
        model("poisson").fit(X, np.column_stack([TARGETS["poisson"]] * 2))
    with pytest.raises(DataError, match="infinite"):
        model("poisson").fit(few, np.append(np.inf, TARGETS["poisson"][1:200]))


def test_classes_by_the_logistic_loss():
    labels = np.where(TARGETS["logistic"] > 0, "yes", "no")
    squares = RandomFeatureClassifier(n_components=D).fit(X[:2000], labels[:2000])
    found = RandomFeatureClassifier(n_components=D, loss="logistic").fit(X[:2000], labels[:2000])
    scores = model("logistic", precision="single")
    scores = scores.fit(X[:2000], TARGETS["logistic"][:2000])
    np.testing.assert_allclose(found.predict_proba(X)[:, 1], scores.predict(X), atol=0.02)
    errors = [each.evaluate(X[2000:], labels[2000:])["log_loss"] for each in (found, squares)]
    assert errors[0] < errors[1] + 0.01
    with pytest.raises(ParameterError, match="log-odds"):
        RandomFeatureClassifier(loss="logistic", calibration="isotonic").fit(X, labels)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_objective_of_several_classes_is_that_of_scikit_learn(weights):
    labels = np.digitize(ETA + 0.5 * RNG.normal(size=N), [-1.5, -0.5, 0.5, 1.2])
    s = np.ones(N) if weights is None else weights
    how = {"n_components": D, "precision": "double", "alpha": 0.5}
    mine = RandomFeatureClassifier(loss="multinomial", **how).fit(X, labels, weights)
    features = mine.transform(X)
    theirs = linear_model.LogisticRegression(C=1 / 0.5, tol=1e-10, max_iter=10_000)
    theirs.fit(features, labels, s)

    def objective(coef, intercept):
        eta = features @ coef + intercept
        lost = np.logaddexp.reduce(eta, axis=1) - eta[np.arange(N), labels]
        return s @ lost + 0.25 * np.sum(coef**2)

    found = objective(mine.coef_, mine.intercept_)
    assert found <= objective(theirs.coef_.T, theirs.intercept_) * (1 + 1e-6)
    assert mine.report_["objective"] == pytest.approx(found, rel=1e-9)
    assert mine.report_["passes"] <= 2 + 5 * 8
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(features), atol=2e-3)
    lost = log_loss(labels, mine.predict_proba(X), sample_weight=weights)
    assert mine.report_["log_loss"] == pytest.approx(lost)
    assert mine.report_["log_loss"] < mine.report_["cv_log_loss"] < 1.1 * lost


def test_several_classes_by_the_log_loss(tmp_path):
    labels = np.digitize(ETA + 0.5 * RNG.normal(size=N), [-0.5, 0.5])
    found = RandomFeatureClassifier(n_components=D, loss="logistic").fit(X[:2000], labels[:2000])
    squares = RandomFeatureClassifier(n_components=D).fit(X[:2000], labels[:2000])
    p = found.predict_proba(X[2000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(labels[2000:], p) < log_loss(labels[2000:], squares.predict_proba(X[2000:]))
    found.save(tmp_path / "classes.h5")
    again = streamkern.load(tmp_path / "classes.h5")
    assert again.loss == "logistic"
    assert (again.predict_proba(X[2000:]) == p).all()


def test_a_fit_that_does_not_end_says_so(monkeypatch):
    monkeypatch.setattr("streamkern.extensions.losses.reweighted_fit._CYCLES", 1)
    with pytest.warns(StreamkernWarning, match="may fall by"):
        model("quantile:0.5").fit(X, TARGETS["quantile:0.2"])


def test_a_fit_whose_last_step_is_cut_back_is_a_model_of_these_sums(monkeypatch):
    expected = fitted_to_all("gamma").report_
    usual, n_steps = newton_steps.Steps._objectives, 2

    def worse(steps, losses):
        return usual(steps, losses) + np.array([0, 0, 0, 0, 1e9]) * (len(steps.reports) == n_steps)

    monkeypatch.setattr(newton_steps.Steps, "_objectives", worse)
    monkeypatch.setattr("streamkern.extensions.losses.reweighted_fit._CYCLES", n_steps)
    with pytest.warns(StreamkernWarning, match="may fall by"):
        found = model("gamma").fit(X, TARGETS["gamma"])
    assert found.report_["cv_deviance"] == pytest.approx(expected["cv_deviance"], rel=0.1)
    means, deviations = found.predict(X, return_std=True)
    assert (deviations > 0.5 * means).all()  # of this distribution, 0.71 of the mean


@pytest.mark.parametrize("make", [RandomFeatureRegressor, streamkern.RandomFeatureClassifier])
def test_the_plan_knows_that_a_fit_begins_on_a_sample_and_solves_folds(make):
    how = {"alpha": 1.0, "n_components": 512}
    losing = make(loss="logistic", **how).fit(X, TARGETS["logistic"]).report_
    plain = RandomFeatureRidge(**how).fit(X, TARGETS["logistic"]).report_
    sums = 8 * 512 * (512 + 512) / 2
    assert losing["projected_worker_bytes"] > plain["projected_worker_bytes"] + 4 * sums


def test_seconds_add_up_to_those_of_the_fit():
    fitted_to_all("poisson")  # what is imported when it is first used
    begun = time.perf_counter()
    seconds = model("quantile:0.2,0.8").fit(X, TARGETS["quantile:0.2"]).report_["seconds"]
    whole = time.perf_counter() - begun
    parts = [spent for name, spent in seconds.items() if name != "total"]
    assert min(parts) >= 0
    assert 0.5 * whole < sum(parts) <= seconds["total"] < whole


def test_inputs_matter_by_the_part_of_the_loss_that_is_explained():
    fitted = fitted_to_all("poisson")
    found = streamkern.permutation_importance(fitted, X, TARGETS["poisson"])["importances_mean"]
    assert ((found > 0) & (found < 3)).all()
    assert fitted.support(X[:5]).min() > 0.01


def test_what_cannot_be_is_refused_of_rows_that_are_judged():
    fitted = fitted_to_all("poisson")
    with pytest.raises(DataError, match="of at least 0"):
        fitted.evaluate(X, -TARGETS["poisson"])
    assert fitted.evaluate(X[:50], np.ones(50))["d2"] == 0.0


def test_a_range_of_targets_does_not_change_errors_within_it():
    y = TARGETS["poisson"]
    plain, ranged = fitted_to_all("poisson"), model("poisson", target_range=(0, None)).fit(X, y)
    assert ranged.report_["cv_d2"] == plain.report_["cv_d2"]


@pytest.mark.parametrize(
    "asked", [{"one_standard_error": True}, {"feature_map": "identity"}, {"kernel": "laplacian"}]
)
def test_other_choices_go_with_losses(asked):
    given = {"feature_map": "orthogonal", "kernel": "auto"} | asked
    assert model("poisson", **given).fit(X, TARGETS["poisson"]).score(X, TARGETS["poisson"]) > 0


def test_what_predicts_folds_is_kept_if_asked_and_no_sums_are():
    for each in (model("poisson"), RandomFeatureClassifier(loss="logistic")):
        for keep in (False, True):
            ridge = each.fit(X, TARGETS["logistic"], keep_moments=keep).model_.ridge
            assert ridge.moments is None
            assert (ridge.unseen is not None) == keep
