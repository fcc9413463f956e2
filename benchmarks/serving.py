"""What a prediction costs: python benchmarks/serving.py.

Every model is of the same made-up rows.  One row and many are predicted by the estimator, of an
array and of a data frame, by `predictor_`, by ONNX Runtime, by exported C (`cc -O3 -march=native`)
and by scikit-learn's RBFSampler and Ridge; by LightGBM (500 trees) where it is installed.  They
take turns in one run, on one thread; many rows are given 100,000 at a time, or 10,000 where a
library holds all features.  Figures are microseconds a row, of the processor, so that other work
of the machine does not count: the median and the 99th percentile of single rows, and the median of
parts of many; `apart` is the largest difference to the estimator, over the standard deviation.
Then a new process loads each model and predicts a row, as an estimator or a predictor: seconds
from its start, those of the processor, and which of Dask and scikit-learn came with it.

With folders of real sets: python benchmarks/serving.py ../shared/data/*.  Of each it tells how far
ONNX Runtime and C are at most from the model: in standard deviations of the targets, with standard
deviations and intervals of 90%, or in probabilities; of two sets as tables with texts.  Then C
files are compared, of all features and of `export --tolerance` 1% and 5%: features, error on rows
held out over the standard deviation, kB, and microseconds a row.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from real_sets import read, read_classes
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streamkern
from streamkern.runtime.threads import blas_threads, processor

_FIT_ROWS, _TURNS, _CALLS, _BATCH_TURNS, _AT_ONCE = 5000, 100, 20, 5, 100_000
# Models of their own; scikit-learn holds all features of its rows.
_CLASSES, _MIXED = ("adult_a9a", "kddcup99_10pct"), ("nycflights13", "kddcup99_10pct")
_OTHERS, _OTHERS_ROWS = ("scikit-learn", "LightGBM"), 10_000
# Rows of a real set that are fitted, and that are compared.
_MOST_ROWS, _COMPARED = 50_000, 2000
_NEW_PROCESS = """
import sys, time
import numpy as np
import streamkern
getattr(streamkern, sys.argv[4])(sys.argv[1]).predict(np.zeros((1, int(sys.argv[2]))))
print(time.time() - float(sys.argv[3]), time.process_time())
print(*sorted({"dask", "sklearn"} & sys.modules.keys()))
"""

Predict = Callable[[Any], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="of real sets")
    parser.add_argument("--inputs", default="20,90", help="numbers of inputs")
    parser.add_argument("--components", default="512,1024,2048,8192", help="numbers of features")
    parser.add_argument("--rows", type=float, default=1e6, help="how many are many")
    options = parser.parse_args()
    print(processor())
    for folder in options.folders:
        with TemporaryDirectory() as work, blas_threads(1):
            measure_set(folder, max(map(int, options.components.split(","))), Path(work))
    if options.folders:
        return
    for p in map(int, options.inputs.split(",")):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((_FIT_ROWS, p))
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(_FIT_ROWS)
        for D in map(int, options.components.split(",")):
            with TemporaryDirectory() as folder, blas_threads(1):
                measure(X, y, int(options.rows), D, Path(folder))


def measure(X: Any, y: Any, n_rows: int, D: int, folder: Path) -> None:
    p, names = X.shape[1], [f"x{j}" for j in range(X.shape[1])]
    batch = np.random.default_rng(1).standard_normal((min(n_rows, _AT_ONCE), p))
    model = streamkern.RandomFeatureRidge(n_components=D, alpha=1e-3).fit(X, y)
    of_frame = streamkern.RandomFeatureRidge(n_components=D, alpha=1e-3)
    of_frame.fit(pd.DataFrame(X, columns=names), y)
    contenders: dict[str, Predict] = {
        "array": model.predict,
        "data frame": of_frame.predict,
        "predictor_": model.predictor_.predict,
        **exported(model, folder),
        "scikit-learn": make_pipeline(
            StandardScaler(), RBFSampler(gamma=0.5 / p, n_components=D, random_state=0), Ridge()
        )
        .fit(X, y)
        .predict,
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMRegressor

        trees = LGBMRegressor(n_estimators=500, n_jobs=1, verbose=-1).fit(X, y)
        contenders["LightGBM"] = partial(trees.booster_.predict, num_threads=1)
    print(f"\np = {p}, D = {D:,}{'one row':>14}{'99th':>10}{'of many':>12}{'apart':>10}")
    given = {name: rows_for(name, names, batch) for name in contenders}
    one = {name: given[name][:1] for name in contenders}
    single = in_turns(contenders, one, _TURNS, _CALLS)
    many = in_turns(contenders, given, -(-n_rows // _AT_ONCE), 1)
    said = model.predict(batch[:1000])
    for name, predict in contenders.items():
        figures = 1e6 * np.median(single[name]), 1e6 * np.quantile(single[name], 0.99)
        a_row = 1e6 * np.median(many[name]) / len(given[name])
        apart = np.abs(np.ravel(predict(given[name][:1000])) - said).max() / said.std()
        same = "" if name in _OTHERS else f"{apart:>10.0e}"
        print(f"{name:16}{figures[0]:>12.1f}{figures[1]:>10.1f}{a_row:>12.2f}{same}")
    model.save(folder / "model.h5", compact=True)
    started: dict[str, list[list[str]]] = {"load": [], "load_predictor": []}
    for name in 3 * list(started):
        started[name].append(new_process(name, folder / "model.h5", p))
    for name, found in started.items():
        seconds, of_processor = np.median([[*map(float, each[:2])] for each in found], axis=0)
        modules = " ".join(found[0][2:]) or "neither"
        print(f"new process, {name}: {seconds:.2f} s, {of_processor:.2f} s, imports {modules}")


def measure_set(folder: Path, D: int, work: Path) -> None:
    is_classes, is_mixed = folder.name in _CLASSES, folder.name in _MIXED
    if is_mixed:
        X, y, X_test, y_test = mixed(folder)
    else:
        X, y, X_test, y_test = read_classes(folder) if is_classes else read(folder)[1:]
    kept = X[:_MOST_ROWS], y[:_MOST_ROWS]
    kind = streamkern.RandomFeatureClassifier if is_classes else streamkern.RandomFeatureRidge
    model: Any = kind(n_components=D).fit(*kept)
    how: dict[str, Any] = {} if is_classes else {"return_std": True, "interval": 0.9}
    rows = X_test[:_COMPARED] if is_mixed else X_test[:_COMPARED].astype(np.float32)
    said = model.predict_proba(rows) if is_classes else np.column_stack(model.predict(rows, **how))
    unit = 1.0 if is_classes else np.std(kept[1])
    files, apart = exported(model, work, said.shape[1], is_mixed, **how), dict[str, float]()
    for name, predict in files.items():
        inputs = model.recipe_.transform(rows) if is_mixed and name == "C" else rows
        apart[name] = np.abs(predict(inputs) - said).max() / unit
    line = f"{folder.name:16}{len(X):>8,} x {X.shape[1]:<4}"
    print(line, *(f"{name} {each:.0e}" for name, each in apart.items()), end="", flush=True)
    if not (is_classes or is_mixed):
        moments = streamkern.RandomFeatureRidge(n_components=D).moments(*kept)
        moments.save(work / "moments.h5")
        streamkern.RandomFeatureRidge(n_components=D).solve(moments).save(work / "all.h5")
        for tolerance in (None, "1%", "5%"):
            print(of_tolerance(tolerance, X_test, y_test, work), end="", flush=True)
    print()


def mixed(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return a table with texts and missing cells, of some rows in random order, and others."""
    with np.load(folder / "data.npz", allow_pickle=False) as stored:
        table, y = pd.DataFrame(stored["X"], columns=stored["feature_names"]), stored["y"]
        texts = {name: stored[name] for name in stored.files if name.endswith("_levels")}
        if "label_names" in stored:
            y = np.where(stored["label_names"][y] == "normal.", "normal", "attack")
    for name, levels in texts.items():
        column = next(each for each in table if each.startswith(name.removesuffix("_levels")))
        codes = table[column]
        told = pd.Series(levels[codes.fillna(0).astype(int)], table.index, dtype=object)
        table[column] = told.where(codes.notna(), None)
    table = table.drop(columns=["dep_time", "arr_time", "dep_delay", "air_time"], errors="ignore")
    places = np.random.default_rng(0).permutation(np.flatnonzero(pd.notna(y)))
    first, others = places[:_MOST_ROWS], places[_MOST_ROWS : _MOST_ROWS + _COMPARED]
    return table.iloc[first], y[first], table.iloc[others], y[others]


