"""Parts of charts on matplotlib Axes: axes with plain numbers, series, cells, labels."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.report.numbers import number, percent, power, shortened
from streamkern.report.rendering import palette

# Colours, marks and dashes of series, in the order that they are taken.
KINDS = ("first", "second", "third", "fourth")
_MARKERS = ("o", "s", "^", "D")
_DASHES: tuple[Any, ...] = ("-", (0, (3.5, 1.5)), (0, (1, 1.5)), (0, (4.5, 1.5, 1, 1.5)))
GUIDE = {"linestyle": (0, (4, 3)), "linewidth": 1.2}
# Up to where a text has room on the right of a point, as a share of the width.
_ROOM = 0.6
_LONGEST_LABEL = 36
_STEPS = (1, 2, 2.5, 5, 10)
# Of axes that hold little, a range of so many decades is told by other numbers than powers of ten.
_FEW_DECADES, _SOME_DECADES, _MOST_POWERS = 0.8, 2.6, 8


def name_axes(axes: Any, x_label: str, y_label: str, numbered: str = "xy") -> None:
    """Name both axes, and give round numbers to those that have none yet."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  slow

    # A name of a column with dollars is no formula.
    axes.set_xlabel(x_label, parse_math=False)
    axes.set_ylabel(y_label, parse_math=False)
    for name in numbered:
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(MaxNLocator(6, steps=_STEPS))
        axis.set_major_formatter(lambda x, _: number(float(f"{x:.12g}"), 6))


def log_axis(axes: Any, low: float, high: float) -> None:
    """Make the horizontal axis logarithmic from `low` to `high`, with few plain labels."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator  # noqa: PLC0415  slow

    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.minorticks_off()
    decades = math.log10(high / low)
    plain = decades < _SOME_DECADES or (low >= 1e-3 and high <= 1e4)
    if decades < _FEW_DECADES:
        locator: Any = MaxNLocator(6, steps=_STEPS)
    elif decades < _SOME_DECADES:
        locator = LogLocator(subs=(1, 2, 5))
    else:  # versions of matplotlib leave out powers differently
        step = 1 + int(decades) // _MOST_POWERS
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        locator = FixedLocator([10.0**k for k in powers if k % step == 0])
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        lambda x, _: number(float(f"{x:.6g}")) if plain else f"10{power(round(math.log10(x)))}"
    )


def share_axes(axes: Any, x_label: str, y_label: str) -> None:
    """Name both axes, and make them shares from 0 to 1."""
    name_axes(axes, x_label, y_label, "")
    ticks = np.arange(0.0, 1.01, 0.2)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xticks(ticks, [percent(x, 0) for x in ticks])
    axes.set_yticks(ticks, [percent(x, 0) for x in ticks])


def reach(axes: Any, values: Iterable[float]) -> None:
    """Let the vertical axis reach over the values that are finite, with some room."""
    finite = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    wide = 0.05 * ((high - low) or abs(high) or 1.0)
    axes.set_ylim(low - wide, high + wide)


def line(axes: Any, xs: Any, ys: Any, j: int = 0, **options: Any) -> None:
    given = {"color": palette()[KINDS[j % 4]], "linestyle": _DASHES[j % 4], "linewidth": 2.0}
    axes.plot(xs, ys, **given | options)


def marks(axes: Any, xs: Any, ys: Any, j: int = 0) -> None:
    """Draw the marks of a series: circles, squares, triangles or diamonds."""
    look = {"markersize": 6.5, "markeredgecolor": palette()["paper"], "markeredgewidth": 1.0}
    kind = {"marker": _MARKERS[j % 4], "color": palette()[KINDS[j % 4]]}
    axes.plot(xs, ys, linestyle="none", zorder=3, clip_on=False, **kind, **look)


def series(axes: Any, xs: Any, ys: Any, j: int = 0) -> None:
    line(axes, xs, ys, j)
    marks(axes, xs, ys, j)


def band(axes: Any, xs: Any, lows: Any, highs: Any) -> None:
    """Fill what is between two lines."""
    axes.fill_between(xs, lows, highs, color=palette()["first"], alpha=0.17, linewidth=0)


def guide(axes: Any, xs: Any, ys: Any) -> None:
    """Draw a dashed line that can be seen on cells too."""
    axes.plot(xs, ys, color=palette()["paper"], linewidth=3.0, alpha=0.7)
    axes.plot(xs, ys, color=palette()["ink"], **GUIDE)


def label(
    axes: Any, text: str, x: float, y: float, *, down: float = -5.0, j: int | None = None
) -> None:
    """Write a text to the side of a point with room, so many points below it."""
    along, height = axes.transLimits.transform(axes.transScale.transform((x, y)))
    is_left = along < _ROOM
    down = max(down, 12.0) if height > 0.95 else down
    written = axes.annotate(
        shortened(text, _LONGEST_LABEL),
        (x, y),
        (6.0 if is_left else -6.0, -down),
        textcoords="offset points",
        ha="left" if is_left else "right",
        fontweight="bold",
        color=palette()["ink" if j is None else KINDS[j % 4]],
        parse_math=False,
        annotation_clip=False,
    )
    written.set_in_layout(False)


def choose(axes: Any, x: float, text: str, down: float = 12.0) -> None:
    """Mark what was chosen by a vertical line with a text at its upper end."""
    axes.axvline(x, color=palette()["ink"], linewidth=1.0)
    label(axes, text, x, axes.get_ylim()[1], down=down)


def cells(axes: Any, levels: Array, x_edges: Floats, y_edges: Floats) -> None:
    """Fill cells between edges by their levels (x, y), from 1 to 6; 0 is left empty.

    Cells of one level are one path, in which neighbours are one rectangle.
    """
    from matplotlib.patches import PathPatch  # noqa: PLC0415  slow
    from matplotlib.path import Path  # noqa: PLC0415  slow

    for level in np.unique(levels[levels > 0]).tolist():
        corners: list[tuple[float, float]] = []
        for j, row in enumerate((levels == level).T):
            changes = np.flatnonzero(np.diff(row, prepend=False, append=False))
            low, high = y_edges[j], y_edges[j + 1]
            for a, b in x_edges[changes.reshape(-1, 2)].tolist():
                corners += [(a, low), (b, low), (b, high), (a, high), (a, low)]
        codes = np.tile([1, 2, 2, 2, 79], len(corners) // 5)
        shade = palette()[f"shade{level}"]
        axes.add_patch(PathPatch(Path(corners, codes), color=shade, linewidth=0))


def levels(
    axes: Any, names: Sequence[str], shown: Floats, lows: Floats | None = None, highs: Any = None
) -> None:
    """Draw a mark a level (m,) for every series (t, m), the first above; one with what it spans."""
    places = np.arange(len(names))[::-1]
    if lows is not None:
        colour = palette()["first"]
        axes.hlines(places, lows[:, 0], highs[:, 0], color=colour, alpha=0.25, linewidth=9)
    for j, each in enumerate(shown):
        marks(axes, each, places, j)
    axes.set_yticks(places, list(map(shortened, names)), parse_math=False)


def bars(axes: Any, names: Sequence[str], values: Sequence[float]) -> None:
    """Draw horizontal bars with their names and numbers, the first above."""
    places = np.arange(len(names))[::-1]
    drawn = axes.barh(places, values, color=palette()["first"], height=0.66)
    axes.bar_label(drawn, [number(value, 2) for value in values], padding=4)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_xlim(1.3 * min([*values, 0.0]), 1.18 * max([*values, 1e-300]))
    axes.grid(visible=False)
