"""One picture of everything that was measured: bars for one case, small multiples for several."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import pyplot as plt

from benchmarking.cases import SWEEPS
from benchmarking.contenders import CONTENDERS
from benchmarking.wording import Wording, machine_of, said
from streamkern.report.pictures import GREY, LINES, STYLE, UNDATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_WIDTH, _CAPTION_WIDTH, _TITLES_WIDTH = 7.2, 138, 84
_OURS, _PALE, _OTHERS = "#0072B2", "#8FC1E3", "#A6A6A6"
_OF_STREAMKERN = ("streamkern", "landmarks", "choice", "learn", "prediction")
_GRID = {"color": "#E6E6E6", "linewidth": 0.6}
# Numbers beside the bars, and where their columns end.
_COLUMNS = {"seconds": 0.13, "× roofline": 0.41, "memory": 0.69, "test RMSE": 0.98}
_MOST_ACROSS = 4
_MOST_LABELS, _LEGEND_ACROSS = 4, 3
# Beyond this ratio of the largest to the least, an axis is logarithmic.
_WIDE = 5.0
_LOOKS = dict(
    zip(("streamkern", "dask", "ridge", "nystroem", "sgd", "choice"), LINES, strict=True)
) | {"prediction": ("#0072B2", "o"), "learn": ("#0072B2", "o"), "int8": ("#D55E00", "P")}
_AXIS = {
    "rows": "rows $n$",
    "inputs": "inputs $p$",
    "components": "features $D$",
    "workers": "workers",
    "latency": "ms added to a chunk",
}
_LOGARITHMIC = ("rows", "inputs", "components")


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw the results into a file that ends in .svg, .png or .pdf.

    One case gives a bar for every contender, with the roofline as a line, and every repeat as a
    point; several give ratios to the roofline and memory along the axes that vary.
    """
    with plt.style.context(["default", STYLE]):
        make = _bars if len(results["cases"]) == 1 else _multiples
        figure = make(plt, results)
        try:
            form = path.suffix[1:].lower()
            figure.savefig(path, dpi=300, format=form, metadata=UNDATED.get(form))
        finally:
            plt.close(figure)


def _caption(figure: Any, results: Mapping[str, Any], text: str) -> None:
    wording = Wording(entry["case"] for entry in results["cases"])
    words = (
        f"{wording.common()}. {text} The roofline is projections, cosines and products alone, in "
        f"memory, on as many cores. {machine_of(results)}; {results['repeats']} repeats, "
        f"interleaved."
    )
    shown = fill(words, _CAPTION_WIDTH, break_on_hyphens=False)
    figure.supxlabel(shown, x=0.01, ha="left", fontsize=7, color=GREY)


