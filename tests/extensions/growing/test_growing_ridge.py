"""Rows that come and go: the same model as one fit on the rows that are in."""

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from harvests import chunks, ridge
from harvests import smooth_rows as rows
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import streamkern
from streamkern import Gaussian, RandomFeatureRidge, load_moments
from streamkern.errors import DataError, ParameterError, SingularSystemError, StreamkernWarning
from streamkern.estimators import problems

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def solves(monkeypatch):
    """Counts solutions, each of which may first wait for something."""
    found, solve = SimpleNamespace(n=0, first=lambda: None), problems.solve

    def counted(*arguments, **options):
        found.n += 1
        found.first()
        return solve(*arguments, **options)

    monkeypatch.setattr(problems, "solve", counted)
    return found


def grown(model, X, y, parts, weights=None):
    for part in parts:
        model.partial_fit(X[part], y[part], None if weights is None else weights[part])
    return model


def assert_predicts_like(model, expected, X, tolerance=1e-9):
    mine, theirs = model.predict(X), expected.predict(X)
    assert abs(mine - theirs).max() < tolerance * np.std(theirs)


# Out again.


# When it is solved, and what is kept.


def test_the_system_is_solved_when_something_is_asked_for(solves):
    X, y = rows(1000)
    model = grown(ridge(), X, y, chunks(1000, 20))
    check_is_fitted(model)
    assert (solves.n, model.n_features_in_) == (0, 3)
    model.predict(X)
    assert model.coef_.shape == (48,)
    assert model.penalty_curve_ is None
    assert solves.n == 1
    model.partial_fit(X, y)
    assert solves.n == 1
    model.predict(X[:5], return_std=True)
    model.score(X, y)
    assert solves.n == 2


def test_an_error_of_the_solution_is_raised_and_not_hidden():
    X, y = rows(1000)
    model = ridge(alpha=0.0, n_components=400).partial_fit(X[:50], y[:50])
    with pytest.raises(SingularSystemError):
        _ = model.coef_
    assert model.set_params(alpha=1.0).predict(X).shape == (1000,)


# Parameters that change.


def test_what_only_the_solution_reads_counts_from_the_next_one_on():
    X, y = rows(1000)
    model = ridge(alpha="cv").partial_fit(X[:500], y[:500])
    like = model.moments_
    changes = {"alpha": "gcv", "fit_intercept": False, "sparse": 7}
    model.set_params(**changes).partial_fit(X[500:], y[500:])
    assert_predicts_like(model, ridge(**changes).fit(X, y, like=like), X)
    assert model.coef_.shape == (7,)
    model.set_params(kernel__length_scale=1.5, fold_by="blocks").update(X[:9] + 1.0, y[:9])
    assert model.report_["rows"] == 1009


@pytest.mark.parametrize(
    "change",
    [
        *({"kernel": Gaussian(2.0)}, {"kernel__length_scale": 2.0}, {"n_components": 24}),
        *({"n_folds": 3}, {"feature_map": "iid"}, {"paired": False}, {"metric": np.eye(3)}),
        *({"standardize": False}, {"precision": "single"}, {"random_state": 1}),
    ],
    ids=str,
)
def test_what_decided_the_moments_is_not_changed_for_more_rows(change):
    X, y = rows(60)
    models = [
        ridge().partial_fit(X[:30], y[:30]),
        ridge().solve(ridge().moments(X[:30], y[:30]), keep_moments=True),
    ]
    for model in models:
        before = model.moments_
        model.set_params(**change)
        model.coef_  # noqa: B018  a solution notes nothing
        for method in (model.partial_fit, model.update, model.forget):
            with pytest.raises(ParameterError, match=r"when the first rows came, .* set it back"):
                method(X[30:], y[30:])
        assert model.moments_ is before
    assert model.fit(X, y).report_["rows"] == 60


