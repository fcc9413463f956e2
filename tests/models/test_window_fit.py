"""The last files of a series: files come and go, and the model is that of those that are in."""

from __future__ import annotations

from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
from commandline import report_of, streamkern

from streamkern import (
    Gaussian,
    RandomFeatureAdaBoost,
    RandomFeatureClassifier,
    RandomFeatureRidge,
    fit_window,
    load,
    load_moments,
    open_hdf5,
)
from streamkern.errors import CheckpointError, DataError, OutputError, ParameterError
from streamkern.models.data_moments import DataMoments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dask.config.set(scheduler="synchronous"):
        yield tmp_path


def ridge(**options):
    options = {"n_components": 32, "alpha": 0.1, "precision": "double"} | options
    return RandomFeatureRidge(options.pop("kernel", Gaussian("median")), **options)


def day(number, n=60, width=3):
    """A file whose rows drift from day to day."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((n, width)) + 0.02 * number
    with h5py.File(f"day-{number:03d}.h5", "w") as file:
        file["X"], file["y"] = X, np.sin(X[:, 0]) + 0.1 * number + 0.1 * rng.standard_normal(n)
    return Path(f"day-{number:03d}.h5")


def days(*numbers):
    return open_hdf5([f"day-{number:03d}.h5" for number in numbers])


def slide(model=None, n_files=3, keep="keep"):
    return fit_window(model or ridge(), open_hdf5("day-*.h5"), keep, n_files=n_files)


def counts(model):
    return tuple(model.report_["window"].values())


def assert_same(model, expected, tolerance=1e-9):
    mine, theirs = model.predict(days(0, 1)), expected.predict(days(0, 1))
    assert abs(mine - theirs).max() < tolerance * np.std(theirs)


@pytest.mark.parametrize("alpha", [0.1, "gcv"])
def test_the_model_is_that_of_a_fit_on_the_files_of_the_window_after_many_slides(alpha):
    for number in range(3):
        day(number)
    first = slide(ridge(alpha=alpha))
    assert counts(first) == (3, 3, 0)
    like = ridge(alpha=alpha).moments(days(0))
    for number in range(3, 15):
        day(number)
        model = slide(ridge(alpha=alpha))
        assert counts(model) == (3, 1, 1)
    assert_same(model, ridge(alpha=alpha).fit(days(12, 13, 14), like=like))
    assert len(list(Path("keep").iterdir())) == 3
    assert model.report_["rows"] == 180


def test_a_window_that_moved_has_the_same_bits_as_one_that_was_there_at_once():
    for number in range(4):
        day(number)
        slide(ridge(alpha="cv"))
    moved = slide(ridge(alpha="cv"))
    assert counts(moved) == (3, 0, 0)
    merged = [load_moments(path) for path in sorted(Path("keep").iterdir())]
    by_hand = ridge(alpha="cv").solve(
        merged[0].merge(merged[1], repeated_rows=True).merge(merged[2], repeated_rows=True)
    )
    assert moved.coef_.tobytes() == by_hand.coef_.tobytes()


def test_a_file_that_changed_is_read_again():
    for number in range(3):
        day(number)
    slide()
    day(1, n=80)
    model = slide()
    assert counts(model) == (3, 1, 0)
    assert model.report_["rows"] == 200


def test_a_file_is_read_again_where_another_one_that_its_rows_are_in_changed():
    day(0).rename("stored.h5")
    with h5py.File("day-000.h5", "w") as file:
        file["X"], file["y"] = h5py.ExternalLink("stored.h5", "X"), np.arange(60.0)
    assert counts(slide()) == (1, 1, 0)
    assert counts(slide()) == (1, 0, 0)
    day(1).rename("stored.h5")
    assert counts(slide()) == (1, 1, 0)


def test_all_files_may_be_new_at_once_and_the_map_stays():
    for number in range(2):
        day(number)
    first = slide(n_files=2)
    for number in range(2, 6):
        day(number)
    model = slide(n_files=2)
    assert counts(model) == (2, 2, 2)
    assert model.feature_map_.equals(first.feature_map_)


def test_a_model_of_a_window_is_updated_by_rows_too():
    day(0)
    model = slide()
    rows = model.report_["rows"]
    assert model.update(np.ones((1, 3)), np.ones(1)).report_["rows"] == rows + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 16}, "n_components 32, not 16"),
        ({"alpha": "cv"}, "n_folds 1, not 5"),
        ({"kernel": Gaussian(2.0)}, "were made with kernel"),
        ({"metric": np.eye(3)}, "metric None, not of another matrix"),
    ],
)
def test_a_folder_of_other_options_is_refused(options, words):
    day(0)
    slide()
    with pytest.raises(ParameterError, match=words):
        slide(ridge(**options))


def test_a_metric_and_a_number_of_features_that_were_chosen_stay():
    day(0, n=300)
    options = {"metric": np.diag([1.0, 2.0, 3.0]), "n_components": "auto", "alpha": "cv"}
    slide(ridge(**options))
    day(1, n=300)
    assert counts(slide(ridge(**options))) == (2, 1, 0)
    with pytest.raises(ParameterError, match="metric of another matrix"):
        slide(ridge(**options | {"metric": np.eye(3)}))


def test_what_cannot_be_is_refused():
    day(0)
    for n_files in (0, 2.0, True):
        with pytest.raises(ParameterError, match="whole number of files"):
            slide(n_files=n_files)
    with pytest.raises(ParameterError, match="a window is of files, not of str"):
        fit_window(ridge(), "day-000.h5", "keep", n_files=2)
    with pytest.raises(OutputError, match="cannot be made"):
        slide(keep="day-000.h5")
    slide()
    day(1, width=4)
    with pytest.raises(DataError, match="same columns"):
        slide()


NAMES = np.array(["hay", "oats", "straw"])


def labelled_day(number, n=60):
    rng = np.random.default_rng(number)
    X = rng.standard_normal((n, 3)) + 0.02 * number
    # The first day has two classes only.
    names = NAMES[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7] if number else [-0.5])]
    with h5py.File(f"day-{number:03d}.h5", "w") as file:
        file["X"] = X
        file.create_dataset("y", data=names.astype(object), dtype=h5py.string_dtype())


def labelled_days(*numbers):
    return open_hdf5([f"day-{number:03d}.h5" for number in numbers], labels=True)


def classifier(**options):
    options = {"n_components": 32, "alpha": 0.1, "precision": "double"} | options
    return RandomFeatureClassifier(Gaussian(2.0), **options)


def slide_classes(n_files=3, **options):
    source = open_hdf5("day-*.h5", labels=True)
    return fit_window(classifier(**options), source, "keep", n_files=n_files)


@pytest.mark.parametrize("class_weight", [None, {"hay": 2.0}])
def test_a_window_of_labels_is_that_of_a_classifier_grown_by_its_files(class_weight):
    options = {"class_weight": class_weight}
    for number in range(3):
        labelled_day(number)
    first = slide_classes(**options)
    assert counts(first) == (3, 3, 0)
    for number in range(3, 5):
        labelled_day(number)
    model = slide_classes(**options)
    assert counts(model) == (3, 2, 2)
    assert model.classes_.tolist() == NAMES.tolist()
    expected = classifier(**options)
    expected.partial_fit(labelled_days(0), classes=NAMES)
    for number in range(1, 5):
        expected.partial_fit(labelled_days(number))
    for number in range(2):
        expected.forget(labelled_days(number))
    X = np.random.default_rng(9).standard_normal((50, 3))
    assert abs(model.predict_proba(X) - expected.predict_proba(X)).max() < 1e-8
    assert model.evaluate(labelled_days(2, 3, 4))["accuracy"] > 0.8
    model.update(*(X, NAMES[np.digitize(X[:, 0], [-0.5, 0.7])]))
    assert model.report_["rows"] == 230


def test_what_is_no_window_of_labels_is_refused():
    for number in range(2):
        labelled_day(number)
    with pytest.raises(ParameterError, match="'balanced' would weigh earlier rows anew"):
        slide_classes(class_weight="balanced")
    slide_classes()
    for change, words in (
        ({"class_weight": {"hay": 3.0}}, "made with another class_weight"),
        ({"n_components": 64}, "made with n_components 32, not 64"),
    ):
        with pytest.raises(ParameterError, match=words):
            slide_classes(**change)
    series = open_hdf5("day-*.h5", labels=True)
    with pytest.raises(ParameterError, match="of labels of classes, not of numbers"):
        fit_window(ridge(), series, "keep", n_files=3)
    with pytest.raises(ParameterError, match="not of RandomFeatureAdaBoost; take one of these"):
        fit_window(RandomFeatureAdaBoost(), series, "keep", n_files=3)
    with h5py.File("day-001.h5", "r+") as file:
        file["y"][3] = "rye"
    with pytest.raises(DataError, match="'rye', which is none of the"):
        slide_classes()


def test_the_command_keeps_a_classifier_up(folder):
    for number in range(3):
        labelled_day(number)
    command = ("window", "day-*.h5", "--last", 2, "--keep", "keep", "--out", "model.h5")
    options = ("--classify", "--components", 32, "--alpha", 0.1, "--force")
    report_of(*command, *options)
    labelled_day(3)
    found = report_of(*command, *options)
    assert found["window"] == {"files": 2, "read_files": 1, "left_files": 1}
    assert found["classes"]["values"] == NAMES.tolist()
    assert load("model.h5").evaluate(labelled_days(2, 3))["accuracy"] > 0.8


def test_moments_of_something_else_are_not_taken_for_those_of_a_file():
    day(0)
    slide()
    (place,) = Path("keep").iterdir()
    ridge().moments(*np.split(np.random.default_rng(0).random((50, 4)), [3], axis=1)).save(
        place, force=True
    )
    with pytest.raises(DataError, match="not of one file"):
        slide(ridge(alpha="cv"))


def test_the_command_keeps_a_model_up(folder):
    for number in range(3):
        day(number)
    command = ("window", "day-*.h5", "--last", 2, "--keep", "keep", "--out", "model.h5")
    options = ("--components", 32, "--precision", "double", "--alpha", 0.1)
    options += ("--report", "report.html")
    first = report_of(*command, *options)
    assert first["window"] == {"files": 2, "read_files": 2, "left_files": 0}
    assert "html" in Path("report.html").read_text()
    day(3)
    said = streamkern(*command, *options, "--force", "--quiet").stdout
    assert "120 x 3" in said
    model = load("model.h5")
    assert_same(model, ridge().fit(days(2, 3), like=ridge().moments(days(1))))
    assert model.report_["window"] == {"files": 2, "read_files": 1, "left_files": 1}


def test_a_second_job_in_the_folder_of_a_window_is_refused_at_once(monkeypatch):
    for number in range(3):
        day(number)
    save, refused = DataMoments.save, []

    def saved(moments, path, **options):
        if not refused:
            with pytest.raises(CheckpointError, match="keep is in use by another job") as error:
                fit_window(ridge(), days(1, 2), "keep", n_files=2)
            refused.append(error)
        save(moments, path, **options)

    monkeypatch.setattr(DataMoments, "save", saved)
    assert counts(fit_window(ridge(), days(0, 1), "keep", n_files=2)) == (2, 2, 0)
    assert refused


def test_moments_that_were_not_written_here_are_left_alone():
    for number in range(3):
        day(number)
    ridge().moments(days(0)).save("mine.moments.h5")
    Path("keep").mkdir()
    Path("mine.moments.h5").rename("keep/mine.moments.h5")
    model = fit_window(ridge(), days(0, 1, 2), "keep", n_files=2)
    fit_window(model, days(2), "keep", n_files=2)
    assert Path("keep/mine.moments.h5").exists()
    assert len(list(Path("keep").glob("*.moments.h5"))) == 2


def test_classes_may_be_named_before_they_come():
    for number in range(2):
        labelled_day(number)
    named = sorted([*NAMES.tolist(), "rye"])
    model = fit_window(classifier(), labelled_days(0), "keep", n_files=2, classes=named)
    assert model.classes_.tolist() == named
    with h5py.File("day-001.h5", "r+") as file:
        file["y"][:5] = "rye"
    model = fit_window(classifier(), labelled_days(0, 1), "keep", n_files=2)
    assert model.classes_.tolist() == named
    assert model.report_["rows"] == 120
    with pytest.raises(ParameterError, match="know the classes 'hay', 'oats', 'rye', 'straw', not"):
        fit_window(classifier(), labelled_days(0), "keep", n_files=2, classes=NAMES[:2])
