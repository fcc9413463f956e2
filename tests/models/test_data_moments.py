"""Moments of data sets: merged, with rows removed, and solved, they say what a fit would say."""

import warnings
from dataclasses import replace

import naive
import numpy as np
import pandas as pd
import pytest
from harvests import smooth_rows as rows

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge, load_moments
from streamkern.engine.scheduler import is_delayed
from streamkern.errors import (
    ClusterError,
    DataError,
    InsufficientMemoryError,
    ModelFileError,
    OverflowedError,
    ParameterError,
    StreamkernWarning,
)
from streamkern.kernels import Gaussian, Laplacian
from streamkern.parameters.planning import plan_system
from streamkern.runtime.resources import Resources
from streamkern.sources import ArraySource
from streamkern.statistics import RowFolds

RELATIVE = 1e-9
D = 24


def model(**options):
    given = {
        "n_components": D,
        "alpha": 0.01,
        "precision": "double",
        "kernel": "gaussian",
    } | options
    return RandomFeatureRidge(**given)


def assert_same(actual, expected, relative=RELATIVE):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= relative * np.abs(expected).max()


def assert_same_model(actual, expected, X, relative=RELATIVE):
    assert_same(actual.coef_, expected.coef_, relative)
    assert_same(actual.intercept_, expected.intercept_, relative)
    assert_same(actual.predict(X), expected.predict(X), relative)
    for key in ("rows", "alpha", "train_rmse", "effective_dof"):
        assert_same(actual.report_[key], expected.report_[key], relative)


# What it is all for.


def test_the_curve_of_merged_folds_is_that_of_refitting_without_each():
    X, y = rows(120)
    cut, alphas = 70, [0.01, 1.0]
    first = model(fold_by="rows").moments(X[:cut], y[:cut])
    second = model(fold_by="rows").moments(X[cut:], y[cut:], like=first)
    solved = model(alpha=alphas).solve(first.merge(second))
    dealt = np.concatenate([RowFolds(5, 0).at(np.arange(n)) for n in (cut, len(X) - cut)])
    Phi, s = first.feature_map.transform(X), np.ones(len(X))
    for alpha, found in zip(alphas, solved.report_["alpha_curve"]["values"], strict=True):
        parts = [
            naive.error_without(Phi, y[:, None], s, alpha, dealt == fold, intercept=True)
            for fold in range(5)
        ]
        assert found == pytest.approx(np.sqrt(np.sum(parts) / len(X)), rel=RELATIVE)


def test_shifts_too_far_apart_to_be_reconciled_are_refused():
    X, y = rows()
    first = model().moments(X[:200], y[:200])
    second = model().moments(X[200:], y[200:], like=first).gathered()
    for part in second.folds.parts.values():
        part.target_shift = part.target_shift + 1e300
    with pytest.raises(
        OverflowedError, match=r"overflow about the same shift; .* like the first \(--like\)"
    ):
        first.merge(second)


# Forgetting rows one by one.


def test_rows_that_cannot_be_forgotten_are_refused():
    X, y = rows()
    moments, other = model().moments(X, y), y.copy()
    other[[7, 9]] += 1e-12
    for data, words in (
        ((X, other), r"^2 of 400 rows were never in .* the first at row 7;"),
        ((X, y), "all 400 rows of the moments, and none would be left"),
        ((X[:, :2], y), "rows must have 3 columns"),
        ((X, np.stack([y, y], axis=1)), "of 1 target, but the data has 2"),
    ):
        with pytest.raises(DataError, match=words):
            moments.forget(*data)


def test_one_of_two_equal_rows_can_be_forgotten_and_then_the_other_and_no_more():
    X, y = rows()
    X[40], y[40] = X[3], y[3]
    moments = model().moments(X, y)
    twice = np.array([3, 3])
    once = moments.forget(X[[3]], y[[3]])
    kept = np.arange(400) != 40
    assert_same_model(model().solve(once), model().fit(X[kept], y[kept], like=moments), X)
    neither = moments.forget(X[twice], y[twice])
    assert len(neither.index) == 398
    with pytest.raises(DataError, match="1 of 2 rows were never in these moments, or not as often"):
        once.forget(X[twice], y[twice])


