"""What a page shows of other losses: their values, and means or quantiles of held-out rows."""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.report import pictures
from streamkern.extensions.report.input_effects import shown_quantiles, shown_targets
from streamkern.extensions.report.numbers import counted, number, percent
from streamkern.extensions.report.pair_counts import PairCounts
from streamkern.extensions.report.pictures import Figure
from streamkern.extensions.report.prediction_figures import CHANCE, SQUARE, pairs_figures
from streamkern.extensions.report.validation_pass import HeldOutSample, Validation
from streamkern.sources import Block

# Rows are put into so many groups by what is predicted, of no fewer than so many rows.
_GROUPS, _ROWS_A_GROUP = 10, 30
# What a report calls losses, and a page.
_NAMES = {
    "deviance": "Deviance",
    "log_loss": "Log loss",
    "pinball": "Pinball loss",
    "huber_loss": "Huber loss",
}


def loss_tiles(model: Any) -> list[tuple[str, str, str]]:
    """Return the loss and the part of it that is explained, on rows held out if that is known."""
    report = model.report
    key = next(each for each in _NAMES if each in report)
    held = report.get(f"cv_{key}")
    of, where = ("", "on the rows fitted") if held is None else ("cv_", "on rows held out")
    more = where if held is None else f"on the rows fitted: {number(report[key], 3)}"
    tiles = [
        (f"{_NAMES[key]} {where}", number(report[of + key], 3), more),
        ("Explained of it (D²)", percent(float(np.mean(report[f"{of}d2"]))), where),
    ]
    if model.quantiles:
        shares = np.atleast_1d(report[f"{of}coverage"])
        asked = ", ".join(percent(level) for level in model.quantiles)
        tiles.append(("Rows up to quantiles", ", ".join(map(percent, shares)), f"asked: {asked}"))
    return tiles


def loss_section(model: Any, found: Validation | None) -> dict[str, Any]:
    if found is None:
        return {"held_out": [], "intervals": [], "errors": []}
    held, name = found.of_sample, shown_targets(model)[0]
    n_rows, rows = len(held.actual), counted(len(held.actual), "row")
    if levels := model.quantiles:
        figures = [coverage_figure(held, levels)]
        for j in shown_quantiles(levels):
            pairs, *_ = pairs_figures(_in_bins(held, j), n_rows, 0, name)
            caption = (
                f"{rows}; {percent(levels[j])} of them lie below the dashed line if it is right."
            )
            figures.append(pairs._replace(title=f"Quantile {levels[j]:g}", caption=caption))
    else:
        figures = [mean_figure(held, name, is_log=model.predictor.link == "log")]
        figures += pairs_figures(_in_bins(held, 0), n_rows, 0, name)
    (_, errors), *_ = model.error_tables(found.measure.facts(flat=False))
    return {"held_out": figures, "intervals": [], "errors": errors}


def _in_bins(held: HeldOutSample, j: int) -> PairCounts:
    predicted, actual = held.predicted[:, [j]], held.actual[:, None]
    rmse = np.sqrt(np.square(actual - predicted).mean(axis=0))
    pairs = PairCounts.about(actual.mean(axis=0), actual.std(axis=0), rmse)
    pairs.add(Block(actual[:, :0], actual, 0), predicted)
    return pairs


def _groups(predicted: Floats, weights: Floats) -> list[Any]:
    """Return places of rows in groups of equal weight, from the least predicted to the most."""
    n_groups = max(min(_GROUPS, len(predicted) // _ROWS_A_GROUP), 1)
    order = np.argsort(predicted, kind="stable")
    up_to = np.cumsum(weights[order])
    shares = np.arange(1, n_groups) / n_groups
    ends = np.searchsorted(up_to, up_to[-1] * shares, side="right")
    return [rows for rows in np.split(order, ends) if len(rows)]


def mean_figure(held: HeldOutSample, name: str, *, is_log: bool) -> Figure:
    """Draw means of targets over means of predictions, of groups of rows."""
    predicted, y, weights = held.predicted[:, 0], held.actual, held.weights
    groups = _groups(predicted, weights)
    x, means = (
        np.array([np.average(values[rows], weights=weights[rows]) for rows in groups])
        for values in (predicted, y)
    )
    spread = (weights[rows] * (y[rows] - mean) for rows, mean in zip(groups, means, strict=True))
    sums = [weights[rows].sum() for rows in groups]
    reach = CHANCE * np.sqrt([each @ each for each in spread]) / sums

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, f"Mean of predicted {name}", f"Mean of actual {name}")
        axes.errorbar(x, means, reach, fmt="o", color="C0", capsize=2.5, zorder=3)
        axes.plot(x[[0, -1]], x[[0, -1]], **pictures.GUIDE)
        if is_log and np.all(means > reach) and np.all(x > 0):
            axes.set(xscale="log", yscale="log")

    caption = (
        f"{counted(len(y), 'row')} in {counted(len(groups), 'group')} by what is predicted for "
        f"them; on the dashed line means are right. Bars are what chance does 95 times in 100."
    )
    return Figure("Calibration", caption, draw, SQUARE)


def coverage_figure(held: HeldOutSample, levels: list[float]) -> Figure:
    """Draw the share of targets up to quantiles (n, f), of groups of rows by these."""
    places, lines = shown_quantiles(levels), []
    for j in places:
        predicted = held.predicted[:, j]
        below = 100.0 * (held.actual <= predicted)
        groups = _groups(predicted, held.weights)
        lines.append([np.average(below[rows], weights=held.weights[rows]) for rows in groups])

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Group of rows, by the quantile", "% of rows up to the quantile")
        for j, shares in zip(places, lines, strict=True):
            (drawn,) = axes.plot(range(1, len(shares) + 1), shares, marker="o")
            axes.axhline(100.0 * levels[j], **pictures.GUIDE)
            where = len(shares) + 0.3, 100.0 * levels[j]
            axes.text(*where, f"{levels[j]:g}", color=drawn.get_color(), va="center")
        axes.set_ylim(-2.0, 102.0)

    few = f" Drawn are {len(places)} of {len(levels)} quantiles." * (len(places) < len(levels))
    caption = (
        f"{counted(len(held.actual), 'row')} in groups of equal weight, from those whose quantile "
        f"is least to those where it is most. Dashed is the share that each claims.{few}"
    )
    return Figure("Coverage", caption, draw, SQUARE)