def test_a_penalty_that_moments_cannot_choose_is_refused_before_rows_are_read():
    X, y = rows(60)
    with pytest.raises(ParameterError, match="leave-one-out reads the rows again"):
        ridge(alpha="loo").partial_fit(X, y)
    model = ridge(alpha=0.1).partial_fit(X[:30], y[:30]).set_params(alpha="cv")
    with pytest.raises(ParameterError, match="the rows that are in were not dealt to any"):
        model.partial_fit(X[30:], y[30:])
    model.set_params(alpha="gcv").partial_fit(X[30:], y[30:])
    assert model.report_["rows"] == 60


def test_a_model_of_the_leading_features_of_moments_keeps_to_them():
    X, y = rows(1000)
    moments = ridge(n_components=64).moments(X[:500], y[:500])
    model = ridge(n_components=32).solve(moments, keep_moments=True).update(X[500:], y[500:])
    whole = ridge(n_components=64).moments(X, y, like=moments)
    assert_predicts_like(model, ridge(n_components=32).solve(whole), X)
    assert model.coef_.shape == (32,)


def test_copies_and_pickles_grow_on_by_themselves_and_a_fit_begins_anew():
    X, y = rows(1000)
    model = ridge(alpha="cv", feature_map="nystroem").partial_fit(X[:400], y[:400])
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]  # noqa: S301  our own
    model.coef_  # noqa: B018  solved before it is copied, or after
    others.append(pickle.loads(pickle.dumps(model)))  # noqa: S301
    for other in others:
        other.partial_fit(X[400:], y[400:])
    assert model.report_["rows"] == 400
    model.partial_fit(X[400:], y[400:])
    assert all(np.array_equal(other.coef_, model.coef_) for other in others)
    assert not [name for name in vars(clone(model)) if name.endswith("_")]
    assert model.fit(X, y).moments_ is None
    assert np.array_equal(model.coef_, clone(model).fit(X, y).coef_)


