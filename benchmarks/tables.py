"""Models of tables, side by side: python benchmarks/tables.py ../shared/data/*.

A table is a folder with `data.npz` (X, y, and test_mask, one column a split), or a CSV or Parquet
file whose last column is the target, and whose texts are categories.  Of the others a random tenth
is held out.  Each model is fitted in a process of its own, to the same rows, and chooses what it
chooses on these alone.  CatBoost takes part where it is installed.

Errors are root mean squares on the rows held out, over the standard deviation of the target; with
`--classify`, which takes the folders of classes with an official split, they are the mean
logarithmic loss, and the accuracy is told as well.  What was measured before is read from the file
again, so that a run may be stopped and go on.
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
from real_sets import read_as_stored, read_classes, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Prediction = Callable[[Any], Any]
    Model = Callable[[Any, Any], Prediction]

# Probabilities are no smaller than this in a logarithm.
_LEAST = 1e-15
_VALIDATION, _MOST_ROUNDS, _PATIENCE, _DEPTHS = 0.15, 3000, 50, (4, 6, 8)
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


def logistic(X: Any, y: Any) -> Prediction:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _prediction(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y))


def boosting(name: str) -> Model:
    """Return scikit-learn's boosting as it comes."""

    def fitted(X: Any, y: Any) -> Prediction:
        from sklearn import ensemble

        encoded = categories(X)
        return _prediction(getattr(ensemble, name)(random_state=0).fit(encoded(X), y), encoded)

    return fitted


def catboost(name: str) -> Model:
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


def _prediction(model: Any, encoded: Any = None) -> Prediction:
    """Return what predicts numbers, or of a classifier the probabilities of classes."""
    prediction: Prediction = getattr(model, "predict_proba", model.predict)
    return prediction if encoded is None else lambda rows: prediction(encoded(rows))


def contenders(classify: bool) -> dict[str, Model]:
    """Return all that take part, by name."""
    name, kind = "RandomFeatureRidge", "Regressor"
    only: dict[str, Model] = {
        "fit landmarks": ours(name, feature_map="nystroem"),
        "fit auto map": ours(name, feature_map="auto"),
        "linear": ours(name, kernel="linear", feature_map="identity"),
    }
    if classify:
        name, kind, only = "RandomFeatureClassifier", "Classifier", {"logistic": logistic}
    budgets = {f"tune {budget}": ours(name, budget) for budget in ("1m", "3m", "5m")}
    trees = {
        "boosting": boosting(f"HistGradientBoosting{kind}"),
        "CatBoost tuned": catboost(f"CatBoost{kind}"),
    }
    return {"fit": ours(name), **budgets, **only, **trees}


def read(path: Path, classify: bool, number: int) -> tuple[Any, Any, Any, Any]:
    """Return inputs (n, p) and targets (n,), and those of the rows held out.

    All are finite but inputs of a table with texts.
    """
    if classify:
        X, y, X_test, y_test = read_classes(path)
        codes = np.unique(y)
        return X, np.searchsorted(codes, y), X_test, np.searchsorted(codes, y_test)
    if path.is_dir():
        X, y, held = read_as_stored(path, number)
    else:
        import pandas as pd

        rows = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
        X, y = rows.iloc[:, :-1], rows.iloc[:, -1].to_numpy(float)
        has_texts = len(X.select_dtypes("number").columns) < X.shape[1]
        X, y, held = split(X if has_texts else X.to_numpy(float), y, number=number)
    return X[~held], y[~held], X[held], y[held]


def _alone(*what: Any) -> dict[str, Any]:
    """Return what a model came to, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(*what, theirs))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = mine.recv()
    except EOFError:
        found = {"failed": "it ended without a word"}
    process.join()
    return found


def _measure(path: Path, name: str, classify: bool, number: int, answer: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        X, y, X_test, y_test = read(path, classify, number)
        begun = time.perf_counter(), time.process_time()
        predict = contenders(classify)[name](X, y)
        seconds, of_processor = time.perf_counter() - begun[0], time.process_time() - begun[1]
        predicted = predict(X_test)
        if classify:
            likely = predicted[np.arange(len(y_test)), y_test].clip(_LEAST)
            accuracy = float(np.mean(predicted.argmax(axis=1) == y_test))
            found = {"error": float(-np.log(likely).mean()), "accuracy": accuracy}
        else:
            squares = (np.ravel(predicted) - y_test) ** 2
            found = {"error": float(np.sqrt(squares.mean()) / y.std())}
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer.send(found | {"seconds": seconds, "of_processor": of_processor, "peak_bytes": peak})
    except Exception as error:  # noqa: BLE001  one model's failure is a line of the table
        answer.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def _errors(measured: dict[str, Any]) -> str:
    accuracy = f", {measured['accuracy']:.2%}" if "accuracy" in measured else ""
    return f"{measured['error']:.4f}{accuracy} ({measured['seconds']:.0f} s)"


def _table(tables: list[str], names: list[str], found: dict[Any, dict[str, Any]]) -> Iterator[str]:
    """Yield a table in Markdown: errors and seconds, and how often each is best."""
    yield f"| table | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    best = dict.fromkeys(names, 0)
    for table in tables:
        measured = {name: found[table, name] for name in names}
        cells = [_errors(each) if "error" in each else "-" for each in measured.values()]
        yield f"| {table} | {' | '.join(cells)} |"
        best[min(names, key=lambda name: measured[name].get("error", np.inf))] += 1
    yield f"| best | {' | '.join(map(str, best.values()))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, help="folders with data.npz, or files")
    parser.add_argument("--contenders", help="of which to run; all where there are none")
    parser.add_argument("--classify", action="store_true", help="the targets are classes")
    parser.add_argument("--split", type=int, default=0, help="which rows are held out, of several")
    parser.add_argument("--write", type=Path, default=Path("tables.jsonl"))
    options = parser.parse_args()
    known = contenders(options.classify)
    asked = options.contenders.split(",") if options.contenders else known
    names = [name.strip() for name in asked]
    if unknown := set(names) - {*known}:
        raise SystemExit(f"contenders are {', '.join(known)}, not {', '.join(unknown)}.")
    before = options.write.read_text().splitlines() if options.write.exists() else []
    found = {
        (each["table"], each["model"]): each
        for each in map(json.loads, before)
        if "failed" not in each
        and ("accuracy" in each) == options.classify
        and each["split"] == options.split
    }
    with options.write.open("a") as file:
        for path in options.tables:
            for name in names:
                if (path.stem, name) in found:
                    continue
                measured = {"table": path.stem, "model": name, "split": options.split}
                measured |= _alone(path, name, options.classify, options.split)
                found[path.stem, name] = measured
                print(json.dumps(measured), file=file, flush=True)
                print(path.stem, name, measured.get("failed") or _errors(measured), flush=True)
    print("\n".join(_table([path.stem for path in options.tables], names, found)))


if __name__ == "__main__":
    main()
