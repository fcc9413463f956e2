"""SVG charts, as wide as a telephone: axes, lines, bands, marks and cells.

Only shapes and the names of classes are written; colours are those of the page's style sheet, which
has them for light, for dark and for paper.  Texts are escaped by the writer of the XML.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamkern.report.axes import Axis

WIDTH = 360.0
# Classes of lines and marks, in the order that they are taken.
KINDS = ("first", "second", "third", "fourth")
# About as wide as a digit of a label.
_DIGIT = 5.8
# Up to where a text still has room on the right, and a short one beside a mark.
_ROOM, _ROOM_BESIDE = 0.6, 0.78


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
        self.x, self.y = x, y
        longest = max((len(label) for _, label in y.labels()), default=0)
        self.left, self.top, self.height = max(14.0 + _DIGIT * longest, 30.0), 30.0, height
        self.inner_width = WIDTH - self.left - 16.0
        self.full_height = self.top + height + 42.0
        self.root = ET.Element("svg")
        self._axes(x_label, y_label)
        # What is beyond the axes is cut off by a picture within the picture.
        place = {"x": self.left, "y": self.top, "width": self.inner_width, "height": height}
        box = f"0 0 {self.inner_width:g} {height:g}"
        self.inside = self._add(self.root, "svg", **place, viewBox=box)
        self.above = ET.SubElement(self.root, "g")

    @staticmethod
    def _add(parent: ET.Element, tag: str, text: str = "", /, **attributes: Any) -> ET.Element:
        """Add an element; of an attribute's name, a last underscore is left out."""
        said = {
            name.rstrip("_").replace("_", "-"): _short(value) for name, value in attributes.items()
        }
        element = ET.SubElement(parent, tag, said)
        element.text = text or None
        return element

    def _axes(self, x_label: str, y_label: str) -> None:
        bottom, right = self.top + self.height, self.left + self.inner_width
        for value, label in self.y.labels():
            y = self._down(value) + self.top
            self._add(self.root, "line", class_="grid", x1=self.left, x2=right, y1=y, y2=y)
            self._add(
                self.root, "text", label, class_="tick", x=self.left - 6, y=y + 4, text_anchor="end"
            )
        for value, label in self.x.labels():
            x = self._along(value) + self.left
            self._add(self.root, "line", class_="axis", x1=x, x2=x, y1=bottom, y2=bottom + 4)
            self._add(
                self.root, "text", label, class_="tick", x=x, y=bottom + 17, text_anchor="middle"
            )
        self._add(self.root, "line", class_="axis", x1=self.left, x2=right, y1=bottom, y2=bottom)
        self._add(self.root, "text", y_label, class_="name", x=2, y=14)
        middle = self.left + self.inner_width / 2
        self._add(
            self.root, "text", x_label, class_="name", x=middle, y=bottom + 36, text_anchor="middle"
        )

    def _along(self, value: float) -> float:
        return self.inner_width * self.x.share(value)

    def _down(self, value: float) -> float:
        return self.height * (1.0 - self.y.share(value))

    def _points(self, xs: Iterable[float], ys: Iterable[float]) -> list[str]:
        return [
            f"{_short(self._along(x))},{_short(self._down(y))}"
            for x, y in zip(xs, ys, strict=True)
            if math.isfinite(x) and math.isfinite(y)
        ]

    def line(self, xs: Iterable[float], ys: Iterable[float], kind: str) -> None:
        """Draw a line through points."""
        self._add(self.inside, "polyline", class_=kind, points=" ".join(self._points(xs, ys)))

    def band(self, xs: Sequence[float], lows: Iterable[float], highs: Iterable[float]) -> None:
        """Fill what is between two lines."""
        points = self._points(xs, highs) + self._points(xs, lows)[::-1]
        self._add(self.inside, "polygon", class_="band", points=" ".join(points))

    def bars(self, edges: Sequence[float], heights: Iterable[float]) -> None:
        """Fill bars from zero, between edges."""
        floor = self._down(max(self.y.low, 0.0))
        for left, right, value in zip(edges, edges[1:], heights, strict=False):
            x, y = self._along(left), self._down(value)
            wide = max(self._along(right) - x - 1.0, 0.5)
            place = {"x": x + 0.5, "y": y, "width": wide, "height": max(floor - y, 0.0)}
            self._add(self.inside, "rect", class_="bar", **place)

    def marks(self, xs: Iterable[float], ys: Iterable[float], kind: str, shape: int = 0) -> None:
        """Draw marks at points: circles, squares, triangles or diamonds."""
        for point in self._points(xs, ys):
            x, y = map(float, point.split(","))
            x, y = x + self.left, y + self.top
            if shape % 4 == 0:
                self._add(self.above, "circle", class_=kind, cx=x, cy=y, r=3.2)
            else:
                path = ("M-3-3h6v6h-6z", "M0-4l3.8 6.8h-7.6z", "M0-4.2l4.2 4.2-4.2 4.2-4.2-4.2z")
                moved = f"translate({_short(x)} {_short(y)})"
                self._add(self.above, "path", class_=kind, d=path[shape % 4 - 1], transform=moved)

    def spans(self, xs: Iterable[float], lows: Iterable[float], highs: Iterable[float]) -> None:
        """Draw vertical lines from low to high values."""
        for x, low, high in zip(xs, lows, highs, strict=True):
            at, top, bottom = self._along(x), self._down(high), self._down(low)
            self._add(self.inside, "line", class_="span", x1=at, x2=at, y1=top, y2=bottom)

    def rule(self, kind: str, *, x: float | None = None, y: float | None = None) -> None:
        """Draw a line across the whole picture."""
        if x is not None:
            at = self._along(x)
            self._add(self.inside, "line", class_=kind, x1=at, x2=at, y1=0, y2=self.height)
        if y is not None:
            at = self._down(y)
            self._add(self.inside, "line", class_=kind, x1=0, x2=self.inner_width, y1=at, y2=at)

    def label(
        self, text: str, x: float, y: float, *, dy: float = -7.0, beside: float | None = None
    ) -> None:
        """Write a text to the side of a point with room: `dy` below, or `beside` on the right."""
        along = self._along(x)
        is_left = along < (_ROOM if beside is None else _ROOM_BESIDE) * self.inner_width
        place = self.left + along + (7.0 if is_left else -5.0)
        dy = beside if is_left and beside is not None else dy
        down = min(max(self._down(y) + dy, 8.0), self.height - 4.0) + self.top
        anchor = "start" if is_left else "end"
        self._add(self.above, "text", text, class_="said", x=place, y=down, text_anchor=anchor)

    def cells(self, levels: Any, x_edges: Sequence[float], y_edges: Sequence[float]) -> None:
        """Fill cells between edges by their levels (x, y), from 1 on; 0 is left empty."""
        x0, y0 = self._along(x_edges[0]), self._down(y_edges[0])
        wide = (self._along(x_edges[-1]) - x0) / (len(x_edges) - 1)
        tall = (self._down(y_edges[-1]) - y0) / (len(y_edges) - 1)
        # Paths are in units of cells, which takes a tenth of the digits.
        moved = f"translate({x0:.2f} {y0:.2f}) scale({wide:.5g} {tall:.5g})"
        group = self._add(self.inside, "g", class_="cells", transform=moved)
        for level in range(1, int(levels.max(initial=0)) + 1):
            path = []
            for j, row in enumerate(levels.T):
                for start, stop in _runs(row == level):
                    path.append(f"M{start} {j}h{stop - start}v1H{start}z")
            if path:
                self._add(group, "path", class_=f"level level{level}", d="".join(path))

    def figure(self, title: str, caption: str, shades: tuple[str, ...] = ()) -> Figure:
        """Return the picture with its title and caption."""
        return Figure(title, self.svg(caption), caption, shades)

    def svg(self, description: str) -> Markup:
        """Return the picture, with a description for those who do not see it."""
        box = f"0 0 {WIDTH:g} {self.full_height:g}"
        self.root.attrib.update({"viewBox": box, "role": "img", "aria-label": description})
        return Markup(ET.tostring(self.root, encoding="unicode"))  # noqa: S704  escaped by the writer


def _runs(chosen: Any) -> list[tuple[int, int]]:
    """Return where runs of true values begin and end."""
    found: list[tuple[int, int]] = []
    for i in chosen.nonzero()[0].tolist():
        if found and found[-1][1] == i:
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found


def _short(value: Any) -> str:
    """Return a number with no more digits than a picture needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
