"""What the record holds: small rows, and the commands and Python calls that are run on them.

A case is a list of command lines, from commands.toml, or a function that returns what is to be
kept: arrays, plain values, and dictionaries of them.  Both run in a folder of their own that holds
the rows.  Of the package only public names are used, so that a case outlives every module.
"""

import atexit
import os
import pickle
import shutil
import tempfile
import tomllib
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import h5py
import numpy as np
import pandas as pd
from dask.callbacks import Callback
from threadpoolctl import threadpool_limits

import streamkern as sk
from streamkern.errors import MissingExtensionError

FILES = Path(__file__).parent / "files"
COMMANDS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text())
# Enough noise for every chosen penalty to stay well above the rounding of the sums.
NOISE = 1.0


Values = dict[str, Any]


def rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, 3) and a target, by arithmetic that gives the same bits everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] * X[:, 1] + X[:, 2] - 0.2 * X[:, 0] ** 3 + NOISE * rng.standard_normal(n)


def write_rows(path: str, n: int, seed: int) -> None:
    """Write one file with targets, labels, weights and bad rows, each a dataset."""
    X, y = rows(n, seed)
    bad = np.where(np.arange(n)[:, None] % 29, X, np.nan)
    with h5py.File(path, "w") as file:
        file["X"], file["y"], file["bad"], file["weight"] = X, y, bad, 0.5 * (np.arange(n) % 4)
        file["three"] = np.stack([y, y * y, X[:, 1] + y], axis=1)
        file["label"] = np.where(y > 0.3, b"high", b"low")
        file["kind"] = (y > -0.8).astype(int) + (y > 0.5)


def write_table(path: str, n: int, seed: int) -> None:
    """Write a table with text, dates and missing cells."""
    (X, y), place = rows(n, seed), np.arange(n)
    columns = {
        "age": np.where(place % 17, np.round(40 + 9 * X[:, 0]), np.nan),
        "town": np.array(["Ulm", "Bonn", "Aue"])[place * 7 % 3],
        "since": pd.to_datetime("2001-02-03") + pd.to_timedelta(place * 31 % 900, unit="D"),
        "size": X[:, 1].round(4),
        "grade": np.array(["low", "mid", "top"])[place * 5 % 3],
        "income": np.where(y > 0, "high", "low"),
        "price": (y + (place * 7 % 3)).round(4),
    }
    pd.DataFrame(columns).to_csv(path, index=False)


