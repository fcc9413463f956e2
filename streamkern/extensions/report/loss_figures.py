"""What a page shows of other losses: their values, and means or quantiles of held-out rows."""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.report import pictures
from streamkern.extensions.report.input_effects import shown_target
from streamkern.extensions.report.numbers import number, percent
from streamkern.extensions.report.pair_counts import MOST_TARGETS
from streamkern.extensions.report.pictures import Figure
from streamkern.extensions.report.prediction_figures import CHANCE, SQUARE, pairs_figures
from streamkern.extensions.report.validation_pass import Validation

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
    predicted, y = found.predicted, found.actual
    if levels := model.quantiles:
        figures = [coverage_figure(predicted, y, levels)]
        for j, level in enumerate(levels[:MOST_TARGETS]):
            pairs, *_ = pairs_figures(found.pairs, len(y), j, shown_target(model))
            caption = f"If it is right, {percent(level)} of rows lie below the dashed line."
            figures.append(pairs._replace(title=f"Quantile {level:g}", caption=caption))
    else:
        how = {"is_log": model.predictor.link == "log"}
        figures = [mean_figure(predicted[:, 0], y, shown_target(model), **how)]
        figures += pairs_figures(found.pairs, len(y), 0, shown_target(model))
    (_, errors), *_ = model.error_tables(found.measure.facts(flat=False))
    return {"held_out": figures, "intervals": [], "errors": errors}


def _groups(predicted: Floats) -> list[Any]:
    """Return places of rows in groups as large, from the least predicted to the most."""
    n_groups = max(min(_GROUPS, len(predicted) // _ROWS_A_GROUP), 1)
    return np.array_split(np.argsort(predicted, kind="stable"), n_groups)


def mean_figure(predicted: Floats, y: Floats, name: str, *, is_log: bool) -> Figure:
    """Draw means of targets (n,) over means of predictions (n,), of groups of rows."""
    groups = _groups(predicted)
    x, means = (np.array([values[rows].mean() for rows in groups]) for values in (predicted, y))
    reach = CHANCE * np.array([y[rows].std() / np.sqrt(len(rows)) for rows in groups])

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, f"Mean of predicted {name}", f"Mean of actual {name}")
        drawn = axes.errorbar(x, means, reach, fmt="o", color="C0", capsize=2.5)
        axes.axline((x[0], x[0]), (x[-1], x[-1] + 1e-300), **pictures.GUIDE)
        if is_log and np.all(means > reach) and np.all(x > 0):
            axes.set(xscale="log", yscale="log")
        drawn.lines[0].set_zorder(3)

    caption = (
        f"Rows in {len(groups)} groups by what is predicted for them; on the dashed line means are "
        f"right. Bars are what chance does 95 times in 100."
    )
    return Figure("Calibration", caption, draw, SQUARE)


def coverage_figure(predicted: Floats, y: Floats, levels: list[float]) -> Figure:
    """Draw the share of targets (n,) up to quantiles (n, q), of groups of rows by these."""
    shown, lines = levels[: pictures.MOST_LINES], []
    for j in range(len(shown)):
        groups = _groups(predicted[:, j])
        lines.append([100.0 * np.mean(y[rows] <= predicted[rows, j]) for rows in groups])
    most = len(lines[0])

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Group of rows, by the quantile", "% of rows up to the quantile")
        for level, shares in zip(shown, lines, strict=True):
            (drawn,) = axes.plot(range(1, most + 1), shares, marker="o")
            axes.axhline(100.0 * level, **pictures.GUIDE)
            axes.text(most + 0.3, 100.0 * level, f"{level:g}", color=drawn.get_color(), va="center")
        axes.set_ylim(-2.0, 102.0)

    caption = (
        f"Rows in {most} groups as large, from those whose quantile is least to those where it is "
        f"most. Dashed is the share that each quantile claims."
    )
    return Figure("Coverage", caption, draw, SQUARE)