def of_tolerance(tolerance: str | None, X: Any, y: Any, work: Path) -> str:
    """Return what is told of the C file of the smaller model, or of the whole one."""
    program = str(Path(sys.executable).with_name("streamkern"))
    given = ["all.h5"] if tolerance is None else ["moments.h5", "--tolerance", tolerance]
    command = [program, "export", *given, *["--out", "small.c", "--force", "--quiet", "--json"]]
    done = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True)
    report, predict = json.loads(done.stdout.splitlines()[-1]), compiled(work / "small.c", 1)
    seconds = in_turns({"C": predict}, {"C": X}, _BATCH_TURNS, 1)["C"]
    error = np.sqrt(np.mean((predict(X)[:, 0] - y) ** 2))
    size, a_row = report["bytes"] / 1000, 1e6 * np.median(seconds) / len(X)
    name = "all" if tolerance is None else f"{tolerance}: {report['n_components']:,}"
    return f" | {name}, {error:.4f}, {size:,.0f} kB, {a_row:.2f} us"


def exported(
    model: Any, folder: Path, width: int = 1, table: bool = False, **how: Any
) -> dict[str, Predict]:
    """Return what predicts by files that the model is exported to."""
    import onnxruntime

    streamkern.to_onnx(model, folder / "model.onnx", table=table, **how)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    streamkern.to_c(model, folder / "model.c", **how)

    def by_runtime(X: Any) -> Any:
        found = session.run(None, cells(X, session) if table else {"X": X})
        return found[0] if len(found) == 1 else np.column_stack(found)

    return {"ONNX Runtime": by_runtime, "C": compiled(folder / "model.c", width)}


