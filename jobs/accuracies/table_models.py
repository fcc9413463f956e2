"""What `tables.py` fits: functions of rows and targets that return a function which predicts.

Of numbers it predicts numbers (n,); of classes, which are 0 to K - 1, their probabilities (n, K).
Each chooses what it chooses on the rows that it is given alone.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Prediction = Callable[[Any], Any]
    Model = Callable[[Any, Any], Prediction]

_VALIDATION = 0.15
_MOST_ROUNDS, _PATIENCE = 3000, 50
_DEPTHS, _LEAVES, _EXACT_ROWS = (4, 6, 8), (15, 31, 63), 4000
# Levels of a category that trees tell apart, beside all others as one.
_MOST_LEVELS = 200


def ours(name: str, budget: str | None = None, **options: Any) -> Model:
    """Return the fit, or the search within a budget, of an estimator of streamkern."""

    def fitted(X: Any, y: Any) -> Prediction:
        import streamkern

        model = getattr(streamkern, name)(**options)
        model = model.fit(X, y) if budget is None else model.tune(X, y, budget=budget)
        return _prediction(model)

    return fitted


def without(part: str, budget: str) -> Model:
    """Return a search within a budget that lacks one of its parts."""

    def fitted(X: Any, y: Any) -> Prediction:
        from streamkern.extensions.search import budget as sizes
        from streamkern.extensions.search import finalists, metric_beginnings

        options: dict[str, Any] = {}
        match part:  # private names: this process fits nothing else
            case "scales":
                options = {"scale": "standard"}
            case "metric":  # and with it sums, and linear ridge
                options = {"metric": np.eye(X.shape[1])}
            case "weights":
                metric_beginnings._DESCENT_TARGETS = 0  # noqa: SLF001
            case "sums":
                finalists._MOST_ADDED = 0  # noqa: SLF001
            case "more features":
                sizes._TIMES = ()  # noqa: SLF001
        return ours("RandomFeatureRidge", budget, **options)(X, y)

    return fitted


def logistic(X: Any, y: Any) -> Prediction:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _prediction(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y))


def exact(X: Any, y: Any) -> Prediction:
    import streamkern

    some = np.random.default_rng(0).permutation(len(X))[:_EXACT_ROWS]
    return streamkern.ExactKernelRidge("matern52", alpha="loo").fit(X[some], y[some]).predict


def boosting(name: str, *, tuned: bool = False) -> Model:
    """Return scikit-learn's boosting, with leaves and rounds chosen on a part of the rows."""

    def fitted(X: Any, y: Any) -> Prediction:
        from sklearn import ensemble

        kind, encoded = getattr(ensemble, name), categories(X)
        X = encoded(X)
        if not tuned:
            return _prediction(kind(random_state=0).fit(X, y), encoded)

        def made(leaves: int, rounds: int, **stopping: Any) -> Any:
            return kind(
                max_leaf_nodes=leaves,
                max_iter=rounds,
                learning_rate=0.05,
                random_state=0,
                **stopping,
            ).fit(X, y)

        early = {"early_stopping": True, "validation_fraction": _VALIDATION}
        early["n_iter_no_change"] = _PATIENCE
        tried = [(leaves, made(leaves, _MOST_ROUNDS, **early)) for leaves in _LEAVES]
        leaves, best = max(tried, key=lambda each: each[1].validation_score_.max())
        # The first score is that of no tree.
        rounds = max(int(best.validation_score_.argmax()), 1)
        return _prediction(made(leaves, rounds, early_stopping=False), encoded)

    return fitted


