"""What the record holds: small rows, and the commands and Python calls that are run on them.

A case is a list of command lines, or a function that returns what is to be kept: arrays, and plain
values.  Both run in a folder of their own that holds the rows.  Of the package only public names
are used, so that a case outlives every module.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.local
import h5py
import numpy as np
import pandas as pd

import streamkern as sk

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = Path(__file__).parent / "files"
# Enough noise for every chosen penalty to stay well above the rounding of the sums.
NOISE = 0.4


@dataclass(frozen=True)
class Case:
    """Command lines or a function, and how far what it gives may depend on the processor."""

    steps: tuple[str, ...] | Callable[[], dict[str, Any]]
    tolerance: float = 1e-4
    is_slow: bool = False
    on_cluster: bool = False
    needs: str | None = None
    same_libraries: bool = False


def rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, 3) and a target, by arithmetic that gives the same bits everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] * X[:, 1] + X[:, 2] - 0.2 * X[:, 0] ** 3 + NOISE * rng.standard_normal(n)


def write_rows(path: str, n: int, seed: int) -> None:
    """Write one file with targets, labels, weights and bad rows, each a dataset."""
    X, y = rows(n, seed)
    place = np.arange(n)
    bad = X.copy()
    bad[::29, 1] = np.nan
    with h5py.File(path, "w") as file:
        file["X"], file["y"], file["bad"] = X, y, bad
        file["three"] = np.stack([y, y * y, X[:, 1] + y], axis=1)
        file["label"] = np.where(y > 0.3, b"high", b"low")
        file["kind"] = (y > -0.8).astype(int) + (y > 0.5)
        file["weight"] = 0.5 * (place % 4)


def write_table(path: str, n: int, seed: int) -> None:
    """Write a table with text, dates and missing cells."""
    X, y = rows(n, seed)
    place = np.arange(n)
    frame = pd.DataFrame(
        {
            "age": np.where(place % 17, np.round(40 + 9 * X[:, 0]), np.nan),
            "town": np.array(["Ulm", "Bonn", "Aue"])[place * 7 % 3],
            "since": pd.to_datetime("2001-02-03") + pd.to_timedelta(place * 31 % 900, unit="D"),
            "size": X[:, 1].round(4),
            "grade": np.array(["low", "mid", "top"])[place * 5 % 3],
            "income": np.where(y > 0, "high", "low"),
            "price": (y + (place * 7 % 3)).round(4),
        }
    )
    frame.to_csv(path, index=False)


def write_data() -> None:
    """Write all rows into the current folder."""
    write_rows("train.h5", 200, 0)
    write_rows("test.h5", 60, 1)
    for number in range(4):
        write_rows(f"part-{number}.h5", 60, 10 + number)
    write_table("people.csv", 200, 2)
    write_table("more.csv", 60, 3)
    X, y = rows(80, 4)
    np.savez("arrays.npz", X=X, y=y)
    np.savetxt("plain.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d", comments="")
    shutil.copytree(FILES, "files", dirs_exist_ok=True)


def write_long() -> None:
    """Write as many rows as make several shards, and so several sums to be merged."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((560_000, 2), dtype=np.float32)
    noise = NOISE * rng.standard_normal(len(X), dtype=np.float32)
    with h5py.File("long.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(8192, 2))
        file.create_dataset("y", data=X[:, 0] * X[:, 1] + noise, chunks=(8192,))
    os.utime("long.h5", (1e9, 1e9))


def fitted(options: str, *, predicted: str = "", x: str = "X") -> tuple[str, ...]:
    """Command lines that fit a model, predict with it, and evaluate it."""
    return (
        f"fit train.h5 --out m.h5 --x {x} {options}",
        f"predict m.h5 test.h5 --out p.h5 {predicted}",
    )


def trained(**options: Any) -> sk.RandomFeatureRidge:
    """An estimator of few features with a given penalty, unless others are asked for."""
    return sk.RandomFeatureRidge(**({"n_components": 32, "alpha": 1.0} | options))


# Commands
KERNELS = {
    "gaussian": "gaussian",
    "laplacian": "laplacian",
    "matern12": "matern12",
    "matern52": "matern52",
    "matern": "matern(nu=2)",
    "rational-quadratic": "rational-quadratic(shape=2)",
    "inverse-multiquadric": "inverse-multiquadric",
    "cauchy": "cauchy",
    "periodic": "periodic(period=7)",
    "sum": "gaussian+0.5*laplacian",
    "product": "gaussian[0-1]*periodic(period=7)[2]",
    "columns": "matern32[0,1]+cauchy[2]",
}
PENALTIES = {
    "number": "--alpha 0.7",
    "cv": "--alpha cv",
    "cv-grid": "--alpha 0.01,0.1,1,10,100",
    "cv-blocks": "--alpha cv --fold-by blocks --folds 4",
    "gcv": "--alpha gcv",
    "loo": "--alpha loo --alphas 0.1,1,10",
    "evidence": "--alpha evidence",
    "per-target": "--alpha cv --per-target --y three",
    "targets": "--alpha gcv --y three",
    "one-standard-error": "--alpha cv --one-standard-error",
}
MAPS = {
    "iid": "--map iid",
    "phase": "--map orthogonal --phase",
    "sorf": "--map sorf",
    "qmc": "--map qmc",
    "halton": "--map halton",
    "grid": "--map grid --components 64",
    "nystroem": "--map nystroem --kernel matern32",
    "nystroem-uniform": "--map nystroem-uniform --kernel polynomial(degree=2)",
    "nystroem-pivoted": "--map nystroem-pivoted --kernel gaussian[0-1]+cauchy[2]",
    "binning": "--map binning --kernel laplacian",
    "sketch": "--map sketch --kernel polynomial(degree=3)",
    "identity": "--map identity --kernel linear",
}
OTHERS = {
    "double": "--alpha 1 --components 33 --precision double --no-intercept --seed 3",
    "own-units": "--alpha 1 --components 32 --no-standardize --length-scale 1.5,2,3",
    "components-auto": "--components auto",
    "sparse": "--components 64 --sparse 12 --alpha 1",
    "sparse-auto": "--components 32 --sparse auto --sparse-method omp",
    "sparse-lasso": "--components 32 --sparse 9 --alpha 1 --sparse-method lasso",
    "metric-learn": "--components 32 --alpha 1 --metric learn:2",
    "metric-diagonal": "--components 32 --alpha 1 --metric diagonal:1",
    "weights": "--components 32 --alpha cv --weights weight",
    "bad-rows-skip": "--components 32 --alpha 1 --x bad --on-bad-rows skip",
}
CLASSIFIERS = {
    "binary": "--y label",
    "several": "--y kind --calibration isotonic",
    "weighted": "--y kind --class-weight balanced --weights weight --alpha 1",
    "uncalibrated": "--y label --calibration none --alpha gcv --per-target",
}
COMMANDS = {
    f"kernel-{name}": fitted(f"--components 32 --alpha 1 --kernel {kernel}")
    for name, kernel in KERNELS.items()
}
COMMANDS |= {
    f"penalty-{name}": fitted(f"--components 32 {options}", predicted="--std")
    for name, options in PENALTIES.items()
}
COMMANDS |= {
    f"map-{name}": fitted(f"--components 32 --alpha 1 {options}") for name, options in MAPS.items()
}
COMMANDS |= {f"fit-{name}": fitted(options) for name, options in OTHERS.items()}
COMMANDS |= {
    f"classifier-{name}": (
        f"fit train.h5 --out m.h5 --components 32 --classify {options}",
        "predict m.h5 test.h5 --out p.h5 --proba",
        f"evaluate m.h5 test.h5 --y {options.split()[1]}",
    )
    for name, options in CLASSIFIERS.items()
}
COMMANDS |= {
    f"boosting-{way}": (
        f"fit train.h5 --out m.h5 --y {y} --classify --boost 3:{way} --components 16 --alpha 1",
        "predict m.h5 test.h5 --out p.h5 --proba",
        f"evaluate m.h5 test.h5 --y {y}",
        "show m.h5",
    )
    for way, y in {"gentle": "label", "real": "kind", "discrete": "label"}.items()
}
COMMANDS |= {
    "inspect": ("inspect train.h5 --components 64", "inspect train.h5 part-0.h5 --y label"),
    "dry-run": ("fit train.h5 --out m.h5 --components 32 --dry-run",),
    "diagnose": (
        "fit train.h5 --out m.h5 --components 32 --alpha cv",
        "diagnose m.h5 train.h5 --largest 5",
        "evaluate m.h5 test.h5 --weights weight",
        "evaluate m.h5 test.h5 --x bad --on-bad-rows skip",
        "predict m.h5 test.h5 --x bad --on-bad-rows skip --out p.csv",
        "show m.h5",
    ),
    "like": (
        "fit train.h5 --out a.h5 --components 32 --alpha 1",
        "fit part-0.h5 part-1.h5 --out b.h5 --like a.h5 --alpha 1",
    ),
    "tune-kernels": (
        "tune train.h5 --out m.h5 --components 32 --kernel gaussian,matern32 --alpha 1",
        "predict m.h5 test.h5 --out p.h5",
    ),
    "tune-maps": (
        "tune train.h5 --out m.h5 --components 32 --map orthogonal,nystroem --budget 3",
        "predict m.h5 test.h5 --out p.h5",
    ),
    "tune-classes": ("tune train.h5 --out m.h5 --components 16 --y label --classify",),
    "report": (
        "fit train.h5 --out m.h5 --components 32 --report r.html",
        "fit train.h5 --out c.h5 --components 32 --y kind --classify --report c.html",
    ),
    "moments": (
        "moments part-0.h5 --out m0.h5 --components 32",
        "moments part-1.h5 --out m1.h5 --like m0.h5",
        "merge m0.h5 m1.h5 --out both.h5",
        "solve both.h5 --out gcv.h5 --alpha gcv",
        "solve both.h5 --out cv.h5 --alpha cv --components auto",
        "solve both.h5 --out compact.h5 --alpha 1 --compact --sparse 8",
        "forget both.h5 part-0.h5 --out left.h5",
        "solve left.h5 --out again.h5 --alpha 1",
        "show both.h5",
    ),
    "moments-of-sites": (
        "moments part-0.h5 --out m0.h5 --components 16 --no-standardize --length-scale 2",
        "moments part-1.h5 --out m1.h5 --components 16 --no-standardize --length-scale 2",
        "merge m0.h5 m1.h5 --out both.h5",
        "solve both.h5 --out m.h5 --alpha evidence --no-intercept",
    ),
    "moments-of-classes": (
        "moments part-0.h5 --y kind --classify --out m0.h5 --components 32",
        "moments part-1.h5 --y kind --classify --out m1.h5 --like m0.h5",
        "merge m0.h5 m1.h5 --out both.h5",
        "solve both.h5 --out m.h5 --alpha 1",
        "predict m.h5 test.h5 --out p.h5 --proba",
    ),
    "window": (
        "window part-0.h5 part-1.h5 part-2.h5 --last 2 --keep kept --out a.h5 --components 32",
        "window part-1.h5 part-2.h5 part-3.h5 --last 2 --keep kept --out b.h5 --components 32",
        "predict b.h5 test.h5 --out p.h5",
    ),
    "components": (
        "pca train.h5 --out pca.h5 --components 4 --random-features 32",
        "transform pca.h5 test.h5 --out z.h5",
        "moments train.h5 --out m.h5 --components 32",
        "pca m.h5 --out share.h5 --components 0.5",
        "show pca.h5",
    ),
    "compare": ("compare train.h5 --out c --components 8,16 --seeds 2 --maps iid,qmc-phase",),
    "convert": (
        "convert plain.csv plain.h5 --target d",
        "convert arrays.npz arrays.h5",
        "fit plain.h5 --out m.h5 --components 16 --alpha 1",
        "evaluate m.h5 plain.csv",
    ),
    "table": (
        "convert people.csv people.h5 --target price --ordinal grade=low,mid,top --drop income",
        "convert more.csv more.h5 --like people.h5",
        "fit people.h5 --out m.h5 --components 32",
        "predict m.h5 more.csv --out p.csv --std",
        "evaluate m.h5 more.csv",
        "evaluate m.h5 more.h5",
    ),
    "table-of-classes": (
        "convert people.csv people.h5 --target income --drop price --impute",
        "fit people.h5 --out m.h5 --components 32 --classify",
        "predict m.h5 more.csv --out p.h5 --proba",
        "evaluate m.h5 more.csv",
    ),
    "checkpoint": (
        "fit train.h5 --out m.h5 --components 32 --checkpoint kept",
        "moments train.h5 --out s.h5 --components 32 --checkpoint kept",
    ),
}

COMMANDS |= {
    f"help-{name}": (f"{name} --help",)
    for name in (
        *("demo", "convert", "inspect", "fit", "tune", "predict", "evaluate", "diagnose"),
        *("compare", "moments", "merge", "forget", "solve", "window", "pca", "transform"),
        *("export", "show"),
    )
}
REFUSED_COMMANDS = (
    "fit nothing.h5 --out m.h5",
    "fit train.h5 --out train.h5",
    "fit train.h5 --out m.h5 --alpha most",
    "fit train.h5 --out m.h5 --alpha -1",
    "fit train.h5 --out m.h5 --kernel gausian",
    "fit train.h5 --out m.h5 --kernel gaussian+linear",
    "fit train.h5 --out m.h5 --map binning",
    "fit train.h5 --out m.h5 --map nowhere",
    "fit train.h5 --out m.h5 --components 0",
    "fit train.h5 --out m.h5 --components 10000000",
    "fit train.h5 --out m.h5 --components auto --alpha 1",
    "fit train.h5 --out m.h5 --sparse 40 --components 32",
    "fit train.h5 --out m.h5 --length-scale 1,2",
    "fit train.h5 --out m.h5 --x nothing",
    "fit train.h5 --out m.h5 --x bad",
    "fit train.h5 --out m.h5 --y label",
    "fit train.h5 --out m.h5 --folds 1",
    "fit train.h5 --out m.h5 --boost 3",
    "fit train.h5 --out m.h5 --cluster nothing.yaml",
    "fit train.h5 --out m.h5 --like train.h5",
    "fit people.csv --out m.h5",
    "convert people.csv people.h5 --target nothing",
    "convert people.csv people.h5 --target income --weights price",
    "predict train.h5 test.h5 --out p.h5",
    "predict files/ridge.h5 test.h5 --out p.h5 --proba",
    "predict files/ridge.h5 train.h5 --x three --y y --out p.h5",
    "predict files/ridge.h5 test.h5 --x bad --out p.h5",
    "evaluate files/ridge.h5 test.h5 --y three",
    "merge files/moments.h5 --out m.h5",
    "merge files/moments.h5 files/moments.h5 --out m.h5",
    "solve files/ridge.h5 --out m.h5",
    "forget files/moments.h5 part-2.h5 --out m.h5",
    "diagnose files/classifier.h5 test.h5",
    "show train.h5",
    "window part-0.h5 --last 0 --keep kept --out m.h5",
    "pca train.h5 --out m.h5 --components 90 --random-features 16",
)


# Python
def refused(call: Callable[[], Any]) -> str:
    """Return the class and the sentence of the error that a call raises."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  whatever it is, it is the result
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "nothing is raised"


def refusals() -> dict[str, Any]:
    X, y = rows(60)
    model = trained().fit(X, y)
    calls: dict[str, Callable[[], Any]] = {
        "unfitted": lambda: trained().predict(X),
        "columns": lambda: model.predict(X[:, :2]),
        "lengths": lambda: trained().fit(X, y[:-1]),
        "weights": lambda: trained().fit(X, y, sample_weight=-np.ones(60)),
        "text": lambda: trained().fit(X.astype(str), y),
        "dimensions": lambda: trained().fit(X[:, 0], y),
        "precision": lambda: trained(precision="half").fit(X, y),
        "flag": lambda: trained(paired="yes").fit(X, y),
        "metric": lambda: trained(metric=-np.eye(3)).fit(X, y),
        "alpha": lambda: trained(alpha=[]).fit(X, y),
        "labels": lambda: sk.RandomFeatureClassifier(n_components=16).fit(X, np.ones(60)),
        "algorithm": lambda: sk.RandomFeatureAdaBoost(algorithm="wild").fit(X, y > 0),
        "kernel": lambda: sk.Matern(nu=-1.0)(X, X),
        "map": lambda: sk.RandomBinning(sk.Gaussian(1.0), 16).fit(X),
        "forgotten": lambda: trained().partial_fit(X, y).forget(X + 1, y),
        "moments": lambda: model.update(X, y),
        "file": lambda: sk.load("train.h5"),
        "moments-file": lambda: sk.load_moments("files/ridge.h5"),
        "exact": lambda: sk.ExactKernelRidge(max_bytes=1000).fit(X, y),
        "singular": lambda: trained(alpha=0.0, kernel=sk.Gaussian(1e6)).fit(X, y),
        "compact": lambda: sk.sparsify(model, 64),
        "window": lambda: sk.fit_window(trained(), X, "kept", n_files=2),
    }
    return {"refusals": {name: refused(call) for name, call in calls.items()}}


def ridge() -> dict[str, Any]:
    X, y = rows()
    new = rows(40, 1)[0]
    model = trained(alpha="cv").fit(X, y)
    predictions, deviations = model.predict(new, return_std=True)
    diagnosed, errors = model.diagnose(X, y, n_largest=3), model.evaluate(X, y)
    return {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "alpha": model.alpha_,
        "curve": np.array(model.report_["alpha_curve"]["values"]),
        "predictions": predictions,
        "deviations": deviations,
        "features": model.transform(new[:5]),
        "gradients": model.gradient_outer_product(X, y),
        "score": model.score(X, y),
        "loo": diagnosed["loo_rmse"],
        "rmse": errors["rmse"],
        "attributes": sorted(name for name in vars(model) if name[-1] == "_"),
        "report": sorted(model.report_),
        "parameters": sorted(model.get_params()),
    }


def growing() -> dict[str, Any]:
    X, y = rows()
    model = trained(precision="double").partial_fit(X[:80], y[:80])
    first = model.predict(X[:9])
    more = model.update(X[80:], y[80:]).predict(X[:9])
    less = model.forget(X[80:150], y[80:150]).predict(X[:9])
    weighted = trained().fit(X, y, sample_weight=np.arange(200) % 3).coef_
    return {"first": first, "more": more, "less": less, "weighted": weighted}


def growing_classes() -> dict[str, Any]:
    X, y = rows()
    labels = np.array(["ash", "elm", "oak"])[(y > -0.5).astype(int) + (y > 0.6)]
    model = sk.RandomFeatureClassifier(n_components=32, alpha=1.0, precision="double")
    model.partial_fit(X[:120], labels[:120], classes=["ash", "elm", "oak"])
    first = model.predict_proba(X[:9])
    more = model.update(X[120:], labels[120:]).predict_proba(X[:9])
    less = model.forget(X[:40], labels[:40]).decision_function(X[:9])
    again = model.calibrate(X, labels, calibration="isotonic").predict_log_proba(X[:9])
    return {
        "first": first,
        "more": more,
        "less": less,
        "isotonic": np.maximum(again, -50),
        "classes": model.predict(X[:9]),
        "score": model.score(X, labels),
    }


def boosting() -> dict[str, Any]:
    X, y = rows()
    model = sk.RandomFeatureAdaBoost(
        trained(n_components=16), n_estimators=3, learning_rate=0.5, class_weight="balanced"
    ).fit(X, y > 0)
    staged = model.staged_evaluate(X, y > 0)
    return {
        "probabilities": model.predict_proba(X[:9]),
        "votes": model.decision_function(X[:9]),
        "staged": sorted(staged),
        "rounds": len(model.report_["rounds"]),
    }


def components() -> dict[str, Any]:
    X, _ = rows()
    moments = trained().moments(X, X[:, 0])
    model = sk.RandomFeaturePCA(n_components=3, n_random_features=32).fit(X)
    solved = sk.RandomFeaturePCA(n_components=0.6).solve(moments)
    return {
        "components": model.components_,
        "variance": model.explained_variance_,
        "share": solved.explained_variance_ratio_,
        "scores": model.transform(X[:9]),
        "solved": solved.transform(X[:9]),
    }


def transformers() -> dict[str, Any]:
    X, _ = rows()
    made = (
        sk.RandomFourierFeatures(sk.Matern(1.5, nu=2.5), 16, paired=False),
        sk.RandomFourierFeatures("laplacian", 17, orthogonal=False, random_state=2),
        sk.StructuredFourierFeatures(sk.Gaussian(2.0), 16),
        sk.QuasiRandomFourierFeatures(sk.Cauchy(2.0), 16, sequence="halton"),
        sk.GridFourierFeatures(sk.Gaussian(2.0), 64),
        sk.Nystroem(sk.Polynomial(degree=2), 8),
        sk.Nystroem(sk.RationalQuadratic(), 12, landmarks="pivoted"),
        sk.RandomBinning(sk.Laplacian(2.0), 16),
        sk.TensorSketch(sk.Polynomial(degree=3), 16),
        sk.Identity(),
    )
    return {f"{i} {type(t).__name__}": t.fit_transform(X)[:40] for i, t in enumerate(made)}


def kernels() -> dict[str, Any]:
    X, Z = rows(20)[0], rows(10, 1)[0]
    made = (
        sk.Cauchy(1.5),
        sk.Gaussian((1.0, 2.0, 3.0)),
        sk.InverseMultiquadric(1.5),
        sk.Laplacian(2.0),
        sk.Linear(),
        sk.Matern(1.5, nu=1.7),
        sk.Periodic(1.5, period=3.0),
        sk.Polynomial(degree=3, constant=0.5),
        sk.RationalQuadratic(1.5, shape=0.7),
        0.5 * sk.Gaussian(1.0).on([0, 1]) * sk.Cauchy(1.0).on([2]) + sk.Laplacian(2.0),
    )
    return {f"{i} {type(kernel).__name__}": kernel(X, Z) for i, kernel in enumerate(made)}


def exact() -> dict[str, Any]:
    X, y = rows(100)
    given = sk.ExactKernelRidge("matern32", alpha=0.5, leave_one_out=True).fit(X, y)
    chosen = sk.ExactKernelRidge(alpha=[0.1, 1.0, 10.0], metric=np.diag([1.0, 0.5, 0.0])).fit(
        X, y, sample_weight=1.0 + np.arange(100) % 3
    )
    return {
        "given": given.predict(X[:9]),
        "chosen": chosen.predict(X[:9]),
        "alpha": chosen.alpha_,
        "attributes": sorted(name for name in vars(given) if name[-1] == "_"),
    }


def metrics() -> dict[str, Any]:
    X, y = rows()
    given = trained(metric=np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.1]])).fit(X, y)
    learnt = trained(metric="learn:2").fit(X, y)
    return {
        "given": given.predict(X[:9]),
        "learnt": learnt.predict(X[:9]),
        "metric": learnt.metric_,
        "gradients": learnt.gradient_outer_product(X, y),
    }


def sparse() -> dict[str, Any]:
    X, y = rows()
    model = trained(n_components=64).fit(X, y)
    ways = ("forward", "omp", "lasso")
    return {way: sk.sparsify(model, 10, method=way).coef_ for way in ways}


def tuned() -> dict[str, Any]:
    X, y = rows()
    model = trained(alpha="gcv").tune(X, y, kernels=["gaussian", "laplacian"], maps="iid")
    return {"predictions": model.predict(X[:9]), "kernel": type(model.kernel_).__name__}


def moments() -> dict[str, Any]:
    X, y = rows()
    first = trained(alpha="cv").moments(X[:100], y[:100])
    first.save("first.h5")
    both = sk.load_moments("first.h5").merge(trained().moments(X[100:], y[100:], like=first))
    model = trained(alpha="cv").solve(both)
    left = trained().solve(both.forget(X[:50], y[:50]))
    return {"merged": model.coef_, "left": left.coef_, "rows": model.report_["rows"]}


def window() -> dict[str, Any]:
    model = sk.RandomFeatureClassifier(n_components=16, alpha=1.0)
    for last in (2, 4):
        files = sk.open_hdf5([f"part-{i}.h5" for i in range(last)], y="label", labels=True)
        sk.fit_window(model, files, "kept", n_files=2)
    return {
        "coef": model.coef_,
        "probabilities": model.predict_proba(rows(9, 1)[0]),
        "window": model.ridge_.report_["window"],
    }


def sums() -> dict[str, Any]:
    source = sk.open_hdf5(["train.h5", "part-0.h5"])
    columns = sk.accumulate(source, sk.ColumnStatistics(4), shard_rows=50).statistic
    drawn = sk.RandomFourierFeatures(sk.Gaussian(1.5), 16).draw(3)
    passed = sk.accumulate(source, sk.Moments(drawn, 1), shard_rows=50, block_rows=20)
    return {
        "mean": columns.mean,
        "variance": columns.variance,
        "cross": passed.statistic.cross,
        "rows": [passed.n_rows, passed.n_shards],
    }


def containers() -> dict[str, Any]:
    X, y = rows()
    lazy = da.from_array(X, chunks=(60, 3)), da.from_array(y, chunks=60)
    model = trained().fit(*lazy)
    people, more = pd.read_csv("people.csv"), pd.read_csv("more.csv")
    inputs = ["town", "age", "size", "grade"]
    table = trained().fit(people[inputs], people["price"])
    table.save("table.h5")
    loaded = sk.load("table.h5")
    return {
        "lazy": model.predict(lazy[0]).compute(scheduler="synchronous"),
        "table": loaded.predict(more[inputs[::-1]]),
        "names": list(loaded.feature_names_in_),
        "recipe": [list(each) for each in loaded.recipe_.in_words()],
        "saved": sk.read_recipe("table.h5") == table.recipe_,
        "written": model.predict_to_hdf5(X, "p.h5", return_std=True),
    }


def long_pass() -> dict[str, Any]:
    write_long()
    model = trained(n_components=16, fold_by="shards", alpha="cv").fit(sk.open_hdf5("long.h5"))
    return {"coef": model.coef_, "rmse": model.report_["cv_rmse"], "alpha": model.alpha_}


def on_workers() -> dict[str, Any]:
    with sk.connect(n_workers=2):
        return long_pass()


class Stopping(dask.local.SynchronousExecutor):
    """Runs so many tasks, and is then interrupted."""

    def __init__(self, n_tasks: int) -> None:
        self.n_tasks = n_tasks

    def submit(self, *task: Any, **options: Any) -> Any:
        """Run a task, or raise what Ctrl-C does."""
        self.n_tasks -= 1
        if self.n_tasks < 0:
            raise KeyboardInterrupt
        return super().submit(*task, **options)

    def get(self, graph: Any, keys: Any, **options: Any) -> Any:
        """Run a graph, as Dask's own schedulers do."""
        options.pop("num_workers", None)
        return dask.local.get_async(self.submit, 1, graph, keys, **options)


def stopped(fit: Callable[..., Any], n_tasks: int) -> None:
    """Fit with a checkpoint until so many tasks have run."""
    with dask.config.set(scheduler=Stopping(n_tasks).get):
        try:
            fit()
        except KeyboardInterrupt:
            return
    raise AssertionError(f"the fit has ended within {n_tasks} tasks")


def resumed() -> dict[str, Any]:
    write_long()
    model = trained(n_components=16)
    stopped(lambda: model.fit(sk.open_hdf5("long.h5"), checkpoint="kept"), 60)
    model.fit(sk.open_hdf5("long.h5"), checkpoint="kept")
    whole = trained(n_components=16).fit(sk.open_hdf5("long.h5"))
    return {
        "coef": model.coef_,
        "same": bool(np.array_equal(model.coef_, whole.coef_)),
        "resumed": model.report_["resumed_shards"] > 0,
    }


def fit_with_checkpoint(folder: str) -> sk.RandomFeatureRidge:
    """Fit to arrays, which a checkpoint knows by their values and not by a path."""
    return trained(alpha="cv").fit(*rows(), checkpoint=folder)


def exported() -> dict[str, Any]:
    import onnx
    from onnx import numpy_helper

    X, y = rows()
    sk.to_onnx(trained().fit(X, y), "ridge.onnx")
    sk.to_onnx(sk.RandomFeatureClassifier(n_components=16, alpha=1.0).fit(X, y > 0), "c.onnx")
    found: dict[str, Any] = {}
    for name in ("ridge", "c"):
        graph = onnx.load(f"{name}.onnx").graph
        found[f"{name} operators"] = [node.op_type for node in graph.node]
        found[f"{name} outputs"] = [output.name for output in graph.output]
        for each in graph.initializer:
            found[f"{name} {each.name}"] = numpy_helper.to_array(each)
    return found


# Files that are kept beside the record, as this version wrote them: by commands, or by a function.
STORED: dict[str, Any] = {
    "ridge.h5": "fit train.h5 --components 32 --alpha cv",
    "classifier.h5": "fit train.h5 --y kind --classify --components 16 --alpha 1",
    "boosted.h5": "fit train.h5 --y label --classify --boost 2:real --components 16 --alpha 1",
    "moments.h5": "moments part-0.h5 part-1.h5 --components 16 --folds 2",
    "components.h5": "pca train.h5 --components 3 --random-features 16",
    "metric.h5": "fit train.h5 --components 16 --alpha 1 --metric learn:2",
    "table.h5": "fit people.h5 --components 16 --alpha 1",
    "checkpoint": lambda folder: stopped(lambda: fit_with_checkpoint(folder), 4),
}


def read_files() -> dict[str, Any]:
    """What the stored files predict, and what they say of themselves."""
    X = rows(9, 1)[0]
    table = pd.read_csv("more.csv").drop(columns=["price", "income"])
    found: dict[str, Any] = {}
    for name in ("ridge", "metric", "table", "classifier", "boosted", "components"):
        model, new = sk.load(f"files/{name}.h5"), table if name == "table" else X
        found[name] = model.transform(new) if name == "components" else model.predict(new)
        if name in {"ridge", "table"}:
            found[f"{name} deviations"] = model.predict(new, return_std=True)[1]
        if name in {"classifier", "boosted"}:
            found[f"{name} probabilities"] = model.predict_proba(new)
        found[f"{name} class"] = type(model).__name__
    kept = sk.load_moments("files/moments.h5")
    model = trained(n_components=16)
    found["solved"] = model.solve(kept).predict(X)
    found["merged"] = model.solve(kept.merge(model.moments(*rows(50), like=kept))).predict(X)
    found["forgotten"] = model.solve(kept.forget(sk.open_hdf5("part-0.h5"))).predict(X)
    found["updated"] = trained().fit(X, X[:, 0], like="files/ridge.h5").coef_
    return found


def read_checkpoint() -> dict[str, Any]:
    model = fit_with_checkpoint("files/checkpoint")
    return {"coef": model.coef_, "resumed": model.report_["resumed_shards"]}


FUNCTIONS = (
    *(refusals, ridge, growing, growing_classes, boosting, components, transformers, kernels),
    *(exact, metrics, sparse, tuned, moments, window, sums, containers, read_files),
)
CASES = {name: Case(lines) for name, lines in COMMANDS.items()}
CASES |= {f"python-{each.__name__.replace('_', '-')}": Case(each) for each in FUNCTIONS}
CASES |= {
    "refused-commands": Case(REFUSED_COMMANDS),
    "long-pass": Case(long_pass),
    "checkpoint-resumed": Case(resumed),
    "checkpoint-stored": Case(read_checkpoint, same_libraries=True),
    "two-workers": Case(on_workers, on_cluster=True),
    "onnx": Case(exported, needs="onnx"),
    "onnx-command": Case(
        ("export files/ridge.h5 --out m.onnx", "export files/boosted.h5 --out b.onnx"), needs="onnx"
    ),
    "demo": Case(("demo --rows 4000 --components 16",), is_slow=True),
}
