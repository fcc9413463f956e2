"""Charts of a comparison of random features with exact kernel ridge."""

from collections.abc import Sequence
from itertools import cycle
from operator import itemgetter
from pathlib import Path
from textwrap import fill
from typing import Any

from streamkern.report.comparison_trials import Comparison, Trial
from streamkern.report.rendering import drawing_style
from streamkern.solve.penalty_grid import CRITERIA
from streamkern.storage.outputs import replacing

# Okabe and Ito's colours, which readers of every colour vision can tell apart, with markers that
# tell the lines apart in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = tuple(zip(_COLOURS, "os^DvP", strict=True))
GREY = "#555555"
_DOTTED, _DASHED = (0, (1, 1.5)), (0, (5, 2))
# Of a label in the margin, as a share of the height of the axes.
_LABEL_HEIGHT = 0.06
# Along the horizontal axis, less what the first of them takes.
_MOST_LABELS = 6.5
_CAPTION_WIDTH = 138
STYLE = {
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "font.size": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "streamkern",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}
# So that the same comparison gives the same bytes.
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def plot_comparison(comparison: Comparison, path: str | Path, *, force: bool = False) -> None:
    """Draw the test error and the kernel's error against the number of random features.

    On the left the test RMSE of random features, with exact kernel ridge, its leave-one-out RMSE
    and linear ridge as horizontal lines; on the right the error of the approximate kernel, beside
    the slope of 1 / sqrt(D).  Lines are means over the seeds, bands the intervals of the trials.
    """
    form = str(path).rsplit(".", 1)[-1].lower()
    lines = comparison.by_map()
    sizes = sorted({trial.n_components or 0 for trials in lines.values() for trial in trials})
    with drawing_style(STYLE):
        from matplotlib.figure import Figure  # noqa: PLC0415  slow

        figure = Figure(figsize=(7.2, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_lines(left, lines, "test_rmse", sizes)
        _draw_references(left, comparison)
        left.set(title="a\N{EM SPACE}Test error", ylabel="test RMSE, in units of the target")
        left.legend(title="random features", alignment="left", frameon=True, edgecolor="none")
        _draw_lines(right, lines, "kernel_error", sizes)
        _draw_slope(right, comparison, sizes)
        right.set(
            title="b\N{EM SPACE}Kernel approximation error", ylabel="mean |φ(x)ᵀφ(x′) − k(x, x′)|"
        )
        figure.supxlabel(_caption(comparison), x=0.01, ha="left", fontsize=7, color=GREY)
        with replacing(path, force=force) as temporary:
            figure.savefig(temporary, dpi=300, format=form, metadata=UNDATED.get(form))


def _draw_lines(axes: Any, lines: dict[str, list[Trial]], measure: str, sizes: list[int]) -> None:
    """Draw a measure of every map against D: means, and bands for their intervals."""
    for (name, trials), (colour, marker) in zip(lines.items(), cycle(LINES), strict=False):
        D = [trial.n_components for trial in trials]
        means = [getattr(trial, measure) for trial in trials]
        axes.plot(D, means, marker=marker, mec="white", mew=0.6, color=colour, label=name, zorder=3)
        band = {"facecolor": (colour, 0.2), "edgecolor": (colour, 0.5), "linewidth": 0.5}
        hollow = [trial for trial in trials if trial.solver == "cg"]
        places = [trial.n_components for trial in hollow], [getattr(t, measure) for t in hollow]
        axes.plot(*places, marker, mfc="white", color=colour, zorder=4)
        axes.fill_between(D, *_ends(trials, measure), **band)
    axes.set_xscale("log", base=2)
    apart = (sizes[-1] / sizes[0]) ** (1.0 / _MOST_LABELS)
    labels, last = [], 0.0
    for size in sizes:
        labels.append(f"{size:,}" if size >= last * apart else "")
        last = size if labels[-1] else last
    axes.set_xticks(sizes, labels)
    axes.minorticks_off()
    axes.set_xlabel("number of random features $D$")


def _ends(trials: Sequence[Trial], measure: str) -> tuple[list[float], list[float]]:
    """Return the lower and the upper ends of intervals; the means where there are none."""
    ends = [trial.interval[measure] or (getattr(trial, measure),) * 2 for trial in trials]
    return [low for low, _ in ends], [high for _, high in ends]


def _draw_references(axes: Any, comparison: Comparison) -> None:
    """Draw what does not depend on D as horizontal lines, with names and values in the margin."""
    exact, linear, *features = comparison.trials
    loo_rmse = exact.test_rmse if exact.loo_rmse is None else exact.loo_rmse
    low, high = _ends(features, "test_rmse")
    bottom, top = min(*low, exact.test_rmse, loo_rmse), max(*high, exact.test_rmse, loo_rmse)
    # A line for linear ridge far above would leave no room for the others.
    if linear.test_rmse < bottom + 1.5 * (top - bottom):
        bottom, top = min(bottom, linear.test_rmse), max(top, linear.test_rmse)
    room = 0.06 * (top - bottom)
    axes.set_ylim(bottom - room, top + room)
    free = 0.0
    lines = [
        ("exact", exact.test_rmse, "black", "-"),
        ("exact, LOO", loo_rmse, "black", _DOTTED),
        ("linear", linear.test_rmse, GREY, _DASHED),
    ]
    for name, value, colour, style in sorted(lines, key=itemgetter(1)):
        beyond = "" if value <= top else " \N{UPWARDS ARROW}"
        if not beyond:
            axes.axhline(value, linewidth=1.0, zorder=2, color=colour, linestyle=style)
        place = max((min(value, top) - bottom + room) / (top - bottom + 2.0 * room), free)
        label = f"{name} {value:.4g}{beyond}"
        axes.text(1.02, place, label, transform=axes.transAxes, va="center", color=colour)
        free = place + _LABEL_HEIGHT


def _draw_slope(axes: Any, comparison: Comparison, sizes: list[int]) -> None:
    """Make the vertical axis logarithmic, with the slope of 1 / sqrt(D) as a guide."""
    trials = comparison.trials[2:]
    low, high = _ends(trials, "kernel_error")
    top = max(y * (trial.n_components or 0) ** 0.5 for y, trial in zip(high, trials, strict=True))
    if len(sizes) > 1:
        guide = [1.15 * top / D**0.5 for D in sizes]
        axes.plot(sizes, guide, color=GREY, linewidth=0.8, linestyle=_DASHED)
        at = sizes[len(sizes) // 2], guide[len(sizes) // 2]
        axes.annotate("$D^{-1/2}$", at, (3, 3), textcoords="offset points", color=GREY)
    axes.set_yscale("log", subs=())
    marks = (1, 3) if max(high) > 10.0 * max(min(low), 0.0) else range(1, 10)
    axes.yaxis.get_major_locator().set_params(subs=marks)
    axes.yaxis.set_major_formatter("{x:g}")


def _caption(comparison: Comparison) -> str:
    kernel, alpha = comparison.kernel, comparison.alpha
    scale, n_seeds = kernel["length_scale"], len(comparison.trials[-1].seeds)
    shown = f"{scale:.3g}" if isinstance(scale, float) else f"of {len(scale)} values"
    drawn = (
        f"Lines are means over {n_seeds} draws of the random features, bands 95% intervals of the "
        f"mean by Student's t."
        if n_seeds > 1
        else "One draw of the random features."
    )
    criterion = CRITERIA[alpha if isinstance(alpha, str) else "cv"]
    chosen = (
        f"The penalty alpha is {alpha:.3g} everywhere; LOO is leave-one-out, on the rows fitted."
        if isinstance(alpha, float)
        else f"Every model has an alpha of its own, chosen by {criterion}, or for exact kernel "
        f"ridge by leave-one-out (LOO) on the rows fitted."
    )
    by_passes = any(trial.solver == "cg" for trial in comparison.trials)
    rows = f"{comparison.n_train:,} rows were fitted and {comparison.n_test:,} tested"
    text = f"{kernel['name'].capitalize()} kernel, length scale {shown}; {rows}. {drawn} "
    text += chosen + " Hollow points are solved by conjugate gradients." * by_passes
    return fill(text, _CAPTION_WIDTH, break_on_hyphens=False)
