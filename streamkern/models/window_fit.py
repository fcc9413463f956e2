"""A model of the last files of a series, kept up as files come and go."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.features.metric import GivenMetric
from streamkern.models.data_moments import load_moments, moments_header
from streamkern.models.growing_classifier import GrowingClassifier, labelled_moments
from streamkern.models.labelling import classes_of_report, weighs_alike
from streamkern.models.ridge_model import RidgeModel
from streamkern.models.ridge_options import RidgeOptions
from streamkern.runtime.events import job
from streamkern.sources import Classes, HDF5Source, LabelledSource, labelled_rows
from streamkern.storage import locked, make_folder

if TYPE_CHECKING:
    from streamkern.models.data_moments import DataMoments
    from streamkern.sources import Source

    _Model = TypeVar("_Model", bound=RidgeModel | GrowingClassifier)

_ENDING = ".moments.h5"
# What files of moments are called that were written here; others in the folder are left alone.
_WRITTEN = re.compile(r"-[0-9a-f]{8}\.moments\.h5$")
_APART = {"files", "folders", "rows"}
# Options that the moments of all files have in common.
_COMMON = (
    *("kernel", "n_components", "feature_map", "paired", "metric", "standardize"),
    *("precision", "random_state", "n_folds"),
)


@job("window")
def fit_window(
    model: _Model,
    source: HDF5Source,
    folder: str | Path,
    *,
    n_files: int,
    classes: Any = None,
) -> _Model:
    """Fit a model to the rows of the last files of a series, reading only those that are new.

    The moments of every file of the window are kept in a folder, one file each.  Called again when
    files have come, it reads these, forgets those that are not in the window any more, and merges
    and solves.  Nothing is subtracted, so no rounding builds up, however often the window moves:
    the model is that of `fit` on the files of the window, like the first file (its `like`), up to
    the order of sums.  The first file that is ever read decides length scale, standardisation and
    what else follows from rows, and the first window the classes unless they are named; to choose
    them again take another folder.

    Parameters
    ----------
    model : RandomFeatureRidge or RandomFeatureClassifier
        A classifier is calibrated as `RandomFeatureClassifier.partial_fit` says.
    source : HDF5Source
        All files that there are, as `open_hdf5` describes them: in the order given, a pattern
        sorted by name, as suits names with a date.
    folder : path
        Of the moments, about 4 D^2 bytes and as much a fold for every file of the window, and 9
        bytes a row.  Made if it is not there.
    n_files : int
        K, how many files the window has: the last ones, or all while they are fewer.
    classes : array_like of shape (C,), optional
        Of a classifier, all labels that there will be.

    Returns
    -------
    RandomFeatureRidge or RandomFeatureClassifier
        The model, fitted; it keeps the merged moments.  `report_["window"]` says how many files
        are in, how many were read, and how many left.

    Raises
    ------
    ParameterError
        If the folder was made with other options, `n_files` is not positive, the model is of
        another kind, or for what `partial_fit` raises.
    DataError
        If rows cannot be used, files have other columns than those before, or a label is none of
        the classes.
    ModelFileError
        If moments in the folder are damaged.
    CheckpointError
        If another job works in the folder.
    """
    if not isinstance(model, (RidgeModel, GrowingClassifier)):
        raise ParameterError(
            f"a window is of a RandomFeatureRidge or a RandomFeatureClassifier, not of "
            f"{type(model).__name__}; take one of these."
        )
    window = last_files(source, n_files)
    ridge = model if isinstance(model, RidgeModel) else model._new_ridge()
    kept = make_folder(folder)
    with locked(kept, passing=True):
        before = sorted(path for path in kept.glob(f"*{_ENDING}") if _WRITTEN.search(path.name))
        like = moments_header(before[0]) if before else None
        if like is not None:
            _check_options(like, model, ridge, before[0])
        parts = [replace(window, files=(file,)) for file in window.files]
        days: list[Source] = [*parts]
        if isinstance(model, GrowingClassifier):
            known = model._known_classes(labelled_rows(window), classes, like=like)
            _check_classes(like, known[0], before)
            days = [LabelledSource(*labelled_rows(part), *known) for part in parts]
        places = [kept / _name(part) for part in parts]
        new = [not _is_of(place, day) for place, day in zip(places, days, strict=True)]
        for place, day, is_new in zip(places, days, new, strict=True):
            if is_new:
                made = _moments(ridge, day, like)
                made.save(place, force=True)
                like = like or moments_header(place)
        merged = reduce(_merged, map(load_moments, places))
        if isinstance(model, GrowingClassifier):
            model._begin(ridge, merged)
        else:
            model.solve(merged, keep_moments=True)
        left = set(before) - set(places)
        for path in left:
            path.unlink()
    ridge.report_["window"] = {"files": len(days), "read_files": sum(new), "left_files": len(left)}
    return model


def _check_classes(like: DataMoments | None, classes: Classes, before: list[Path]) -> None:
    """Raise ParameterError if the moments of earlier files know other classes."""
    then, _ = (None, None) if like is None else classes_of_report(like.report) or (None, None)
    if then is not None and then.values.tolist() != classes.values.tolist():
        raise ParameterError(
            f"the moments in {before[0].parent} know the classes {then}, not {classes}; leave "
            f"classes out, or take another folder."
        )


def last_files(source: HDF5Source, n_files: int) -> HDF5Source:
    """Return the rows of the last files, or raise ParameterError where there are no such."""
    if not isinstance(source, HDF5Source):
        raise ParameterError(
            f"a window is of files, not of {type(source).__name__}; open them by open_hdf5, or "
            f"move over rows by update and forget."
        )
    if isinstance(n_files, bool) or not isinstance(n_files, int) or n_files < 1:
        raise ParameterError(
            f"a window has a whole number of files, at least 1, not {n_files!r}; give one."
        )
    return replace(source, files=source.files[-n_files:])


def _moments(ridge: RidgeModel, day: Source, like: DataMoments | None) -> DataMoments:
    if isinstance(day, LabelledSource):
        return labelled_moments(ridge, day, like=like)
    return ridge._moments_like(day, None, None, like=like)


def _merged(total: DataMoments, more: DataMoments) -> DataMoments:
    return total.merge(more, repeated_rows=True)


def _name(day: HDF5Source) -> str:
    """Return the name of the moments of a file: its own, and a hash of where it is."""
    path = str(day.files[0].path)
    return f"{Path(path).stem}-{sha256(path.encode()).hexdigest()[:8]}{_ENDING}"


def _is_of(place: Path, day: Source) -> bool:
    """Say whether moments are there of the file as it is now."""
    if not place.is_file():
        return False
    data = moments_header(place).report["data"]
    now = day.describe()
    return (_identity(data), _parts(data)) == (_identity(now), _parts(now))


def _parts(data: dict[str, Any]) -> list[tuple[int, float]]:
    """Return size and time of the other files that rows are in, through links and the like."""
    return [(size, time) for file in data["files"] for _, size, time in file.get("parts", ())]


def _identity(data: dict[str, Any]) -> tuple[Any, ...]:
    if len(data.get("files", [])) != 1:
        raise DataError(
            "the folder of a window holds moments that are not of one file; give it a folder of "
            "its own."
        )
    file = data["files"][0]
    datasets = {name: value for name, value in data.items() if name not in _APART}
    # Which folder it is in is in the name of the moments.
    return datasets, Path(file["path"]).name, file["file_bytes"], file["modified"]


def _check_options(like: DataMoments, model: Any, ridge: RidgeModel, place: Path) -> None:
    """Raise ParameterError if the moments of earlier files were made with other options."""
    known = classes_of_report(like.report)
    if (known is None) is not isinstance(model, RidgeModel):
        kinds = ["labels of classes", "numbers"]
        then, now = kinds if known else kinds[::-1]
        raise ParameterError(
            f"the moments in {place.parent} are of {then}, not of {now}; take another folder."
        )
    if known is not None and not weighs_alike(model.class_weight, *known):
        raise ParameterError(
            f"the moments in {place.parent} were made with another class_weight than "
            f"{model.class_weight}; take that, or another folder."
        )
    mine = RidgeOptions(ridge).passes()
    for name in _COMMON:
        if name == "n_components" and ridge.n_components == "auto":
            continue
        if name == "kernel" and isinstance(mine.metric, str):  # chosen with what was learnt
            continue
        then, now = getattr(like.options, name), getattr(mine, name)
        if not (_same_matrix(then, now, like) if name == "metric" else then == now):
            raise ParameterError(
                f"the moments in {place.parent} were made with {name} {_described(then)}, not "
                f"{_described(now)}; take that, or another folder."
            )


def _described(option: Any) -> str:
    """Return an option in a few words."""
    return "of another matrix" if isinstance(option, GivenMetric) else str(option)


def _same_matrix(then: Any, now: Any, like: DataMoments) -> bool:
    """Say whether two metrics are the same, for the inputs that are not constant."""
    if not (isinstance(then, GivenMetric) and isinstance(now, GivenMetric)):
        return bool(then == now)
    kept = like.pattern().feature_map.standardizer.columns
    if max(kept) >= len(now.matrix):
        return False
    inner = np.ix_(kept, kept)
    return np.allclose(then.matrix[inner], now.matrix[inner])
