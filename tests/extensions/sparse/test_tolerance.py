"""Smaller models of moments, as `streamkern export --tolerance` writes them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from commandline import refused, report_of
from harvests import labelled_rows, smooth_rows

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge

OPTIONS = {"n_components": 128, "precision": "double"}


@pytest.fixture
def moments(tmp_path):
    X, y = smooth_rows(600)
    RandomFeatureRidge(**OPTIONS).moments(X, y).save(tmp_path / "M.h5")
    return tmp_path / "M.h5"


def smaller(moments, tolerance, file="model.onnx"):
    path = moments.with_name(file)
    return path, report_of(
        "export", moments, "--out", path, "--tolerance", tolerance, "--force", "--precision=double"
    )


def test_a_smaller_model_has_an_error_within_the_tolerance(moments):
    X, y = smooth_rows(500, seed=1)
    found, sizes = [], []
    for tolerance in ("1%", "5%", "100"):
        path, report = smaller(moments, tolerance)
        share = float(tolerance.rstrip("%")) / 100
        assert report["of_components"] == 128
        assert report["relative_rmse"] <= (1 + share) * report["relative_rmse_of_all"]
        said = onnxruntime.InferenceSession(path).run(None, {"X": X})[0]
        found.append(np.sqrt(np.mean((said - y) ** 2)) / y.std())
        assert found[-1] == pytest.approx(report["relative_rmse"], rel=0.15)
        sizes.append((report["n_components"], report["bytes"]))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0][0] > sizes[-1][0] < 32


def test_no_tolerance_writes_as_many_features_as_are_best(moments):
    _, exact = smaller(moments, "0%")
    assert exact["relative_rmse"] <= exact["relative_rmse_of_all"]


def test_the_smaller_model_of_landmarks_is_of_the_leading_ones(tmp_path):
    X, y = smooth_rows(1200)
    options = OPTIONS | {"n_components": 256, "feature_map": "nystroem"}
    RandomFeatureRidge(Gaussian(0.5), **options).moments(X, y).save(tmp_path / "M.h5")
    path, report = smaller(tmp_path / "M.h5", "200%")
    widths = {max(each.dims) for each in onnx.load(path).graph.initializer if each.dims}
    assert max(widths) == report["n_components"] == 64


def test_what_has_no_smaller_model_is_refused(moments, tmp_path):
    model, out = tmp_path / "model.h5", ("--out", tmp_path / "model.c", "--tolerance")
    RandomFeatureRidge(**OPTIONS).fit(*smooth_rows()).save(model)
    assert "streamkern moments DATA --like" in refused("export", model, *out, "1%")
    assert "-1% is no share" in refused("export", moments, *out, "-1%", status=2)
    assert "little is no share" in refused("export", moments, *out, "little", status=2)
    RandomFeatureClassifier(**OPTIONS).moments(*labelled_rows()).save(tmp_path / "classes.h5")
    assert "--sparse auto" in refused("export", tmp_path / "classes.h5", *out, "1%", status=2)
    assert not (tmp_path / "model.c").exists()