def test_rows_that_were_skipped_are_skipped_again():
    X, y = rows()
    X[[2, 300], 1] = np.nan
    moments = model(on_bad_rows="skip").moments(X, y)
    assert (moments.report["rows"], moments.report["skipped_rows"]) == (398, 2)
    left = moments.forget(X[:100], y[:100])
    assert left.report["rows"] == 299
    strict = replace(moments, options=replace(moments.options, on_bad_rows="error"))
    with pytest.raises(DataError, match="1 of 100 rows hold NaN"):
        strict.forget(X[:100], y[:100])


def test_a_fold_that_lost_its_rows_is_left_out_of_the_choice():
    X, y = rows(100)
    moments = model(fold_by="blocks").moments(X, y)
    left = moments.forget(X[:20], y[:20])
    assert left.report["n_folds"] == len(left.folds.parts) == 4
    chosen = model(alpha=[0.1, 1.0]).solve(left)
    again = model(alpha=[0.1, 1.0], fold_by="blocks", n_folds=4).fit(X[20:], y[20:], like=moments)
    curve, expected = (each.report_["alpha_curve"]["values"] for each in (chosen, again))
    assert_same(curve, expected)
    one = left.forget(X[20:80], y[20:80])
    then, now = (each.report["seconds"] for each in (left, one))
    assert now["forget"] - then["forget"] == pytest.approx(now["total"] - then["total"])
    with pytest.raises(ParameterError, match="at least 2 folds with rows, but the moments have 1"):
        model(alpha="cv").solve(one)
    assert_same_model(model().solve(one), model().fit(X[80:], y[80:], like=moments), X)


# What does not merge.


X_OTHER, Y_OTHER = rows(seed=1)
# Options, rows, and what the first and the second then have.
OTHERS = {
    "targets": ({}, (X_OTHER, np.stack([Y_OTHER] * 2, axis=1)), "1 targets", "2 targets"),
    "precision": ({"precision": "single"}, None, "double precision", "single precision"),
    "kernel": ({"kernel": Laplacian(2.0)}, None, "kernel gaussian", "kernel laplacian"),
    "features": ({"n_components": 32}, None, "n_components 24", "n_components 32"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_moments_of_another_kind_are_refused_with_the_difference(name):
    options, data, mine, theirs = OTHERS[name]
    first = model(kernel=Gaussian(2.0)).moments(*rows())
    second = model(**{"kernel": Gaussian(2.0)} | options).moments(*(data or (X_OTHER, Y_OTHER)))
    words = f"the first have {mine} and the second have {theirs}; compute .* like the first .--like"
    with pytest.raises(DataError, match=words):
        first.merge(second)


def plain(**options):
    """A model whose map follows from no rows, but for the means that it takes out."""
    return model(kernel=Gaussian([1.0, 4.0, 0.2]), standardize=False, **options)


@pytest.mark.parametrize(
    ("feature_map", "precision"), [("orthogonal", "single"), ("sorf", "double")]
)
def test_moments_that_are_not_standardised_merge_without_a_template(feature_map, precision):
    (X, y), relative = rows(400, 2), {"single": 1e-5, "double": 1e-10}[precision]
    # The gram is in two panels, of 512 rows and of what is left.
    options = {"feature_map": feature_map, "precision": precision, "n_components": 520}
    first = plain(**options).moments(X[:150], y[:150])
    second = plain(**options).moments(X[150:], y[150:])
    alone, whole = plain(**options).fit(X[:150], y[:150]), plain(**options).fit(X, y)
    for both in (first.merge(second), second.merge(first)):
        merged = plain(**options).solve(both)
        assert_same(merged.predict(X), whole.predict(X), relative)
        left = plain(**options).solve(both.forget(X[150:], y[150:]))
        assert_same(left.predict(X), alone.predict(X), 10 * relative)


def test_moments_about_other_means_are_refused_where_features_are_no_pairs():
    X, y = rows()
    X_zero, X_one = (np.column_stack([X, np.full(len(X), value)]) for value in (0.0, 1.0))
    X_one[0, 3] = 0.0
    for options, data, words in (
        ({"paired": False}, X + 1.0, "about other means, which only pairs of waves make up for"),
        ({"standardize": True}, X + 1.0, r"standardised by other means .* the first \(--like\)"),
        ({"precision": "int8"}, X + 1.0, r"rounded features cannot be turned.*\(--like\)"),
        ({"feature_map": "nystroem"}, X + 1.0, "chosen from other rows, as landmarks are"),
        ({}, X_one, "left out as constant in one are not in the other: 3"),
    ):
        given = {"kernel": Gaussian(2.0), "standardize": False} | options
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = model(**given).moments(X_zero if data is X_one else X, y)
        second = model(**given).moments(data, y + 1.0)
        with pytest.raises(DataError, match=words):
            first.merge(second)


# Moments of further rows.


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    (X, y), folder = rows(300), tmp_path_factory.mktemp("templates")
    made = {"moments": model().moments(X, y), "model": model().fit(X, y)}
    for kind, each in list(made.items()):
        each.save(folder / f"{kind}.h5")
        made[f"{kind} file"] = str(folder / f"{kind}.h5")
    return made


@pytest.mark.parametrize("kind", ["moments", "model", "moments file", "model file"])
def test_a_template_gives_the_map_so_that_the_two_merge(templates, kind):
    first, like = templates["moments"], templates[kind]
    X, y = rows(80, seed=9)
    options = {"kernel": Laplacian(3.0), "n_components": 16, "precision": "single"}
    options["n_folds"] = 7 if "moments" in kind else 5  # of moments the folds are taken too
    second = model(**options, standardize=False).moments(X, y, like=like)
    assert first.feature_map.equals(second.feature_map)
    assert (second.kernel, second.options.precision) == (first.kernel, "double")
    # Moments give their shifts too; those of a model's rows differ, and are reconciled.
    same = first.gathered().folds.empty.target_shift == second.gathered().folds.empty.target_shift
    assert same == ("moments" in kind)
    merged, all_rows = first.merge(second), map(np.concatenate, zip(rows(300), (X, y), strict=True))
    assert len(merged.index) == 380
    assert_same_model(model().solve(merged), model().fit(*all_rows, like=first), X)
    fitted = model().fit(X, y, like=like)
    assert fitted.feature_map_.equals(first.feature_map)
    assert_same_model(model().solve(second), fitted, X)


def test_columns_that_the_template_leaves_out_are_named_where_they_vary():
    X, y = rows()
    constant = X.copy()
    constant[:200, 1] = 4.0
    with pytest.warns(StreamkernWarning, match="1 constant column of X left out: 1"):
        first = model().moments(constant[:200], y[:200])
    with pytest.warns(StreamkernWarning, match="constant in the rows .* but not here: 1"):
        second = model().moments(constant[200:], y[200:], like=first)
    assert second.report["dropped_columns"] == [1]


@pytest.mark.parametrize("like", [3, "model", model()], ids=["number", "name", "not fitted"])
def test_what_is_no_template_is_refused(tmp_path, monkeypatch, like):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ParameterError, ModelFileError), match=r"give one of these|does not exist"):
        model().moments(*rows(), like=like)


