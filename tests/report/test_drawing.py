"""Pictures: round labels, what is drawn where, and texts that stay texts."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from streamkern.report.drawing import WIDTH, Axis, Plot


def drawn(plot):
    return ET.fromstring(plot.figure("a title", "a picture").picture)  # noqa: S314  made by ourselves


def plot(**options):
    return Plot(Axis(0.0, 10.0), Axis(0.0, 1.0), x_label="x", y_label="y", **options)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Axis(-5.3, 5.3), ["−4", "−2", "0", "2", "4"]),
        (Axis(1000.1, 1003.2), ["1,001", "1,002", "1,003"]),
        (Axis(0.5, 9.0, is_log=True), ["0.5", "1", "2", "5"]),
        (Axis(1e-5, 1e4, is_log=True), ["10⁻⁴", "10⁻²", "10⁰", "10²", "10⁴"]),
        (Axis(0.01, 100.0, is_log=True), ["0.01", "0.1", "1", "10", "100"]),
        (Axis(50.0, 300.0, is_log=True, ticks=[(64.0, "64"), (512.0, "512")]), ["64"]),
    ],
)
def test_labels_are_round_numbers_inside_the_axis(axis, labels):
    assert [label for _, label in axis.labels()] == labels
    assert all(-1e-9 <= axis.share(value) <= 1 + 1e-9 for value, _ in axis.labels())


def test_an_axis_over_values_holds_them_all_and_overlooks_what_is_not_finite():
    axis = Axis.over([3.0, np.inf, 1.0, np.nan])
    assert 0.5 < axis.low < 1.0
    assert 3.0 < axis.high < 3.5
    axis = Axis.over([1e-6, 1e3], is_log=True)
    assert 0 < axis.low < 1e-6
    assert axis.high > 1e3
    for values in ([], [2.0], [0.0]):
        axis = Axis.over(values)
        assert axis.low < axis.high


def test_texts_are_escaped():
    picture = Plot(Axis(0.0, 1.0), Axis(0.0, 1.0), x_label="<script>", y_label='a & "b"')
    picture.label("</text><script>", 0.5, 0.5)
    markup = picture.figure("a title", "'\"><img src=x>").picture
    assert "<script" not in markup
    assert "<img" not in markup
    texts = [element.text for element in drawn(picture).iter("text")]
    assert {"<script>", 'a & "b"', "</text><script>"} <= set(texts)


@pytest.mark.parametrize("seed", range(5))
def test_an_axis_has_two_labels_at_least_and_not_too_many(seed):
    rng = np.random.default_rng(seed)
    low = 10.0 ** rng.uniform(-9, 9)
    wide = Axis(low, low * 10.0 ** rng.uniform(1, 12), is_log=True)
    for axis in (Axis(low, low * rng.uniform(1.3, 1e3)), wide, Axis(-low, low)):
        labels = [label for _, label in axis.labels()]
        assert 2 <= len(set(labels)) == len(labels) <= 9


def test_points_are_where_the_axes_say_and_a_picture_has_a_description():
    picture = plot(height=100.0)
    picture.line([0.0, 5.0, np.nan, 10.0], [0.0, 0.5, 0.5, 1.0], "line first")
    root, wide = drawn(picture), picture.inner_width
    (line,) = root.iter("polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert points == [(0, 100), (pytest.approx(wide / 2, abs=0.01), 50), (pytest.approx(wide), 0)]
    assert (root.get("role"), root.get("aria-label")) == ("img", "a picture")


def test_cells_are_filled_where_they_are_and_nowhere_else():
    levels = np.zeros((4, 3), dtype=int)
    levels[1, 0] = levels[2, 0] = 2
    levels[3, 2] = 1
    picture = plot(height=90.0)
    picture.cells(levels, [0.0, 2.5, 5.0, 7.5, 10.0], [0.0, 1 / 3, 2 / 3, 1.0])
    paths = {path.get("class"): path.get("d") for path in drawn(picture).iter("path")}
    assert paths == {"level level1": "M3 2h1v1H3z", "level level2": "M1 0h2v1H1z"}
    (group,) = (each for each in drawn(picture).iter("g") if each.get("class") == "cells")
    assert group.get("transform").startswith("translate(0.00 90.00) scale(")


def test_texts_stay_inside_the_picture():
    picture = plot()
    for x, y in ((0.0, 0.0), (10.0, 1.0), (5.0, 0.5), (10.0, 0.0)):
        picture.label("a text of some length", x, y)
    for element in drawn(picture).iterfind(".//text[@class='said']"):
        x, long = float(element.get("x")), 6.5 * len(element.text)
        left = x if element.get("text-anchor") == "start" else x - long
        assert left >= 0
        assert left + long <= WIDTH
        assert 0 < float(element.get("y")) < picture.full_height
