"""The picture of a comparison."""

import struct
from xml.etree import ElementTree as ET

import pytest
from commandline import rows

from streamkern import Gaussian, RandomFeatureRidge, compare
from streamkern.errors import OutputError
from streamkern.extensions.report.comparison_picture import plot_comparison
from streamkern.sources import ArraySource


def test_the_picture_is_sharp_the_same_every_time_and_replaces_another_only_if_forced(tmp_path):
    X, y = rows()
    model = RandomFeatureRidge(Gaussian(1.0), alpha=0.1)
    found = compare(ArraySource(X, y), model, n_components=(8, 64, 128), n_seeds=2)
    path, again = tmp_path / "comparison.png", tmp_path / "again.svg"
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        plot_comparison(found, path)
    assert path.read_text() == "precious"
    plot_comparison(found, path, force=True)
    assert struct.unpack(">II", path.read_bytes()[16:24]) == (2160, 1050)
    plot_comparison(found, path.with_suffix(".svg"))
    plot_comparison(found, again)
    assert again.read_bytes() == path.with_suffix(".svg").read_bytes()
    root = ET.parse(again).getroot()  # noqa: S314  made by ourselves
    texts = {"".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")}
    exact = f"exact {found.trials[0].test_rmse:.4g}"
    assert {"orthogonal", "iid", exact, "Test error", "8", "64", "128"} <= texts
