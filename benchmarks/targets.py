"""Thousands of targets, a penalty for each: python benchmarks/targets.py.

Fits the same random features (n, D) to q targets by streamkern, which reads them from a file, and
by scikit-learn and himalaya (if it is installed), which hold them in memory.  Every fit is in a
process of its own, in turns.  Seconds are medians over the repeats, on the clock and of the
processor, of the fit alone for the models in memory and with all its readings for streamkern.  On
a machine that does something else as well, give one core, where threads do not wait for each other,
and look at the processor's.  The last columns are the mean R2 on rows of a test, and the share of
targets whose penalty is that of the first model with the same criterion.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from streamkern.runtime.memory import in_words, peak_bytes, usable_cores

TEST_ROWS = 2000
# By how the penalty is chosen: leaving out rows one by one, fifths in order, or not at all.
CONTENDERS = {
    "streamkern": ("loo", "5 folds", "given"),
    "scikit-learn": ("loo", "given"),
    "himalaya": ("5 folds",),
}
GIVEN = 10.0


def write(folder: Path, n_rows: int, n_features: int, n_targets: int) -> None:
    """Write features of random frequencies and targets of many noises, for a fit and a test."""
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((20, n_features // 2)) / 4.0
    coef = rng.standard_normal((n_features, n_targets)) * np.geomspace(1, 0.01, n_features)[:, None]
    noise = np.geomspace(0.1, 10.0, n_targets)
    for name, n in (("train", n_rows), ("test", TEST_ROWS)):
        angles = rng.standard_normal((n, 20)) @ frequencies
        features = np.hstack([np.cos(angles), np.sin(angles)])
        y = features @ coef + noise * rng.standard_normal((n, n_targets))
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["X"], file["y"] = features.astype("f4"), y.astype("f4")


def clocks() -> Any:
    """Return the seconds on the clock, and of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def predictor_of(who: str, how: str, folder: Path, alphas: Any) -> tuple[Any, Any, Any]:
    """Fit, and return what predicts, the penalties, and the seconds it took."""
    if who == "streamkern":
        import streamkern

        choice: dict[str, Any] = {"alpha": GIVEN}
        if how != "given":
            alpha = "loo" if how == "loo" else "cv"
            choice = {"alpha": alpha, "alphas": alphas, "per_target": True, "fold_by": "blocks"}
        model: Any = streamkern.RandomFeatureRidge(
            feature_map="identity", standardize=False, **choice
        )
        begun = clocks()
        model.fit(streamkern.open_hdf5(folder / "train.h5"))
        return model.predict, model.alpha_, clocks() - begun
    with h5py.File(folder / "train.h5") as file:
        X, y = file["X"][:], file["y"][:]
    if who == "himalaya":
        from himalaya.ridge import RidgeCV as HimalayaRidgeCV
        from sklearn.model_selection import KFold

        model = HimalayaRidgeCV(alphas, fit_intercept=True, cv=KFold(5))
    else:
        from sklearn.linear_model import Ridge, RidgeCV

        model = Ridge(GIVEN) if how == "given" else RidgeCV(alphas, alpha_per_target=True)
    begun = clocks()
    model.fit(X, y)
    seconds = clocks() - begun
    return model.predict, getattr(model, "best_alphas_", getattr(model, "alpha_", GIVEN)), seconds


def fit(who: str, how: str, folder: Path, alphas: Any) -> None:
    """Fit one model and print what it took, as one line."""
    predict, chosen, seconds = predictor_of(who, how, folder, alphas)
    peak = peak_bytes()
    with h5py.File(folder / "test.h5") as file:
        X, y = file["X"][:], file["y"][:].astype(float)
    r2 = 1.0 - ((predict(X) - y) ** 2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    found = {"seconds": seconds.tolist(), "peak": peak, "r2": float(r2.mean())}
    print(json.dumps(found | {"alphas": np.asarray(chosen, dtype=float).tolist()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--targets", type=int, default=2000)
    parser.add_argument("--alphas", type=int, default=10, help="how many penalties are tried")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=usable_cores())
    parser.add_argument("--only", nargs=3, metavar=("WHO", "HOW", "FOLDER"), help="one fit")
    given = parser.parse_args()
    alphas = np.geomspace(1e-1, 1e4, given.alphas)
    if given.only:
        fit(*given.only[:2], Path(given.only[2]), alphas)
        return
    installed = {
        who: hows for who, hows in CONTENDERS.items() if who != "himalaya" or find_spec(who)
    }
    pairs = [(who, how) for who, hows in installed.items() for how in hows]
    cores = sorted(os.sched_getaffinity(0))[: given.cores]
    os.sched_setaffinity(0, cores)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    os.environ |= dict.fromkeys(names, str(len(cores)))
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {pair: [] for pair in pairs}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.rows, given.components, given.targets)
        for _ in range(given.repeats):
            for pair, found in runs.items():
                command = [sys.executable, __file__, "--alphas", str(given.alphas), "--only", *pair]
                done = subprocess.run([*command, folder], stdout=subprocess.PIPE, check=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{'model':14}{'penalty':>9}{'clock':>8}{'processor':>11}{'peak':>9}{'R2':>8}{'same':>7}")
    for (who, how), found in runs.items():
        clock, processor = np.median([one["seconds"] for one in found], axis=0)
        first = next(one for (_, other), (one, *_) in runs.items() if other == how)
        same = np.mean(np.isclose(found[0]["alphas"], first["alphas"]))
        print(
            f"{who:14}{how:>9}{clock:>8.1f}{processor:>11.1f}"
            f"{in_words(max(one['peak'] for one in found)):>9}{found[0]['r2']:>8.4f}{same:>7.1%}"
        )


if __name__ == "__main__":
    main()