@cache
def data() -> str:
    """Return a folder that holds all rows, of which every case has a copy."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    with chdir(folder):
        write_data()
    return folder


def write_data() -> None:
    """Write all rows into the current folder."""
    for number, name in enumerate(("train", "test", "part-0", "part-1", "part-2", "part-3")):
        write_rows(f"{name}.h5", 60 if number else 200, number)
    write_table("people.csv", 200, 8)
    write_table("more.csv", 60, 9)
    X, y = rows(80, 7)
    np.savez("arrays.npz", X=X, y=y)
    np.savetxt("plain.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d", comments="")
    shutil.copytree(FILES, "files")


def write_long() -> None:
    """Write as many rows as make several shards, and so several sums to be merged."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((560_000, 2), dtype=np.float32)
    noise = NOISE * rng.standard_normal(len(X), dtype=np.float32)
    with h5py.File("long.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(8192, 2))
        file.create_dataset("y", data=X[:, 0] * X[:, 1] + noise, chunks=(8192,))
    os.utime("long.h5", (1e9, 1e9))


def trained(**options: Any) -> sk.RandomFeatureRidge:
    """An estimator of few features with a given penalty, unless others are asked for."""
    return sk.RandomFeatureRidge(
        **({"n_components": 32, "alpha": 1.0, "kernel": "gaussian"} | options)
    )


def told(model: Any, X: Any = None) -> Values:
    """What a model has learnt, and what it says of new rows."""
    X = rows(9, 1)[0] if X is None else X
    names = "coef_", "intercept_", "alpha_", "metric_", "components_", "explained_variance_"
    methods = "predict", "predict_proba", "decision_function", "transform"
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    said = {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}
    return {"class": type(model).__name__, **found, **said}


def refusals() -> Values:
    X, y = rows(60)
    model = trained().fit(X, y)
    calls = {
        "unfitted": lambda: trained().predict(X),
        "columns": lambda: model.predict(X[:, :2]),
        "lengths": lambda: trained().fit(X, y[:-1]),
        "weights": lambda: trained().fit(X, y, sample_weight=-np.ones(60)),
        "text": lambda: trained().fit(X.astype(str), y),
        "flag": lambda: trained(paired="yes").fit(X, y),
        "metric": lambda: trained(metric=-np.eye(3)).fit(X, y),
        "labels": lambda: sk.RandomFeatureClassifier(n_components=16).fit(X, np.ones(60)),
        "forgotten": lambda: trained().partial_fit(X, y).forget(X + 1, y),
        "moments": lambda: model.update(X, y),
        "exact": lambda: sk.ExactKernelRidge(max_bytes=1000).fit(X, y),
        "singular": lambda: trained(alpha=0.0, kernel=sk.Gaussian(1e6)).fit(X, y),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = f"gives {call()}"
        except MissingExtensionError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is the result
            found[name] = f"{type(error).__name__}: {error}"
    return found


def ridge() -> Values:
    X, y = rows()
    model = trained(alpha="cv").fit(X, y)
    return told(model) | {
        "deviations": model.predict(X[:9], return_std=True)[1],
        "local": pickle.loads(pickle.dumps(model.predictor_)).predict(X[:9]),  # noqa: S301  ours
        "gradients": model.gradient_outer_product(X, y),
        "errors": model.evaluate(X, y) | {"score": model.score(X, y)},
        "loo": model.diagnose(X, y)["loo_rmse"],
        "weighted": trained().fit(X, y, sample_weight=np.arange(200) % 3).coef_,
        "report": sorted(model.report_),
    }


def growing() -> Values:
    (X, y), names = rows(), np.array(["ash", "elm", "oak"])
    labels, found = names[(y > -0.5).astype(int) + (y > 0.6)], {}
    regression = trained(precision="double")
    options = {"n_components": 32, "alpha": 1.0, "precision": "double"}
    classifier = sk.RandomFeatureClassifier("gaussian", **options)
    for model, t, first in (regression, y, {}), (classifier, labels, {"classes": names}):
        name = type(model).__name__
        found[f"{name} first"] = told(model.partial_fit(X[:80], t[:80], **first))
        found[f"{name} more"] = told(model.update(X[80:], t[80:]))
        found[f"{name} less"] = told(model.forget(X[80:150], t[80:150]))
    isotonic = classifier.calibrate(X, labels, calibration="isotonic")
    return found | {"isotonic": told(isotonic)}


def transformers() -> Values:
    fourier, gaussian = sk.RandomFourierFeatures, sk.Gaussian(2.0)
    made = [fourier(sk.Matern(1.5, nu=2.5), 16, paired=False), sk.Identity()]
    made += [fourier("laplacian", 17, orthogonal=False), sk.StructuredFourierFeatures(gaussian, 16)]
    made += [sk.QuasiRandomFourierFeatures(sk.Cauchy(2.0), 16)]
    made += [sk.GridFourierFeatures(gaussian, 64), sk.Nystroem(sk.Polynomial(degree=2), 8)]
    made += [sk.Nystroem(sk.RationalQuadratic(), 12)]
    return {str(i): told(each.fit(rows()[0])) for i, each in enumerate(made)}


def kernels() -> Values:
    made = [sk.Cauchy(1.5), sk.Gaussian((1.0, 2.0, 3.0)), sk.InverseMultiquadric(1.5)]
    made += [sk.Laplacian(2.0), sk.Linear(), sk.Matern(1.5, nu=1.7), sk.Periodic(1.5, period=3.0)]
    made += [sk.Polynomial(degree=3, constant=0.5), sk.RationalQuadratic(1.5, shape=0.7)]
    X, Z = rows(20)[0], rows(10, 1)[0]
    return {f"{i} {type(kernel).__name__}": kernel(X, Z) for i, kernel in enumerate(made)}


def exact() -> Values:
    X, y = rows(100)
    chosen = sk.ExactKernelRidge(alpha=[0.1, 1.0, 10.0], metric=np.diag([1.0, 0.5, 0.0]))
    with threadpool_limits(1):  # on which the bits of the factorisation depend
        given = sk.ExactKernelRidge("matern32", alpha=0.5, leave_one_out=True).fit(X, y)
        weighted = chosen.fit(X, y, sample_weight=1.0 + np.arange(100) % 3)
    return {"given": told(given), "chosen": told(weighted), "residuals": given.loo_residuals_}


def fits() -> Values:
    given = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.1]])
    metrics = {"given": given, "learnt": "learn:2", "diagonal": "diagonal:1"}
    made = {name: trained(metric=metric).fit(*rows()) for name, metric in metrics.items()}
    many, ways = trained(n_components=64).fit(*rows()), ("forward", "lasso")
    made |= {way: sk.sparsify(many, 10, method=way) for way in ways}
    made["tuned"] = trained(alpha="gcv").tune(*rows(), kernels=["gaussian", "laplacian"])
    return {name: told(model) for name, model in made.items()}


def moments() -> Values:
    X, y = rows()
    model = trained(alpha="cv")
    first = model.moments(X[:100], y[:100])
    first.save("first.h5")
    both = sk.load_moments("first.h5").merge(model.moments(X[100:], y[100:], like=first))
    left = told(trained().solve(both.forget(X[:50], y[:50])))
    return {"merged": told(model.solve(both)), "left": left}


