"""Files of principal components: HDF5 arrays and one JSON text, as models are stored.

/                    attributes format = "streamkern-pca", format_version
/card                JSON: kind, options, fit report, versions of libraries, map and parameters
/map/...             what the feature map drew
/components          (K, D)
/mean                (D,)
/explained_variance  (K,), descending
/total_variance      ()
/weight              ()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamkern.predict.principal_components import PrincipalComponents
from streamkern.storage.cards import COMPONENTS, opened_card, restored_map, write_card
from streamkern.storage.disk import new_hdf5
from streamkern.storage.recipe_files import check_recipe
from streamkern.storage.untrusted import finite_array

if TYPE_CHECKING:
    from pathlib import Path

_ARRAYS = ("components", "mean", "explained_variance", "total_variance", "weight")


def write_components(
    path: str | Path, found: PrincipalComponents, card: dict[str, Any], *, force: bool = False
) -> None:
    """Write a file of principal components, whole or not at all.

    Parameters
    ----------
    path : path
    found : PrincipalComponents
    card : dict
        Options, report, data and versions, as plain JSON values.
    force : bool
        Replace an existing file.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    """
    with new_hdf5(path, force=force) as (file, _):
        write_card(file, COMPONENTS, card | {"precision": found.precision}, found.feature_map)
        for name in _ARRAYS:
            file[name] = getattr(found, name)


def read_components(path: str | Path) -> tuple[PrincipalComponents, dict[str, Any]]:
    """Read principal components and their card.

    Raises
    ------
    ModelFileError
        If there is no file, or it is not one of them, or damaged, or from a newer format.
    """
    with opened_card(path, COMPONENTS) as (file, card):
        feature_map, precision = restored_map(file, card), card["precision"]
        check_recipe(card, feature_map)
        D, components = feature_map.n_components, finite_array(file, "components", kinds="f")
        if components.ndim != 2 or components.shape[1] != D or not len(components):
            raise ValueError(f"components of shape {components.shape} for {D} features")
        variance = finite_array(file, "explained_variance", components.shape[:1], "f")
        total = float(finite_array(file, "total_variance", (), "f"))
        weight = float(finite_array(file, "weight", (), "f"))
        if (variance < 0).any() or not (total > 0 and weight > 1):
            raise ValueError(f"a variance of {total:g} and rows that weigh {weight:g}")
        if precision not in {"single", "double"}:
            raise ValueError(f"precision {precision!r}")
        mean = finite_array(file, "mean", (D,), "f")
        found = PrincipalComponents(
            feature_map, mean, components, variance, total, weight, precision
        )
        return found, card
