"""Imports point down only, and the heavy libraries stay where they belong."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from commandline import write
from rows_read import python

import streamkern
from streamkern import registry
from streamkern.cli import CORE
from streamkern.features import MAPS

ROOT = Path(streamkern.__file__).parent
DELETED = registry.installed() != list(registry.EXTENSIONS)

# From the ground up: a room imports from its own floor's rooms below it, never from one above.
FLOORS = [
    {"errors"},
    {"runtime", "kernels", "registry"},
    {"sources", "features", "monitor"},
    {"statistics"},
    {"solve", "storage"},
    {"predict", "engine", "parameters"},
    {"passes"},
    {"choice", "solvers"},
    {"models"},
    {"fitting"},
    {"fit"},
    {"estimators"},
    {"cli"},
    {"extensions"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
SHARED = {"__init__", "_docstrings", "_typing", "_version"}

# Who may import what, beside the floors.
ALLOWED = {
    "h5py": (
        *("sources/hdf5_opening.py", "sources/headers.py", "sources/dataset_checks.py"),
        *("extensions/stores/", "extensions/tables/", "storage/"),
    ),
    "dask": (
        *("engine/", "runtime/resources.py", "sources/arrays.py"),
        *("sources/label_columns.py", "sources/containers.py", "cli/job.py"),
        "extensions/",
    ),
    "distributed": (
        *("engine/", "runtime/resources.py", "runtime/private_names.py"),
        "extensions/",
    ),
    "bokeh": ("extensions/watching/dashboard_page.py",),
    "onnx": ("extensions/export/",),
    "fsspec": ("extensions/stores/",),
    "click": ("cli/", "extensions/"),
    "jinja2": ("extensions/report/", "extensions/watching/job_panel.py"),
    "matplotlib": ("extensions/report/",),
    "sklearn": (
        *("features/landmarks.py", "models/", "estimators/", "extensions/classes/"),
        "extensions/losses/",
        *("extensions/report/importance.py", "extensions/sparse/selection.py"),
        "runtime/private_names.py",
    ),
}


def modules():
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


@cache
def imports(module, *, types=True):
    """Every module that a file imports, wherever in the file, with those of types or without."""
    tree = ast.parse((ROOT / module).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "streamkern":
            found |= {f"streamkern.{streamkern._HOMES.get(a.name, a.name)}" for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            path = ROOT.parent / node.module.replace(".", "/")
            of_files = {a.name for a in node.names if (path / f"{a.name}.py").is_file()}
            found |= {f"{node.module}.{name}" for name in of_files}
            found |= set() if len(of_files) == len(node.names) else {node.module}
    return found


def part(module):
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


def test_imports_point_down():
    up = [
        (module, name)
        for module in modules()
        for name in imports(module)
        if (mine := part(module)) not in SHARED
        and name.startswith("streamkern.")
        and (other := name.split(".")[1]) not in {mine, *SHARED}
        and FLOOR[other] >= FLOOR[mine]
    ]
    assert not up


@pytest.mark.parametrize("library", list(ALLOWED))
def test_a_library_is_imported_only_where_it_belongs(library):
    users = {
        m
        for m in modules()
        if any(name.split(".")[0] == library for name in imports(m, types=False))
    }
    assert users or DELETED
    assert all(user.startswith(ALLOWED[library]) for user in users), users


def extension_of(name):
    return name.removeprefix("streamkern.extensions.").split(".")[0]


def test_the_core_imports_no_extension_and_no_extension_another():
    crossing = [
        (module, name)
        for module in modules()
        for name in imports(module)
        if name.startswith("streamkern.extensions.")
        and not module.startswith(f"extensions/{extension_of(name)}/")
    ]
    assert not crossing


@pytest.mark.skipif(DELETED, reason="an extension is deleted")
def test_every_extension_is_in_the_table_with_modules_that_have_what_it_says():
    folders = {path.parent.name for path in ROOT.glob("extensions/*/__init__.py")}
    assert folders == set(registry.EXTENSIONS) == set(registry.installed())
    for name in registry.public_names():
        assert registry.named(name) is getattr(streamkern, name)
    for name in registry.commands():
        assert registry.command(name).name == name
    for name, each in registry.EXTENSIONS.items():
        for place, module in each.options.items():
            assert place in registry.extension(name, module).OPTIONS
        for module in each.files.values():
            assert registry.extension(name, module).__doc__
        for declared, module in each.maps.items():
            assert MAPS[declared].__module__.endswith(f".{name}.{module}")
        for path in (
            *each.tables.values(),
            *each.rows.values(),
            *each.encodings.values(),
            *each.solvers.values(),
        ):
            module, _, attribute = path.partition(".")
            assert callable(getattr(registry.extension(name, module), attribute))
        for known in each.models:
            kind = registry.fitted_kind(known)
            assert known in {kind.file_kind.format, kind.estimator}


def test_every_room_has_a_floor():
    assert {part(m) for m in modules()} - SHARED == set(FLOOR)


def run(*arguments):
    done = python(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_brings_in_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "dask", "distributed", "h5py", "rich", "pandas"}
    loaded = run("import streamkern.cli, sys; print(*sys.modules)").split()
    assert not {*heavy, "matplotlib"} & set(loaded)


def test_what_computes_knows_neither_dask_nor_hdf5():
    rooms = ", ".join(
        f"streamkern.{each}" for each in ("statistics", "features", "solve", "kernels")
    )
    loaded = run(f"import {rooms}, sys; print(*sys.modules)").split()
    assert not {"dask", "distributed", "h5py"} & set(loaded)


SLOW = {
    *("bokeh", "dask.array", "dask.dataframe", "dask_ml", "distributed", "hdf5plugin"),
    *("matplotlib", "pandas", "pyarrow", "scipy.optimize", "scipy.stats", "sklearn"),
}
COMMANDS = {
    "a fit": (0, "fit data.h5 --out new.h5 --components 16"),
    "a sparse fit": (0, "fit data.h5 --out new.h5 --components 16 --sparse 4"),
    "a search": (0, "tune data.h5 --out new.h5 --components 16 --kernel gaussian"),
    "moments": (0, "moments data.h5 --out new.h5 --components 16"),
    "components": (0, "pca data.h5 --out new.h5 --random-features 16"),
    "predictions": (0, "predict model.h5 data.h5 --out new.h5 --std"),
    "errors": (0, "evaluate model.h5 data.h5"),
    "leave-one-out": (0, "evaluate model.h5 data.h5 --leave-one-out 5"),
    "the card": (0, "show model.h5"),
    "what a file holds": (0, "inspect data.h5"),
    "no such file": (1, "fit other.h5 --out new.h5"),
    "an option that cannot be": (2, "fit data.h5 --out new.h5 --components 0"),
    "a report": (0, "fit data.h5 --out new.h5 --components 16 --report new.html"),  # it may draw
}
CALL = """
import sys
from streamkern.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        print("loaded", end.code, *sys.modules)
"""


def loaded_by(*lines, **options):
    """The status of every command, all in one process, and the modules that are there then."""
    done = python(CALL, *lines, **options)
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert len(found) == len(lines), done.stderr
    return [(int(status), set(modules)) for _, status, *modules in found]


def test_the_help_of_a_command_does_not_wait_for_what_computes():
    heavy = {"dask", "h5py", "scipy.linalg", "streamkern.choice"}
    assert all(find_spec(module) for module in heavy)
    known = CORE | registry.commands()
    names = [each for each in ("fit", "tune", "moments", "solve", "predict") if each in known]
    told = loaded_by(*(f"{name} --help" for name in names))
    for name, (_, loaded) in zip(names, told, strict=True):
        homes = ("cli", "extensions.search", "extensions.growing")
        assert {f"streamkern.{home}.{name}" for home in homes} & loaded
        assert not heavy & loaded


@pytest.mark.skipif(DELETED, reason="an extension is deleted")
def test_a_command_on_few_rows_does_not_wait_for_what_it_does_not_use(tmp_path):
    X = np.random.default_rng(0).random((60, 2))
    write(tmp_path / "data.h5", X, X[:, 0])
    model = streamkern.RandomFeatureRidge(n_components=16, alpha=0.1).fit(X, X[:, 0])
    model.save(tmp_path / "model.h5")
    lines = [line + " --force" * ("--out" in line) for _, line in COMMANDS.values()]
    told = loaded_by(*lines, cwd=tmp_path)
    for (name, (status, line)), (code, loaded) in zip(COMMANDS.items(), told, strict=True):
        slow = SLOW - {"matplotlib"} if "--report" in line else SLOW
        assert (code, slow & loaded) == (status, set()), name


def test_a_fit_in_this_process_does_not_import_distributed():
    code = """
import sys, numpy as np, streamkern
X = np.random.default_rng(0).random((50, 2))
streamkern.RandomFeatureRidge(n_components=8).fit(X, X[:, 0])
print("distributed" in sys.modules)
"""
    assert run(code).strip() == "False"


def test_no_files_import_each_other_in_a_circle():
    dotted = {
        "streamkern." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for module in modules()
    }
    graph = TopologicalSorter()
    for module in modules():
        name = "streamkern." + module.removesuffix(".py").replace("/", ".")
        graph.add(name.removesuffix(".__init__"), *(imports(module, types=False) & dotted))
    graph.prepare()  # raises CycleError
