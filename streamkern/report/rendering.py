"""Pictures: matplotlib draws them, and on a page they are SVG in the colours of its style sheet.

A figure draws in the light colours of `style.css`.  In the SVG these become classes, so that the
page has them for light, for dark and for paper; and nothing needs a style of its own, an address,
or a font: texts stay texts, which the writer of the XML escapes.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

# Of a picture, in pixels where the page is as wide as a telephone.
WIDTH = 360.0
# What the page's style sheet decides, or what is so by default.
_DROPPED = {"font-family", "stroke-linecap", "stroke-linejoin", "stroke-dashoffset", "font-style"}
_STYLE = Path(__file__).with_name("templates") / "style.css"
_TURNED_BY_NOTHING = re.compile(r"rotate\(-?0(\.0)? ")


class Figure(NamedTuple):
    """A picture with a title, and sentences that say what it shows.

    `draw` draws it on a matplotlib Axes; `shades` are what the shades of its cells stand for, and
    `shaded` is what that is.
    """

    title: str
    caption: str
    draw: Callable[[Any], object]
    height: float = 256.0
    shades: tuple[str, ...] = ()
    shaded: str = "rows in a cell"

    @property
    def picture(self) -> Markup:
        """The picture as SVG for a page."""
        with drawing_style(_page_style()):
            from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  slow

            canvas = Canvas(figsize=(WIDTH / 72, self.height / 72), dpi=72, layout="constrained")
            axes = canvas.add_subplot()
            for paper in (canvas.patch, axes.patch):  # the page's shows
                paper.set_visible(False)
            self.draw(axes)
            # The name of the vertical axis stands above it, where it needs no turning of heads.
            axes.set_title(axes.get_ylabel(), loc="left", parse_math=False)
            axes.set_ylabel("")
            text = io.StringIO()
            canvas.savefig(text, format="svg", metadata={"Date": None})
        root = page_svg(text.getvalue(), palette())
        root.attrib.update({"role": "img", "aria-label": self.caption})
        return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  escaped by the writer


@contextmanager
def drawing_style(style: Mapping[str, Any]) -> Iterator[None]:
    """Draw by matplotlib's defaults and a style, whatever the settings of the user."""
    from matplotlib import style as styles  # noqa: PLC0415  slow

    with styles.context(["default", dict(style)]), warnings.catch_warnings():
        # Of letters that matplotlib's own font has not; who shows the SVG has others.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        yield


def style_sheet() -> str:
    """Return the style of pages, with two classes a colour: what pictures fill, and their lines."""
    classes = (
        f".fill-{name} {{ fill: var(--{name}); background: var(--{name}); }}\n"
        f".stroke-{name} {{ stroke: var(--{name}); }}\n"
        for name in palette()
    )
    return _STYLE.read_text(encoding="utf-8") + "".join(classes)


@cache
def palette() -> dict[str, str]:
    """Return the colours that the style sheet has in the light, by their names."""
    light = _STYLE.read_text(encoding="utf-8").partition("@media")[0]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", light))


def _page_style() -> dict[str, Any]:
    colours = palette()
    return {
        **{f"axes.spines.{side}": False for side in ("left", "right", "top")},
        **{f"{axis}tick.labelsize": 10.5 for axis in "xy"},
        **{f"{axis}tick.color": colours["quiet"] for axis in "xy"},
        "axes.axisbelow": True,
        "axes.edgecolor": colours["quiet"],
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.labelcolor": colours["quiet"],
        "axes.labelsize": 11.0,
        "axes.titlecolor": colours["quiet"],
        "axes.titlesize": 11.0,
        "font.size": 11.0,
        "grid.color": colours["hair"],
        "svg.fonttype": "none",
        "svg.hashsalt": "streamkern",
        "text.color": colours["ink"],
        "text.parse_math": False,
        "ytick.major.size": 0.0,
    }


def page_svg(svg: str, colours: Mapping[str, str]) -> ET.Element:
    """Return matplotlib's SVG with classes for colours, and names that no other picture has."""
    found = ET.fromstring(svg)  # noqa: S314  matplotlib's own
    names = {colour: name for name, colour in colours.items()}
    used = dict.fromkeys(re.findall(r"#([mp][0-9a-f]{10})\b", svg))
    digest = hashlib.sha256(svg.encode()).hexdigest()[:8]
    ids = {name: f"p{digest}-{k}" for k, name in enumerate(used)}
    root = ET.Element("svg", {"viewBox": found.attrib["viewBox"]})
    for child in found:
        _copy(child, root, names, ids)
    return root


def _copy(element: ET.Element, parent: ET.Element, names: dict[str, str], ids: Any) -> None:
    tag = element.tag.rpartition("}")[2]
    if tag == "metadata" or element.find("{*}style") is not None:
        return
    attributes = _attributes(element, names, ids)
    if attributes or tag != "g":
        parent = ET.SubElement(parent, tag, attributes)
        parent.text = element.text if tag == "text" else None
    for child in element:
        _copy(child, parent, names, ids)


def _attributes(element: ET.Element, names: dict[str, str], ids: dict[str, str]) -> dict[str, str]:
    found = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    style = [pair.split(": ", 1) for pair in found.pop("style", "").split("; ") if pair]
    found |= {name: value for name, value in style if name not in _DROPPED}
    coloured = [name for name in ("fill", "stroke") if found.get(name) in names]
    if coloured:
        found["class"] = " ".join(f"{name}-{names[found.pop(name)]}" for name in coloured)
    for name, value in list(found.items()):
        if name == "id" and value not in ids:
            del found[name]
        elif name == "id":
            found[name] = ids[value]
        elif name in {"href", "clip-path"}:
            found[name] = re.sub(r"#(\w+)", lambda place: f"#{ids[place[1]]}", value)
        elif name == "d":
            found[name] = re.sub(r"-?\d+\.\d+", lambda part: _short(part[0]), value)
        elif name == "transform" and _TURNED_BY_NOTHING.match(value):
            del found[name]
        elif re.fullmatch(r"-?\d+\.\d+", value):
            found[name] = _short(value)
        elif name in {"font-size", "stroke-width"}:
            found[name] = value.removesuffix("px")
    return found


def _short(number: str) -> str:
    """Return a number with no more digits than a picture needs."""
    return f"{float(number):.1f}".removesuffix(".0")
