"""Maps of what a model of two inputs predicts, and of how sure it is."""

from itertools import pairwise
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.grid_prediction import predicted_grid
from streamkern.report import chart_marks as chart
from streamkern.report.input_effects import input_labels
from streamkern.report.numbers import number
from streamkern.report.page_facts import shown_targets
from streamkern.report.prediction_figures import SQUARE
from streamkern.report.rendering import Figure

# Cells along an input, and shades of them.
_CELLS, _SHADES = 60, 6
# Features of which deviations are drawn at the most: they take D^3 operations.
_COMPONENTS = 4096


def field_maps(model: FittedRidge) -> list[Figure]:
    """Return maps over the range of the rows; none unless there are two inputs and one target."""
    ranges = model.report.get("input_range", [])
    if len(ranges) != 2 or model.predictor.n_targets != 1 or any(a == b for a, b in ranges):
        return []
    has_std = model.equations is not None and len(model.predictor.coef) <= _COMPONENTS
    # The middles of cells.
    middles = [np.linspace(a, b, 2 * _CELLS + 1)[1::2] for a, b in ranges]
    found = predicted_grid(model, middles, return_std=has_std)
    edges = [np.linspace(a, b, _CELLS + 1) for a, b in ranges]
    names, target = input_labels(model.report, [0, 1]), shown_targets(model.report)[0]
    maps = [_map(f"Predicted {target}", found.mean, edges, names)]
    if found.std is not None and np.isfinite(found.std).all():
        title = "Standard deviation of a new row"
        maps.append(_map(title, found.std, edges, names))
    return maps


def _map(title: str, values: Floats, edges: list[Floats], names: list[str]) -> Figure:
    """Draw values (x, y) in shades that as many cells have each."""
    bounds = np.quantile(values, np.arange(1, _SHADES) / _SHADES)
    levels = 1 + np.searchsorted(bounds, values.reshape(_CELLS, _CELLS), side="right")
    ends = [float(values.min()), *bounds.tolist(), float(values.max())]
    shades = tuple(f"{number(a)} to {number(b)}" for a, b in pairwise(ends))

    def draw(axes: Any) -> None:
        chart.cells(axes, levels, *edges)
        axes.set(xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
        chart.name_axes(axes, *names)

    caption = "Over the range of the rows; every shade has as many cells."
    return Figure(title, caption, draw, SQUARE, shades, "from")
