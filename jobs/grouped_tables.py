"""Real tables whose rows come in groups: python jobs/grouped_tables.py DATA [--flights FILE].

Flights by day, rented bicycles by week, houses by region, and proteins as a control.  A fifth
of the groups is held out and chooses nothing.  For every kind of folds: the error that
cross-validation says, and those of the model and of the mean on the held-out groups, in standard
deviations of the target; and the penalty.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern import RandomFeatureRidge

WAYS = ("as it comes", "rows", "blocks", "space", "groups", "time")
# What tells the target of others: of flights times that are known later, of bicycles its parts.
LEAKS = {
    "nycflights13": ("dep_time", "arr_time", "dep_delay", "air_time"),
    "uci_bike": ("x15", "x16"),
}
MOST_ROWS = 100_000


class Table(NamedTuple):
    X: Any
    y: Any
    groups: Any  # in the order of time, where there is one
    in_time: bool = False


def stored(folder: Path, name: str) -> tuple[Any, Any, dict[str, Any]]:
    with np.load(folder / name / "data.npz") as data:
        X, y, names = data["X"], data["y"], data["feature_names"].tolist()
    known = np.isfinite(y) & np.isfinite(X).all(axis=1)
    X, y = X[known], y[known]
    columns = dict(zip(names, X.T, strict=True))
    kept = [i for i, each in enumerate(names) if each not in LEAKS.get(name, ())]
    return X[:, kept], y, columns


def cells(X: Any, n: int) -> Any:
    from scipy.cluster.vq import kmeans2

    return kmeans2((X - X.mean(0)) / X.std(0), n, minit="++", seed=0)[1]


def tables(folder: Path, flights: Path | None) -> Iterator[tuple[str, Table]]:
    X, y, columns = stored(folder, "nycflights13")
    yield "nycflights13 by day", Table(X, y, columns["month"] * 100 + columns["day"], in_time=True)
    X, y, _ = stored(folder, "uci_bike")
    yield "bike by week", Table(X, y, np.arange(len(y)) // 168, in_time=True)
    X, y, _ = stored(folder, "california")
    yield "california by region", Table(X, y, cells(X[:, :2], 50))
    X, y, _ = stored(folder, "uci_protein")
    yield "protein, no groups", Table(X, y, np.random.default_rng(0).integers(0, 100, len(y)))
    if flights is not None:
        import pandas as pd

        frame = pd.read_parquet(flights)
        day = frame["date"].dt.dayofyear
        some = day.isin(np.random.default_rng(0).permutation(day.unique())[:60])
        some &= np.arange(len(frame)) % 8 == 0
        frame, day = frame[some].reset_index(drop=True), day[some].to_numpy()
        minutes = frame["date"].dt.hour * 60 + frame["date"].dt.minute
        frame = frame.assign(minutes=minutes, weekday=frame["date"].dt.dayofweek)
        yield (
            "flights by day",
            Table(
                frame.drop(columns=["delay", "date"]),
                frame["delay"].to_numpy(float),
                day,
                in_time=True,
            ),
        )


def measured(table: Table, way: str) -> str:
    rng, groups = np.random.default_rng(1), np.asarray(table.groups)
    different, counts = np.unique(groups, return_counts=True)
    order = rng.permutation(len(different))
    apart, others = order[: len(order) // 5], order[len(order) // 5 :]
    others = others[np.cumsum(counts[others]) <= MOST_ROWS]
    kept, test = (np.flatnonzero(np.isin(groups, different[some])) for some in (others, apart))
    take = (lambda rows: table.X.iloc[rows]) if hasattr(table.X, "iloc") else table.X.__getitem__
    given = {"groups": groups[kept]} if way == "groups" else {}
    given = {"times": groups[kept]} if way == "time" else given
    fold_by = way if way in ("rows", "blocks", "space") else "auto"
    model = RandomFeatureRidge(fold_by=fold_by).fit(take(kept), table.y[kept], **given)
    errors, spread = model.predict(take(test)) - table.y[test], table.y[kept].std()
    said, had = model.report_["cv_rmse"] / spread, np.sqrt(np.mean(errors**2)) / spread
    noticed = ", noticed" if "crowding" in model.report_ else ""
    mean = np.sqrt(np.mean((table.y[test] - table.y[kept].mean()) ** 2)) / spread
    figures = f"said {said:.3f}, had {had:.3f}, the mean {mean:.3f}, alpha {model.alpha_:.3g}"
    return f"{way}: {figures}{noticed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of data sets")
    parser.add_argument("--flights", type=Path, help="flights-3m.parquet of vega-datasets 3.2.1")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, table in tables(asked.data, asked.flights):
        print(name, f"({len(table.y):,} rows)", flush=True)
        for way in WAYS:
            if way != "time" or table.in_time:
                print("   ", measured(table, way), flush=True)


if __name__ == "__main__":
    main()
