"""`streamkern demo`."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from streamkern._typing import Array
from streamkern.cli.console import Console, command
from streamkern.cli.job import place_of

_NOISE = 0.5
_INPUTS = 8
_ROWS_AT_ONCE = 250_000
_FEW = 4000
_TEST = 20_000


@command(
    click.option("--out", default="demo", metavar="DIR", help="Where files are written."),
    click.option("--rows", type=click.IntRange(min=_FEW), default=4_000_000, help="n."),
    click.option("--components", type=click.IntRange(min=2), default=1024, help="D."),
)
def demo(console: Console, out: str, rows: int, components: int) -> None:
    """Fit a data set whose features do not fit in memory, and compare with smaller ways.

    Writes train.h5, test.h5 and model.h5 into DIR, replacing them.
    """
    import numpy as np

    from streamkern.estimators.exact_kernel_ridge import ExactKernelRidge
    from streamkern.estimators.problems import Regression
    from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
    from streamkern.kernels import Gaussian, Linear
    from streamkern.parameters.parameters import Parameters
    from streamkern.runtime.memory import in_words, total_bytes
    from streamkern.sources import open_hdf5
    from streamkern.storage.outputs import make_folder

    folder = make_folder(out)
    train, test = folder / "train.h5", folder / "test.h5"
    console.line(f"Writing {rows:,} rows of {_INPUTS} inputs to {train}, {_TEST:,} to {test}.")
    X_few, y_few = (first[:_FEW].astype(float) for first in _write(train, rows, seed=0))
    X_test, y_test = (first.astype(float) for first in _write(test, _TEST, seed=1))
    few, source = (X_few, y_few), open_hdf5(train)
    # Inputs are standard normal, so that all models see the same rows in the same units.
    given: dict[str, Any] = {"alpha": 0.1, "standardize": False}
    ridge: Any = partial(RandomFeatureRidge, n_components=components, **given)
    trials: list[tuple[str, int, int, Any, tuple[Any, ...]]] = [
        ("linear ridge", rows, _INPUTS, ridge(Linear()), (source,)),
        ("exact kernel ridge", _FEW, _FEW, ExactKernelRidge(Gaussian(3.0), **given), few),
        ("random features", _FEW, components, ridge(Gaussian(3.0)), few),
        ("random features", rows, components, model := ridge(Gaussian(3.0)), (source,)),
    ]
    found: list[dict[str, Any]] = []
    job = Regression().job(Parameters(Gaussian(3.0), n_components=components, **given))
    with place_of(console, {}, job.plan(source)):
        for name, n_rows, order, estimator, data in trials:
            begun = time.perf_counter()
            estimator.fit(*data)
            seconds = time.perf_counter() - begun
            rmse = float(np.sqrt(np.mean((estimator.predict(X_test) - y_test) ** 2)))
            trial = {"model": name, "rows": n_rows, "matrix_bytes": 8.0 * order**2}
            found.append(trial | {"seconds": seconds, "test_rmse": rmse})
    model.save(folder / "model.h5", force=True)
    report = model.report_
    console.table(
        f"{rows:,} rows, {components:,} random features",
        [
            ("this machine's memory", in_words(total_bytes())),
            ("the file", in_words(train.stat().st_size)),
            ("all features as one array", in_words(8.0 * rows * components)),
            ("the exact kernel matrix", in_words(8.0 * rows**2)),
            ("peak of a process here", in_words(report["peak_worker_bytes"])),
            ("rows a second", f"{report['rows_per_second']:,.0f}"),
        ],
    )
    console.line()
    console.table(
        f"Errors on {_TEST:,} new rows (noise alone: {_NOISE})",
        [
            (
                each["model"],
                f"{each['rows']:,}",
                in_words(each["matrix_bytes"]),
                f"{each['seconds']:.1f}",
                f"{each['test_rmse']:.4f}",
            )
            for each in found
        ],
        header=("model", "rows fitted", "matrix to solve", "seconds", "test rmse"),
    )
    console.line(f"The model: streamkern show {folder / 'model.h5'}")
    console.result({"trials": found, "report": report, "model": str(folder / "model.h5")})


def _write(path: Path, n_rows: int, seed: int) -> tuple[Array, Array]:
    """Write standard normal inputs and a smooth function of six, with noise; return the first."""
    import numpy as np

    from streamkern.storage.hdf5_files import RowWriter

    rng = np.random.default_rng(seed)
    with RowWriter.create(path, force=True) as writer:
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            n = min(_ROWS_AT_ONCE, n_rows - start)
            X = rng.standard_normal((n, _INPUTS), dtype=np.float32)
            y = np.sin(X[:, 0] + X[:, 1]) + 0.5 * (X[:, 2] * X[:, 3] + X[:, 5]) + np.cos(X[:, 4])
            y += _NOISE * rng.standard_normal(n, dtype=np.float32)
            writer.append("X", X)
            writer.append("y", y)
            if start == 0:
                first = X, y
    return first
