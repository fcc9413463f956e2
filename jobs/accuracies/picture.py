"""One picture of errors: a panel a set, a line a contender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt

from streamkern.report.pictures import GREY, STYLE, UNDATED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

from accuracies.contenders import OTHERS

_WIDTH, _ROW_HEIGHT = 7.2, 0.2
_OURS, _LEARNT, _OTHERS = "#0072B2", "#D55E00", "#7F7F7F"
_MOST_ACROSS = 2


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw every contender's error on every set, seeds as points, into .svg, .png or .pdf."""
    sets = list(dict.fromkeys(one["set"] for one in found))
    labels = list(dict.fromkeys(map(_label, found)))
    across = min(_MOST_ACROSS, len(sets))
    down = -(-len(sets) // across)
    height = down * (len(labels) * _ROW_HEIGHT + 0.7)
    with plt.style.context(["default", STYLE]):
        figure, axes = plt.subplots(
            down, across, figsize=(_WIDTH, height), squeeze=False, layout="constrained", sharey=True
        )
        for axis, name in zip(axes.flat, sets, strict=False):
            _panel(axis, [one for one in found if one["set"] == name], labels)
        for axis in axes.flat[len(sets) :]:
            axis.set_axis_off()
        figure.supxlabel("root mean square error on rows held out, over sd(y)", fontsize=8)
        try:
            form = path.suffix[1:].lower()
            figure.savefig(path, dpi=200, format=form, metadata=UNDATED.get(form))
        finally:
            plt.close(figure)


def _label(one: dict[str, Any]) -> str:
    sized = one["contender"] not in OTHERS or one["contender"] in ("RBFSampler", "Nystroem")
    return one["contender"] + (f", D = {one['components']:,}" if sized else "")


def _panel(axis: Any, found: Sequence[dict[str, Any]], labels: Sequence[str]) -> None:
    best = min(one["error"] for one in found)
    for one in found:
        height = labels.index(_label(one))
        colour = _OTHERS if one["contender"] in OTHERS else _OURS
        colour = _LEARNT if one["contender"].count("/") == 2 else colour
        axis.plot([best, one["error"]], [height] * 2, color=colour, linewidth=0.8, alpha=0.5)
        axis.plot(one["error"], height, "o", color=colour, markersize=4)
        axis.annotate(
            f"{one['error']:.3f}", (one["error"], height), xytext=(5, 0), fontsize=6,
            textcoords="offset points", va="center", color=GREY,
        )  # fmt: skip
    axis.axvline(best, color=GREY, linewidth=0.5)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    low, high = best, max(one["error"] for one in found)
    axis.set_xlim(low - 0.05 * (high - low), high + 0.22 * (high - low) + 1e-9)
    axis.locator_params(axis="x", nbins=5)
    rows, inputs = found[0]["rows"], found[0]["inputs"]
    axis.set_title(f"{found[0]['set']}: {rows:,} x {inputs}", loc="left", fontsize=8)
