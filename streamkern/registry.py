"""Extensions: what stands beside the core, found by name when it is asked for.

An extension is a folder of `streamkern/extensions/` that imports the core, and no other extension.
Without its folder all else works, and who asks for it is told so in one sentence.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from streamkern.errors import MissingExtensionError

_FOLDER = Path(__file__).parent / "extensions"


class Extension(NamedTuple):
    """What the core knows of an extension: which of its modules has what."""

    names: Mapping[str, str] = {}  # public names of Python
    commands: Mapping[str, str] = {}  # and their helps; the module is called as the command
    options: Mapping[str, str] = {}  # more options of other commands, or of all that take rows
    models: Mapping[str, str] = {}  # fitted models, by the format of their files
    files: Mapping[str, str] = {}  # what opens files of rows, by endings of names; of URLs '://'


EXTENSIONS = {
    "boosting": Extension(
        names={"RandomFeatureAdaBoost": "random_feature_adaboost"},
        options={"fit": "boost_option"},
        models={"streamkern-boosted-model": "fitted_ensemble.FittedEnsemble"},
    ),
    "search": Extension(
        commands={"tune": "Choose kernel, length scale and map, and fit one model."}
    ),
    "components": Extension(
        names={"RandomFeaturePCA": "random_feature_pca"},
        commands={
            "pca": "Find the principal components of features of rows, or of moments.",
            "transform": "Take every row of a data set to its scores along principal components.",
        },
        models={"streamkern-pca": "fitted_components.FittedComponents"},
    ),
    "tables": Extension(
        names={"Recipe": "recipe", "convert": "table_conversion", "read_recipe": "recipe"},
        commands={"convert": "Write CSV, Parquet or NumPy files as chunked HDF5."},
        options={"rows": "table_options"},
        files=dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"), "table_rows"),
    ),
    "stores": Extension(files={"://": "files_at_urls"}),
}


def extension(name: str, module: str) -> Any:
    """Return a module of an extension, or raise MissingExtensionError without its folder."""
    if name not in installed():
        raise MissingExtensionError(
            f"this installation of streamkern has no extension {name!r}; install streamkern whole."
        )
    return importlib.import_module(f"streamkern.extensions.{name}.{module}")


def installed() -> list[str]:
    """Return the names of the extensions whose folders are there."""
    return [name for name in EXTENSIONS if (_FOLDER / name / "__init__.py").is_file()]


def public_names() -> dict[str, str]:
    """Return the extension of every public name of Python that is not the core's."""
    return {name: ext for ext, each in EXTENSIONS.items() for name in each.names}


def named(name: str) -> Any:
    """Return what has a public name."""
    ext = public_names()[name]
    return getattr(extension(ext, EXTENSIONS[ext].names[name]), name)


def commands() -> dict[str, str]:
    """Return the commands of extensions that are there, and their helps."""
    return {name: text for ext in installed() for name, text in EXTENSIONS[ext].commands.items()}


def command(name: str) -> Any:
    """Return a command of an extension, None where no extension has it."""
    for ext, each in EXTENSIONS.items():
        if name in each.commands:
            return getattr(extension(ext, name), name)
    return None


def more_options(command_name: str) -> list[Any]:
    """Return the modules that have more options of a command: `OPTIONS`, and `run` with them."""
    found = [(ext, EXTENSIONS[ext].options.get(command_name)) for ext in installed()]
    return [extension(ext, module) for ext, module in found if module is not None]


def opener(name: str) -> Any:
    """Return the module that opens files whose names end so, None where the core does."""
    for ext, each in EXTENSIONS.items():
        for ending, module in each.files.items():
            if name.lower().endswith(ending):
                return extension(ext, module)
    return None


def fitted_kind(file_format: str) -> Any:
    """Return the class of fitted models of files of a format, None where it is the core's."""
    for ext, each in EXTENSIONS.items():
        if file_format in each.models:
            module, _, name = each.models[file_format].partition(".")
            return getattr(extension(ext, module), name)
    return None
