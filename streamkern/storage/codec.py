"""The codec of models, moments, components and ensembles: arrays in HDF5, and a card of JSON.

The card says what the arrays are.  Whoever wrote a file, reading it runs nothing, and takes no more
memory than the file has bytes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from streamkern.errors import ModelFileError, first_line
from streamkern.errors.checks import is_integer
from streamkern.errors.formatting import json_text
from streamkern.features import MAPS, FeatureMap
from streamkern.registry import fitted_kind
from streamkern.sources.hdf5_opening import known_reason, open_local
from streamkern.storage import untrusted
from streamkern.storage.hdf5_files import new_hdf5
from streamkern.storage.outputs import local_path


class Kind(NamedTuple):
    name: str
    format: str  # the attribute by which a file says what it is
    version: int  # the newest that this program reads
    command: str  # what writes such files


MODEL = Kind("model", "streamkern-model", 1, "streamkern fit")
MOMENTS = Kind("moments file", "streamkern-moments", 2, "streamkern moments")
# A map has two or three; one array by many names would be read as many times.
_MOST_ARRAYS = 16


def write_card(
    path: str | Path, kind: Kind, card: dict[str, Any], arrays: dict[str, Any], *, force: bool
) -> None:
    """Write a card and nested arrays, triangles packed, to a file that is whole or not there."""
    card_text = untrusted.fixed(json_text(card, default=plain))
    with new_hdf5(path, force=force) as (file, disk):
        file.attrs["format"] = untrusted.fixed(kind.format)
        file.attrs["format_version"] = kind.version
        for place, value in _packed("", {"card": card_text, **arrays}):
            file[place] = value
            disk.check()


def _packed(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _packed(f"{place}/{name}", item)
    else:
        yield place, value.packed() if hasattr(value, "packed") else value


def plain(value: Any) -> Any:
    """Return a value of NumPy as JSON has it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{value!r} is not a plain value")


@contextmanager
def opened_card(path: str | Path, kind: Kind) -> Iterator[tuple[h5py.File, dict[str, Any]]]:
    """Open a file of a kind, with its card; what its reader then stumbles over is damage."""
    where = local_path(path)
    try:
        file = open_local(where)
    except OSError as error:
        why = known_reason(error) or (
            f"is not a streamkern {kind.name} ({first_line(error)}); give a file that "
            f"`{kind.command}` wrote."
        )
        raise ModelFileError(f"{where} {why}") from error
    with file:
        try:
            _check_kind(where, file, kind)
            untrusted.check_contents(file)
            yield file, untrusted.json_of(untrusted.text(file, "card"))
        except ModelFileError:
            raise
        except untrusted.DAMAGE as error:
            raise ModelFileError(
                f"{where} is a damaged {kind.name} ({first_line(error)}); copy it again."
            ) from error


def _check_kind(where: Path, file: h5py.File, kind: Kind) -> None:
    found_format, version = untrusted.mark(file, "format"), untrusted.mark(file, "format_version")
    if found_format != kind.format:
        other = _kind_named(str(found_format))
        found = f"a streamkern {other.name}, not a" if other else "HDF5 but not a streamkern"
        raise ModelFileError(
            f"{where} is {found} {kind.name}; give a file that `{kind.command}` wrote."
        )
    if not is_integer(version, 1):
        raise ValueError(f"format version {version}")
    if version > kind.version:
        raise ModelFileError(
            f"{where} has format version {version}, but this streamkern reads up to "
            f"{kind.version}; install a newer one."
        )


def kind_of(path: str | Path) -> Kind | None:
    """Return the kind of a file, None where it is none of ours."""
    try:
        with open_local(path) as file:
            return _kind_named(str(untrusted.mark(file, "format")))
    except untrusted.DAMAGE:
        return None


def _kind_named(name: str) -> Kind | None:
    """Return the kind of a format, which may be of a model of an extension."""
    model = fitted_kind(name) if name.startswith("streamkern-") else None
    found = {kind.format: kind for kind in (MODEL, MOMENTS)}.get(name)
    return found if model is None else model.file_kind


def map_card(feature_map: FeatureMap, precision: str) -> dict[str, Any]:
    """Return what a card says of a feature map, whose arrays are in a group `map`."""
    described = {"map": feature_map.name, "map_parameters": feature_map.parameters()}
    return {"precision": precision} | described


def restored_map(group: h5py.Group, card: dict[str, Any]) -> FeatureMap:
    drawn = group.get("map", {})
    if len(drawn) > _MOST_ARRAYS:
        raise ValueError(f"{len(drawn)} arrays of a feature map")
    if card["precision"] not in {"single", "double", "int8", "int16"}:
        raise ValueError(f"precision {card['precision']!r}")
    arrays = {name: untrusted.finite_array(drawn, name) for name in drawn}
    return MAPS[card["map"]].restore(card["map_parameters"], arrays)