def test_a_model_without_its_moments_says_what_to_do(tmp_path):
    X, y = rows(1000)
    grew = ridge().partial_fit(X[:500], y[:500])
    grew.save(tmp_path / "model.h5")
    grew.moments_.save(tmp_path / "moments.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert loaded.coef_.tolist() == grew.coef_.tolist()
    for model in (loaded, copy.deepcopy(ridge().fit(X, y))):
        for method in (model.partial_fit, model.update, model.forget):
            with pytest.raises(ParameterError, match="begin with partial_fit instead of fit"):
                method(X[500:], y[500:])
    solved = ridge().solve(load_moments(tmp_path / "moments.h5"), keep_moments=True)
    solved.update(X[500:], y[500:])
    assert_predicts_like(solved, ridge().fit(X, y, like=grew.moments_), X)


def test_a_fit_goes_on_where_its_moments_take_at_most_64_megabytes():
    X, y = rows(1000)
    fitted, kept = (ridge().fit(X[:600], y[:600], keep_moments=keep) for keep in (False, True))
    assert fitted.moments_ is None
    assert len(pickle.dumps(fitted)) < kept.moments_.nbytes / 2
    fitted.partial_fit(X[600:], y[600:])
    assert fitted.report_["rows"] == 1000
    assert fitted.coef_.tolist() == kept.partial_fit(X[600:], y[600:]).coef_.tolist()
    large = ridge(n_components=512, alpha="cv", n_folds=70).fit(X[:600], y[:600])  # of 74 MB
    with pytest.raises(ParameterError, match=r"of a fit they are kept up to 64 MB, .* keep_mom"):
        large.partial_fit(X[600:], y[600:])


@pytest.mark.parametrize(("alpha", "keep"), [("cv", True), ("gcv", False)])
def test_a_fit_that_kept_its_moments_grows(alpha, keep):
    X, y = rows(1000)
    first = ridge(alpha=alpha).fit(X[:600], y[:600], keep_moments=keep)
    bits = first.coef_.tolist()
    assert bits == ridge(alpha=alpha).fit(X[:600], y[:600]).coef_.tolist()
    like = ridge(alpha=alpha).moments(X[:600], y[:600])
    for method in (first.update, first.forget):
        with pytest.raises(
            ParameterError, match=r"rows are known again, .* add rows .* by partial"
        ):
            method(X[600:], y[600:])
    assert first.coef_.tolist() == bits
    first.partial_fit(X[600:800], y[600:800])
    first.update(X[800:], y[800:], repeated_rows=True)
    assert first.report_["rows"] == 1000
    if alpha == "cv":  # of the same folds
        expected = ridge(alpha=alpha).partial_fit(X[:600], y[:600])
        expected.partial_fit(X[600:800], y[600:800]).partial_fit(X[800:], y[800:])
    else:
        expected = ridge(alpha=alpha).fit(X, y, like=like)
    assert_predicts_like(first, expected, X)


def test_a_search_that_kept_its_moments_grows():
    X, y = rows(300)
    model = RandomFeatureRidge(n_components=32, feature_map="auto", precision="double", alpha=0.1)
    model.tune(X[:200], y[:200], maps="iid", keep_moments=True)
    found = model.kernel_
    expected = ridge(n_components=32).fit(X, y, like=model)
    model.partial_fit(X[200:], y[200:])
    assert model.kernel_ == found
    assert_predicts_like(model, expected, X)


def test_rows_that_do_not_fit_leave_the_model_as_it_was():
    X, y = rows(1000, 2)
    for method in (ridge().update, ridge().forget):
        with pytest.raises(NotFittedError):
            method(X, y)
    assert not hasattr(ridge(), "coef_")
    model = ridge().partial_fit(X[:500], y[:500])
    before = model.model_
    for wrong, words in (
        ((X[:, :2], y), "X has 2 features"),
        ((X, y[:, 0]), "of 2 targets, but the data has 1"),
        ((np.full((9, 3), np.nan), y[:9]), "in 9 of 9 rows, in column 0"),
    ):
        with pytest.raises(DataError, match=words):
            model.partial_fit(*wrong)
    assert model.model_ is before


@pytest.mark.parametrize(("fold_by", "n"), [("auto", 1), ("blocks", 3)])
def test_the_first_rows_may_be_fewer_than_the_folds(n, fold_by):
    X, y = rows(200, seed=2)
    options = {"alpha": "cv", "standardize": False, "fold_by": fold_by}
    model = ridge(**options).partial_fit(X[:n], y[:n])
    if n == 1:
        with pytest.raises(ParameterError, match="the moments have 1; add rows"):
            model.predict(X)
    else:
        assert len(model.penalty_curve_.fold_scores) == 3
    model.partial_fit(X[n:], y[n:])
    assert len(model.penalty_curve_.fold_scores) == 5
    fixed = ridge(standardize=False, alpha=model.alpha_).fit(X, y)
    assert_predicts_like(model, fixed, X)


def test_first_rows_that_decide_nothing_are_refused():
    X, y = rows(200)
    with pytest.raises(ParameterError, match="5 folds need as many shards, but there are 1"):
        ridge(alpha="cv", fold_by="shards").partial_fit(X, y)
    with pytest.raises(DataError, match="all 3 columns of X are constant"):
        ridge().partial_fit(X[:1], y[:1])


@pytest.mark.parametrize("value", [0.0, -4.0])
def test_a_column_that_is_constant_at_first_counts_where_it_varies(value, tmp_path):
    X, _ = rows(500)
    X[:250, 1] = value
    X[250:, 1] = value + max(abs(value), 1.0) * (np.arange(250) % 2)
    y = np.sin(X[:, 0]) + (X[:, 1] != value)
    with pytest.warns(StreamkernWarning, match=r"1 column of X constant so far, .*: 1; where"):
        model = ridge(n_components=96).partial_fit(X[:250], y[:250])
    assert abs(model.feature_map_.standardizer(X)[:250, 1]).max() < 1e-13
    assert np.unique(model.feature_map_.standardizer(X)[250:, 1].round(12)).tolist() == [0.0, 1.0]
    assert model.score(X[:250], y[:250]) > 0.99
    model.moments_.save(tmp_path / "moments.h5")
    whole = ridge().fit(X, y, like=tmp_path / "moments.h5")
    more = ridge().moments(X[250:], y[250:], like=tmp_path / "moments.h5")
    merged = ridge(n_components=96).solve(model.moments_.merge(more))
    assert_predicts_like(merged, whole, X)
    model.partial_fit(X[250:], y[250:])
    assert_predicts_like(model, whole, X)
    assert model.score(X, y) > 0.99


def test_rows_that_come_in_several_threads_are_all_in():
    X, y = rows(400)
    model = ridge(standardize=False).partial_fit(X[:40], y[:40])
    parts = np.split(np.arange(40, 400), 9)
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(lambda part: model.partial_fit(X[part], y[part]), parts))
    assert model.report_["rows"] == 400
    assert_predicts_like(model, ridge(standardize=False).fit(X, y), X)


