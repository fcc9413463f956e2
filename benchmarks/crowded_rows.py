"""Rows that crowd, drawn by hand: python benchmarks/crowded_rows.py [CASE ...] [--write FILE].

Fields seen along dense tracks with wide gaps, a series with holes, one to be predicted ahead,
groups with offsets of their own, one input beyond its range.  Each is fitted as it comes, with
folds by rows, and by a search.  Errors are said by cross-validation, and had between neighbours and
in gaps, against the noiseless truth, beside the mean, boosting, kriging from 30 neighbours and
exact Gaussian process regression from 3,000 rows.  Intervals of 90% are counted on targets with
noise.  Of `classes` errors are shares of wrong signs, beside those of the commoner class.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from streamkern import Matern, RandomFeatureClassifier, RandomFeatureRidge

NOISE, N_TEST, SIZE = 0.2, 4000, {"n_components": 2048}


class Case(NamedTuple):
    X: Any
    y: Any
    among: Any  # rows to predict that lie among these, and their truth
    truth_among: Any
    apart: Any  # and where no rows are
    truth_apart: Any


def field(nu: float | None, p: int, rng: np.random.Generator) -> Callable[[Any], Any]:
    """Return a random function of length scale 1: of Matern covariance, or Cauchy frequencies."""
    m = 4000
    w = rng.standard_normal((m, p)) if nu else rng.standard_cauchy((m, p)) / 2.0
    w /= np.sqrt(rng.chisquare(2 * nu, m) / (2 * nu))[:, None] if nu else 1.0
    phases, amplitudes = rng.uniform(0.0, 2.0 * np.pi, m), rng.standard_normal(m) * np.sqrt(2 / m)

    def value(X: Any) -> Any:
        parts = np.array_split(X, max(len(X) // 4000, 1))
        return np.concatenate([np.cos(part @ w.T + phases) @ amplitudes for part in parts])

    return value


def tracks(nu: float | None, gap: float, n_tracks: int, n: int, *, shuffled: bool = False) -> Case:
    rng = np.random.default_rng(0)
    truth, step = field(nu, 2, rng), 0.02
    number = np.repeat(np.arange(n_tracks), n)
    X = np.c_[np.tile(np.arange(n) * step, n_tracks), number * gap]
    X += 0.01 * rng.standard_normal(X.shape)
    y = truth(X) + NOISE * rng.standard_normal(len(X))
    between = rng.integers(0, n_tracks - 1, N_TEST) + rng.uniform(0.25, 0.75, N_TEST)
    apart = np.c_[rng.uniform(0, n * step, N_TEST), between * gap]
    among = (
        X[rng.integers(0, len(X), N_TEST)] + np.c_[rng.uniform(-step, step, N_TEST), [0] * N_TEST]
    )
    order = rng.permutation(len(X)) if shuffled else np.arange(len(X))
    return Case(X[order], y[order], among, truth(among), apart, truth(apart))


def series(*, ahead: bool) -> Case:
    rng = np.random.default_rng(0)

    def truth(t: Any) -> Any:
        if ahead:
            return 0.01 * t + np.sin(2 * np.pi * t / 7) + 0.6 * np.sin(2 * np.pi * t / 52 + 1)
        return np.sin(0.7 * t) + 0.5 * np.sin(3.1 * t) + 0.02 * t

    times, some = np.sort(rng.uniform(0.0, 75.0, 40_000)), rng.uniform(0.0, 75.0, 8 * N_TEST)
    t, apart = times[times % 25 < 19], some[some % 25 >= 19][:N_TEST]
    if ahead:
        t, apart = 2.0 * times, 150.0 + rng.uniform(0.0, 15.0, N_TEST)
    among = rng.choice(t, N_TEST) + rng.uniform(-0.002, 0.002, N_TEST)
    y = truth(t) + NOISE * rng.standard_normal(len(t))
    return Case(t[:, None], y, among[:, None], truth(among), apart[:, None], truth(apart))


def groups(n_groups: int = 40, n: int = 500) -> Case:
    rng = np.random.default_rng(0)
    of_rows, spread = field(2.5, 6, rng), np.array([0.1] * 4 + [1.0] * 2)

    def drawn(g: int, m: int) -> tuple[Any, Any]:
        centres = rng.standard_normal((g, 6)) * [1, 1, 1, 1, 0.15, 0.15]
        offsets, k = 0.8 * rng.standard_normal(g), np.repeat(np.arange(g), m)
        X = centres[k] + rng.standard_normal((len(k), 6)) * spread
        return X, of_rows(X / 3.0) + offsets[k]

    X, truth = drawn(n_groups, n + 100)
    is_test = np.arange(len(X)) % (n + 100) >= n
    apart = drawn(200, 20)
    y = (truth + NOISE * rng.standard_normal(len(X)))[~is_test]
    return Case(X[~is_test], y, X[is_test], truth[is_test], *apart)


def beyond(n: int = 20_000) -> Case:
    rng = np.random.default_rng(0)

    def truth(X: Any) -> Any:
        return np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * np.cos(7 * X[:, 2] * X[:, 0])

    X, among, apart = (rng.uniform(size=(m, 3)) for m in (n, N_TEST, N_TEST))
    apart[:, 0] += 1.0
    y = truth(X) + NOISE * rng.standard_normal(n)
    return Case(X, y, among, truth(among), apart, truth(apart))


class Kriging:
    """Gaussian process regression from 30 neighbours, Matern 3/2 of the true length scale."""

    def __init__(self, case: Case) -> None:
        self.tree, self.y, self.kernel = cKDTree(case.X), case.y, Matern(length_scale=1.0, nu=1.5)

    def predict(self, X: Any) -> Any:
        mean, found = self.y.mean(), np.empty(len(X))
        for i, near in enumerate(self.tree.query(X, k=30)[1]):
            own = self.tree.data[near]
            gram = self.kernel(own, own) + NOISE**2 * np.eye(len(own))
            found[i] = mean + self.kernel(X[i : i + 1], own)[0] @ np.linalg.solve(
                gram, self.y[near] - mean
            )
        return found


class Classes:
    """The sign of the targets, by a classifier: errors are then shares of wrong signs."""

    def __init__(self, case: Case) -> None:
        self.model = RandomFeatureClassifier(**SIZE).fit(case.X, case.y > 0.0)
        self.report_ = self.model.report_ | {"cv_rmse": 1.0 - self.model.report_["cv_accuracy"]}
        self.predict = self.model.predict


def exact(case: Case) -> GaussianProcessRegressor:
    """Fit length scales and noise of Matern 3/2 to 500 rows, and predict from 3,000."""
    some = np.random.default_rng(0).permutation(len(case.X))[:3000]
    X, y, scales = case.X[some], case.y[some], case.X.std(axis=0) / 4.0
    kernel = kernels.ConstantKernel() * kernels.Matern(scales, nu=1.5) + kernels.WhiteKernel(0.1)
    fitted = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[:500], y[:500])
    return GaussianProcessRegressor(fitted.kernel_, optimizer=None, normalize_y=True).fit(X, y)


CASES: dict[str, Callable[[], Case]] = {
    "Cauchy, gaps of 2": lambda: tracks(None, 2.0, 20, 2500),
    "Matern 1/2, gaps of 2": lambda: tracks(0.5, 2.0, 20, 2500),
    "Matern 1/2, gaps of 10": lambda: tracks(0.5, 10.0, 10, 5000),
    "Matern 3/2, gaps of 6": lambda: tracks(1.5, 6.0, 20, 2500),
    "Matern 3/2, gaps of 6, shuffled": lambda: tracks(1.5, 6.0, 20, 2500, shuffled=True),
    "Matern 3/2, gaps of 30": lambda: tracks(1.5, 30.0, 10, 5000),
    "a series with holes": lambda: series(ahead=False),
    "a series ahead": lambda: series(ahead=True),
    "groups": groups,
    "beyond one input": beyond,
}
MODELS: dict[str, Callable[[Case], Any]] = {
    "fold_by rows": lambda case: RandomFeatureRidge(**SIZE, fold_by="rows").fit(case.X, case.y),
    "fit": lambda case: RandomFeatureRidge(**SIZE).fit(case.X, case.y),
    "fit double": lambda case: RandomFeatureRidge(**SIZE, precision="double").fit(case.X, case.y),
    **{
        f"tune {budget}": lambda case, budget=budget: RandomFeatureRidge(**SIZE).tune(
            case.X, case.y, budget=budget
        )
        for budget in ("1m", "5m")
    },
    **{
        f"map {name}": lambda case, name=name: RandomFeatureRidge(**SIZE, feature_map=name).fit(
            case.X, case.y
        )
        for name in ("grid", "iid", "sorf", "nystroem")
    },
    "classes": Classes,
    "exact": exact,
    "boosting": lambda case: HistGradientBoostingRegressor().fit(case.X, case.y),
    "kriging": Kriging,
}


def measured(case: Case, model: str) -> dict[str, Any]:
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model](case)
    report = getattr(fitted, "report_", {})

    of_classes = model == "classes"
    mean = (case.y > 0.0).mean() > 0.5 if of_classes else case.y.mean()

    def off(predicted: Any, truth: Any) -> float:
        if of_classes:
            return float(np.mean(predicted != (truth > 0.0)))
        return float(np.sqrt(np.mean(np.square(predicted - truth))))

    def error(X: Any, truth: Any) -> float:
        return off(fitted.predict(X), truth)

    def covered(X: Any, truth: Any) -> float | None:
        if not hasattr(fitted, "report_") or of_classes or report.get("feature_map") == "grid":
            return None
        y = truth + NOISE * np.random.default_rng(1).standard_normal(len(truth))
        low, high = fitted.predict(X, interval=0.9)[1].T
        return float(np.mean((low <= y) & (y <= high)))

    return {
        "said": report.get("cv_rmse"),
        "near": report.get("crowding", {}).get("near"),
        "among": error(case.among, case.truth_among),
        "apart": error(case.apart, case.truth_apart),
        "mean": off(mean, case.truth_apart),
        "covered_among": covered(case.among, case.truth_among),
        "covered_apart": covered(case.apart, case.truth_apart),
        "folds": report.get("fold_by"),
        "map": report.get("feature_map"),
        "seconds": time.perf_counter() - begun,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=[*CASES])
    parser.add_argument("--models", default="fold_by rows,fit,tune 1m,boosting,kriging")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--components", type=int, default=2048, help="features of models")
    options = parser.parse_args()
    SIZE["n_components"] = options.components
    for name in options.cases:
        case = CASES[name]()
        for model in options.models.split(","):
            found = {"case": name, "model": model, **measured(case, model)}
            said = "" if found["said"] is None else f"said {found['said']:.2f}, "
            held = ""
            if found["covered_among"] is not None:
                held = f"90% hold {found['covered_among']:.1%}, {found['covered_apart']:.1%}; "
            print(
                f"{name:32}{model:14}{said}among rows {found['among']:.2f}, apart from them "
                f"{found['apart']:.2f} (the mean {found['mean']:.2f}); {held}{found['folds']}, "
                f"{found['map']}, {found['seconds']:.0f} s",
                flush=True,
            )
            if options.write:
                with options.write.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