def _bars(plt: Any, results: Mapping[str, Any]) -> Any:
    (entry,) = results["cases"]
    found = entry["contenders"]
    rooflines = [name for name in found if CONTENDERS[name].roofline == name]
    names = [name for name in found if name not in rooflines]
    figure, (axes, beside) = plt.subplots(
        1,
        2,
        sharey=True,
        figsize=(_WIDTH, 1.45 + 0.27 * len(names)),
        width_ratios=(1.0, 0.75),
        layout="constrained",
    )
    beside.axis("off")
    axes.set_axisbelow(True)
    axes.grid(axis="x", **_GRID)
    for y, name in enumerate(names):
        _bar(axes, y, name, found[name])
        _numbers(beside, y, name, found[name])
    axes.set_yticks(range(len(names)), [CONTENDERS[name].label for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("seconds")
    axes.set_xlim(left=0.0)
    for title, x in _COLUMNS.items():
        beside.text(x, 1.04, title, transform=beside.transAxes, ha="right", color=GREY)
    for k, name in enumerate(rooflines):
        at = found[name]["seconds"]["median"]
        axes.axvline(at, color="black", linewidth=1.0, zorder=3)
        place = axes.get_xaxis_transform()
        above = 1.04 + 0.35 * k / len(names)
        axes.text(at, above, f"{CONTENDERS[name].label} {at:.3g} s", transform=place, ha="center")
    text = "Bars are medians, points single runs; memory is the peak of all processes together."
    if any("parts" in found[name] for name in names):
        text += " In bars of streamkern, the darker part is the accumulating pass."
    _caption(figure, results, text)
    return figure


def _bar(axes: Any, y: int, name: str, contender: Mapping[str, Any]) -> None:
    if "seconds" not in contender:
        reason = contender.get("refused", contender.get("failed"))
        axes.text(0.0, y, f" {reason}", va="center", style="italic", color=GREY)
        return
    parts, look = contender.get("parts"), {"height": 0.62, "zorder": 2}
    colour = _OURS if name in _OF_STREAMKERN else _OTHERS
    axes.barh(y, contender["seconds"]["median"], color=_PALE if parts else colour, **look)
    if parts:
        survey, passed = (parts[part]["seconds"]["median"] for part in ("survey", "accumulate"))
        axes.barh(y, passed, left=survey, color=_OURS, **look)
    runs = [run["seconds"] for run in contender["runs"] if "seconds" in run]
    points = {"color": "black", "markersize": 3.2, "mec": "white", "mew": 0.5}
    axes.plot(runs, [y] * len(runs), "o", zorder=4, **points)


def _numbers(axes: Any, y: int, name: str, contender: Mapping[str, Any]) -> None:
    if "seconds" not in contender:
        return
    rmse = contender.get("test_rmse")
    cells = (
        f"{contender['seconds']['median']:.3g}",
        f"{contender['ratio']:.2f}" if "ratio" in contender else "",
        f"{contender['peak_bytes'] / 1e9:.2f} GB",
        "" if rmse is None else f"{rmse:.3f}",
    )
    colour = _OURS if name in _OF_STREAMKERN else "black"
    for x, cell in zip(_COLUMNS.values(), cells, strict=True):
        place = axes.get_yaxis_transform()
        axes.text(x, y, cell, transform=place, ha="right", va="center", color=colour)


class _Panel(NamedTuple):
    """Cases that differ along one axis, in its order, and who is shown at them."""

    axis: str
    title: str
    contenders: list[str]
    entries: list[Mapping[str, Any]]


def _panels(results: Mapping[str, Any]) -> list[_Panel]:
    """Return a panel for every sweep, and for every combination of other axes that vary in it."""
    panels = []
    for name, sweep in results["sweeps"].items():
        entries = [results["cases"][index] for index in sweep["cases"]]
        axes = Wording(entry["case"] for entry in entries).axes
        axis = SWEEPS[name].axis if name in SWEEPS else (axes or ["rows"])[0]
        others = [other for other in axes if other != axis]
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for entry in entries:
            words = ", ".join(said(other, entry["case"][other]) for other in others)
            groups.setdefault(words, []).append(entry)
        for words, group in groups.items():
            panels.append(_Panel(axis, words or name, sweep["contenders"], group))
    return panels


def _multiples(plt: Any, results: Mapping[str, Any]) -> Any:
    panels = _panels(results)
    across = min(len(panels), _MOST_ACROSS)
    bands = -(-len(panels) // across)
    alone = len(panels) == 1
    figure, grid = plt.subplots(
        *((1, 2) if alone else (2 * bands, across)),
        squeeze=False,
        figsize=(_WIDTH, 3.4 if alone else 1.0 + 2.9 * bands),
        layout="constrained",
    )
    pairs = [
        tuple(grid[0])
        if alone
        else (grid[2 * (i // across), i % across], grid[2 * (i // across) + 1, i % across])
        for i in range(len(panels))
    ]
    for axes in {*grid.flat} - {axes for pair in pairs for axes in pair}:
        axes.set_visible(False)
    shown: dict[str, Any] = {}
    for i, (panel, (ratios, memory)) in enumerate(zip(panels, pairs, strict=True)):
        shown |= _lines(ratios, panel, memory)
        _label_values(panel, (ratios, memory) if alone else (memory,), (ratios, memory))
        if not alone:
            title = fill(panel.title, _TITLES_WIDTH // across)
            ratios.set_title(f"{chr(ord('a') + i)}\N{EM SPACE}{title}")
        if not i % across:
            ratios.set_ylabel("seconds / roofline")
            memory.set_ylabel("peak memory, GB")
    _same_limits([ratios for ratios, _ in pairs], 1.0)
    _same_limits([memory for _, memory in pairs], 0.0)
    roofline = shown.pop("roofline")
    figure.legend(
        [*shown.values(), roofline],
        [*shown, "roofline"],
        loc="outside upper left",
        ncols=min(len(shown) + 1, _LEGEND_ACROSS),
    )
    text = "Points are medians, whiskers the fastest and the slowest run over the median roofline."
    if any("refused" in c for entry in results["cases"] for c in entry["contenders"].values()):
        text += " What is missing would not have fitted in memory."
    _caption(figure, results, text)
    return figure


def _lines(ratios: Any, panel: _Panel, memory: Any) -> dict[str, Any]:
    """Draw every contender along the axis; return lines for the legend, by label."""
    shown: dict[str, Any] = {}
    for name in panel.contenders:
        if CONTENDERS[name].roofline == name:
            continue
        colour, marker = _LOOKS[name]
        points = [
            (x, entry["contenders"][name], _base(entry, name))
            for x, entry in zip(_places(panel), panel.entries, strict=True)
            if "ratio" in entry["contenders"].get(name, {})
        ]
        look = {"color": colour, "marker": marker, "mec": "white", "mew": 0.6, "zorder": 3}
        label = CONTENDERS["streamkern" if name == "prediction" else name].label
        shown[label] = _whiskers(ratios, [(x, c["seconds"], b) for x, c, b in points], look)
        if name == "streamkern":
            parts = [(x, c["parts"]["accumulate"]["seconds"], b) for x, c, b in points]
            hollow = look | {"mfc": "white", "mec": colour, "mew": 1.0, "linestyle": (0, (4, 1.5))}
            shown["its accumulating pass"] = _whiskers(ratios, parts, hollow)
        memory.plot([x for x, *_ in points], [c["peak_bytes"] / 1e9 for _, c, _ in points], **look)
    shown["roofline"] = ratios.axhline(1.0, color="black", linewidth=1.0, zorder=1)
    return shown


def _whiskers(axes: Any, points: Sequence[tuple[float, Any, float]], look: Any) -> Any:
    x = [place for place, *_ in points]
    middle, low, high = (
        [seconds[key] / base for _, seconds, base in points] for key in ("median", "min", "max")
    )
    axes.vlines(x, low, high, color=look["color"], linewidth=0.8, zorder=2)
    (line,) = axes.plot(x, middle, **look)
    return line


def _base(entry: Mapping[str, Any], name: str) -> float:
    return float(entry["contenders"][CONTENDERS[name].roofline]["seconds"]["median"])


def _places(panel: _Panel) -> list[float]:
    """Return where the cases are on the horizontal axis."""
    if panel.axis in _LOGARITHMIC:
        return [entry["case"][panel.axis] for entry in panel.entries]
    return [float(i) for i in range(len(panel.entries))]


def _label_values(panel: _Panel, labelled: Sequence[Any], both: Sequence[Any]) -> None:
    values = [entry["case"][panel.axis] for entry in panel.entries]
    places, words = _places(panel), [_short(panel.axis, value) for value in values]
    every = -(-len(words) // _MOST_LABELS) if panel.axis in _LOGARITHMIC else 1
    for axes in both:
        if panel.axis in _LOGARITHMIC:
            axes.set_xscale("log")
            axes.minorticks_off()
        else:
            axes.set_xlim(-0.4, len(places) - 0.6)
        axes.set_xticks(places, [w if not i % every else "" for i, w in enumerate(words)])
        axes.tick_params(axis="x", labelbottom=any(axes is other for other in labelled))
    for axes in labelled:
        if panel.axis == "codec":
            axes.tick_params(axis="x", rotation=35)
        axes.set_xlabel(_AXIS.get(panel.axis, panel.axis))


def _short(axis: str, value: Any) -> str:
    if axis == "rows" and value >= 1_000_000:
        return f"{value / 1e6:g}M"
    if axis == "latency":
        return f"{1000.0 * value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _same_limits(row: Sequence[Any], floor: float) -> None:
    """Give panels of one measure the same vertical axis, with lines across, from a floor."""
    values = [v for axes in row for line in axes.lines for v in line.get_ydata()]
    segments = [s for axes in row for part in axes.collections for s in part.get_segments()]
    values += [y for segment in segments for _, y in segment]
    values = values or [floor + 1.0]  # where every run failed
    low, high = min([*values, floor]), max(values)
    least = min(values)
    for axes in row:
        if high > _WIDE * max(least, floor):
            axes.set_yscale("log", subs=())
            axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_ylim(0.85 * least, 1.2 * high)
        else:
            room = 0.08 * (high - low)
            axes.set_ylim(low - (room if low == least or floor else 0.0), high + room)
        axes.set_axisbelow(True)
        axes.grid(axis="y", **_GRID)
        axes.tick_params(axis="y", labelleft=bool(axes.get_ylabel()))