def test_rows_that_come_while_another_thread_solves_are_not_lost(solves):
    X, y = rows(400)
    model = ridge().partial_fit(X[:200], y[:200])
    held, go = threading.Event(), threading.Event()

    def wait():
        held.set()
        assert go.wait(60)

    solves.first = wait
    asking = threading.Thread(target=lambda: model.coef_)
    asking.start()
    assert held.wait(60)
    model.partial_fit(X[200:], y[200:])
    go.set()
    asking.join()
    assert model.report_["rows"] == 400
    assert_predicts_like(model, ridge().fit(X, y, like=ridge().fit(X[:200], y[:200])), X)


def test_many_threads_that_ask_solve_once(solves):
    X, y = rows(200)
    model, solves.first = ridge().partial_fit(X, y), lambda: time.sleep(0.05)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: model.predict(X), range(6)))
    assert solves.n == 1


@pytest.mark.filterwarnings("ignore:.*a few values, up to")
@pytest.mark.parametrize(("wild", "precision"), [(1e6, "single"), (1e9, "double"), (1e6, "double")])
def test_rows_that_took_the_digits_of_the_others_are_not_forgotten(wild, precision):
    X, y = rows(1000)
    y[7] = wild
    model = ridge(precision=precision, standardize=False).partial_fit(X, y)
    if (wild, precision) == (1e6, "double"):
        model.forget(X[7:8], y[7:8])
        kept = np.delete(np.arange(len(X)), 7)
        anew = ridge(precision=precision, standardize=False).fit(X[kept], y[kept])
        assert_predicts_like(model, anew, X, 1e-5)
        return
    with pytest.raises(DataError, match=f"in {precision} precision has taken; fit the rows"):
        model.forget(X[7:8], y[7:8])
    assert model.report_["rows"] == len(X)


@pytest.mark.filterwarnings("ignore:residuals are smaller than the rounding")
def test_one_row_may_be_left_in_double_and_is_its_own_mean():
    X, y = rows(40)
    gone = np.r_[:1, 2:40]
    model = ridge(precision="double", alpha=0.1).partial_fit(X, y).forget(X[gone], y[gone])
    assert model.report_["rows"] == 1
    assert np.allclose(model.predict(X), y[1], rtol=0, atol=1e-5)
    single = ridge(precision="single", alpha=0.1).partial_fit(X, y)
    with pytest.raises(DataError, match="do not tell what it is"):
        single.forget(X[gone], y[gone])


@pytest.mark.filterwarnings("ignore:.*a few values, up to")
def test_wild_inputs_are_not_forgotten_where_they_are_features():
    X, y = rows(1000)
    X[7, 1] = 1e7
    model = ridge(streamkern.Linear(), feature_map="identity", precision="single")
    model.partial_fit(X, y)
    with pytest.raises(DataError, match="in single precision has taken"):
        model.forget(X[7:8], y[7:8])
