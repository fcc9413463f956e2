"""Pictures: matplotlib draws them, on the Axes of a user or as images of a page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.report.numbers import number, shortened

# Okabe and Ito's colours, which readers of every colour vision can tell apart, with markers that
# tell the lines apart in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = tuple(zip(_COLOURS, "os^DvP", strict=True))
GREY = "#555555"
GUIDE = {"color": GREY, "linestyle": "--", "linewidth": 1.0}
# Of several lines, targets or classes, so many are drawn.
MOST_LINES = 4
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
# So that the same picture gives the same bytes.
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Figure(NamedTuple):
    """A picture with a title, and sentences that say what it shows.

    `draw` draws it on a matplotlib Axes; `height` is in inches, of a page of 4.8.
    """

    title: str
    caption: str
    draw: Callable[[Any], object]
    height: float = 3.3

    @property
    def image(self) -> str:
        """The picture as the address of an image, which holds all of it as SVG."""
        text = io.BytesIO()
        with drawing_style() as canvas:
            picture = canvas(figsize=(4.8, self.height), layout="constrained")
            self.draw(picture.add_subplot())
            picture.savefig(text, format="svg", metadata=UNDATED["svg"])
        return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue()).decode()}"


@contextmanager
def drawing_style() -> Iterator[Any]:
    """Draw in the style of reports, whatever the user has set; yield matplotlib's Figure."""
    from matplotlib import style as styles
    from matplotlib.figure import Figure as Canvas
    from matplotlib.rcsetup import cycler

    dashes = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))
    cycle = {"axes.prop_cycle": cycler(color=_COLOURS, linestyle=dashes)}
    with styles.context(["default", STYLE | cycle]), warnings.catch_warnings():
        # Of letters that matplotlib's own font has not; who shows the SVG has others.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        yield Canvas


def name_axes(axes: Any, x_label: str, y_label: str) -> None:
    """Name both axes, as text: a name of a column with dollars is no formula."""
    axes.set_xlabel(x_label, parse_math=False)
    axes.set_ylabel(y_label, parse_math=False)


def add_legend(axes: Any, names: Mapping[str, Any]) -> None:
    """Add a legend of drawn things by their names, as text."""
    for text in axes.legend(names.values(), names.keys()).get_texts():
        text.set_parse_math(False)


def draw_lines(axes: Any, lines: Mapping[str, tuple[Any, Any]], marker: str = "") -> None:
    """Draw lines (xs, ys) by their names, with a legend where there are several."""
    drawn = {name: axes.plot(*line, marker=marker)[0] for name, line in lines.items()}
    if len(drawn) > 1:
        add_legend(axes, drawn)


def log_axis(axes: Any) -> None:
    """Make the horizontal axis logarithmic, with plain numbers at few places."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def share_axes(axes: Any, x_label: str, y_label: str) -> None:
    """Name both axes, and make them shares from 0 to 1."""
    name_axes(axes, x_label, y_label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")


def cells(axes: Any, values: Array, x_edges: Floats, y_edges: Floats, label: str) -> None:
    """Fill cells between edges of equal steps by values (x, y), or by positive counts."""
    from matplotlib.colors import LogNorm

    counts = values.dtype.kind == "i"
    image = axes.imshow(
        np.ma.masked_equal(values, 0).T if counts else values.T,
        extent=(x_edges[0], x_edges[-1], y_edges[0], y_edges[-1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap="Blues" if counts else "viridis",
        norm=LogNorm(vmin=1, vmax=max(int(values.max()), 2)) if counts else None,
    )
    axes.figure.colorbar(image, ax=axes, label=label, format="{x:g}")


def bars(axes: Any, names: Sequence[str], values: Sequence[float], label: str) -> None:
    """Draw horizontal bars with their names and numbers, the first above."""
    places = range(len(names))[::-1]
    drawn = axes.barh(places, values, color="C0", height=0.66)
    axes.bar_label(drawn, [number(value, 2) for value in values], padding=4)
    axes.set_yticks(places, list(map(shortened, names)), parse_math=False)
    axes.set_xlabel(label, parse_math=False)
    axes.margins(x=0.15)
