"""`moments`, `merge`, `forget`, `solve`: models without reading the rows again."""

import numpy as np
import pytest
from commandline import invoke, program, report_of, rows, streamkern, unchanged_by, write

from streamkern import load, load_moments
from streamkern.models.data_moments import DataMoments

pytestmark = pytest.mark.usefixtures("all_files")

OPTIONS = ("--components", 32, "--kernel", "gaussian", "--precision", "double", "--quiet")


def alike(one, other, tolerance=1e-9):
    """Check that two model files predict the same."""
    X = rows(50, seed=8)[0]
    expected = load(other).predict(X)
    np.testing.assert_allclose(load(one).predict(X), expected, rtol=tolerance, atol=tolerance)


# What they do.


def test_a_window_over_files_is_a_fit_to_the_last_ones(folder):
    X, y = rows(300)
    for k in range(3):
        write(f"day-{k}.h5", X[100 * k : 100 * (k + 1)], y[100 * k : 100 * (k + 1)])
    options = ("--components", 32, "--precision", "double", "--kernel", "gaussian")
    program(folder, "jobs/window.py", "kept", "model.h5", 2, "day-0.h5", "day-1.h5", "--", *options)
    first = {path: path.stat().st_mtime_ns for path in (folder / "kept").glob("*.h5")}
    mine = write("kept/mine.h5", X)
    program(folder, "jobs/window.py", "kept", "model.h5", 2, "day-0.h5", "day-1.h5", "day-2.h5")
    kept = {path: path.stat().st_mtime_ns for path in (folder / "kept").glob("*.h5")}
    assert first.items() < kept.items()  # no file is read again
    assert (folder / mine).exists()
    like = next(path for path in first if path.name.startswith("day-0"))
    streamkern("fit", "day-1.h5", "day-2.h5", "--like", like, "--out", "fitted.h5", "--quiet")
    model, fitted = load("model.h5"), load("fitted.h5")
    assert model.report_["rows"] == 200
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-5, atol=1e-6)


# What is refused.


def test_files_that_share_rows_are_refused_unless_they_are_said_to_repeat(folder):
    sentence = unchanged_by(folder, "merge", "A.h5", "A.h5", "--out", "C.h5")
    assert "A.h5: 200 of the 200 rows to be merged are in already" in sentence
    assert "--repeated-rows" in sentence
    report = report_of("merge", "A.h5", "A.h5", "--repeated-rows", "--out", "C.h5")
    assert report["rows"] == 400


def test_moments_of_another_kind_do_not_merge(folder):
    scale = load_moments("A.h5").kernel.length_scale
    options = (*OPTIONS, "--length-scale", scale, "--seed", 1)
    streamkern("moments", "b.h5", "--out", "B2.h5", *options)
    sentence = unchanged_by(folder, "merge", "A.h5", "B2.h5", "--out", "C.h5")
    assert "B2.h5: moments merge only where they are alike, but the first have" in sentence
    assert "--seed 0 and the second have --seed 1" in sentence
    assert "like the first (--like)" in sentence


def test_rows_are_forgotten_once_and_only_if_they_were_in(folder):
    sentence = unchanged_by(folder, "forget", "A.h5", "b.h5")
    assert "100 of 100 rows were never in" in sentence
    assert "b.h5, row 0" in sentence
    streamkern("forget", "A.h5", "some.h5")
    assert "20 of 20 rows were never in" in unchanged_by(folder, "forget", "A.h5", "some.h5")
    assert "none would be left" in unchanged_by(folder, "forget", "B.h5", "b.h5")


@pytest.mark.parametrize(
    "arguments",
    ["solve model.h5 --out out.h5", "merge A.h5 model.h5 --out out.h5", "forget model.h5 a.h5"],
)
def test_a_model_is_no_moments_file(folder, arguments):
    sentence = unchanged_by(folder, *arguments.split())
    assert "model.h5 is a streamkern model, not a moments file; give a file that" in sentence


def test_of_two_jobs_that_forget_rows_of_one_file_at_once_the_second_is_refused(monkeypatch):
    streamkern("merge", "A.h5", "B.h5", "--out", "M.h5")
    true, first = DataMoments.forget, []

    def forget(moments, source):
        if not first:
            first.append(source)
            streamkern("forget", "M.h5", "a.h5", "--quiet")
        return true(moments, source)

    monkeypatch.setattr(DataMoments, "forget", forget)
    result = invoke("forget", "M.h5", "b.h5", "--quiet")
    assert "M.h5 was changed by another job meanwhile, and is kept; run" in result.stderr
    assert result.exit_code == 1
    assert load_moments("M.h5").report["rows"] == 100


DECIDED = "is decided by --like A.h5; leave out one of the two"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("moments b.h5 --like A.h5 --kernel laplacian", f"--kernel {DECIDED}"),
        ("moments b.h5 --like A.h5 --folds 5", f"--folds {DECIDED}"),
        ("moments b.h5 --like A.h5 --phase", f"--phase {DECIDED}"),
        ("merge A.h5", "two moments files or more, not A.h5 alone"),
        ("solve A.h5 --components 64", "of 32 features, but --components is 64"),
        ("solve A.h5 --alpha -1", "alpha"),
        ("solve A.h5 --alpha loo", "leave-one-out reads the rows again"),
        ("solve A.h5 --alpha 1 --alphas 1,2", "alphas are what to choose from, but alpha is 1.0"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(folder, arguments, words):
    assert words in unchanged_by(folder, *arguments.split(), "--out", "out.h5", status=2)