def catboost(name: str, *, tuned: bool = False) -> Model:
    """Return CatBoost, with depth and rounds chosen on a part of the rows."""

    def fitted(X: Any, y: Any) -> Prediction:
        import catboost

        encoded = categories(X)
        X = encoded(X)
        named = [] if isinstance(X, np.ndarray) else [*X.select_dtypes("category").columns]

        def made(**parameters: Any) -> Any:
            quiet = {"verbose": False, "random_seed": 0, "allow_writing_files": False}
            quiet["cat_features"] = named or None
            return getattr(catboost, name)(thread_count=os.cpu_count(), **quiet, **parameters)

        if not tuned:
            return _prediction(made().fit(X, y), encoded)
        held = np.random.default_rng(1).random(len(X)) < _VALIDATION
        stopping = {"eval_set": (X[held], y[held]), "early_stopping_rounds": _PATIENCE}
        tried = []
        for depth in _DEPTHS:
            model = made(depth=depth, iterations=_MOST_ROUNDS).fit(X[~held], y[~held], **stopping)
            (error,) = model.get_best_score()["validation"].values()
            chosen = {"depth": depth, "iterations": model.tree_count_}
            tried.append((error, depth, chosen | {"learning_rate": model.learning_rate_}))
        return _prediction(made(**min(tried)[-1]).fit(X, y), encoded)

    return fitted


def categories(X: Any) -> Callable[[Any], Any]:
    """Return a function that makes categories of the texts of rows like these, if they are a table.

    What is missing is one, and so are all but the commonest.
    """
    if isinstance(X, np.ndarray):
        return lambda rows: rows
    import pandas as pd

    kinds = {}
    for name, column in X.select_dtypes(exclude="number").items():
        commonest = column.fillna("missing").astype(str).value_counts().index[:_MOST_LEVELS]
        kinds[name] = pd.CategoricalDtype([*dict.fromkeys([*commonest, "all others"])])

    def encoded(rows: Any) -> Any:
        said = {name: rows[name].fillna("missing").astype(str) for name in kinds}
        known = {name: each.where(each.isin(kinds[name].categories)) for name, each in said.items()}
        made = {name: known[name].fillna("all others").astype(kinds[name]) for name in kinds}
        return rows.assign(**made)

    return encoded


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


REGRESSION: dict[str, Model] = {
    "fit": ours("RandomFeatureRidge"),
    "fit landmarks": ours("RandomFeatureRidge", feature_map="nystroem"),
    "fit auto map": ours("RandomFeatureRidge", feature_map="auto"),
    "tune 1m": ours("RandomFeatureRidge", "1m"),
    "tune 3m": ours("RandomFeatureRidge", "3m"),
    "tune 5m": ours("RandomFeatureRidge", "5m"),
    "linear": ours("RandomFeatureRidge", kernel="linear", feature_map="identity"),
    "boosting": boosting("HistGradientBoostingRegressor"),
    "boosting tuned": boosting("HistGradientBoostingRegressor", tuned=True),
    "CatBoost": catboost("CatBoostRegressor"),
    "CatBoost tuned": catboost("CatBoostRegressor", tuned=True),
    "xRFM": xrfm,
    "exact": exact,
}
PARTS = ("scales", "metric", "weights", "sums", "more features")
CLASSES: dict[str, Model] = {
    "fit": ours("RandomFeatureClassifier"),
    "tune 1m": ours("RandomFeatureClassifier", "1m"),
    "tune 3m": ours("RandomFeatureClassifier", "3m"),
    "tune 5m": ours("RandomFeatureClassifier", "5m"),
    "logistic": logistic,
    "boosting": boosting("HistGradientBoostingClassifier"),
    "boosting tuned": boosting("HistGradientBoostingClassifier", tuned=True),
    "CatBoost": catboost("CatBoostClassifier"),
    "CatBoost tuned": catboost("CatBoostClassifier", tuned=True),
}


def _prediction(model: Any, encoded: Any = None) -> Prediction:
    """Return what predicts numbers, or of a classifier the probabilities of classes."""
    prediction: Prediction = getattr(model, "predict_proba", model.predict)
    return prediction if encoded is None else lambda rows: prediction(encoded(rows))


def model_of(name: str, *, classify: bool) -> Model:
    """Return a model by its name, which may also be that of a search without a part."""
    found = re.fullmatch(f"tune ([0-9]+[smh]) without ({'|'.join(PARTS)})", name)
    if found and not classify:
        return without(part=found[2], budget=found[1])
    known = CLASSES if classify else REGRESSION
    if name not in known:
        raise SystemExit(
            f"a contender must be one of {', '.join(known)}, or of numbers 'tune 1m without PART' "
            f"with one of {', '.join(PARTS)}, not {name!r}; name one of these."
        )
    return known[name]
