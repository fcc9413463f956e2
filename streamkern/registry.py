"""Extensions: what stands beside the core, found by name when it is asked for.

An extension is a folder of `streamkern/extensions/` that imports the core, and no other extension.
Without its folder all else works, and who asks for it is told so in one sentence.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from streamkern.errors import MissingExtensionError

MISSING = "this installation of streamkern has no extension {!r}; install streamkern whole."
_FOLDER = Path(__file__).parent / "extensions"


class Extension(NamedTuple):
    """What the core knows of an extension: which of its modules has what."""

    names: Mapping[str, str] = {}  # public names of Python
    commands: Mapping[str, str] = {}  # and their helps; the module is called as the command
    # More options of a command, of all that take rows ("rows"), compute ("place"), or make models
    # ("report").
    options: Mapping[str, str] = {}
    models: Mapping[str, str] = {}  # fitted models, by the format of their files or their kind
    tables: Mapping[str, str] = {}  # functions that make a table of a report, by the key it is of
    rows: Mapping[str, str] = {}  # and those that say it in rows of words
    encodings: Mapping[str, str] = {}  # of targets, by what a report has of them
    solvers: Mapping[str, str] = {}  # what holds the normal equations
    # Modules of feature maps, by the names of these in options or files.
    maps: Mapping[str, str] = {}
    # What opens files of rows, by endings of names; of URLs '://', of folders '/.'.
    files: Mapping[str, str] = {}


EXTENSIONS = {
    "losses": Extension(
        names={"RandomFeatureRegressor": "random_feature_regressor"},
        options=dict.fromkeys(("fit", "predict", "evaluate"), "loss_options"),
        models={"RandomFeatureRegressor": "fitted_loss.FittedLoss"},
    ),
    "classes": Extension(
        names={
            "RandomFeatureClassifier": "random_feature_classifier",
            "RandomFeatureAdaBoost": "random_feature_adaboost",
        },
        options=dict.fromkeys(
            ("fit", "tune", "moments", "solve", "inspect", "predict"), "class_options"
        ),
        models={
            "RandomFeatureClassifier": "fitted_classes.FittedClassifier",
            "streamkern-boosted-model": "fitted_ensemble.FittedEnsemble",
        },
        encodings={"classes": "labelled_source.KnownClasses"},
        tables={"rounds": "boosted_rows.round_table"},
        rows={"classes": "class_rows.class_rows"},
    ),
    "search": Extension(
        commands={"tune": "Choose kernel, length scale and map, and fit one model."},
        tables={"tuning": "trial_tables.tuning_table", "frontier": "trial_tables.frontier_table"},
    ),
    "gradients": Extension(
        solvers={"conjugate gradients": "conjugate_gradients.ConjugateGradients"},
        rows={"gradients": "conjugate_gradients.gradient_rows"},
    ),
    "integers": Extension(
        names={"IntegerMoments": "integer_moments"}, solvers={"integers": "integer_system.Integers"}
    ),
    "growing": Extension(),
    "fields": Extension(
        names={"GridFourierFeatures": "grid_transformer"},
        options={"predict": "grid_options"},
        solvers={"Toeplitz": "toeplitz.Toeplitz"},
        maps={"grid": "frequency_grid", "trend": "trend"},
    ),
    "sparse": Extension(names={"sparsify": "sparsify"}, options={"export": "tolerance"}),
    "clusters": Extension(options={"place": "cluster_option"}),
    "components": Extension(
        names={"RandomFeaturePCA": "random_feature_pca"},
        commands={
            "pca": "Find the principal components of features of rows, or of moments.",
            "transform": "Take every row of a data set to its scores along principal components.",
        },
        models={"streamkern-pca": "fitted_components.FittedComponents"},
    ),
    "export": Extension(
        names={"to_c": "c_source", "to_onnx": "onnx"},
        commands={"export": "Write the predictions of a model as an ONNX file, or as C."},
    ),
    "watching": Extension(),
    "report": Extension(
        names={
            "ModelPlots": "model_plots",
            "permutation_importance": "importance",
            "write_report": "html_page",
        },
        options={"report": "report_option"},
    ),
    "tables": Extension(
        names={"Recipe": "recipe", "convert": "table_conversion", "read_recipe": "recipe"},
        commands={"convert": "Write CSV, Parquet or NumPy files as chunked HDF5."},
        options=dict.fromkeys(("rows", "rows of a model"), "table_options"),
        files=dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", "/."), "table_rows"),
    ),
    "stores": Extension(files={"://": "files_at_urls"}),
}


def extension(name: str, module: str) -> Any:
    """Return a module of an extension, or raise MissingExtensionError without its folder."""
    if not _is_installed(name):
        raise MissingExtensionError(MISSING.format(name))
    return importlib.import_module(f"streamkern.extensions.{name}.{module}")


def installed() -> list[str]:
    """Return the names of the extensions whose folders are there."""
    return [name for name in EXTENSIONS if _is_installed(name)]


@cache
def _is_installed(name: str) -> bool:
    """Say whether the folder of an extension is there; tasks on shards ask, too."""
    return (_FOLDER / name / "__init__.py").is_file()


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
    """Return the modules that have more options of a command, and what these ask for."""
    found = [(ext, EXTENSIONS[ext].options.get(command_name)) for ext in installed()]
    return [extension(ext, module) for ext, module in found if module is not None]


def solvers() -> dict[str, Any]:
    """Return the solvers of extensions that are there, by name."""
    found = [(ext, EXTENSIONS[ext].solvers) for ext in installed()]
    return {name: _attribute(ext, path) for ext, each in found for name, path in each.items()}


def import_maps() -> None:
    """Import what declares the feature maps of extensions that are there."""
    for ext in installed():
        for module in EXTENSIONS[ext].maps.values():
            extension(ext, module)


def check_map(name: str) -> None:
    """Raise MissingExtensionError if a feature map is one of an extension that is not there."""
    for ext, each in EXTENSIONS.items():
        if name in each.maps:
            extension(ext, each.maps[name])


def opener(name: str) -> Any:
    """Return the module that opens files whose names end so, None where the core does."""
    for ext, each in EXTENSIONS.items():
        for ending, module in each.files.items():
            if name.lower().endswith(ending):
                return extension(ext, module)
    return None


def fitted_kind(name: str) -> Any:
    """Return the class of fitted models of a format or kind, None where it is the core's."""
    for ext, each in EXTENSIONS.items():
        if name in each.models:
            return _attribute(ext, each.models[name])
    return None


def encoding_in(report: Mapping[str, Any]) -> Any:
    """Return the encoding of targets that a report tells of, None where they are numbers."""
    for ext, each in EXTENSIONS.items():
        for name in each.encodings.keys() & report.keys():
            return _attribute(ext, each.encodings[name]).restored(report)
    return None


def tables(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables that extensions make of what a report has, by its keys."""
    places = [(ext, *each) for ext in installed() for each in EXTENSIONS[ext].tables.items()]
    return {key: _attribute(ext, place)(report) for ext, key, place in places if report.get(key)}


def rows_of(key: str, report: Mapping[str, Any], *how: Any) -> list[tuple[str, str]]:
    """Return what an extension says of a key of a report, in rows of words."""
    for ext in installed() if report.get(key) else []:
        if key in EXTENSIONS[ext].rows:
            said: list[tuple[str, str]] = _attribute(ext, EXTENSIONS[ext].rows[key])(report, *how)
            return said
    return []


def _attribute(name: str, path: str) -> Any:
    module, _, attribute = path.partition(".")
    return getattr(extension(name, module), attribute)
