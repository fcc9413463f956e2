"""Pictures: written whole, in the format that their name says."""

from __future__ import annotations

import struct
import sys
from xml.etree import ElementTree as ET

import pytest

from streamkern.comparison import Comparison, Trial
from streamkern.errors import OutputError, ParameterError
from streamkern.plots import plot_comparison

PNG = b"\x89PNG\r\n\x1a\n"


def comparison(length_scale=1.5):
    trials = [
        Trial("exact", None, 0.5, 1.0, None, 1.0, 0.1, 8 * 4000**2),
        Trial("linear", 3, 0.9, 1.8, None, 0.1, 0.1, 72),
        *(
            Trial("random features", D, 0.5 + 1 / D, 1 + 2 / D, 0.1, 0.1, 0.1, 8 * D**2)
            for D in (64, 256, 1024)
        ),
    ]
    kernel = {"name": "gaussian", "length_scale": length_scale}
    return Comparison(tuple(trials), 4000, 1000, kernel, 0.1, 1.0)


def test_a_png_is_written(tmp_path):
    path = tmp_path / "comparison.png"
    plot_comparison(comparison(), path)
    image = path.read_bytes()
    assert image[:8] == PNG
    width, height = struct.unpack(">II", image[16:24])
    assert (width, height) == (1280, 800)
    assert image.endswith(b"IEND\xaeB`\x82")
    assert len(image) > 20_000
    assert list(tmp_path.iterdir()) == [path]


def test_an_svg_is_written(tmp_path):
    path = tmp_path / "comparison.svg"
    plot_comparison(comparison(), path)
    root = ET.parse(path).getroot()  # noqa: S314  made by ourselves
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter())) > 50


def test_a_pdf_is_written(tmp_path):
    plot_comparison(comparison(), tmp_path / "comparison.pdf")
    assert (tmp_path / "comparison.pdf").read_bytes().startswith(b"%PDF")


def test_length_scales_of_every_input_fit_in_the_title(tmp_path):
    plot_comparison(comparison([1.0, 2.0, 3.0]), tmp_path / "comparison.svg")
    assert "3 values" in (tmp_path / "comparison.svg").read_text()


def test_a_single_number_of_features_can_be_drawn(tmp_path):
    whole = comparison()
    few = Comparison(whole.trials[:3], 4000, 1000, whole.kernel, 0.1, 1.0)
    plot_comparison(few, tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").read_bytes()[:8] == PNG


def test_an_existing_picture_is_kept_unless_forced(tmp_path):
    path = tmp_path / "comparison.png"
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        plot_comparison(comparison(), path)
    assert path.read_text() == "precious"
    plot_comparison(comparison(), path, force=True)
    assert path.read_bytes()[:8] == PNG


def test_no_figure_stays_open(tmp_path):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plot_comparison(comparison(), tmp_path / "comparison.png")
    assert pyplot.get_fignums() == before


def test_a_picture_without_matplotlib_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"needs matplotlib.*streamkern\[plot\]"):
        plot_comparison(comparison(), tmp_path / "comparison.png")
    assert list(tmp_path.iterdir()) == []
