"""Extensions: what stands beside the core, found by name when it is asked for.

An extension is a folder of `streamkern/extensions/` that imports the core, and no other extension.
Without its folder all else works, and who asks for it is told so in one sentence.
"""

import importlib
from collections.abc import Iterable, Mapping
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
    "growing": Extension(
        commands={
            "moments": "Reduce rows to moments, to merge, remove rows from, and solve.",
            "merge": "Merge the moments of different rows.",
            "forget": "Take rows out of moments.",
            "solve": "Make a model of moments.",
        }
    ),
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


def _places(table: str, among: Iterable[str] = EXTENSIONS) -> dict[str, tuple[str, str]]:
    """Return which extension has each name in a table, and what it says there of the name."""
    found = [(ext, getattr(EXTENSIONS[ext], table)) for ext in among]
    return {name: (ext, place) for ext, each in found for name, place in each.items()}


def public_names() -> dict[str, str]:
    """Return the extension of every public name of Python that is not the core's."""
    return {name: ext for name, (ext, _) in _places("names").items()}


def named(name: str) -> Any:
    """Return what has a public name."""
    return getattr(extension(*_places("names")[name]), name)


def commands() -> dict[str, str]:
    """Return the commands of extensions that are there, and their helps."""
    return {name: text for name, (_, text) in _places("commands", installed()).items()}


def command(name: str) -> Any:
    """Return a command of an extension, None where no extension has it."""
    ext, _ = _places("commands").get(name, (None, ""))
    return ext and getattr(extension(ext, name), name)


def more_options(command_name: str) -> list[Any]:
    """Return the modules that have more options of a command, and what these ask for."""
    found = [(ext, EXTENSIONS[ext].options.get(command_name)) for ext in installed()]
    return [extension(ext, module) for ext, module in found if module is not None]


def solvers() -> dict[str, Any]:
    """Return the solvers of extensions that are there, by name."""
    return {name: _attribute(*place) for name, place in _places("solvers", installed()).items()}


def import_maps() -> None:
    """Import what declares the feature maps of extensions that are there."""
    for place in _places("maps", installed()).values():
        extension(*place)


def check_map(name: str) -> None:
    """Raise MissingExtensionError if a feature map is one of an extension that is not there."""
    if name in (places := _places("maps")):
        extension(*places[name])


def opener(name: str) -> Any:
    """Return the module that opens files whose names end so, None where the core does."""
    places = _places("files").items()
    return next((extension(*place) for end, place in places if name.lower().endswith(end)), None)


def fitted_kind(name: str) -> Any:
    """Return the class of fitted models of a format or kind, None where it is the core's."""
    place = _places("models").get(name)
    return place and _attribute(*place)


def encoding_in(report: Mapping[str, Any]) -> Any:
    """Return the encoding of targets that a report tells of, None where they are numbers."""
    places = [place for name, place in _places("encodings").items() if name in report]
    return _attribute(*places[0]).restored(report) if places else None


def tables(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables that extensions make of what a report has, by its keys."""
    places = _places("tables", installed()).items()
    return {key: _attribute(*place)(report) for key, place in places if report.get(key)}


def rows_of(key: str, report: Mapping[str, Any], *how: Any) -> list[tuple[str, str]]:
    """Return what an extension says of a key of a report, in rows of words."""
    place = _places("rows", installed()).get(key) if report.get(key) else None
    said: list[tuple[str, str]] = _attribute(*place)(report, *how) if place else []
    return said


def _attribute(name: str, path: str) -> Any:
    module, _, attribute = path.partition(".")
    return getattr(extension(name, module), attribute)
