"""Model files: HDF5 arrays and one JSON text, nothing that could run.

    /             attributes format = "streamkern-model", format_version
    /card         JSON: kind, options, fit report, data, versions of libraries, map and parameters
    /map/...      what the feature map drew
    /coef         (D, q)
    /intercept    (q,)

Frequencies are stored, not drawn again from the seed: neither NumPy's random streams nor LAPACK's
orthogonal matrices are promised to stay the same over the years, and a model must.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from streamkern.errors import ModelFileError
from streamkern.features import MAPS
from streamkern.predictor import Predictor
from streamkern.storage.outputs import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Array

FORMAT = "streamkern-model"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds.

    Parameters
    ----------
    predictor : Predictor
    card : dict
        Options, report, data and versions, as plain JSON values.
    """

    predictor: Predictor
    card: dict[str, Any]


def write_model(path: str | Path, model: ModelFile, *, force: bool = False) -> None:
    """Write a model file, whole or not at all.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    predictor = model.predictor
    card = {
        **model.card,
        "map": predictor.feature_map.name,
        "map_parameters": predictor.feature_map.parameters(),
        "precision": predictor.precision,
        "flat": predictor.flat,
    }
    # Made in memory first, so that a full disk is met by a plain write and not inside HDF5.
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        file["card"] = json.dumps(card, indent=1)
        for name, array in predictor.feature_map.arrays().items():
            file[f"map/{name}"] = array
        file["coef"] = predictor.coef
        file["intercept"] = predictor.intercept
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(image.getbuffer())


def read_model(path: str | Path) -> ModelFile:
    """Read a model file.

    Raises
    ------
    ModelFileError
        If there is none, or it is not a model, or damaged, or from a newer format.
    """
    where = Path(path)
    try:
        if not where.is_file():
            raise ModelFileError(f"{where} does not exist or is not a file; check the path.")
        with h5py.File(where, "r", locking="best-effort") as file:
            return _read(where, file)
    except OSError as error:
        if "truncated" in str(error):
            raise ModelFileError(
                f"{where} was cut short: it is smaller than its header says; copy it again."
            ) from error
        raise ModelFileError(
            f"{where} is not a streamkern model ({_first_line(error)}); give a file that "
            f"`streamkern fit` wrote."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _damaged(where: Path, error: Exception) -> ModelFileError:
    return ModelFileError(f"{where} is a damaged model ({_first_line(error)}); copy it again.")


def _read(where: Path, file: h5py.File) -> ModelFile:
    try:
        mark, version = file.attrs.get("format"), file.attrs.get("format_version")
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise _damaged(where, error) from error
    if not isinstance(mark, str) or mark != FORMAT:
        raise ModelFileError(
            f"{where} is HDF5 but not a streamkern model; give a file that `streamkern fit` wrote."
        )
    if not isinstance(version, np.integer) or version < 1:
        raise _damaged(where, ValueError(f"format version {version}"))
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{where} has format version {version}, but this streamkern reads up to "
            f"{FORMAT_VERSION}; install a newer one."
        )
    try:
        card = json.loads(file["card"].asstr()[()])
        arrays = dict(_datasets(file["map"])) if "map" in file else {}
        feature_map = MAPS[card["map"]].restore(card["map_parameters"], arrays)
        predictor = Predictor(
            feature_map,
            _numbers(file["coef"]),
            _numbers(file["intercept"]),
            precision=card["precision"],
            flat=card["flat"],
        )
    except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise _damaged(where, error) from error
    if predictor.precision not in {"single", "double"}:
        raise _damaged(where, ValueError(f"precision {predictor.precision!r}"))
    D = feature_map.n_components
    coef, intercept = predictor.coef, predictor.intercept
    if coef.ndim != 2 or len(coef) != D or intercept.shape != coef.shape[1:]:
        raise ModelFileError(
            f"{where} is a damaged model: coefficients of shape {coef.shape} for {D} features; "
            f"copy it again."
        )
    return ModelFile(predictor, card)


def _datasets(group: h5py.Group) -> Iterator[tuple[str, Array]]:
    for name, item in group.items():
        yield name, _numbers(item)


def _numbers(dataset: h5py.Dataset) -> Array:
    if dataset.dtype.kind not in "fiu":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, not numbers")
    array: Array = dataset[:]
    if not np.isfinite(array).all():
        raise ValueError(f"{dataset.name} holds values that are not finite")
    return array
