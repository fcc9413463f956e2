"""Charts in SVG, as wide as a telephone: axes, lines, bands, marks and cells.

Only shapes and the names of classes are written; colours are those of the page's style sheet, which
has them for light, for dark and for paper.  Texts are escaped by the writer of the XML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from markupsafe import Markup

from streamkern.report.numbers import number, power

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    _Point = tuple[float, float]

WIDTH = 360.0
# Classes of lines and marks, in the order that they are taken.
KINDS = ("first", "second", "third", "fourth")
# Squares, triangles and diamonds, which follow circles.
_SHAPES = ("M-3-3h6v6h-6z", "M0-4l3.8 6.8h-7.6z", "M0-4.2l4.2 4.2-4.2 4.2-4.2-4.2z")
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# About as wide as a digit of a label.
_DIGIT = 5.8
# Up to where a text still has room on the right, and a short one beside a mark.
_ROOM, _ROOM_BESIDE = 0.6, 0.78


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    is_log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None

    @classmethod
    def over(cls, values: Iterable[float], *, room: float = 0.05, **options: Any) -> Axis:
        finite = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
        there, back = (math.log, math.exp) if options.get("is_log") else (float, float)
        low, high = there(min(finite)), there(max(finite))
        wide = room * ((high - low) or abs(high) or 1.0)
        return cls(back(low - wide), back(high + wide), **options)

    def share(self, value: float) -> float:
        """Return where a value is, from 0 at the low end to 1."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(max(value, 1e-300)), math.log(low), math.log(high)
        return (value - low) / (high - low)

    def labels(self) -> list[tuple[float, str]]:
        """Return places and labels of ticks, inside the axis."""
        ticks = self.ticks
        if ticks is None:
            ticks = _decades(self.low, self.high) if self.is_log else _round(self.low, self.high)
        return [(value, label) for value, label in ticks if -1e-9 <= self.share(value) <= 1 + 1e-9]


