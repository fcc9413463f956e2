"""Other losses on real tables, beside boosted trees of the same loss, and what a pass takes.

tables FOLDER   held-out losses, seconds of fits, and these over streamkern's; scikit-learn's trees
                as they come, LightGBM's, where it is installed, so and by a random search;
                with OMP_WAIT_POLICY=passive, as threads of trees else wait for busy cores
pass            seconds of a step over those of a ridge fit's pass, of rows in a file
"""

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
from scipy.stats import loguniform
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, mean_pinball_loss, mean_tweedie_deviance
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit

from streamkern import RandomFeatureClassifier, RandomFeatureRegressor, RandomFeatureRidge, connect

# Sets with a loss, what their targets become, and inputs that leak them: the parts of a count, and
# what is known when a flight is over.
TABLES = {
    "adult_a9a": ("logistic", lambda y: y > 0, ()),
    "kddcup99_10pct": ("logistic", lambda y: y != 16, ()),
    "uci_bike": ("poisson", lambda y: np.round(np.exp(y + 4.5361)), (15, 16)),
    "diamonds": ("gamma", None, ()),
    "california": ("quantile:0.9", None, ()),
    "nycflights13": ("quantile:0.9", None, (6, 7, 8, 9)),
    "uci_protein": ("huber", None, ()),
    "uci_kin40k": ("quantile:0.5", None, ()),
}
SETTINGS, SEARCHED = 12, 100_000  # of a random search, and rows that it takes at most


def rows_of(folder: Path, name: str):
    found = np.load(folder / name / "data.npz", allow_pickle=False)
    _, change, left_out = TABLES[name]
    X, y = found["X"].astype(float), found["y"]
    if "X_test" in found:
        parts = (X, y), (found["X_test"].astype(float), found["y_test"])
    else:
        drawn = np.random.default_rng(0).random(len(y)) < 0.1
        test = found["test_mask"][:, 0] if "test_mask" in found else drawn
        parts = (X[~test], y[~test]), (X[test], y[test])
    made = []
    for rows, given in parts:
        targets = np.asarray(given if change is None else change(given), float)
        whole = np.isfinite(rows).all(axis=1) & np.isfinite(targets)
        made.append((np.delete(rows, left_out, axis=1)[whole], targets[whole]))
    return made


def judged(loss: str, y, predicted) -> float:
    name, _, level = loss.partition(":")
    return {
        "logistic": lambda: log_loss(y, predicted),
        "poisson": lambda: mean_tweedie_deviance(y, predicted, power=1),
        "gamma": lambda: mean_tweedie_deviance(y, predicted, power=2),
        "quantile": lambda: mean_pinball_loss(y, predicted, alpha=float(level)),
        "huber": lambda: float(np.abs(y - predicted).mean()),
    }[name]()


def boosted(loss: str):
    """Return scikit-learn's boosting as it comes."""
    name, _, level = loss.partition(":")
    if name == "logistic":
        return HistGradientBoostingClassifier(random_state=0)
    how = {"quantile": float(level)} if level else {}
    kind = {"huber": "absolute_error"}.get(name, name)
    return HistGradientBoostingRegressor(loss=kind, random_state=0, **how)


def lightgbm(loss: str, **how):
    """Return LightGBM, which predicts shares as it does means."""
    from lightgbm import LGBMRegressor

    name, _, level = loss.partition(":")
    how |= {"alpha": float(level)} if level else {}
    kind = {"logistic": "binary", "huber": "l1"}.get(name, name)
    return LGBMRegressor(objective=kind, random_state=0, verbose=-1, **how)


def tuned(loss: str, n_rows: int):
    """Return LightGBM by the best of random settings, each fitted to rows and judged on others."""
    tried = {
        "num_leaves": loguniform_int(7, 256),
        "learning_rate": loguniform(0.01, 0.3),
        "min_child_samples": loguniform_int(5, 200),
        "n_estimators": loguniform_int(100, 1000),
    }
    fifth = min(n_rows, SEARCHED) // 5
    split = ShuffleSplit(1, train_size=4 * fifth, test_size=fifth, random_state=0)
    how = {"n_iter": SETTINGS, "cv": split, "random_state": 0}
    return RandomizedSearchCV(
        lightgbm(loss), tried, scoring=lambda model, X, y: -judged(loss, y, model.predict(X)), **how
    )