def sums() -> Values:
    source = sk.open_hdf5(["train.h5", "part-0.h5"])
    columns = sk.accumulate(source, sk.ColumnStatistics(4), shard_rows=50).statistic
    drawn = sk.RandomFourierFeatures(sk.Gaussian(1.5), 16).draw(3)
    passed = sk.accumulate(source, sk.Moments(drawn, 1), shard_rows=50, block_rows=20)
    found = {"mean": columns.mean, "variance": columns.variance, "cross": passed.statistic.cross}
    return found | {"rows": passed.n_rows, "shards": passed.n_shards}


def containers() -> Values:
    X, y = rows()
    lazy = trained().fit(da.from_array(X, chunks=(60, 3)), da.from_array(y, chunks=60))
    people, more = pd.read_csv("people.csv"), pd.read_csv("more.csv")
    inputs = ["town", "age", "size", "grade"]
    trained().fit(people[inputs], people["price"]).save("table.h5")
    table = sk.load("table.h5")
    return {
        "lazy": told(lazy),
        "table": told(table, more[inputs[::-1]]),
        "recipe": dict(table.recipe_.in_words()),
        "saved": sk.read_recipe("table.h5") == table.recipe_,
    }


def long_pass() -> Values:
    write_long()
    model = trained(n_components=16, fold_by="shards", alpha="cv").fit(sk.open_hdf5("long.h5"))
    return told(model, rows(9)[0][:, :2])


def two_workers() -> Values:
    with sk.connect(n_workers=2):
        return long_pass()


def stopped(fit: Any, n_tasks: int) -> None:
    """Fit until so many tasks have begun, as if Ctrl-C came then."""
    left = iter(range(n_tasks))

    def before(*_: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    one_by_one = dask.config.set(scheduler="synchronous")
    with one_by_one, Callback(pretask=before), suppress(KeyboardInterrupt):
        fit()
        raise AssertionError(f"the fit ended within {n_tasks} tasks")


def resumed() -> Values:
    write_long()
    model, files = trained(n_components=16), sk.open_hdf5("long.h5")
    stopped(lambda: model.fit(files, checkpoint="kept"), 60)
    n_resumed = model.fit(files, checkpoint="kept").report_["resumed_shards"]
    whole = trained(n_components=16).fit(files)
    return {"coef": model.coef_, "whole": whole.coef_, "resumed": n_resumed > 0}


def stored_checkpoint() -> Values:
    # Of arrays, which a checkpoint knows by their values and not by a path.
    model = trained(alpha="cv").fit(*rows(), checkpoint="files/checkpoint")
    return told(model) | {"resumed": model.report_["resumed_shards"]}


def stored_files() -> Values:
    table = pd.read_csv("more.csv").drop(columns=["price", "income"])
    found: Values = {}
    for name in ("ridge", "metric", "table", "classifier", "boosted", "components"):
        model = sk.load(f"files/{name}.h5")
        found[name] = told(model, table if name == "table" else None)
    kept, model = sk.load_moments("files/moments.h5"), trained(n_components=16)
    found["solved"] = told(model.solve(kept))
    found["merged"] = told(model.solve(kept.merge(model.moments(*rows(50), like=kept))))
    found["forgotten"] = told(model.solve(kept.forget(sk.open_hdf5("part-0.h5"))))
    found["like"] = told(trained().fit(*rows(50), like="files/ridge.h5"))
    found["deviations"] = sk.load("files/ridge.h5").predict(rows(9)[0], return_std=True)[1]
    return found


FIT = "fit train.h5 --out m.h5 --components 32 --kernel gaussian"
PREDICT = "predict m.h5 test.h5 --out p.h5"
CASES: dict[str, Any] = {**COMMANDS["commands"]}
for name, options in COMMANDS["fits"].items():
    CASES[name] = [f"{FIT} {options}", f"{PREDICT} --std"]
for name, options in COMMANDS["classifiers"].items():
    evaluated = f"evaluate m.h5 test.h5 --y {options.split()[1]}"
    CASES[name] = [f"{FIT} --classify {options}", f"{PREDICT} --proba", evaluated]
FUNCTIONS = (
    *(refusals, ridge, growing, transformers, kernels, exact, fits, moments, sums, containers),
    *(stored_files, stored_checkpoint, long_pass, two_workers, resumed),
)
CASES |= {f"python-{each.__name__.replace('_', '-')}": each for each in FUNCTIONS}
SLOW, ON_CLUSTER = {"demo"}, {"python-two-workers"}
NEED_ONNX, NEED_SAME_LIBRARIES = {"onnx"}, {"python-stored-checkpoint"}
# How far norms and projections may differ on other processors, by default a ten-thousandth: small
# penalties, which are chosen for these few rows, magnify rounding.
LOOSE = ("penalty-", "sparse-", "map-nystroem", "python-", "tune-", "diagnose", "report", "check")
LOOSE += ("components-auto",)
TOLERANCES = {name: 1e-2 for name in CASES if name.startswith(LOOSE)}
