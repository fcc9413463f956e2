"""What stands at the top of a report: a sentence, and the figures that matter most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern.report.numbers import counted, number, percent, seconds
from streamkern.report.prediction_figures import LEVELS, coverage
from streamkern.report.validation_pass import target_spread
from streamkern.runtime.memory import in_words

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.models.ridge_model import RidgeModel
    from streamkern.report.validation_pass import Validation


class Tile(NamedTuple):
    """One of the figures that people look at first."""

    name: str
    value: str
    more: str


def lead(model: RidgeModel) -> str:
    """Return what was fitted, in one sentence."""
    report = model.report_
    scale = report["length_scale"]
    kernel = f"{report['kernel'].capitalize()} kernel"
    if scale is not None:
        kernel += " with " + (
            f"{len(scale):,} length scales"
            if isinstance(scale, list)
            else f"length scale {number(scale)}"
        )
    rows = counted(report["rows"], "row")
    inputs = counted(report["n_features"], "input")
    if "classes" in report:
        targets = f"{len(report['classes']['values']):,} classes"
    else:
        targets = counted(report["n_targets"], "target")
    features = counted(report["n_components"], "feature")
    return f"{rows} of {inputs} and {targets}; {kernel}, {features}."


def tiles(model: RidgeModel, found: Validation | None, standardized: Floats | None) -> list[Tile]:
    """Return the errors that people look at first; parameters as of `rendered`."""
    found_out = [_error_tile(model, found)]
    if found is not None:
        explained = float(found.r2.mean())
        found_out.append(Tile("Explained of y (R²)", percent(explained), "on rows held out"))
    if standardized is not None:
        within = float(coverage(standardized)[LEVELS.index(0.95)].mean())
        rows = counted(len(standardized), "row")
        found_out.append(Tile("Within 95% intervals", percent(within), f"of {rows} held out"))
    return found_out


def cost_tiles(model: RidgeModel) -> list[Tile]:
    """Return what the fit took."""
    report = model.report_
    rate = number(report["rows_per_second"], 3)
    peak, projected = report["peak_worker_bytes"], report["projected_worker_bytes"]
    return [
        Tile("Time of the fit", seconds(report["seconds"]["total"]), f"{rate} rows/s"),
        Tile("Memory of a process", in_words(peak), f"{in_words(projected)} were projected"),
    ]


def _error_tile(model: RidgeModel, found: Validation | None) -> Tile:
    """Return the error on rows held out if it is known, else on those that were fitted."""
    report, what = model.report_, "RMSE on rows held out"
    values = report["cv_rmse"]
    if found is not None and (values is None or not found.by_fold):
        values = found.rmse.tolist()
    if values is None:
        values, what = report["train_rmse"], "RMSE on the rows fitted"
    values = np.atleast_1d(values)
    if model.equations_ is None:
        return Tile(what, number(values.tolist()), "in units of y")
    relative = math.sqrt(float(np.mean(np.square(values / _or_one(target_spread(model)[1])))))
    if len(values) == 1:
        return Tile(what, number(float(values[0])), f"{relative:.3f} sd of y")
    return Tile(what, f"{relative:.3f}", f"sd, over {len(values)} targets")


def _or_one(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)
