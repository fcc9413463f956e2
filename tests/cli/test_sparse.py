"""`--sparse` of the commands that make models."""

from __future__ import annotations

import numpy as np
import pytest
from commandline import refused, report_of, streamkern

import streamkern as library

pytestmark = pytest.mark.usefixtures("folder")

FIT = ("fit", "data.h5", "--out", "model.h5", "--components", 32)


def ridge(**options):
    model = library.RandomFeatureRidge(library.Gaussian("median"), n_components=32, **options)
    return model.fit(library.open_hdf5("data.h5"))


def same_bits(one, other):
    return np.array_equal(one.coef_, other.coef_) and one.intercept_ == other.intercept_


@pytest.mark.parametrize(("sparse", "method"), [("auto", "forward"), (7, "omp"), (7, "lasso")])
def test_the_model_is_the_one_that_python_fits(sparse, method):
    streamkern(*FIT, "--sparse", sparse, "--sparse-method", method)
    model, expected = library.load("model.h5"), ridge(sparse=sparse, sparse_method=method)
    assert same_bits(model, expected)
    assert model.get_params() == expected.get_params()


def test_the_json_of_a_choice_has_the_curve():
    report = report_of(*FIT, "--sparse", "auto")
    curve = report["sparse_curve"]
    assert curve["n_components"] == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32]
    at = curve["n_components"].index(report["n_components"])
    assert report["cv_rmse"] == curve["cv_rmse"][at]


def test_the_card_says_how_many_of_how_many_and_how():
    streamkern(*FIT, "--sparse", 5, "--sparse-method", "omp")
    assert "5 of 32 by omp (single precision)" in streamkern("show", "model.h5").stdout


def test_predictions_and_their_deviations_are_made_from_the_file():
    streamkern(*FIT, "--sparse", 5)
    assert report_of("evaluate", "model.h5", "data.h5")["rmse"] > 0
    assert report_of("predict", "model.h5", "data.h5", "--out", "p.h5", "--std")["rows"] == 300


def test_moments_are_solved_to_the_model_of_a_fit():
    streamkern("moments", "data.h5", "--out", "moments.h5", "--components", 32)
    streamkern("solve", "moments.h5", "--out", "solved.h5", "--sparse", 7)
    streamkern(*FIT, "--sparse", 7)
    assert same_bits(library.load("solved.h5"), library.load("model.h5"))


def test_a_kernel_is_tuned_before_features_are_chosen():
    report = report_of("tune", *FIT[1:], "--sparse", 7)
    assert (report["n_components"], report["sparse_of"]) == (7, 32)


BAD = {
    "more than there are": (("--sparse", 33), "more features than the 32"),
    "none": (("--sparse", 0), "at least 1 feature, not 0"),
    "no folds": (("--sparse", "auto", "--alpha", 1), "'auto' is chosen by cross-validation"),
    "of auto": (("--sparse", 4, "--components", "auto"), "give the number of components"),
    "more inputs": (("--sparse", 4, "--map", "identity"), "more features than the 3"),
}


@pytest.mark.parametrize(
    ("command", "case"), [*(("fit", case) for case in BAD), ("tune", "none"), ("tune", "of auto")]
)
@pytest.mark.usefixtures("no_reading")
def test_a_bad_number_is_refused_in_one_sentence_before_rows_are_read(command, case, folder):
    options, sentence = BAD[case]
    assert sentence in refused(command, *FIT[1:], *options, "--quiet", status=2)
    assert [path.name for path in folder.iterdir()] == ["data.h5"]


def test_more_features_than_moments_have_are_refused(folder):
    streamkern("moments", "data.h5", "--out", "moments.h5", "--components", 32)
    arguments = ("solve", "moments.h5", "--out", "solved.h5", "--sparse", 33)
    assert "more features than the 32" in refused(*arguments, status=2)
    assert not (folder / "solved.h5").exists()
