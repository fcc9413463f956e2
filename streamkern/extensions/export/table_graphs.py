"""Tables as graphs: what a recipe makes of columns, whose names the graph takes them by."""

from typing import Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.extensions.export.onnx_graph import Graph
from streamkern.sources.columns import Recipe

_DOUBLE = np.dtype(np.float64)
# Where periods begin, in seconds since 1970, and their lengths.
_PERIODS = {"day": (0.0, 86_400.0), "week": (-259_200.0, 604_800.0), "year": (0.0, 31_556_952.0)}


def table_rows(graph: Graph, recipe: Recipe | None, dtype: Any) -> Any:
    """Return the inputs (n, p) of a table, whose columns the graph takes (n, 1) each."""
    if recipe is None:
        raise ParameterError("the model is of no table; leave out table (--table).")
    values = recipe.as_dict()
    missing = [*values["missing"], ""]
    graph.reserved = {column["name"] for column in values["columns"]}
    parts = [_inputs(graph, column, missing, dtype) for column in values["columns"]]
    rows = graph("Concat", *(each for part in parts for each in part), axis=1)
    return rows.astype(np.float32) if recipe.single else rows


def _inputs(graph: Graph, column: dict[str, Any], missing: list[str], dtype: Any) -> list[Any]:
    kind, fill, indicator = column["kind"], column.get("fill"), column["indicator"]
    if "levels" in column:
        cells = _places(graph, column, missing)
    else:
        cells = graph.taken(column["name"], _DOUBLE if kind == "times" else dtype, 1)
        cells = cells.astype(_DOUBLE)
    if kind == "categories":
        width = len(column["levels"]) + column["pooled"] + indicator
        return [(cells == np.arange(width)).astype(_DOUBLE)]
    absent = np.isnan(cells)
    found = [cells if fill is None else np.where(absent, fill, cells)]
    for start, length in map(_PERIODS.__getitem__, column.get("periods", ())):
        angles = (cells - start) * (2.0 * np.pi / length)
        found += [np.where(absent, 0.0, wave(angles)) for wave in (np.sin, np.cos)]
    return found + [absent.astype(_DOUBLE)] * indicator


def _places(graph: Graph, column: dict[str, Any], missing: list[str]) -> Any:
    """Return the place of a cell among inputs of categories, or in an order; of none -1 or NaN."""
    name, levels, other, absent = column["name"], column["levels"], np.nan, np.nan
    if column["kind"] == "categories":
        other = len(levels) if column["pooled"] else -1.0
        absent = len(levels) + column["pooled"] if column["indicator"] else -1.0
    if isinstance(levels[0], str):
        known = dict.fromkeys(missing, absent) | {level: k for k, level in enumerate(levels)}
        how: Any = {"keys_strings": [*known], "values_floats": [*map(float, known.values())]}
        how |= {"default_float": float(other), "domain": "ai.onnx.ml", "dtype": np.float32}
        return graph("LabelEncoder", graph.taken(name, object, 1), **how).astype(_DOUBLE)
    cells = graph.taken(name, _DOUBLE, 1)
    are = (cells == levels).astype(_DOUBLE)
    place = np.where(are.sums() > 0.0, are @ np.arange(float(len(levels)))[:, None], other)
    return np.where(np.isnan(cells), absent, place)
