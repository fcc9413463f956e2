"""What `tables.py` fits: functions of rows and targets that return a function which predicts.

Of numbers it predicts numbers (n,); of classes, which are 0 to K - 1, their probabilities (n, K).
Each chooses what it chooses on the rows that it is given alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Prediction = Callable[[Any], Any]
    Model = Callable[[Any, Any], Prediction]

_VALIDATION = 0.15
_MOST_ROUNDS, _PATIENCE = 3000, 50
_DEPTHS, _LEAVES, _EXACT_ROWS = (4, 6, 8), (15, 31, 63), 4000


def fit(X: Any, y: Any) -> Prediction:
    import streamkern

    return streamkern.RandomFeatureRidge().fit(X, y).predict


def tune(budget: str, **options: Any) -> Model:
    def tuned(X: Any, y: Any) -> Prediction:
        import streamkern

        return streamkern.RandomFeatureRidge(**options).tune(X, y, budget=budget).predict

    return tuned


def without_metric(X: Any, y: Any) -> Prediction:
    return tune("3m", metric=np.eye(X.shape[1]))(X, y)


def without_sums(X: Any, y: Any) -> Prediction:
    from streamkern.tune import finalists

    finalists._MOST_ADDED = 0  # noqa: SLF001  in a process of its own
    return tune("3m")(X, y)


def without_more_features(X: Any, y: Any) -> Prediction:
    from streamkern.tune import budget

    budget._TIMES = ()  # noqa: SLF001
    return tune("3m")(X, y)


def linear(X: Any, y: Any) -> Prediction:
    import streamkern

    return streamkern.RandomFeatureRidge("linear", feature_map="identity").fit(X, y).predict


def exact(X: Any, y: Any) -> Prediction:
    import streamkern

    some = np.random.default_rng(0).permutation(len(X))[:_EXACT_ROWS]
    return streamkern.ExactKernelRidge("matern52", alpha="loo").fit(X[some], y[some]).predict


def boosting(X: Any, y: Any) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0).fit(X, y).predict


def boosting_tuned(X: Any, y: Any) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _boosted(HistGradientBoostingRegressor, X, y).predict


def catboost(X: Any, y: Any) -> Prediction:
    from catboost import CatBoostRegressor

    return _quiet(CatBoostRegressor).fit(X, y).predict


def catboost_tuned(X: Any, y: Any) -> Prediction:
    from catboost import CatBoostRegressor

    return _trees(CatBoostRegressor, X, y).predict


def xrfm(X: Any, y: Any) -> Prediction:
    import torch
    from xrfm import xRFM

    held = np.random.default_rng(1).random(len(X)) < _VALIDATION
    mean, deviation = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    middle, unit = y.mean(), y.std()

    def tensor(values: Any) -> Any:
        return torch.tensor(values, dtype=torch.float32)

    def rows(values: Any) -> Any:
        return tensor((values - mean) / deviation)

    model = xRFM(device="cpu", tuning_metric="mse")
    targets = tensor((y - middle) / unit)[:, None]
    here, there = ~held, held
    model.fit(rows(X[here]), targets[here], rows(X[there]), targets[there])
    return lambda values: np.asarray(model.predict(rows(values)))[:, 0] * unit + middle


def fit_classes(X: Any, y: Any) -> Prediction:
    import streamkern

    return streamkern.RandomFeatureClassifier().fit(X, y).predict_proba


def tune_classes(budget: str) -> Model:
    def tuned(X: Any, y: Any) -> Prediction:
        import streamkern

        return streamkern.RandomFeatureClassifier().tune(X, y, budget=budget).predict_proba

    return tuned


def boosting_classes(X: Any, y: Any) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba


def boosting_classes_tuned(X: Any, y: Any) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _boosted(HistGradientBoostingClassifier, X, y).predict_proba


def catboost_classes(X: Any, y: Any) -> Prediction:
    from catboost import CatBoostClassifier

    return _quiet(CatBoostClassifier).fit(X, y).predict_proba


def catboost_classes_tuned(X: Any, y: Any) -> Prediction:
    from catboost import CatBoostClassifier

    return _trees(CatBoostClassifier, X, y).predict_proba


def logistic(X: Any, y: Any) -> Prediction:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y).predict_proba
    )


REGRESSION: dict[str, Model] = {
    "fit": fit,
    "tune 1m": tune("1m"),
    "tune 3m": tune("3m"),
    "tune 5m": tune("5m"),
    "linear": linear,
    "boosting": boosting,
    "boosting tuned": boosting_tuned,
    "CatBoost": catboost,
    "CatBoost tuned": catboost_tuned,
    "xRFM": xrfm,
    "exact": exact,
}
# What each part of a search is worth.
PARTS: dict[str, Model] = {
    "standard scale": tune("3m", scale="standard"),
    "no metric": without_metric,
    "no sums": without_sums,
    "no more features": without_more_features,
}
CLASSES: dict[str, Model] = {
    "fit": fit_classes,
    "tune 1m": tune_classes("1m"),
    "tune 3m": tune_classes("3m"),
    "tune 5m": tune_classes("5m"),
    "logistic": logistic,
    "boosting": boosting_classes,
    "boosting tuned": boosting_classes_tuned,
    "CatBoost": catboost_classes,
    "CatBoost tuned": catboost_classes_tuned,
}


def _boosted(kind: Any, X: Any, y: Any) -> Any:
    """Return scikit-learn's boosting with its leaves and rounds chosen on a part of the rows."""

    def made(leaves: int, rounds: int, **stopping: Any) -> Any:
        return kind(
            max_leaf_nodes=leaves, max_iter=rounds, learning_rate=0.05, random_state=0, **stopping
        )

    early = {
        "early_stopping": True,
        "validation_fraction": _VALIDATION,
        "n_iter_no_change": _PATIENCE,
    }
    tried = [(leaves, made(leaves, _MOST_ROUNDS, **early).fit(X, y)) for leaves in _LEAVES]
    leaves, best = max(tried, key=lambda each: each[1].validation_score_.max())
    # The first score is that of no tree.
    rounds = max(int(best.validation_score_.argmax()), 1)
    return made(leaves, rounds, early_stopping=False).fit(X, y)


def _trees(kind: Any, X: Any, y: Any) -> Any:
    """Return CatBoost with its depth and rounds chosen on a part of the rows."""
    held = np.random.default_rng(1).random(len(X)) < _VALIDATION
    tried = []
    for depth in _DEPTHS:
        model = _quiet(kind, depth=depth, iterations=_MOST_ROUNDS)
        model.fit(X[~held], y[~held], eval_set=(X[held], y[held]), early_stopping_rounds=_PATIENCE)
        (error,), rate = model.get_best_score()["validation"].values(), model.learning_rate_
        chosen = {"depth": depth, "iterations": model.tree_count_, "learning_rate": rate}
        tried.append((error, depth, chosen))
    return _quiet(kind, **min(tried)[-1]).fit(X, y)


def _quiet(kind: Any, **parameters: Any) -> Any:
    return kind(
        verbose=False,
        random_seed=0,
        thread_count=os.cpu_count(),
        allow_writing_files=False,
        **parameters,
    )
