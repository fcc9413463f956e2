"""What the files that streamkern reads again have in common: HDF5 arrays beside one JSON text."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ModelFileError, first_line
from streamkern.errors.formatting import json_text
from streamkern.features import MAPS
from streamkern.storage.outputs import local_path
from streamkern.storage.untrusted import (
    DAMAGE,
    check_contents,
    finite_array,
    fixed,
    json_of,
    mark,
    opened,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import h5py

    from streamkern.features import FeatureMap


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    name : str
        As people call it.
    format : str
        The attribute by which a file says what it is.
    version : int
        The newest that this version reads.
    command : str
        What writes such files.
    """

    name: str
    format: str
    version: int
    command: str


MODEL = Kind("model", "streamkern-model", 1, "streamkern fit")
MOMENTS = Kind("moments file", "streamkern-moments", 2, "streamkern moments")
COMPONENTS = Kind("PCA", "streamkern-pca", 1, "streamkern pca")
BOOSTED = Kind("boosted classifier", "streamkern-boosted-model", 1, "streamkern fit --boost")
# A map has two or three; one array by many names would be read as many times.
_MOST_ARRAYS = 16
KINDS = {kind.format: kind for kind in (MODEL, MOMENTS, COMPONENTS, BOOSTED)}


def write_card(file: h5py.File, kind: Kind, card: dict[str, Any], feature_map: FeatureMap) -> None:
    """Write what the file is, its card, and its feature map."""
    file.attrs["format"] = fixed(kind.format)
    file.attrs["format_version"] = kind.version
    card = {**card, "map": feature_map.name, "map_parameters": feature_map.parameters()}
    file["card"] = fixed(json_text(card, indent=1, default=plain))
    write_map(file, feature_map)


def write_map(group: h5py.Group, feature_map: FeatureMap) -> None:
    """Write what a feature map drew."""
    for name, array in feature_map.arrays().items():
        group[f"map/{name}"] = array


def plain(value: Any) -> Any:
    """Return a value of NumPy as JSON has it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{value!r} is not a plain value")


@contextmanager
def opened_card(path: str | Path, kind: Kind) -> Iterator[tuple[h5py.File, dict[str, Any]]]:
    """Open a file of a kind, with its card; what its reader then stumbles over is damage.

    Raises
    ------
    ModelFileError
        If there is none, or it is of another kind, or damaged, or from a newer format.
    """
    where = local_path(path)
    try:
        if not where.is_file():
            raise ModelFileError(f"{where} does not exist or is not a file; check the path.")
        file = opened(where)
    except OSError as error:
        raise ModelFileError(_why_not_opened(where, kind, error)) from error
    with file:
        try:
            _check_kind(where, file, kind)
            check_contents(file)
            yield file, json_of(text(file, "card"))
        except ModelFileError:
            raise
        except DAMAGE as error:
            raise damaged(where, kind, error) from error


def _why_not_opened(where: Path, kind: Kind, error: OSError) -> str:
    if "truncated" in str(error):
        return f"{where} was cut short: it is smaller than its header says; copy it again."
    return (
        f"{where} is not a streamkern {kind.name} ({first_line(error)}); give a file that "
        f"`{kind.command}` wrote."
    )


def _check_kind(where: Path, file: h5py.File, kind: Kind) -> None:
    found_format, version = mark(file, "format"), mark(file, "format_version")
    if found_format != kind.format:
        other = KINDS.get(str(found_format))
        found = f"a streamkern {other.name}, not a {kind.name}" if other else (
            f"HDF5 but not a streamkern {kind.name}"
        )  # fmt: skip
        raise ModelFileError(f"{where} is {found}; give a file that `{kind.command}` wrote.")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"format version {version}")
    if version > kind.version:
        raise ModelFileError(
            f"{where} has format version {version}, but this streamkern reads up to "
            f"{kind.version}; install a newer one."
        )


def damaged(where: str | Path, kind: Kind, error: Exception) -> ModelFileError:
    """Return the error that says what is wrong with a file."""
    return ModelFileError(f"{where} is a damaged {kind.name} ({first_line(error)}); copy it again.")


def holds_moments(path: str | Path) -> bool:
    """Say whether a file calls itself a moments file."""
    return _holds(path, MOMENTS)


def holds_components(path: str | Path) -> bool:
    """Say whether a file calls itself one of principal components."""
    return _holds(path, COMPONENTS)


def holds_ensemble(path: str | Path) -> bool:
    """Say whether a file calls itself a boosted model."""
    return _holds(path, BOOSTED)


def _holds(path: str | Path, kind: Kind) -> bool:
    try:
        with opened(path) as file:
            return mark(file, "format") == kind.format
    except DAMAGE:
        return False


def restored_map(group: h5py.Group, card: dict[str, Any]) -> FeatureMap:
    """Return the feature map that `write_card` wrote."""
    drawn = group.get("map", {})
    if len(drawn) > _MOST_ARRAYS:
        raise ValueError(f"{len(drawn)} arrays of a feature map")
    arrays = {name: finite_array(drawn, name) for name in drawn}
    return MAPS[card["map"]].restore(card["map_parameters"], arrays)
