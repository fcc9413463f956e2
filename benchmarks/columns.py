"""How columns become inputs, side by side: python benchmarks/columns.py [FILE.parquet]...

It tells what becomes of cells that were not in a fit, and what calls of Dask-ML do.  Then it takes
files, and a wide table that it makes; of each the columns of every kind, and all.  Numbers, and
dates as seconds, are filled and standardised, texts become an input a category, and all are summed.
Figures: inputs, seconds of the processor to fit and to make them, MB above the start, the lesser of
two rounds in a process; these by streamkern's; how many inputs both make, and how far apart.
"""

import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import click
import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask_ml import impute
from dask_ml import preprocessing as lazy
from pyarrow import parquet
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from streamkern.extensions.tables.column_encoders import Categories
from streamkern.extensions.tables.table_rows import files_of, opened
from streamkern.runtime.memory import peak_bytes, reset_peak
from streamkern.runtime.threads import blas_threads, processor
from streamkern.statistics import ColumnStatistics

# Numbers and rows held at once, rows that are compared, and inputs of a column of texts.
_AT_ONCE, _GROUP, _COMPARED, _MOST, _ROUNDS = 1 << 21, 1 << 14, 100, 64, 2
_WIDE_ROWS, _WIDE, _TEXTS, _LEVELS, _MISSING = 20_000, 2000, 200, 50, 0.05


