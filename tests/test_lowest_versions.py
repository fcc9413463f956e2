"""Lowest versions are those of pyproject.toml, and the package can be imported with them."""

import importlib
import tomllib
from pathlib import Path
from pkgutil import walk_packages

from packaging.requirements import Requirement
from rows_read import python

import streamkern

REPOSITORY = Path(__file__).parents[1]


def test_the_lowest_versions_of_all_dependencies_and_extras_are_those_that_are_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    declared = {}
    for line in sum(project["optional-dependencies"].values(), project["dependencies"]):
        requirement = Requirement(line)
        lowest = [one.version for one in requirement.specifier if one.operator == ">="]
        if requirement.name != project["name"]:
            declared[requirement.name] = f"{requirement.name}=={''.join(lowest)}"
    assert (REPOSITORY / "tests" / "lowest.txt").read_text().split() == list(declared.values())


def test_estimators_are_fitted_where_scikit_learn_has_no_callbacks(tmp_path):
    script = (
        "import sys; sys.modules['sklearn.callback'] = None; import streamkern\n"
        "streamkern.RandomFeatureRidge(n_components=8, alpha=1.0).fit([[1.0], [2.0]], [1, 2])"
    )
    done = python(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_module_is_imported():
    names = [each.name for each in walk_packages(streamkern.__path__, "streamkern.")]
    assert len(names) > 200
    for name in names:
        importlib.import_module(name)
