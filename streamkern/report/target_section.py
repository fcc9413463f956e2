"""Tables and headline figures of predictions of held-out rows, where targets are numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkern.engine.scheduler import compute, delayed
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.report.held_out_rows import linear_rmse, place_of
from streamkern.report.numbers import counted, number, percent
from streamkern.report.page_facts import shown_targets
from streamkern.report.prediction_figures import (
    LEVELS,
    coverage,
    interval_figure,
    normality_figure,
    pairs_figures,
)
from streamkern.report.trial_tables import Table
from streamkern.report.validation_pass import MOST_TARGETS, Validation

# Targets that have a row in a table.
_MOST_ROWS = 20


def target_section(model: FittedRidge, found: Validation | None) -> dict[str, Any]:
    tiles, names = [_error_tile(model, found)], shown_targets(model)
    section: dict[str, Any] = {"tiles": tiles, "intervals": []}
    if found is None:
        return section
    baseline, (name, error, more) = _baseline(model, found), tiles[0]
    tiles[0] = name, error, f"{more}; linear ridge {baseline[1][1]}"
    tiles.append(("Explained of y (R²)", percent(float(found.r2.mean())), "on rows held out"))
    # Rows whose own model has as many degrees of freedom as rows have no deviation.
    known = found.standardized[np.isfinite(found.standardized).all(axis=1)]
    if np.isfinite(model.normal_equations.noise_variance).all() and len(known):
        within = percent(float(coverage(known)[LEVELS.index(0.95)].mean()))
        tiles.append(("Within 95% intervals", within, f"of {counted(len(known), 'row')} held out"))
        section["intervals"] = [interval_figure(known, names), normality_figure(known)]
    shown, counts = names[:MOST_TARGETS] if len(names) > 1 else [""], (found.measure, found.n_rows)
    figures = [pairs_figures(*counts, j, names[j]) for j in range(len(shown))]
    return section | {
        "pairs_shown": list(zip(shown, figures, strict=True)),
        "by_target": [
            (name, number(rmse), number(math.sqrt(max(1.0 - r2, 0.0))), percent(r2))
            for name, rmse, r2 in zip(names[:_MOST_ROWS], found.rmse, found.r2, strict=False)
        ],
        "baseline": baseline,
        "worst": _worst_rows(model, found, names),
    }


def _baseline(model: FittedRidge, found: Validation) -> list[tuple[str, str, float]]:
    """Return errors of the model and of simpler ones, and their shares of that of the mean."""
    deviation = model.target_spread[1]
    linear = compute(delayed(linear_rmse, found.sample, name="linear"))
    rows = {"this model": found.rmse, "linear ridge": linear, "the mean": deviation}
    errors = {name: np.mean((each / model.target_unit) ** 2) for name, each in rows.items()}
    shares = {name: float(np.sqrt(error)) for name, error in errors.items()}
    if len(deviation) > 1:
        return [(name, f"{share:.3f} sd", share) for name, share in shares.items()]
    return [(name, number(float(rows[name][0])), share) for name, share in shares.items()]


def _worst_rows(model: FittedRidge, found: Validation, names: Sequence[str]) -> Table:
    """Return the rows of largest residuals, each with the target that is furthest off."""
    q, rows, unit = len(names), [], model.target_unit
    for place, facts in zip(found.worst.places.tolist(), found.worst.facts, strict=True):
        residuals = facts[:q] - facts[q:]
        j = int(np.argmax(np.abs(residuals) / unit))
        cells = (number(float(each)) for each in (facts[j], facts[q + j], residuals[j]))
        rows.append((place_of(model.report["data"], place), *([names[j]] if q > 1 else []), *cells))
    header = ("row", *(["target"] if q > 1 else []), "actual", "predicted", "difference")
    return Table(header, rows)


def _error_tile(model: FittedRidge, found: Validation | None) -> tuple[str, str, str]:
    """Return the name of an error, its figure, and what explains it.

    It is that on rows held out if it is known, else on those that were fitted.
    """
    report, what = model.report, "RMSE on rows held out"
    values = report["cv_rmse"]
    if found is not None and (values is None or not found.by_fold):
        values = found.rmse.tolist()
    if values is None:
        values, what = report["train_rmse"], "RMSE on the rows fitted"
    values = np.atleast_1d(values)
    if model.equations is None:
        return (what, number(values.tolist()), "in units of y")
    relative = np.sqrt(np.mean(np.square(values / model.target_unit)))
    if len(values) == 1:
        return (what, number(float(values[0])), f"{relative:.3f} sd of y")
    return (what, f"{relative:.3f}", f"sd, over {len(values)} targets")
