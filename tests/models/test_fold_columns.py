"""Folds by a column of the rows: groups that stay whole, and windows of time."""

import re

import dask.array as da
import h5py
import naive
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, ParameterError
from streamkern.registry import extension
from streamkern.sources import ArraySource

GRID = [0.001, 0.1, 10.0]
N = 240


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (N, 2))
    groups = rng.integers(0, 23, N)
    offsets = rng.standard_normal(23)
    y = np.sin(X[:, 0]) + offsets[groups] + 0.1 * rng.standard_normal(N)
    return X, y, groups, rng.permutation(N)


def ridge(**options):
    usual = {"n_components": 32, "precision": "double", "alpha": GRID}
    return RandomFeatureRidge(Gaussian(1.0), **usual | options)


def assert_errors_are_those_of(model, X, y, splits, weights=None):
    """Compare errors at every penalty with those of a loop of fits, in every split."""
    Phi, s = model.transform(X), np.ones(len(X)) if weights is None else weights
    scores = model.penalty_curve_.fold_scores[:, :, 0]
    assert len(scores) == len(splits)
    for a, alpha in enumerate(GRID):
        for mine, (train, test) in zip(scores[:, a], splits, strict=True):
            both = np.concatenate([train, test])
            left_out = np.arange(len(both)) >= len(train)
            some = Phi[both], y[both, None], s[both]
            error = naive.error_without(*some, alpha, left_out, intercept=True)
            assert mine == pytest.approx(error[0] / s[test].sum(), rel=1e-10)


def in_time(times, **options):
    order = np.argsort(times, kind="stable")
    return [(order[a], order[b]) for a, b in TimeSeriesSplit(5, **options).split(order)]


def test_groups_are_those_of_group_k_fold():
    X, y, groups, _ = rows()
    weights = np.random.default_rng(1).random(N) + 0.1
    for labels in (groups, groups.astype(str), pd.Series(groups), groups / 7.0):
        model = ridge().fit(X, y, weights, groups=labels)
        # Of equally large groups the order of texts is another than that of numbers.
        splits = list(GroupKFold(5).split(X, groups=np.asarray(labels)))
        assert_errors_are_those_of(model, X, y, splits, weights)
    assert (model.report_["fold_by"], model.report_["n_folds"]) == ("column:groups", 5)


@pytest.mark.parametrize("gap", [0, 17])
def test_windows_of_time_are_those_of_time_series_split(gap):
    X, y, _, times = rows()
    model = ridge(gap=gap).fit(X, y, times=times)
    assert_errors_are_those_of(model, X, y, in_time(times, gap=gap))
    assert (model.report_["fold_by"], model.report_["n_folds"]) == ("time:times", 5)


def test_dates_are_in_order_and_their_gap_is_a_duration():
    X, y, _, times = rows()
    dates = np.datetime64("2024-02-20T00:00") + times * np.timedelta64(1, "h")
    for values in (dates, dates.astype(str)):
        model = ridge(gap="17h").fit(X, y, times=values)
        assert_errors_are_those_of(model, X, y, in_time(times, gap=17))


def test_equal_times_are_predicted_together():
    X, y, _, times = rows()
    days = times // 50  # of which the parts of 40 rows begin in the middle
    model = ridge(n_folds=3).fit(X, y, times=days)
    starts = [1, 2, 3]  # rows 60, 120 and 180 are of these days
    stops = [2, 3, 5]
    splits = [
        (np.flatnonzero(days < a), np.flatnonzero((days >= a) & (days < b)))
        for a, b in zip(starts, stops, strict=True)
    ]
    assert_errors_are_those_of(model, X, y, splits)


@pytest.mark.parametrize("how", ["groups", "times"])
def test_rows_are_predicted_by_the_model_that_has_not_seen_them(how):
    X, y, groups, times = rows()
    values = {"groups": groups, "times": times}[how]
    model = ridge().fit(X, y, keep_moments=True, **{how: values})
    found = extension("report", "validation_pass").validated(model.model_, ArraySource(X, y))
    assert found.by_fold
    assert found.n_rows == (N if how == "groups" else 200)
    assert found.rmse[0] == pytest.approx(model.report_["cv_rmse"], rel=1e-8)


def test_sparse_models_are_chosen_on_what_came_before():
    X, y, _, times = rows()
    dense, model = (ridge(sparse=K).fit(X, y, times=times) for K in (None, 8))
    squares = []
    for train, test in in_time(times):
        before = ridge(sparse=8, alpha=model.alpha_).fit(X[train], y[train], like=dense)
        squares.append((y[test] - before.predict(X[test])) ** 2)
    assert model.report_["cv_rmse"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-8)


def test_lazy_rows_and_files_have_the_same_folds(tmp_path):
    X, y, groups, times = rows()
    y = np.round(y, 3)
    alone = ridge().fit(X, y, groups=groups)
    lazy = ridge().fit(da.from_array(X, chunks=(50, 2)), y, groups=da.from_array(groups, chunks=70))
    assert lazy.report_["cv_rmse"] == pytest.approx(alone.report_["cv_rmse"], rel=1e-9)
    for part, some in enumerate((slice(0, 100), slice(100, N))):
        with h5py.File(tmp_path / f"{part}.h5", "w") as file:
            file["X"], file["y"] = X[some], y[some]
            file["site"], file["when"] = groups[some].astype("S"), times[some]
    source = open_hdf5(str(tmp_path / "*.h5"))
    model = ridge(fold_by="column:site").fit(source)
    assert_errors_are_those_of(model, X, y, list(GroupKFold(5).split(X, groups=groups.astype(str))))
    model = ridge(fold_by="time:when", gap=5).fit(str(tmp_path / "*.h5"), "y")
    assert_errors_are_those_of(model, X, y, in_time(times, gap=5))


