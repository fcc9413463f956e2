"""Models of tables, side by side: python jobs/tables.py ../shared/data/* --write tables.jsonl.

A table is a folder with `data.npz` (X, y, and test_mask, whose first column is used), or a CSV or
Parquet file whose last column is the target.  Of the others a random tenth is held out.  Each model
is fitted in a process of its own, to the same rows, and chooses what it chooses on these alone.
CatBoost and xRFM take part where they are installed.

Errors are root mean squares on the rows held out, over the standard deviation of the target.  What
was measured before is read from the file again, so that a run may be stopped and go on.
`--contenders "standard scale,no metric,no sums,no more features"` is `tune 3m` without a part.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from accuracies.sets import read_as_stored, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_VALIDATION = 0.15
_MOST_ROUNDS, _PATIENCE = 3000, 50
_DEPTHS, _LEAVES, _EXACT_ROWS = (4, 6, 8), (15, 31, 63), 4000


def fit(X: Any, y: Any) -> Callable[[Any], Any]:
    import streamkern

    return streamkern.RandomFeatureRidge().fit(X, y).predict


def tune(budget: str, **options: Any) -> Callable[[Any, Any], Callable[[Any], Any]]:
    def tuned(X: Any, y: Any) -> Callable[[Any], Any]:
        import streamkern

        return streamkern.RandomFeatureRidge(**options).tune(X, y, budget=budget).predict

    return tuned


def without_metric(X: Any, y: Any) -> Callable[[Any], Any]:
    return tune("3m", metric=np.eye(X.shape[1]))(X, y)


def without_sums(X: Any, y: Any) -> Callable[[Any], Any]:
    from streamkern.tune import finalists

    finalists._MOST_ADDED = 0  # noqa: SLF001  in a process of its own
    return tune("3m")(X, y)


def without_more_features(X: Any, y: Any) -> Callable[[Any], Any]:
    from streamkern.tune import budget

    budget._TIMES = ()  # noqa: SLF001
    return tune("3m")(X, y)


def exact(X: Any, y: Any) -> Callable[[Any], Any]:
    import streamkern

    some = np.random.default_rng(0).permutation(len(X))[:_EXACT_ROWS]
    return streamkern.ExactKernelRidge("matern52", alpha="loo").fit(X[some], y[some]).predict


def boosting(X: Any, y: Any) -> Callable[[Any], Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0).fit(X, y).predict


def boosting_tuned(X: Any, y: Any) -> Callable[[Any], Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    def made(leaves: int, rounds: int, **stopping: Any) -> Any:
        return HistGradientBoostingRegressor(
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
    return made(leaves, max(int(best.validation_score_.argmax()), 1)).fit(X, y).predict


def catboost(X: Any, y: Any) -> Callable[[Any], Any]:
    from catboost import CatBoostRegressor

    return _quiet(CatBoostRegressor).fit(X, y).predict


def catboost_tuned(X: Any, y: Any) -> Callable[[Any], Any]:
    from catboost import CatBoostRegressor

    held = np.random.default_rng(1).random(len(X)) < _VALIDATION
    tried = []
    for depth in _DEPTHS:
        model = _quiet(CatBoostRegressor, depth=depth, iterations=_MOST_ROUNDS)
        model.fit(X[~held], y[~held], eval_set=(X[held], y[held]), early_stopping_rounds=_PATIENCE)
        error, rate = model.get_best_score()["validation"]["RMSE"], model.learning_rate_
        chosen = {"depth": depth, "iterations": model.tree_count_, "learning_rate": rate}
        tried.append((error, depth, chosen))
    return _quiet(CatBoostRegressor, **min(tried)[-1]).fit(X, y).predict


def xrfm(X: Any, y: Any) -> Callable[[Any], Any]:
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


CONTENDERS: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "fit": fit,
    "tune 1m": tune("1m"),
    "tune 3m": tune("3m"),
    "tune 5m": tune("5m"),
    "boosting": boosting,
    "boosting tuned": boosting_tuned,
    "CatBoost": catboost,
    "CatBoost tuned": catboost_tuned,
    "xRFM": xrfm,
    "exact": exact,
}
# What each part of a search is worth.
PARTS = {
    "standard scale": tune("3m", scale="standard"),
    "no metric": without_metric,
    "no sums": without_sums,
    "no more features": without_more_features,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, help="folders with data.npz, or files")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="of which to run")
    parser.add_argument("--write", type=Path, default=Path("tables.jsonl"))
    options = parser.parse_args()
    names = [name.strip() for name in options.contenders.split(",")]
    before = options.write.read_text().splitlines() if options.write.exists() else []
    kept = [each for each in map(json.loads, before) if "failed" not in each]
    found = {(each["table"], each["model"]): each for each in kept}
    with options.write.open("a") as file:
        for path in options.tables:
            for name in names:
                if (path.stem, name) in found:
                    continue
                measured = {"table": path.stem, "model": name} | _alone(path, name)
                found[path.stem, name] = measured
                print(json.dumps(measured), file=file, flush=True)
                print(_in_words(measured), flush=True)
    print("\n".join(_table([path.stem for path in options.tables], names, found)))


def read(path: Path) -> tuple[Any, Any, Any]:
    """Return finite inputs (n, p) and targets (n,), and which rows (n,) are held out."""
    if path.is_dir():
        return read_as_stored(path)
    import pandas as pd

    rows = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    values = rows.to_numpy(float)
    return split(values[:, :-1], values[:, -1])


def _alone(path: Path, name: str) -> dict[str, Any]:
    """Return what a model came to, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(path, name, theirs))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = mine.recv()
    except EOFError:
        found = {"failed": "it ended without a word"}
    process.join()
    return found


