"""Pictures: in the page's colours, with texts that stay texts and names that no other one has."""

import re
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from streamkern.report import chart_marks
from streamkern.report.rendering import Figure, palette, style_sheet


def picture(draw, caption="a picture"):
    return Figure("a title", caption, draw).picture


def parsed(draw, caption="a picture"):
    return ET.fromstring(picture(draw, caption))  # noqa: S314  made by ourselves


def texts(draw):
    return [element.text for element in parsed(draw).iter("text")]


def test_texts_are_escaped_and_dollars_are_no_formula():
    def draw(axes):
        chart_marks.name_axes(axes, "<script>", 'a & "b", $x^2$')
        chart_marks.label(axes, "</text><script>", 0.5, 0.5)

    assert not re.search("<(script|img)", picture(draw, "'\"><img src=x>"))
    assert {"<script>", 'a & "b", $x^2$', "</text><script>"} <= set(texts(draw))


def test_colours_are_classes_of_the_style_sheet_and_nothing_has_a_style_of_its_own():
    def draw(axes):
        for j, name in enumerate(chart_marks.KINDS):
            chart_marks.series(axes, [0, 1], [j, j + 1], j)
            chart_marks.label(axes, name, 1, j, j=j)
        chart_marks.band(axes, [0, 1], [0, 1], [1, 2])
        chart_marks.guide(axes, [0, 1], [0, 1])
        chart_marks.cells(axes, np.arange(1, 7).reshape(2, 3), np.arange(3.0), np.arange(4.0))

    markup, sheet = picture(draw), style_sheet()
    assert len(palette()) == 16
    assert not re.search(r"#[0-9a-f]{6}\b|style=|<style|//|font-family", markup)
    found = {name for names in re.findall('class="([^"]*)"', markup) for name in names.split()}
    assert {f"fill-shade{level}" for level in range(1, 7)} < found
    assert all(f".{name} {{" in sheet for name in found)
    assert parsed(draw).attrib["role"] == "img"


def test_pictures_of_one_page_share_no_names_and_are_the_same_whatever_the_user_has_set():
    def draws(n):
        return lambda axes: chart_marks.series(axes, range(n), range(n))

    def names(markup):
        return set(re.findall(r' id="([^"]+)"', markup)), set(re.findall(r"#([-\w]+)", markup))

    backend, one, other = mpl.get_backend(), picture(draws(3)), picture(draws(4))
    assert names(one)[0] == names(one)[1] != set()
    assert not names(one)[0] & names(other)[0]
    with mpl.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        assert picture(draws(3)) == one
    assert (mpl.get_backend(), plt.get_fignums()) == (backend, [])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-5, 1e4, {"10⁻⁴", "10⁻²", "10⁰", "10²", "10⁴"}),
        (0.01, 100.0, {"0.01", "0.1", "1", "10", "100"}),
        (0.5, 9.0, {"0.5", "1", "2", "5"}),
        (300.0, 500.0, {"300", "400", "500"}),
    ],
)
def test_labels_of_a_logarithmic_axis_are_few_and_round(low, high, expected):
    def draw(axes):
        chart_marks.log_axis(axes, low, high)
        axes.set_yticks([])

    found = texts(draw)
    assert expected <= set(found)
    assert 2 <= len(found) <= 10


def test_neighbouring_cells_are_one_rectangle_and_empty_ones_none():
    levels = np.zeros((4, 3), dtype=int)
    levels[1, 0] = levels[2, 0] = 2
    levels[3, 2] = 1

    def draw(axes):
        axes.set(xlim=(0, 10), ylim=(0, 1))
        chart_marks.cells(axes, levels, np.linspace(0, 10, 5), np.linspace(0, 1, 4))

    paths = {each.get("class"): each.get("d") for each in parsed(draw).iter("path")}
    assert [paths[f"fill-shade{k}"].count("M") for k in (1, 2)] == [1, 1]
    assert not [name for name in paths if name and "shade3" in name]


def test_letters_that_matplotlib_has_not_are_texts_and_no_warning():
    assert "价格" in texts(lambda axes: chart_marks.name_axes(axes, "价格", "y"))