def cells(table: Any, session: Any) -> dict[str, Any]:
    """Return what a graph takes of a table of numbers and texts."""
    given = {}
    for each in session.get_inputs():
        column, is_text = table[each.name], each.type == "tensor(string)"
        values = column.fillna("").to_numpy(object) if is_text else column.to_numpy(np.float32)
        given[each.name] = values[:, None]
    return given


def compiled(path: Path, width: int) -> Predict:
    """Return what predicts by a C file, which gives so many numbers a row."""
    made = path.with_name(f"{time.time_ns()}.so")  # each name is loaded once
    command = ["cc", *["-O3", "-march=native", "-shared", "-fPIC", "-o"], made, path, "-lm"]
    subprocess.run(command, check=True)
    return partial(by_library, ctypes.CDLL(str(made)), width)


def by_library(library: Any, width: int, X: Any) -> Any:
    X = np.ascontiguousarray(X, dtype=float)
    y = np.empty((len(X), width))
    at = X.__array_interface__["data"][0], y.__array_interface__["data"][0]
    library.predict_rows(ctypes.c_long(len(X)), *map(ctypes.c_void_p, at))
    return y


def rows_for(name: str, names: list[str], batch: Any) -> Any:
    if name == "data frame":
        return pd.DataFrame(batch, columns=names)
    if name in _OTHERS:
        return batch[:_OTHERS_ROWS]
    return batch.astype(np.float32) if name == "ONNX Runtime" else batch


def in_turns(contenders: dict[str, Predict], rows: Any, turns: int, calls: int) -> Any:
    """Return the seconds of every call, of contenders that take turns."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(turns + 1):
        for name, predict in contenders.items():
            for _ in range(calls):
                start = time.process_time()
                predict(rows[name])
                if turn:  # the first is for caches
                    found[name].append(time.process_time() - start)
    return found


def new_process(name: str, path: Path, p: int) -> list[str]:
    """Return the seconds to the first prediction of a new process, and what came with it."""
    command = [sys.executable, "-c", _NEW_PROCESS, str(path), str(p), str(time.time()), name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


if __name__ == "__main__":
    main()