# Solving.


def test_what_moments_cannot_be_solved_for_is_refused():
    moments = model().moments(*rows())
    for options, words in (
        ({"n_components": 26}, "of 24 features, but n_components is 26"),
        ({"n_components": 7}, "must be even"),
        ({"n_components": 2.5}, "must be a whole number"),
        ({"alpha": -1.0}, "alpha"),
    ):
        with pytest.raises(ParameterError, match=words):
            model(**options).solve(moments)
    of_one_fold = model(n_folds=1).moments(*rows())
    assert of_one_fold.report["n_folds"] == 0
    for alpha in ("cv", [0.1, 1.0]):
        with pytest.raises(ParameterError, match="at least 2 folds with rows, but the moments hav"):
            model(alpha=alpha).solve(of_one_fold)
    # There is only one number to choose from.
    assert model(n_components="auto", alpha=1.0).solve(moments).report_["n_components"] == D


# Files and memory.


def test_moments_that_overflowed_are_neither_made_nor_saved(tmp_path):
    X, y = rows()
    options = {"feature_map": "identity", "standardize": False, "precision": "single"}
    with pytest.raises(OverflowedError, match=r"rows .* overflowed in single precision"):
        model(**options).moments(1e25 * X, y)
    made = model().moments(X, y).gathered()
    made.folds.parts[0].cross[0] = np.inf
    with pytest.raises(OverflowedError, match="overflowed in double precision"):
        made.save(tmp_path / "m.h5")
    assert list(tmp_path.iterdir()) == []


def test_rows_too_many_to_be_known_again_are_refused_before_they_are_read(monkeypatch):
    X, y = np.zeros((1_000_000, 1), dtype=np.float32), np.zeros(1_000_000)
    enough = plan_system(ArraySource(X, y), D, precision="double", n_workers=0, n_threads=1)
    allowed = Resources(0, 1, enough.worker_bytes + 1)
    monkeypatch.setattr("streamkern.parameters.planning.current_resources", lambda: allowed)
    with pytest.raises(
        InsufficientMemoryError, match=r"an index of 1,000,000 rows need .* or rows"
    ):
        model(n_folds=1).moments(X, y)


