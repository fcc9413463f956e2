"""Rounds of boosting are those of the textbooks, though no weight of a row is ever kept."""

import math

import numpy as np
import pytest

import streamkern
from streamkern import RandomFeatureAdaBoost, RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.extensions.classes import rounds as boosting_fit
from streamkern.extensions.classes.ensemble import ALGORITHMS
from streamkern.features.metric import metric_of_map
from streamkern.sources import ArraySource

N, P, ALPHA = 600, 2, 0.1


pytestmark = pytest.mark.usefixtures("in_this_thread", "small_shards")


def squares(K=2, n=N, seed=0):
    """Rows on a board whose squares take turns among K classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (n, P))
    noisy = rng.random(n) < 0.05
    codes = np.where(noisy, rng.integers(0, K, n), X.astype(int).sum(axis=1) % K)
    return X, np.array(["ash", "beech", "oak", "yew"])[codes]


def base(**options):
    options = {"n_components": 16, "alpha": ALPHA, "precision": "double"} | options
    return RandomFeatureRidge(streamkern.Gaussian(0.5), **options)


def boosted(algorithm="gentle", n_estimators=3, ridge=None, **options):
    options |= {"algorithm": algorithm, "n_estimators": n_estimators}
    return RandomFeatureAdaBoost(ridge or base(), **options)


def ridge_scores(features, targets, weights):
    """Weighted ridge with an intercept that is not penalised, solved as a larger system."""
    D = features.shape[1]
    inputs = np.column_stack([features, np.ones(len(features))])
    penalties = ALPHA * np.diag([*np.ones(D), 0.0])
    system = (inputs.T * weights) @ inputs + penalties
    return inputs @ np.linalg.solve(system, (inputs.T * weights) @ targets)


def naive_votes(algorithm, scores, codes, weights, rate):
    """What one round adds to the votes, and its step, by the formulas of the papers."""
    K = scores.shape[1]
    if algorithm == "gentle":
        votes = scores - scores.mean(axis=1)[:, None]
        return rate * votes, rate
    if algorithm == "real":
        p = np.minimum(np.maximum((1 + scores) / 2, 0.01), 0.99)
        return rate * (np.log(p) - np.log(p).mean(axis=1)[:, None]), rate
    chosen = scores.argmax(axis=1)
    e = weights[chosen != codes].sum() / weights.sum()
    step = rate * (math.log((1 - e) / e) + math.log(K - 1))
    return step * (np.eye(K)[chosen] - 1 / K), step


def naive(model, X, y, sample_weight):
    """AdaBoost in memory, with a weight kept for every row, on the maps of a model."""
    algorithm, rate = model.algorithm, model.learning_rate
    classes, codes = np.unique(y, return_inverse=True)
    K, rows = len(classes), np.arange(len(y))
    own = np.ones(len(y)) if sample_weight is None else sample_weight
    weights, votes, rounds = own.copy(), np.zeros((len(y), K)), []
    for each in model.ensemble_.rounds:
        features = each.predictor.feature_map.transform(X)
        if K == 2:
            scores = ridge_scores(features, np.where(codes == 1, 1.0, -1.0), weights)
            scores = np.column_stack([-scores, scores])
        else:
            scores = ridge_scores(
                features, np.where(codes[:, None] == range(K), 1.0, -1.0), weights
            )
        error = weights[scores.argmax(axis=1) != codes].sum() / weights.sum()
        added, step = naive_votes(algorithm, scores, codes, weights, rate)
        votes = votes + added
        weights = weights * np.exp(-added[rows, codes])
        weights *= own.sum() / weights.sum()
        bound = np.average(np.exp(-votes[rows, codes]), weights=own) if K == 2 else np.nan
        wrong = np.average(votes.argmax(axis=1) != codes, weights=own)
        rounds.append((error, step, wrong, bound))
    return votes, rounds


WAYS = {
    "gentle": (2, 1.0, None),
    "real": (2, 0.5, None),
    "discrete": (2, 1.0, None),
    "gentle, three classes, weights": (3, 1.0, "some"),
    "real, three classes": (3, 1.0, None),
    "discrete, three classes, weights": (3, 0.5, "some"),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_rounds_are_those_of_adaboost_with_a_weight_for_every_row(way):
    K, rate, weighted = WAYS[way]
    algorithm = way.split(",")[0]
    X, y = squares(K)
    sample_weight = np.random.default_rng(1).uniform(0, 2, N) if weighted else None
    model = boosted(algorithm, learning_rate=rate).fit(X, y, sample_weight)
    votes, rounds = naive(model, X, y, sample_weight)
    names = ("weighted_error", "step", "train_error", "train_error_bound")
    found = np.array([[each[name] for name in names] for each in model.report_["rounds"]], float)
    assert len(found) == 3
    np.testing.assert_allclose(found, rounds, atol=1e-8)
    np.testing.assert_allclose(model.ensemble_.votes(X), votes, atol=1e-8)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_error_is_at_most_its_bound_which_is_what_rounds_shrink_weights_by(algorithm):
    X, y = squares()
    model = boosted(algorithm).fit(X, y)
    for found in (model.staged_evaluate(X, y), model.staged_evaluate(X, y[::-1])):
        errors, bounds = np.array(found["errors"]), np.array(found["error_bounds"])
        assert ((errors > 0) & (errors <= bounds) & (bounds <= 1)).all()
    rounds = model.report_["rounds"]
    assert model.staged_evaluate(X, y)["errors"] == [each["train_error"] for each in rounds]
    shrinkage = [each["shrinkage"] for each in rounds]
    np.testing.assert_allclose(
        [each["train_error_bound"] for each in rounds], np.cumprod(shrinkage)
    )
    if algorithm == "discrete":
        e = np.array([each["weighted_error"] for each in rounds])
        np.testing.assert_allclose(shrinkage, 2 * np.sqrt(e * (1 - e)))
        few = boosted("discrete", n_estimators=2).fit(X, y)
        assert few.ensemble_.rounds[1].step == model.ensemble_.rounds[1].step
        assert 1 - few.score(X, y) == pytest.approx(rounds[1]["train_error"])


def test_a_stopped_fit_goes_on_in_the_round_where_it_was(tmp_path, monkeypatch):
    X, y = squares()
    expected = boosted().fit(X, y)
    solve, n_solved = boosting_fit.solve, []

    def stopping(*arguments, **named):
        n_solved.append(1)
        if len(n_solved) == 3:
            raise KeyboardInterrupt
        return solve(*arguments, **named)

    monkeypatch.setattr(boosting_fit, "solve", stopping)
    with pytest.raises(KeyboardInterrupt):
        boosted().fit(X, y, checkpoint=tmp_path / "saved")
    found = boosted().fit(X, y, checkpoint=tmp_path / "saved")
    # Of the survey, three rounds of moments and two of errors.
    n_shards = len(ArraySource(X, np.zeros(N)).shards(200, 100))
    assert found.report_["resumed_shards"] == 6 * n_shards
    assert (found.decision_function(X) == expected.decision_function(X)).all()


def test_a_round_that_gets_no_row_wrong_is_the_last():
    X = np.linspace(-1, 1, 200)[:, None]
    model = boosted("discrete", ridge=base(n_components=64)).fit(X, X[:, 0] > 0.02)
    assert model.report_["stopped"] == f"round {len(model.ensemble_)} gets no row wrong"
    assert len(model.ensemble_) < 3
    assert np.isfinite(model.decision_function(X)).all()
    assert model.report_["train_error"] == 0


@pytest.mark.parametrize("algorithm", ["gentle", "discrete"])
def test_a_round_no_better_than_chance_is_left_out(algorithm):
    # Every row comes with both labels, one of which weighs more: after a round, neither does.
    X = np.repeat(squares(n=100)[0], 2, axis=0)
    y = np.tile(["ash", "beech"], 100)
    model = boosted("discrete").fit(X, y, np.tile([2.0, 1.0], 100))
    assert model.report_["stopped"] == "round 2 does no better than chance on its weights"
    assert len(model.ensemble_) == len(model.report_["rounds"]) == 1
    with pytest.raises(DataError, match="round 1 does no better than chance"):
        boosted(algorithm).fit(X, y)


@pytest.mark.parametrize("options", [{"feature_map": "nystroem"}, {"metric": "learn:1"}])
def test_rounds_have_maps_of_their_own_with_a_kernel_and_metric_in_common(options):
    X, y = squares(3)
    model = boosted(n_estimators=2, ridge=base(**options)).fit(X, y)
    first, second = (each.predictor.feature_map for each in model.ensemble_.rounds)
    assert (first.standardizer.mean == second.standardizer.mean).all()
    assert not np.allclose(first.transform(X), second.transform(X))
    if "metric" in options:
        assert (metric_of_map(first) == metric_of_map(second)).all()
        assert len(model.report_["metric"]["rounds"]) == 2
    report = model.report_
    assert report["rounds"][1]["shrinkage"] < 1
    # Of more than two classes there is no bound.
    bounds = [each["train_error_bound"] for each in (report, *report["rounds"])]
    assert bounds == [None] * 3
    assert model.staged_evaluate(X, y)["error_bounds"] is None