def _measure(path: Path, name: str, answer: Any) -> None:
    warnings.simplefilter("ignore")
    X, y, held = read(path)
    begun = time.perf_counter()
    try:
        predict = (CONTENDERS | PARTS)[name](X[~held], y[~held])
        seconds = time.perf_counter() - begun
        error = np.sqrt(np.mean((np.ravel(predict(X[held])) - y[held]) ** 2)) / y[~held].std()
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer.send({"error": float(error), "seconds": seconds, "peak_bytes": peak})
    except Exception as error:  # noqa: BLE001  one model's failure is a line of the table
        answer.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def _quiet(kind: Any, **parameters: Any) -> Any:
    return kind(
        verbose=False,
        random_seed=0,
        thread_count=os.cpu_count(),
        allow_writing_files=False,
        **parameters,
    )


def _in_words(measured: dict[str, Any]) -> str:
    label = f"{measured['table']:18} {measured['model']:16}"
    if "failed" in measured:
        return f"{label} {measured['failed']}"
    gigabytes = measured["peak_bytes"] / 1e9
    return f"{label} {measured['error']:.4f} {measured['seconds']:7.1f} s {gigabytes:5.2f} GB"


def _table(tables: list[str], names: list[str], found: dict[Any, dict[str, Any]]) -> Iterator[str]:
    """Yield a table in Markdown: errors and seconds, mean ranks, and how often each is best."""
    yield f"| table | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    errors = np.array(
        [[found[table, name].get("error", np.inf) for name in names] for table in tables]
    )
    for table, row in zip(tables, errors, strict=True):
        cells = [
            f"{error:.4f} ({found[table, name]['seconds']:.0f} s)" if np.isfinite(error) else "-"
            for name, error in zip(names, row, strict=True)
        ]
        yield f"| {table} | {' | '.join(cells)} |"
    ranks = 1.0 + (errors[:, None, :] < errors[:, :, None]).sum(axis=2)
    yield f"| mean rank | {' | '.join(f'{rank:.1f}' for rank in ranks.mean(axis=0))} |"
    yield f"| best | {' | '.join(str(int(n)) for n in (ranks == 1).sum(axis=0))} |"


if __name__ == "__main__":
    main()