def test_moments_beyond_memory_are_refused_with_both_numbers(tmp_path, monkeypatch):
    X, y = rows()
    first = model().moments(X[:200], y[:200])
    second = model().moments(X[200:], y[200:], like=first)
    first.save(tmp_path / "m.h5")
    monkeypatch.setattr("streamkern.runtime.memory.available_bytes", lambda: 1000)
    for use in (
        lambda: load_moments(tmp_path / "m.h5"),
        lambda: first.merge(second),
        lambda: first.forget(X[:5], y[:5]),
        lambda: model().solve(first),
    ):
        with pytest.raises(InsufficientMemoryError, match=r"kB in this process, but 1 kB is free"):
            use()


# On a cluster.


@pytest.mark.cluster
def test_moments_on_workers_are_the_same_bits_as_in_this_process(tmp_path, external_scheduler):
    from distributed import Client

    X, y = rows()

    def everything():
        first = model().moments(X[:300], y[:300])
        second = model().moments(X[300:], y[300:], like=first)
        assert is_delayed(first.folds)
        merged = first.merge(second)
        merged.save(tmp_path / "m.h5", force=True)
        left = load_moments(tmp_path / "m.h5").forget(X[100:120], y[100:120])
        return [model(alpha=a).solve(each).coef_ for each in (merged, left) for a in (0.1, "cv")]

    here = everything()
    with Client(external_scheduler, set_as_default=True):
        there = everything()
    for mine, theirs in zip(here, there, strict=True):
        assert theirs.tobytes() == mine.tobytes()


@pytest.mark.cluster
def test_moments_that_were_left_on_a_cluster_that_is_gone_say_so(external_scheduler):
    from distributed import Client

    with Client(external_scheduler, set_as_default=True):
        left = model().moments(*rows())
        taken = left.gathered()
    with pytest.raises(ClusterError, match="left on the workers of a cluster that is gone"):
        model().solve(left)
    assert model().solve(taken).coef_.any()


# Columns with names.

NAMES = ["width", "depth", "age"]


def frame(X, names=NAMES):
    return pd.DataFrame(X, columns=names)


def classifier(**options):
    given = {"n_components": D, "alpha": 0.1, "calibration": None} | options
    return RandomFeatureClassifier(**given)


@pytest.mark.parametrize("made", [model, classifier])
def test_moments_keep_the_names_of_columns_for_models_solved_of_them(tmp_path, made):
    X, y = rows()
    targets = y if made is model else y > 0
    fitted = made().fit(X, targets)
    moments = fitted.moments(frame(X), targets)
    assert not hasattr(fitted, "feature_names_in_")
    moments.save(tmp_path / "m.h5")
    solved = made().solve(load_moments(tmp_path / "m.h5"))
    assert solved.feature_names_in_.tolist() == NAMES
    expected = made().fit(frame(X), targets).predict(frame(X))
    np.testing.assert_allclose(solved.predict(frame(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(solved.predict(frame(X)[NAMES[::-1]]), expected, rtol=1e-6)
    components = streamkern.RandomFeaturePCA(n_components=2).solve(moments)
    assert components.feature_names_in_.tolist() == NAMES
    plain = solved.solve(fitted.moments(X, targets))
    assert not hasattr(plain, "feature_names_in_")


def test_moments_of_columns_in_another_order_do_not_merge():
    X, y = rows()
    first = model().moments(frame(X[:200]), y[:200])
    rest = frame(X[200:])
    other = model().moments(X[200:], y[200:], like=first)
    other = replace(other, columns=replace(other.columns, input_names=NAMES[::-1]))
    with pytest.raises(DataError, match=r"first are width, depth, age and .* age, depth"):
        first.merge(other)
    for given in (rest, X[200:]):
        both = first.merge(model().moments(given, y[200:], like=first))
        assert both.report["feature_names"] == NAMES
        whole = model().moments(frame(X), y, like=first)
        assert_same(model().solve(both).coef_, model().solve(whole).coef_)


def test_moments_of_a_fit_do_not_know_their_rows(tmp_path):
    made = replace(model().moments(*rows()), index=None)
    for use in (lambda: made.merge(made), lambda: made.save(tmp_path / "m.h5")):
        with pytest.raises(ParameterError, match="do not know their rows"):
            use()
