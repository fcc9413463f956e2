"""Imports point down only, and the heavy libraries stay where they belong."""

import ast
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest

import streamkern

ROOT = Path(streamkern.__file__).parent

# From the bottom up; a module imports from its own row or from rows above it in this table.
LAYERS = [
    {
        "_version",
        "_typing",
        "alignment",
        "errors",
        "machine",
        "memory",
        "scratch",
        "stopping",
        "threads",
        "urls",
    },
    {"classes", "numeric", "timing", "wording"},
    {"kernels", "recipes"},
    {"features"},
    {"metric"},
    {"calibration", "predictor"},
    {"local", "principal"},
    {"sources"},
    {"blockwise", "containers", "conventions", "ensemble", "inputs"},
    {"statistics"},
    {"solve"},
    {"sparse", "deviation", "penalties"},
    {"storage", "selection", "footprint", "plan", "resources", "downscaling", "heartbeat"},
    {"scheduling"},
    {"seats", "attempts", "naming", "observing"},
    {"series", "totals"},
    {"tasks"},
    {"partials"},
    {"engine", "mapping", "fitoptions", "pattern"},
    {"checkpointing"},
    {"solving", "survey"},
    {"learning", "tuning", "labelling"},
    {"datamoments"},
    {"batches", "fitting", "leaving_out", "prediction", "scoring", "unseen"},
    {"residuals"},
    {"tables"},
    {"fitted", "reporting"},
    {"ridgeoptions"},
    {"tuned", "solved"},
    {"growing"},
    {"model"},
    {"classification"},
    {"scored_classes"},
    {"classified"},
    {"growing_classifier"},
    {"classifier"},
    {"boosting"},
    {"callbacks", "exact", "estimators", "conversion", "transformers", "window", "pca"},
    {"exchange"},
    {"sparse_models", "searching"},
    {"clusteroptions", "clusterfile", "comparison", "monitor", "revival", "starting"},
    {"cluster"},
    {"plots", "report"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Who may import what, beside the layers.
ALLOWED = {
    "h5py": (
        "sources/headers.py",
        "sources/wholeness.py",
        "sources/elsewhere.py",
        "sources/virtual.py",
        "sources/contents.py",
        "storage/",
    ),
    "dask": (
        "engine.py",
        "attempts.py",
        "heartbeat.py",
        "mapping.py",
        "resources.py",
        "scheduling.py",
        "cluster.py",
        "searching.py",
        "sources/arrays.py",
        "sources/label_columns.py",
        "sources/lazy.py",
        "cli/place.py",
    ),
    "distributed": (
        "resources.py",
        "scheduling.py",
        "downscaling.py",
        "seats.py",
        "cluster.py",
        "revival.py",
        "starting.py",
        "searching.py",
        "monitor/",
    ),
    "bokeh": ("monitor/page.py",),
    "prometheus_client": ("monitor/metrics.py", "monitor/plugin.py", "series.py", "totals.py"),
    "onnx": ("exchange/graph.py",),
    "fsspec": ("sources/stores.py",),
    "click": ("cli/",),
    "jinja2": ("report/",),
    "matplotlib": ("plots.py",),
    "sklearn": (
        "calibration/fitting.py",
        "callbacks.py",
        "containers.py",
        "conventions.py",
        "estimators.py",
        "exact/",
        "features/landmarks.py",
        "inputs.py",
        "sparse.py",
        "pca/estimator.py",
        "sparse_models.py",
        "transformers/",
    ),
}


def modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


@cache
def imports(module: str) -> set[str]:
    """Every module that a file imports, wherever in the file, type checking left out."""
    tree = ast.parse((ROOT / module).read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "streamkern":
            found |= {f"streamkern.{streamkern._HOMES.get(a.name, a.name)}" for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


def part(module: str) -> str:
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


@pytest.mark.parametrize("module", [m for m in modules() if m != "__init__.py"])
def test_imports_point_down(module):
    for name in imports(module):
        package, _, rest = name.partition(".")
        if package == "streamkern" and rest:
            imported = rest.split(".")[0]
            assert LEVEL[imported] <= LEVEL[part(module)], f"{module} imports {name}"


@pytest.mark.parametrize("library", list(ALLOWED))
def test_a_library_is_imported_only_where_it_belongs(library):
    users = {m for m in modules() if any(n.split(".")[0] == library for n in imports(m))}
    assert users
    assert all(user.startswith(ALLOWED[library]) for user in users), users


def test_every_module_has_a_layer():
    assert {part(m) for m in modules()} - {"__init__"} == set(LEVEL)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("code", ["import streamkern", "import streamkern.cli"])
def test_importing_brings_in_nothing_heavy(code):
    heavy = [
        "numpy",
        "scipy",
        "sklearn",
        "dask",
        "distributed",
        "h5py",
        "rich",
        "pandas",
        "matplotlib",
    ]
    loaded = run(f"{code}; import sys; print(*sys.modules)").split()
    assert not set(heavy) & set(loaded)


@pytest.mark.parametrize("module", ["statistics", "features", "solve", "kernels"])
def test_what_computes_knows_neither_dask_nor_hdf5(module):
    loaded = run(f"import streamkern.{module}, sys; print(*sys.modules)").split()
    assert not {"dask", "distributed", "h5py"} & set(loaded)


def test_help_answers_in_half_a_second():
    def seconds() -> float:
        begun = time.perf_counter()
        output = run("from streamkern.cli import main; main(['--help'])")
        assert "Commands:" in output
        return time.perf_counter() - begun

    assert min(seconds() for _ in range(3)) < 0.5


SLOW = {
    *("bokeh", "dask.array", "dask.dataframe", "dask_ml", "distributed", "hdf5plugin"),
    *("matplotlib", "pandas", "pyarrow", "scipy.optimize", "scipy.stats", "sklearn"),
}
COMMANDS = {
    "a fit": (0, "fit data.h5 --out new.h5 --components 16"),
    "a sparse fit": (0, "fit data.h5 --out new.h5 --components 16 --sparse 4"),
    "a search": (0, "tune data.h5 --out new.h5 --components 16"),
    "a report": (0, "fit data.h5 --out new.h5 --components 16 --report new.html"),
    "moments": (0, "moments data.h5 --out new.h5 --components 16"),
    "components": (0, "pca data.h5 --out new.h5 --random-features 16"),
    "predictions": (0, "predict model.h5 data.h5 --out new.h5 --std"),
    "errors": (0, "evaluate model.h5 data.h5"),
    "leave-one-out": (0, "diagnose model.h5 data.h5"),
    "the card": (0, "show model.h5"),
    "no such file": (1, "fit other.h5 --out new.h5"),
    "an option that cannot be": (2, "fit data.h5 --out new.h5 --components 0"),
}
CALL = """
import sys
from streamkern.cli import main
try:
    main()
finally:
    print(*sys.modules)
"""


@pytest.mark.parametrize("command", ["fit", "tune", "moments", "solve", "predict"])
def test_the_help_of_a_command_does_not_wait_for_what_computes(command):
    done = subprocess.run(
        [sys.executable, "-c", CALL, command, "--help"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert f"streamkern.cli.{command}" in loaded
    assert not {"dask", "h5py", "scipy.linalg", "streamkern.tuning"} & loaded


@pytest.mark.parametrize(("status", "command"), list(COMMANDS.values()), ids=list(COMMANDS))
def test_a_command_on_few_rows_does_not_wait_for_what_it_does_not_use(status, command, tmp_path):
    X = np.random.default_rng(0).random((60, 2))
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["X"], file["y"] = X, X[:, 0]
    streamkern.RandomFeatureRidge(n_components=16, alpha=0.1).fit(X, X[:, 0]).save(
        tmp_path / "model.h5"
    )
    done = subprocess.run(
        [sys.executable, "-c", CALL, *command.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert not SLOW & set(done.stdout.splitlines()[-1].split())


def test_a_fit_in_this_process_does_not_import_distributed():
    code = """
import sys, numpy as np, streamkern
X = np.random.default_rng(0).random((50, 2))
streamkern.RandomFeatureRidge(n_components=8).fit(X, X[:, 0])
print("distributed" in sys.modules)
"""
    assert run(code).strip() == "False"