def loguniform_int(low: int, high: int) -> list[int]:
    return np.unique(np.geomspace(low, high, 30).astype(int)).tolist()


def table(folder: Path, name: str, n_components: int) -> None:
    loss, how = TABLES[name][0], {"n_components": n_components}
    (X, y), (X_test, y_test) = rows_of(folder, name)
    print(f"{name}, {loss}: {len(y):,} rows, {X.shape[1]} inputs, {len(y_test):,} held out")
    models = {"streamkern": RandomFeatureRegressor(loss, **how)}
    if loss == "logistic":
        models["calibrated squares"] = RandomFeatureClassifier(**how)
    models["boosted trees"] = boosted(loss)
    if find_spec("lightgbm"):
        models |= {"LightGBM": lightgbm(loss), "LightGBM, tuned": tuned(loss, len(y))}
    first = 0.0
    for what, model in models.items():
        begun = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begun
        first = first or seconds
        by_odds = loss == "logistic" and hasattr(model, "predict_proba")
        predicted = model.predict_proba(X_test)[:, 1] if by_odds else model.predict(X_test)
        error = judged(loss, y_test, predicted)
        chosen = getattr(model, "best_params_", {}).items()
        more = ", ".join(f"{each} {float(value):.3g}" for each, value in chosen)
        if what == "streamkern":
            facts = model.report_
            more = f"{facts['passes'] - 2} steps, within {facts['objective_left']:.0e}"
        timed = f"{seconds:7.1f} s {seconds / first:6.2f}"
        print(f"  {what:20}{error:<10.5g}{timed} {more}", flush=True)


def a_pass(n_rows: int, n_components: int, n_inputs: int = 20, at_once: int = 500_000) -> None:
    """Fit rows in a file with two workers, by squares and by the logistic loss."""
    how = {"n_components": n_components, "kernel": "gaussian", "alpha": 1.0, "scale": "standard"}
    rng, fits = np.random.default_rng(0), {}
    with TemporaryDirectory() as folder, connect(n_workers=2):
        with h5py.File(path := Path(folder) / "rows.h5", "w") as file:
            inputs = file.create_dataset("X", (n_rows, n_inputs), "f4", chunks=(10_000, n_inputs))
            targets = file.create_dataset("y", (n_rows,), "f4", chunks=(10_000,))
            for start in range(0, n_rows, at_once):
                rows = slice(start, min(start + at_once, n_rows))
                X = rng.standard_normal((rows.stop - start, n_inputs), dtype=np.float32)
                odds = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
                inputs[rows], targets[rows] = X, rng.random(len(X)) < 1 / (1 + np.exp(-2 * odds))
        fits["ridge"] = RandomFeatureRidge(**how).fit(path)
        fits["logistic"] = RandomFeatureRegressor("logistic", **how).fit(path)
    steps = fits["logistic"].report_["passes"] - 2
    of_ridge, of_loss = (each.report_["seconds"]["pass"] for each in fits.values())
    print(f"{n_rows:,} rows in a file, {n_components:,} features, two workers: {steps} steps")
    print(f"  a step {of_loss / steps:.1f} s, a pass of ridge {of_ridge:.1f} s: "
          f"{of_loss / steps / of_ridge:.2f}")  # fmt: skip
    for name, each in fits.items():
        print(f"  memory of a worker, {name}: {each.report_['peak_worker_bytes'] / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["tables", "pass"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=list(TABLES))
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=400_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "pass":
        a_pass(given.rows, given.components)
        return
    RandomFeatureRidge().fit(np.eye(50), np.arange(50.0))  # imports
    for name in given.sets:
        table(given.folder, name, given.components)


if __name__ == "__main__":
    main()
