"""What intervals hold of rows that chose nothing: python benchmarks/intervals.py ../shared/data/*.

A set is a folder with `data.npz`.  A random tenth is held out, in several splits.  For each level
the table says what intervals hold, with the standard error of five such tables, by the worst tenth
of difficulty with rows of all splits, and how wide they are over split conformal ones of constant
width from the same features: nine tenths of the rows fitted, the rest for the quantile.  It is what
chance alone would leave to the worst of ten tenths of so many rows that follows.  Of intervals of
90% it says besides what they hold of the fifth that is predicted largest, of the largest group and
of the worst: rows of one value of an input of at most 50, between a twentieth and 95% of the rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from streamkern import RandomFeatureRidge
from streamkern.features.metric import metric_in

LEVELS = (0.8, 0.9, 0.95)
_CALIBRATION, _DRAWS = 0.1, 2000
_MOST_VALUES, _GROUP = 50, (0.05, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with data.npz")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--most", type=int, default=60_000, help="rows of a set that are taken")
    parser.add_argument("--components", type=int, default=2048, help="features of a model")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'set':18}{'rows':>7}"
        + "".join(f"{f'{level:.0%}: held, worst, width':>30}" for level in LEVELS)
    )
    for folder in options.sets:
        with np.load(folder / "data.npz", allow_pickle=False) as stored:
            if "X_test" in stored:  # classes
                continue
            X, y = stored["X"].astype(float), stored["y"].astype(float)
        whole = np.flatnonzero(np.isfinite(X).all(axis=1) & np.isfinite(y))
        whole = np.random.default_rng(0).permutation(whole)[: options.most]
        begun, seeds = time.perf_counter(), range(options.first, options.first + options.splits)
        found = [measured(X[whole], y[whole], seed, options.components) for seed in seeds]
        print(
            f"{folder.name:18}{len(whole):>7,}{told(found)}  {of_groups(found)}  "
            f"{time.perf_counter() - begun:.0f} s",
            flush=True,
        )


def measured(X: Any, y: Any, seed: int, D: int) -> dict[str, Any]:
    """Fit nine tenths, and say of every other row whether intervals hold it, and how wide."""
    order = np.random.default_rng(seed).permutation(len(X))
    held, rest = np.split(order, [len(X) // 10])
    model = RandomFeatureRidge(n_components=D).fit(X[rest], y[rest])
    of_calibration, proper = np.split(rest, [int(_CALIBRATION * len(rest))])
    # The same features and kernel, without the rows that tell the quantile.
    same = {"kernel": model.kernel_, "scale": model.report_["scale"], "n_components": D}
    metric = metric_in(model.model_.predictor.feature_map)
    split = RandomFeatureRidge(**same, metric=None if metric is None else metric.matrix)
    split.fit(X[proper], y[proper])
    errors = np.sort(np.abs(y[of_calibration] - split.predict(X[of_calibration])))
    intervals = model.model_.intervals
    logs = intervals.log_errors(X[held], model.predict(X[held])[:, None])
    tenths = (logs > intervals.edges[:, None]).sum(axis=0)[:, 0]
    top = model.predict(X[held]) > np.quantile(model.predict(X[held]), 0.8)
    found: dict[str, Any] = {"tenths": tenths, "groups": groups(X, held), "top": top}
    for level in LEVELS:
        low, high = model.predict(X[held], interval=level)[1].T
        place = min(int(np.ceil(level * (len(errors) + 1))), len(errors)) - 1
        inside = (low <= y[held]) & (y[held] <= high)
        found[str(level)] = inside, np.mean(high - low) / (2.0 * errors[place])
    return found


def groups(X: Any, held: Any) -> dict[Any, Any]:
    """Return which rows are of a group, by column and value, for groups of some size."""
    found = {}
    for j, column in enumerate(X.T):
        values, counts = np.unique(column, return_counts=True)
        share = counts / len(X)
        if len(values) <= _MOST_VALUES:
            some = values[(share >= _GROUP[0]) & (share <= _GROUP[1])]
            found |= {(j, value): column[held] == value for value in some}
    return found


def of_groups(found: list[dict[str, Any]]) -> str:
    inside = np.concatenate([each["0.9"][0] for each in found])
    text = f"largest fifth {inside[np.concatenate([each['top'] for each in found])].mean():.1%}"
    of = {
        key: np.concatenate([each["groups"][key] for each in found]) for key in found[0]["groups"]
    }
    if not of:
        return f"{text}, no groups"
    largest = max(of, key=lambda key: of[key].sum())
    worst = min(of, key=lambda key: inside[of[key]].mean())
    shares = [f"{inside[of[key]].mean():.1%} of {of[key].sum():,}" for key in (largest, worst)]
    return f"{text}, largest group {shares[0]}, worst of {len(of)} {shares[1]}"


def told(found: list[dict[str, Any]]) -> str:
    tenths, text = np.concatenate([each["tenths"] for each in found]), ""
    counts = np.bincount(tenths, minlength=10)
    for level in LEVELS:
        inside = [each[str(level)][0] for each in found]
        shares = np.array([each.mean() for each in inside])
        every = np.concatenate(inside)
        worst = min(every[tenths == k].mean() for k in range(10) if counts[k])
        draws = np.random.default_rng(0).binomial(np.maximum(counts, 1), level, (_DRAWS, 10))
        chance = np.mean(np.min(draws / np.maximum(counts, 1), axis=1))
        width = np.mean([each[str(level)][1] for each in found])
        spread = np.sqrt(level * (1.0 - level) / len(every))
        text += (
            f"{f'{shares.mean():.1%} +-{spread:.1%}, {worst:.1%} ({chance:.1%}), {width:.2f}':>34}"
        )
    return text


if __name__ == "__main__":
    main()