def test_a_column_of_a_table_may_be_an_input_too(tmp_path):
    X, y, groups, _ = rows()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": groups, "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    inputs = frame[["a", "b", "site"]]
    # Of a CSV it is text, which is in another order.
    for data, labels in ((frame, groups), (tmp_path / "t.csv", groups.astype(str))):
        model = ridge(fold_by="column:site").fit(data, "y")
        assert model.n_features_in_ == 3
        expected = list(GroupKFold(5).split(X, groups=labels))
        assert_errors_are_those_of(model, inputs, y, expected)


def test_classes_are_chosen_and_calibrated_on_other_groups():
    X, y, groups, _ = rows()
    labels = np.where(y > 0, "up", "down")
    model = RandomFeatureClassifier(Gaussian(1.0), n_components=32, alpha=GRID)
    model.fit(X, labels, groups=groups)
    rowwise = RandomFeatureClassifier(Gaussian(1.0), n_components=32, alpha=GRID).fit(X, labels)
    assert model.report_["fold_by"] == "column:groups"
    # What a group shares is no help for another.
    assert model.report_["cv_rmse"] > rowwise.report_["cv_rmse"]


def test_a_search_takes_the_folds_of_the_fit():
    X, y, groups, _ = rows()
    model = ridge(n_components=32).tune(X, y, groups=groups, kernels="auto", maps="auto")
    assert model.report_["fold_by"] == "column:groups"
    assert_errors_are_those_of(
        model.set_params(alpha=GRID), X, y, list(GroupKFold(5).split(X, groups=groups))
    )


def broken(groups):
    values = groups.astype(object)
    values[7] = None
    return values


REFUSED = {
    "both": (lambda g, t: {"groups": g, "times": t}, {}, "one of groups, times and fold_by"),
    "another fold_by": (lambda g, _: {"groups": g}, {"fold_by": "rows"}, "leave fold_by 'auto'"),
    "a missing group": (lambda g, _: {"groups": broken(g)}, {}, "row 7 has no value of 'groups'"),
    "too few groups": (
        lambda g, _: {"groups": g % 3},
        {},
        "5 folds need as many different values, but column:groups has 3",
    ),
    "groups of another length": (lambda g, _: {"groups": g[1:]}, {}, "groups has 239"),
    "two columns": (lambda g, _: {"groups": np.stack([g, g], 1)}, {}, "one value a row"),
    "no column": (lambda *_: {}, {"fold_by": "column:site"}, "give its values to fit as groups"),
    "times of words": (
        lambda g, _: {"times": np.array(["x", "y"])[g % 2]},
        {},
        "must hold numbers or dates such as 2024-05-31, but holds 'x'",
    ),
    "too few times": (lambda _, t: {"times": t // 100}, {}, "5 windows need as many times"),
    "a gap over all rows": (lambda _, t: {"times": t}, {"gap": 1000}, "a smaller gap"),
    "a gap without times": (lambda g, _: {"groups": g}, {"gap": 1}, "left between times"),
    "a negative gap": (lambda _, t: {"times": t}, {"gap": -1}, "gap must be a number of at least"),
    "a gap in words": (lambda _, t: {"times": t}, {"gap": "soon"}, "gap must be a number of at"),
    "gradients by time": (
        lambda _, t: {"times": t},
        {"solver": "cg"},
        "no D x D system, which windows of time need",
    ),
    "a nameless column": (lambda *_: {}, {"fold_by": "column:"}, "column:NAME, time:NAME, not"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_folds_that_cannot_be_are_refused_with_one_sentence(case):
    X, y, groups, times = rows()
    given, options, match = REFUSED[case]
    with pytest.raises((ParameterError, DataError), match=re.escape(match)) as caught:
        ridge(**options).fit(X, y, **given(groups, times))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", ["groups", "times"])
def test_rows_that_come_later_have_no_folds_by_a_column(how):
    X, y, groups, times = rows()
    model = ridge().fit(X, y, keep_moments=True, **{how: {"groups": groups, "times": times}[how]})
    with pytest.raises(ParameterError, match="rows that are all there"):
        model.partial_fit(X, y)


def test_moments_of_windows_are_not_kept_for_later(tmp_path):
    X, y, _, times = rows()
    model = ridge().fit(X, y, keep_moments=True, times=times)
    with pytest.raises(ParameterError, match="rows that are all there"):
        model.moments_.save(tmp_path / "m.h5")
    again = ridge().solve(model.moments_)
    assert_errors_are_those_of(again, X, y, in_time(times))


def test_intervals_of_groups_that_are_left_out_have_one_width_and_hold_new_ones():
    rng = np.random.default_rng(0)
    centres, offsets = 3.0 * rng.standard_normal((400, 4)), rng.standard_normal(400)

    def drawn(groups):
        X = centres[groups] + 0.3 * rng.standard_normal((len(groups), 4))
        return X, offsets[groups] + 0.1 * rng.standard_normal(len(groups))

    groups = rng.integers(0, 200, 2000)
    X, y = drawn(groups)
    model = RandomFeatureRidge("gaussian", n_components=64).fit(X, y, groups=groups)
    new, expected = drawn(rng.integers(200, 400, 2000))
    low, high = model.predict(new, interval=0.9)[1].T
    assert np.ptp(high - low) < 1e-9
    assert np.mean((low <= expected) & (expected <= high)) > 0.8
