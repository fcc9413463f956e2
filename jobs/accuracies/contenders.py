"""What is fitted to a set: models of streamkern, and what a user would otherwise take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  for what follows
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, HalvingRandomSearchCV
from sklearn.pipeline import make_pipeline

import streamkern
from streamkern.kernels import kernel_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from accuracies.sets import Rows

# Rows that a grid of parameters is tried on, and that the exact kernel takes.
_SAMPLE_ROWS, _EXACT_ROWS = 8000, 5000
# Rows whose pairs tell how far features are from their kernel.
_KERNEL_ROWS = 512
_SEARCH_COMPONENTS = 1024
_ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)
_OCTAVES = 4.0 ** np.arange(-2, 3)
_BOOSTING = {
    "learning_rate": [0.03, 0.06, 0.1, 0.2],
    "max_leaf_nodes": [15, 31, 63, 127, 255],
    "min_samples_leaf": [5, 10, 20, 40],
    "l2_regularization": [0.0, 0.1, 1.0, 10.0],
    "max_features": [0.5, 0.8, 1.0],
}
_BOOSTING_TRIALS = 24


class Outcome(NamedTuple):
    """How a model did on a set.

    Attributes
    ----------
    error : float
        Root mean square on the rows held out, over sd(y).
    seconds : float
        Of all that was chosen and fitted.
    chosen : str
        In a few words.
    kernel_error : float or None
        Mean absolute difference between features' products and their kernel.
    """

    error: float
    seconds: float
    chosen: str = ""
    kernel_error: float | None = None


def outcome(name: str, rows: Rows, components: int, seed: int) -> Outcome:
    """Fit a contender: one of `OTHERS`, or MAP/KERNEL[/METRIC] of streamkern.

    A map or kernel `auto` is chosen by `tune`, as is the length scale; `learn` is a metric.
    """
    begun = time.perf_counter()
    if name in OTHERS:
        model, chosen = OTHERS[name](rows, components, seed)
        seconds = time.perf_counter() - begun
        return Outcome(rows.error(model.predict(rows.X_test)), seconds, chosen)
    feature_map, kernel, *metric = name.split("/")
    options: dict[str, Any] = {"metric": metric[0]} if metric else {}
    if kernel != "auto":
        options["kernel"] = kernel_from(kernel, {}).with_length_scale("median")
    model = streamkern.RandomFeatureRidge(
        n_components=components, feature_map=feature_map, random_state=seed, **options
    )
    model.tune(rows.X, rows.y, kernels="auto" if kernel == "auto" else [model.kernel])
    seconds = time.perf_counter() - begun
    return Outcome(
        rows.error(model.predict(rows.X_test)), seconds, _chosen(model), _kernel_error(model, rows)
    )


def _chosen(model: Any) -> str:
    report = model.report_
    words = [report.get("feature_map", model.feature_map), report["kernel"]]
    scale = report["length_scale"]
    words += [f"l={scale:.3g}"] if isinstance(scale, float) else []
    metric = report.get("metric")
    words += [f"round {metric['rounds'][metric['kept']]['number']}"] if metric else []
    return ", ".join([*words, f"alpha={model.alpha_:.2g}"])


def _kernel_error(model: Any, rows: Rows) -> float:
    some = rows.X_test[:_KERNEL_ROWS]
    features = model.feature_map_.transform(some)
    inputs = model.feature_map_.standardizer(some)
    pairs = np.triu_indices(len(some), 1)
    apart = features @ features.T - model.kernel_(inputs, inputs)
    return float(np.abs(apart[pairs]).mean())


def _some(rows: Rows, most: int, seed: int) -> Any:
    return np.random.default_rng(seed).permutation(len(rows.X))[:most]


def _approximated(make: Callable[..., Any]) -> Any:
    def fitted(rows: Rows, components: int, seed: int) -> tuple[Any, str]:
        some, gamma = _some(rows, _SAMPLE_ROWS, seed), 1.0 / rows.X.shape[1]
        few = min(components, _SEARCH_COMPONENTS)
        name = make.__name__.lower()
        grid = {f"{name}__gamma": gamma * _OCTAVES, "ridge__alpha": _ALPHAS}
        pipeline = make_pipeline(make(n_components=few, random_state=seed), Ridge())
        search = GridSearchCV(pipeline, grid, cv=3).fit(rows.X[some], rows.y[some])
        best = search.best_params_ | {f"{name}__n_components": components}
        model = pipeline.set_params(**best).fit(rows.X, rows.y)
        gamma, alpha = best[f"{name}__gamma"], best["ridge__alpha"]
        return model, f"l={(2 * gamma) ** -0.5:.3g}, alpha={alpha:.2g}"

    return fitted


def _exact(rows: Rows, components: int, seed: int) -> tuple[Any, str]:  # noqa: ARG001
    some = _some(rows, _EXACT_ROWS, seed)
    grid = {"gamma": _OCTAVES / rows.X.shape[1], "alpha": _ALPHAS}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=3).fit(rows.X[some], rows.y[some])
    scale = (2 * search.best_params_["gamma"]) ** -0.5
    return search, f"{len(some):,} rows, l={scale:.3g}, alpha={search.best_params_['alpha']:.2g}"


def _linear(rows: Rows, components: int, seed: int) -> tuple[Any, str]:  # noqa: ARG001
    return LinearRegression().fit(rows.X, rows.y), ""


def _boosted(rows: Rows, components: int, seed: int) -> tuple[Any, str]:  # noqa: ARG001
    model = HistGradientBoostingRegressor(random_state=seed)
    return model.fit(rows.X, rows.y), f"{model.n_iter_} rounds"


def _boosted_tuned(rows: Rows, components: int, seed: int) -> tuple[Any, str]:  # noqa: ARG001
    early = HistGradientBoostingRegressor(
        max_iter=2000, early_stopping=True, n_iter_no_change=30, random_state=seed
    )
    search = HalvingRandomSearchCV(
        early, _BOOSTING, n_candidates=_BOOSTING_TRIALS, min_resources=len(rows.X) // 9, cv=3,
        random_state=seed, scoring="neg_mean_squared_error",
    )  # fmt: skip
    search.fit(rows.X, rows.y)
    best, n_rounds = search.best_params_, search.best_estimator_.n_iter_
    # The tenth that told when to stop is fitted too.
    model = HistGradientBoostingRegressor(max_iter=n_rounds, random_state=seed, **best)
    words = f"{n_rounds} rounds, rate {best['learning_rate']}, {best['max_leaf_nodes']} leaves"
    return model.set_params(early_stopping=False).fit(rows.X, rows.y), words


OTHERS: dict[str, Callable[[Any, int, int], tuple[Any, str]]] = {
    "linear": _linear,
    "RBFSampler": _approximated(RBFSampler),
    "Nystroem": _approximated(Nystroem),
    "KernelRidge": _exact,
    "boosting": _boosted,
    "boosting-tuned": _boosted_tuned,
}
