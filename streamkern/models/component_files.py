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
from streamkern.storage.codec import COMPONENTS, map_card, opened_card, restored_map, write_card
from streamkern.storage.recipe_files import check_recipe
from streamkern.storage.untrusted import finite_array, finite_arrays

if TYPE_CHECKING:
    from pathlib import Path

_ARRAYS = ("components", "mean", "explained_variance", "total_variance", "weight")


def write_components(
    path: str | Path, found: PrincipalComponents, card: dict[str, Any], *, force: bool = False
) -> None:
    """Write a file of principal components, whole or not at all."""
    arrays = {name: getattr(found, name) for name in _ARRAYS}
    card = card | map_card(found.feature_map, found.precision)
    write_card(path, COMPONENTS, card, {"map": found.feature_map.arrays(), **arrays}, force=force)


def read_components(path: str | Path) -> tuple[PrincipalComponents, dict[str, Any]]:
    """Read principal components and their card.

    Raises ModelFileError if there is no file, or it is not one of them, or damaged, or from a newer
    format.
    """
    with opened_card(path, COMPONENTS) as (file, card):
        feature_map = restored_map(file, card)
        check_recipe(card, feature_map)
        D, components = feature_map.n_components, finite_array(file, "components", kinds="f")
        if components.ndim != 2 or components.shape[1] != D or not len(components):
            raise ValueError(f"components of shape {components.shape} for {D} features")
        shapes = {"explained_variance": components.shape[:1], "mean": (D,)}
        found = finite_arrays(file, shapes | {"total_variance": (), "weight": ()}, "f")
        variance = found["explained_variance"]
        total, weight = float(found["total_variance"]), float(found["weight"])
        if (variance < 0).any() or not (total > 0 and weight > 1):
            raise ValueError(f"a variance of {total:g} and rows that weigh {weight:g}")
        arrays = found["mean"], components, variance, total, weight
        return PrincipalComponents(feature_map, *arrays, card["precision"]), card