# Each returns names of inputs, and what makes those of a file: first rows, and sums of all.
def by_streamkern(path: str) -> Any:
    def blocks(path: str, recipe: Any) -> Iterator[Any]:
        source = opened(files_of([path]), recipe, **how).source
        for reader in map(source.reader, source.shards(1 << 20)):
            yield from reader.blocks(min(_AT_ONCE // source.n_features, _GROUP))
            reader.noted.warn(set())

    def scaled(X: Any) -> Any:
        X[:, at] = (X[:, at] - found.mean) / np.sqrt(found.variance + (found.variance == 0))
        return X

    how: dict[str, Any] = {"options": {}, "targets": None, "with_targets": False}
    recipe = opened(files_of([path]), None, **how).source.recipe
    numbers = [each for each in recipe.columns if not isinstance(each, Categories)]
    names, narrow = recipe.feature_names, replace(recipe, columns=numbers)
    at = np.flatnonzero(np.isin(names, narrow.feature_names))
    found = ColumnStatistics(max(len(at), 1))
    found.update(blocks(path, narrow) if numbers else ())
    return names, lambda path=path: added(scaled(each.X) for each in blocks(path, recipe))


def by_dask_ml(path: str) -> Any:
    frame, steps = in_seconds(dd.read_parquet(path, split_row_groups=True)), list[Any]()
    texts = [*frame.select_dtypes("string").columns]
    names = [name for name in frame.columns if name not in texts]
    if numbers := list(names):
        imputer = impute.SimpleImputer().fit(frame[numbers])
        scaler = lazy.StandardScaler().fit(imputer.transform(frame[numbers]))
        steps.append(lambda X: scaler.transform(imputer.transform(X[numbers])))
    if texts:
        known = lazy.Categorizer(columns=texts).fit(frame[texts]).categories_
        # All at once: `Categorizer.transform` takes each in turn, which fails where they are many.
        encoder = lazy.DummyEncoder().fit(frame[texts].astype(known))
        steps.append(lambda X: encoder.transform(X[texts].astype(known)))
        names += [f"{name}={level}" for name in texts for level in known[name].categories]

    def made(other: str = path) -> Any:
        X = in_seconds(dd.read_parquet(other, split_row_groups=True))
        parts = zip(*(step(X).to_delayed(optimize_graph=False) for step in steps), strict=True)
        return added(np.hstack(dask.compute(*each), dtype=float) for each in parts)

    return names, made


def by_scikit_learn(path: str) -> Any:
    table, texts = pd.read_parquet(path), make_column_selector(dtype_include="string")
    seconds = FunctionTransformer(in_seconds, feature_names_out="one-to-one")
    scaled = make_pipeline(seconds, SimpleImputer(add_indicator=True), StandardScaler())
    how: dict[str, Any] = {"handle_unknown": "infrequent_if_exist", "max_categories": _MOST}
    how |= {"feature_name_combiner": "{}={}".format, "sparse_output": False}
    kinds = (scaled, make_column_selector(dtype_exclude="string")), (OneHotEncoder(**how), texts)
    fitted = make_column_transformer(*kinds, verbose_feature_names_out=False).fit(table)
    names = fitted.get_feature_names_out().tolist()
    step = min(_AT_ONCE // len(names), _GROUP)

    def made(other: str = path) -> Any:
        rows = table if other == path else pd.read_parquet(other)
        return added(fitted.transform(rows[i : i + step]) for i in range(0, len(rows), step))

    return names, made


def in_seconds(frame: Any) -> Any:
    times, epoch = frame.select_dtypes("datetime"), pd.Timestamp("1970-01-01")
    return frame.assign(**{name: (times[name] - epoch).dt.total_seconds() for name in times})


def added(parts: Iterator[Any]) -> Any:
    first = next(parts)
    rows, sums = first[:_COMPARED].copy(), first.sum(axis=0)
    return np.vstack([rows, sums + sum(part.sum(axis=0) for part in parts)])


def measure(path: str, contender: Any) -> Any:
    warnings.simplefilter("ignore")
    reset_peak()
    figures, resident = [], peak_bytes()
    with blas_threads(1), dask.config.set(scheduler="synchronous"):
        for _ in range(_ROUNDS):
            begun = process_time()
            names, made = contender(path)
            fitted, found = process_time(), made()
            figures.append([fitted - begun, process_time() - fitted, peak_bytes() - resident])
    found[-1] /= parquet.read_metadata(path).num_rows
    return np.min(figures, axis=0) / [1, 1, 1e6], pd.DataFrame(found, columns=names)


def compare(path: str, table: str) -> None:
    ours: Any = None
    for contender in CONTENDERS:
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            figures, X = alone.submit(measure, path, contender).result()
        ours = ours or (figures, X)
        both = X.columns.intersection(ours[1].columns)
        apart = (X[both] - ours[1][both]).abs().max(axis=None)
        said = "{:9.2f}{:9.2f}{:7.0f}{:8.2f}{:7.2f}{:7.2f}".format(*figures, *figures / ours[0])
        print(f"{table:24}{contender.__name__:16}{X.shape[1]:>7}{said}{len(both):>7}{apart:8.0e}")


def wide() -> Any:
    rng, shape = np.random.default_rng(0), (_WIDE_ROWS, _WIDE)
    X = pd.DataFrame(rng.standard_normal(shape)).mask(rng.random(shape) < _MISSING)
    texts = {f"x{j}": pd.qcut(X[j], _LEVELS).astype("str") for j in range(_TEXTS)}
    return X.add_prefix("x").assign(**texts)


def cells(place: str) -> None:
    table = pd.DataFrame({"number": np.arange(400) % 7.0, "text": np.repeat(["oats", "hay"], 200)})
    table.to_parquet(f"{place}/fit.parquet", row_group_size=100)
    asked, odd = dict[str, Any](), [("text", value) for value in ("rye", None, "hay")]
    odd += [("number", np.nan), ("number", "high")]
    for contender, (column, value) in product(CONTENDERS, odd):
        path = f"{place}/{column} {value}.parquet"
        table[-1:].assign(**{column: [value]}).to_parquet(path)
        names, made = contender(f"{place}/fit.parquet")
        name = f"{contender.__name__}, {column} {value}, {names}"
        asked[name] = lambda made=made, path=path: made(path)[0].round(2)
    frame = dd.from_pandas(table.replace({0: np.nan, "hay": None}), npartitions=4)
    holes, known = frame[["number"]], lazy.Categorizer().fit_transform(frame[["text"]])
    many = dd.from_pandas(pd.DataFrame({f"k{j}": table["text"] for j in range(_TEXTS)}))
    asked |= {
        "OneHotEncoder": lambda: lazy.OneHotEncoder(handle_unknown="ignore").fit(known),
        "OrdinalEncoder": lambda: lazy.OrdinalEncoder().fit_transform(known).min().compute(),
        "Categorizer": lambda: lazy.Categorizer().fit_transform(many).npartitions,
        "RobustScaler": lambda: lazy.RobustScaler().fit(holes),
        "of arrays": lambda: lazy.RobustScaler().fit(holes.to_dask_array(lengths=True)).center_,
    }
    for name, call in asked.items():
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as said:
            try:
                found = str(call())
            except Exception as error:  # noqa: BLE001  which one is what is asked
                found = f"{type(error).__name__}: {error}"
        print(name, found, *(each.message for each in said), sep="\n    ")


@click.command(help=__doc__)
@click.argument("paths", nargs=-1, type=Path)
def main(paths: tuple[Path, ...]) -> None:
    kinds = {"numbers": "number", "texts": "string", "dates": "datetime"}
    with TemporaryDirectory() as place:
        cells(place)
        print(processor())
        for path in (*paths, None):
            table = pd.read_parquet(path) if path else wide()
            for kind, types in (*kinds.items(), ("all", [*kinds.values()])):
                part, file = table.select_dtypes(types), f"{place}/rows.parquet"
                if width := part.shape[1]:
                    part.to_parquet(file, row_group_size=min(_AT_ONCE // width, _GROUP))
                    compare(file, f"{path.stem if path else 'wide'}, {kind}")


CONTENDERS = by_streamkern, by_dask_ml, by_scikit_learn
if __name__ == "__main__":
    main()
