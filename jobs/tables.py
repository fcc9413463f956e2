"""Models of tables, side by side: python jobs/tables.py ../shared/data/* --write tables.jsonl.

A table is a folder with `data.npz` (X, y, and test_mask, one column a split), or a CSV or Parquet
file whose last column is the target, and whose texts are categories.  Of the others a random tenth
is held out.  Each model is fitted in a process of its own, to the same rows, and chooses what it
chooses on these alone.  CatBoost and xRFM take part where they are installed.

Errors are root mean squares on the rows held out, over the standard deviation of the target; with
`--classify`, which takes the folders of classes with an official split, they are the mean
logarithmic loss, and the accuracy is told as well.  What was measured before is read from the file
again, so that a run may be stopped and go on.
What a part of a search is worth: `--contenders "tune 1m,tune 1m without metric"`; other parts are
scales, weights of the inputs, sums and more features.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from accuracies.sets import read_as_stored, read_classes, split
from accuracies.table_models import CLASSES, REGRESSION, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Probabilities are no smaller than this in a logarithm.
_LEAST = 1e-15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, help="folders with data.npz, or files")
    parser.add_argument("--contenders", help="of which to run; all where there are none")
    parser.add_argument("--classify", action="store_true", help="the targets are classes")
    parser.add_argument("--split", type=int, default=0, help="which rows are held out, of several")
    parser.add_argument("--write", type=Path, default=Path("tables.jsonl"))
    options = parser.parse_args()
    known = CLASSES if options.classify else REGRESSION
    names = (
        [name.strip() for name in options.contenders.split(",")] if options.contenders else [*known]
    )
    for name in names:
        model_of(name, classify=options.classify)  # or say which there are
    before = options.write.read_text().splitlines() if options.write.exists() else []
    done = [each for each in map(json.loads, before) if "failed" not in each]
    kept = [each for each in done if ("accuracy" in each) == options.classify]
    kept = [each for each in kept if each.get("split", 0) == options.split]
    found = {(each["table"], each["model"]): each for each in kept}
    with options.write.open("a") as file:
        for path in options.tables:
            for name in names:
                if (path.stem, name) in found:
                    continue
                measured = {"table": path.stem, "model": name, "split": options.split}
                measured |= _alone(path, name, options.classify, options.split)
                found[path.stem, name] = measured
                print(json.dumps(measured), file=file, flush=True)
                print(_in_words(measured), flush=True)
    print("\n".join(_table([path.stem for path in options.tables], names, found)))


def read(path: Path, classify: bool, number: int) -> tuple[Any, Any, Any, Any]:
    """Return inputs (n, p) and targets (n,), and those of the rows held out.

    All are finite but inputs of a table with texts, which xRFM and exact ridge do not take.
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


def _alone(path: Path, name: str, classify: bool, number: int) -> dict[str, Any]:
    """Return what a model came to, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(path, name, classify, number, theirs))
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
        predict = model_of(name, classify=classify)(X, y)
        seconds, of_processor = time.perf_counter() - begun[0], time.process_time() - begun[1]
        predicted = predict(X_test)
        if classify:
            found = _loss(predicted, y_test)
        else:
            squares = (np.ravel(predicted) - y_test) ** 2
            found = {"error": float(np.sqrt(squares.mean()) / y.std())}
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer.send(found | {"seconds": seconds, "of_processor": of_processor, "peak_bytes": peak})
    except Exception as error:  # noqa: BLE001  one model's failure is a line of the table
        answer.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def _loss(probabilities: Any, codes: Any) -> dict[str, float]:
    likely = probabilities[np.arange(len(codes)), codes].clip(_LEAST)
    accuracy = np.mean(probabilities.argmax(axis=1) == codes)
    return {"error": float(-np.log(likely).mean()), "accuracy": float(accuracy)}


def _in_words(measured: dict[str, Any]) -> str:
    label = f"{measured['table']:18} {measured['model']:16}"
    if "failed" in measured:
        return f"{label} {measured['failed']}"
    gigabytes, seconds = measured["peak_bytes"] / 1e9, measured["seconds"]
    return f"{label} {_errors(measured):15} {seconds:7.1f} s {gigabytes:5.2f} GB"


def _errors(measured: dict[str, Any]) -> str:
    accuracy = f", {measured['accuracy']:.2%}" if "accuracy" in measured else ""
    return f"{measured['error']:.4f}{accuracy}"


def _table(tables: list[str], names: list[str], found: dict[Any, dict[str, Any]]) -> Iterator[str]:
    """Yield a table in Markdown: errors and seconds, mean ranks, and how often each is best."""
    yield f"| table | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    errors = np.array(
        [[found[table, name].get("error", np.inf) for name in names] for table in tables]
    )
    for table, row in zip(tables, errors, strict=True):
        cells = [
            f"{_errors(each)} ({each['seconds']:.0f} s)" if np.isfinite(error) else "-"
            for each, error in zip((found[table, name] for name in names), row, strict=True)
        ]
        yield f"| {table} | {' | '.join(cells)} |"
    ranks = 1.0 + (errors[:, None, :] < errors[:, :, None]).sum(axis=2)
    yield f"| mean rank | {' | '.join(f'{rank:.1f}' for rank in ranks.mean(axis=0))} |"
    yield f"| best | {' | '.join(str(int(n)) for n in (ranks == 1).sum(axis=0))} |"


if __name__ == "__main__":
    main()