def _round(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Return multiples of 1, 2, 2.5 or 5 times a power of ten, no more than so many."""
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * size for s in _STEPS if (high - low) / (s * size) < most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, number(float(f"{i * step:.12g}"), 6)) for i in range(first, last + 1)]


def _decades(low: float, high: float, most: int = 7) -> list[tuple[float, str]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if last - first <= 2:
        values = [m * 10.0**e for e in range(first, last + 1) for m in (1.0, 2.0, 5.0)]
        return [(value, number(value)) for value in values]
    every = -(-(last - first) // most)
    exponents = range(first - first % every, last + 1, every)
    plain = first >= -3 and last <= 4
    return [(10.0**e, number(10.0**e) if plain else f"10{power(e)}") for e in exponents]


class Figure(NamedTuple):
    """A picture with a title, and sentences that say what it shows."""

    title: str
    picture: Markup
    caption: str
    shades: tuple[str, ...] = ()


class Plot:
    """A pair of axes to draw on, in pixels of a picture 360 wide."""

    def __init__(
        self, x: Axis, y: Axis, *, x_label: str, y_label: str, height: float = 200.0
    ) -> None:
        self.x, self.y, self.height, self.top = x, y, height, 30.0
        longest = max((len(label) for _, label in y.labels()), default=0)
        self.left = max(14.0 + _DIGIT * longest, 30.0)
        self.inner_width = WIDTH - self.left - 16.0
        self.full_height = self.top + height + 42.0
        self.root = ET.Element("svg")
        self._axes(x_label, y_label)
        # What is beyond the axes is cut off by a picture within the picture.
        place = {"x": self.left, "y": self.top, "width": self.inner_width, "height": height}
        box = f"0 0 {self.inner_width:g} {height:g}"
        self.inside = _add(self.root, "svg", **place, viewBox=box)
        self.above = ET.SubElement(self.root, "g")

    def _axes(self, x_label: str, y_label: str) -> None:
        left, bottom, right = self.left, self.top + self.height, self.left + self.inner_width
        for value, label in self.y.labels():
            y = self._down(value) + self.top
            _segment(self.root, "grid", (left, y), (right, y))
            _text(self.root, "tick", label, (left - 6, y + 4), "end")
        for value, label in self.x.labels():
            x = self._along(value) + left
            _segment(self.root, "axis", (x, bottom), (x, bottom + 4))
            _text(self.root, "tick", label, (x, bottom + 17), "middle")
        _segment(self.root, "axis", (left, bottom), (right, bottom))
        _text(self.root, "name", y_label, (2, 14), "start")
        _text(self.root, "name", x_label, (left + self.inner_width / 2, bottom + 36), "middle")

    def _along(self, value: float) -> float:
        return self.inner_width * self.x.share(value)

    def _down(self, value: float) -> float:
        return self.height * (1.0 - self.y.share(value))

    def _points(self, xs: Iterable[float], ys: Iterable[float]) -> list[_Point]:
        pairs = zip(xs, ys, strict=True)
        finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
        return [(self._along(x), self._down(y)) for x, y in finite]

    def line(self, xs: Iterable[float], ys: Iterable[float], kind: str) -> None:
        _add(self.inside, "polyline", class_=kind, points=_listed(self._points(xs, ys)))

    def marks(self, xs: Iterable[float], ys: Iterable[float], j: int = 0) -> None:
        """Draw the marks of a series: circles, squares, triangles or diamonds."""
        kind = f"mark {KINDS[j % 4]}"
        for along, down in self._points(xs, ys):
            x, y = along + self.left, down + self.top
            if j % 4 == 0:
                _add(self.above, "circle", class_=kind, cx=x, cy=y, r=3.2)
            else:
                moved = f"translate({_short(x)} {_short(y)})"
                _add(self.above, "path", class_=kind, d=_SHAPES[j % 4 - 1], transform=moved)

    def series(self, xs: Iterable[float], ys: Iterable[float], j: int = 0) -> None:
        self.line(xs, ys, f"line {KINDS[j % 4]}")
        self.marks(xs, ys, j)

    def band(self, xs: Sequence[float], lows: Iterable[float], highs: Iterable[float]) -> None:
        """Fill what is between two lines."""
        points = self._points(xs, highs) + self._points(xs, lows)[::-1]
        _add(self.inside, "polygon", class_="band", points=_listed(points))

    def bars(self, edges: Sequence[float], heights: Iterable[float]) -> None:
        """Fill bars from zero, between edges."""
        floor = self._down(max(self.y.low, 0.0))
        for left, right, value in zip(edges, edges[1:], heights, strict=False):
            x, y = self._along(left), self._down(value)
            wide = max(self._along(right) - x - 1.0, 0.5)
            place = {"x": x + 0.5, "y": y, "width": wide, "height": max(floor - y, 0.0)}
            _add(self.inside, "rect", class_="bar", **place)

    def rule(self, kind: str, *, x: float | None = None, y: float | None = None) -> None:
        """Draw a vertical line at x or a horizontal one at y across the whole picture."""
        x1, x2 = (0.0, self.inner_width) if x is None else (self._along(x),) * 2
        y1, y2 = (0.0, self.height) if y is None else (self._down(y),) * 2
        _segment(self.inside, kind, (x1, y1), (x2, y2))

    def choose(self, x: float, text: str) -> None:
        """Mark what was chosen by a vertical line with a text at its upper end."""
        self.rule("chosen", x=x)
        self.label(text, x, self.y.high, dy=12.0)

    def label(
        self, text: str, x: float, y: float, *, dy: float = -7.0, beside: float | None = None
    ) -> None:
        """Write a text to the side of a point with room: `dy` below, or `beside` on the right."""
        along = self._along(x)
        is_left = along < (_ROOM if beside is None else _ROOM_BESIDE) * self.inner_width
        place = self.left + along + (7.0 if is_left else -5.0)
        dy = beside if is_left and beside is not None else dy
        down = min(max(self._down(y) + dy, 8.0), self.height - 4.0) + self.top
        _text(self.above, "said", text, (place, down), "start" if is_left else "end")

    def cells(self, levels: Any, x_edges: Sequence[float], y_edges: Sequence[float]) -> None:
        """Fill cells between edges by their levels (x, y), from 1 on; 0 is left empty."""
        x0, y0 = self._along(x_edges[0]), self._down(y_edges[0])
        wide = (self._along(x_edges[-1]) - x0) / (len(x_edges) - 1)
        tall = (self._down(y_edges[-1]) - y0) / (len(y_edges) - 1)
        # Paths are in units of cells, which takes a tenth of the digits.
        moved = f"translate({x0:.2f} {y0:.2f}) scale({wide:.5g} {tall:.5g})"
        group = _add(self.inside, "g", class_="cells", transform=moved)
        for level in range(1, int(levels.max(initial=0)) + 1):
            path = []
            for j, row in enumerate((levels == level).T):
                changes = np.flatnonzero(np.diff(row, prepend=False, append=False))
                path += [f"M{a} {j}h{b - a}v1H{a}z" for a, b in changes.reshape(-1, 2).tolist()]
            if path:
                _add(group, "path", class_=f"level level{level}", d="".join(path))

    def figure(self, title: str, caption: str, shades: tuple[str, ...] = ()) -> Figure:
        """Return the picture with its title, and its caption for those who do not see it too."""
        box = f"0 0 {WIDTH:g} {self.full_height:g}"
        self.root.attrib.update({"viewBox": box, "role": "img", "aria-label": caption})
        picture = Markup(ET.tostring(self.root, encoding="unicode"))  # noqa: S704  escaped by the writer
        return Figure(title, picture, caption, shades)


def _add(parent: ET.Element, tag: str, text: str = "", /, **attributes: Any) -> ET.Element:
    """Add an element; `class_` is the attribute `class`, and `text_anchor` is `text-anchor`."""
    named = {name.rstrip("_").replace("_", "-"): each for name, each in attributes.items()}
    element = ET.SubElement(parent, tag, {name: _short(each) for name, each in named.items()})
    element.text = text or None
    return element


def _segment(parent: ET.Element, kind: str, start: _Point, end: _Point) -> None:
    _add(parent, "line", class_=kind, x1=start[0], x2=end[0], y1=start[1], y2=end[1])


def _text(parent: ET.Element, kind: str, text: str, at: _Point, anchor: str) -> None:
    _add(parent, "text", text, class_=kind, x=at[0], y=at[1], text_anchor=anchor)


def _listed(points: Iterable[_Point]) -> str:
    return " ".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _short(value: Any) -> str:
    """Return a number with no more digits than a picture needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
