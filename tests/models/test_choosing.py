"""Choosing the penalty, as a user of the estimator meets it."""

import warnings

import naive
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from streamkern import Gaussian, RandomFeatureRegressor, RandomFeatureRidge, load_moments
from streamkern.engine.scheduler import compute
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.solvers import penalty_search
from streamkern.sources import ArraySource, Block

GRID = [1.0, 0.001, 100.0, 0.03]


def rows(n=300, q=None, seed=0):
    """Targets of which the second is noisier and less smooth than the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    smooth = np.stack([np.sin(X[:, 0]), 20 + 4 * np.sin(3 * X[:, 0]) * X[:, 1]], axis=1)
    y = smooth + [0.02, 4.0] * rng.standard_normal((n, 2))
    return X, y[:, 0] if q is None else y[:, :q]


def ridge(**options):
    return RandomFeatureRidge(
        Gaussian(1.0), **{"n_components": 32, "precision": "double"} | options
    )


def assert_curve_is_that_of_folds(model, X, y, folds, s=None, *, intercept=True):
    """Compare the errors of a grid with those of models fitted without each fold."""
    Phi, s = model.transform(X), np.ones(len(X)) if s is None else s
    y, curve = y.reshape(len(y), -1), model.report_["alpha_curve"]
    for alpha, found in zip(curve["alphas"], curve["values"], strict=True):
        parts = [
            naive.error_without(Phi, y, s, alpha, folds == k, intercept=intercept)
            for k in range(folds.max() + 1)
        ]
        assert np.reshape(found, -1) == pytest.approx(np.sqrt(sum(parts) / s.sum()), rel=1e-8)


FORMULAS = {"rows": lambda i, _, K: naive.fold_of_row(i, K, 0), "blocks": naive.fold_of_block}


@pytest.mark.parametrize(
    ("fold_by", "K", "intercept"), [("rows", 2, True), ("rows", 5, False), ("blocks", 5, True)]
)
def test_the_error_left_out_is_that_of_fitting_again(fold_by, K, intercept):
    X, y = rows(q=2)
    s = np.random.default_rng(0).random(len(X)) + 0.1
    model = ridge(alpha=GRID, n_folds=K, fold_by=fold_by, fit_intercept=intercept).fit(X, y, s)
    folds = np.array([FORMULAS[fold_by](i, len(X), K) for i in range(len(X))])
    assert_curve_is_that_of_folds(model, X, y, folds, s, intercept=intercept)
    curve = model.report_["alpha_curve"]
    assert (curve["criterion"], curve["alphas"]) == ("cv", sorted(GRID))
    assert model.report_["cv_rmse"] == curve["values"][sorted(GRID).index(model.alpha_)]
    assert (model.report_["n_folds"], model.report_["fold_by"]) == (K, fold_by)


def test_regions_are_the_cells_of_their_centres_and_left_out_as_such():
    X, y = rows(q=2)
    weights = np.random.default_rng(0).random(len(X)) + 0.1
    model = ridge(alpha=GRID, fold_by="space").fit(X, y, weights, keep_moments=True)
    rule = compute(model.moments_.folds).rule
    z = rule.standardizer(X)
    nearest = np.square(z[:, None] - rule.centres[None]).sum(axis=2).argmin(axis=1)
    folds = rule.folds[nearest]
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    assert len(rule.centres) == 10
    assert_curve_is_that_of_folds(model, X, y, folds, weights, intercept=True)
    # Blocks of any size are dealt alike.
    few = [rule.of(Block(X[i : i + 7], y[i : i + 7], i)) for i in range(0, len(X), 7)]
    assert np.concatenate(few).tolist() == folds.tolist()


REFUSED_REGIONS = {
    "of moments": lambda X, y: ridge(fold_by="space").moments(X, y),
    "of sparse rows": lambda X, y: ridge(fold_by="space").fit(csr_array(X), y),
    "of equal rows": lambda X, y: ridge(fold_by="space").fit(np.repeat(X[:3], 20, 0), y[:60]),
}


@pytest.mark.parametrize("case", REFUSED_REGIONS)
def test_rows_without_regions_are_refused_with_one_sentence(case):
    with pytest.raises(
        (ParameterError, DataError), match=r"(regions|folds by space) .*fold_by 'rows'"
    ):
        REFUSED_REGIONS[case](*rows())


# The order of rows.


def notes(model, X, y) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught if issubclass(w.category, StreamkernWarning)]


def along_tracks(n_tracks=16, n=200):
    """Rows along dense tracks in the plane, of a rough field, and places in the gaps between."""
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((400, 2)) / np.abs(rng.standard_normal((400, 1)))
    phases = rng.uniform(0.0, 2.0 * np.pi, 400)

    def field(X):
        return np.cos(X @ frequencies.T / 4.0 + phases).sum(axis=1) / np.sqrt(200.0)

    along, across = np.meshgrid(np.linspace(0.0, 10.0, n), np.linspace(0.0, 10.0, n_tracks))
    X = np.column_stack([along.ravel(), across.ravel()])
    gaps = X + np.array([0.0, 5.0 / (n_tracks - 1)])
    return (X, field(X) + 0.2 * rng.standard_normal(len(X))), (gaps, field(gaps))


@pytest.mark.parametrize(("how", "precision"), [("in order", "single"), ("shuffled", "double")])
def test_where_rows_crowd_gaps_are_no_worse_than_the_mean_and_neighbours_no_worse(how, precision):
    (X, y), (gaps, truth) = along_tracks()
    if how == "shuffled":
        order = np.random.default_rng(1).permutation(len(y))
        X, y = X[order], y[order]
    options = {"n_components": 256, "precision": precision}
    fitted = RandomFeatureRidge(**options)
    (said,) = notes(fitted, X, y)
    report = fitted.report_
    assert said in report["note"]
    assert report["fold_by"] == ("blocks" if how == "in order" else "space")
    assert report["crowding"]["far"] > 1.5 * report["crowding"]["near"]
    # Whoever says that all rows to predict lie among these is taken at his word.
    rows = RandomFeatureRidge(**options, fold_by="rows")
    assert notes(rows, X, y) == []
    in_gaps, of_rows = (
        np.sqrt(np.square(each.predict(gaps) - truth).mean()) for each in (fitted, rows)
    )
    of_mean = np.sqrt(np.square(y.mean() - truth).mean())
    assert in_gaps < 1.05 * of_mean < of_rows
    assert report["cv_rmse"] > 0.8 * np.hypot(in_gaps, 0.2)
    among = np.sqrt(np.square(fitted.predict(X) - y).mean())
    assert among < np.sqrt(np.square(rows.predict(X) - y).mean()) + 0.01


def test_where_rows_crowd_the_kernel_is_one_that_a_named_map_has():
    (X, y), _ = along_tracks(16, 60)
    fitted = RandomFeatureRidge(n_components=32, n_folds=2, feature_map="sorf")
    assert notes(fitted, X, y)
    assert fitted.report_["feature_map"] == "sorf"
    assert fitted.report_["kernel"] == "matern32"


def test_groups_one_after_another_are_told_apart_and_new_ones_are_no_worse_than_the_mean():
    rng = np.random.default_rng(0)
    centres, offsets = rng.standard_normal((120, 3)), rng.standard_normal(120)

    def rows_of(groups, m):
        X = np.repeat(centres[groups], m, axis=0)
        X += 0.05 * rng.standard_normal(X.shape)
        return X, np.repeat(offsets[groups], m) + np.sin(6.0 * X[:, 0])

    X, truth = rows_of(np.arange(20), 150)
    fitted = RandomFeatureRidge(n_components=256)
    notes(fitted, X, truth + 0.1 * rng.standard_normal(len(X)))
    assert fitted.report_["fold_by"] == "blocks"
    assert fitted.report_["feature_map"] == "nystroem"
    (among, known), (new, unknown) = rows_of(np.arange(20), 20), rows_of(np.arange(20, 120), 5)
    assert np.sqrt(np.square(fitted.predict(among) - known).mean()) < 0.3
    errors = np.sqrt(
        [np.square(each - unknown).mean() for each in (fitted.predict(new), truth.mean())]
    )
    assert errors[0] < 1.05 * errors[1]
    # All rows of a group were left out together, and say of new ones how large errors are.
    low, high = fitted.predict(new, interval=0.9)[1].T
    widths = np.unique(np.round(high - low, 9))
    assert len(widths) == 1
    assert np.mean((low <= unknown) & (unknown <= high)) > 0.8


def test_folds_that_are_named_judge_landmarks_as_those_that_were_noticed():
    (X, y), _ = along_tracks(16, 120)
    noticed = RandomFeatureRidge(n_components=64)
    assert notes(noticed, X, y)
    report = noticed.report_
    named = RandomFeatureRidge(
        kernel=noticed.kernel_,
        scale=report["scale"],
        feature_map="nystroem",
        n_components=64,
        fold_by=report["fold_by"],
        alpha="guarded",
    ).fit(X, y)
    assert named.report_["cv_rmse"] == pytest.approx(report["cv_rmse"], rel=1e-9)
    assert named.alpha_ == noticed.alpha_


def test_folds_of_few_rows_are_judged_without_the_landmarks_that_lie_in_them(tmp_path):
    X, y = rows(160)
    how = {"feature_map": "nystroem", "n_folds": 4, "fold_by": "blocks"}
    for D, are_few in ((64, True), (32, False)):
        own, guarded = (ridge(n_components=D, alpha=a, **how) for a in ("cv", "guarded"))
        curves = [each.fit(X, y).report_["alpha_curve"] for each in (own, guarded)]
        assert curves[0]["alphas"] == curves[1]["alphas"]
        # A guarded choice has folds without their landmarks whatever the number of rows.
        assert (curves[0]["values"] == curves[1]["values"]) == are_few
        own.moments(X, y).save(tmp_path / "m.h5", force=True)
        again = own.solve(load_moments(tmp_path / "m.h5")).report_["alpha_curve"]
        assert again["values"] == pytest.approx(curves[0]["values"], rel=1e-9)


def test_few_rows_that_crowd_choose_by_errors_without_themselves(monkeypatch):
    (X, y), _ = along_tracks(12, 60)
    own = RandomFeatureRidge(n_components=256, precision="double")
    assert notes(own, X, y)
    curve, Phi = own.report_["alpha_curve"], own.transform(X)
    C, t = Phi - Phi.mean(axis=0), y - y.mean()
    for i in (-3, -1):
        inverse = np.linalg.inv(C.T @ C + curve["alphas"][i] * np.eye(C.shape[1]))
        leverages = 1.0 / len(X) + np.einsum("ij,ij->i", C @ inverse, C)
        errors = (t - C @ (inverse @ (C.T @ t))) / (1.0 - leverages)
        assert curve["near"][i] == pytest.approx(np.sqrt(np.square(errors).mean()), rel=1e-6)
    # Rows that are weighed anew have other targets than those of the sample.
    monkeypatch.setattr(penalty_search, "leave_one_out_scores", None)
    loss = RandomFeatureRegressor(loss="poisson", n_components=256, precision="double")
    counts = np.random.default_rng(0).poisson(np.exp(y))
    assert any("rows crowd" in each for each in notes(loss, X, counts))


def test_a_category_whose_new_values_are_harder_is_named_and_folds_stay():
    rng = np.random.default_rng(0)
    sites, days = rng.integers(0, 40, 2400), rng.integers(0, 60, 2400)
    x, of_site, of_day = (rng.standard_normal(m) for m in (2400, 40, 60))
    dates = np.datetime64("2024-01-01") + days
    table = pd.DataFrame({"x": x, "a site": [f"s{i}" for i in sites], "day": dates})
    model = RandomFeatureRidge(n_components=128, n_folds=2)
    smooth, noise = np.sin(2.0 * x), 0.2 * rng.standard_normal(2400)
    # As many folds as ever: it is no warning.
    assert notes(model, table, smooth + of_site[sites] + noise) == []
    report = model.report_
    assert "new values of 'a site' are harder to predict" in report["note"]
    assert "(--fold-by 'column:a site')" in report["note"]
    assert report["fold_by"] == "rows"
    near, far = (report["crowding"][name] for name in ("near", "far"))
    by_site = model.set_params(fold_by="column:a site").fit(table, smooth + of_site[sites] + noise)
    deviation = np.std(smooth + of_site[sites] + noise)
    assert far == pytest.approx(by_site.report_["cv_rmse"] / deviation, rel=0.2)
    assert far > 2.0 * near
    model = model.set_params(fold_by="auto").fit(table, smooth + of_day[days] + noise)
    assert "new days of 'day'" in model.report_["note"]
    assert "--fold-by time:day" in model.report_["note"]
    assert "crowding" not in model.fit(table, smooth + noise).report_


@pytest.mark.parametrize("how", ["sorted by the target", "spread", "blocks", "few"])
def test_rows_that_do_not_crowd_keep_folds_by_rows(how):
    (X, y), _ = along_tracks()
    rng = np.random.default_rng(1)
    order = np.argsort(y)
    if how == "spread":  # in the plane, in random order
        order, X = np.arange(len(y)), rng.uniform(0.0, 10.0, X.shape)
        y = np.sin(X).sum(axis=1) + 0.2 * rng.standard_normal(len(y))
    elif how == "sorted by the target":
        X = rng.uniform(0.0, 10.0, X.shape)
        X[:, 0] += y
    elif how == "blocks":
        order, y = np.arange(len(y)), rng.standard_normal(len(y))  # nothing to be predicted
    elif how == "few":
        order = np.arange(0, len(y), 50)
    model = RandomFeatureRidge("gaussian", n_components=128, n_folds=2)
    model.fit(X[order], y[order])
    assert "crowding" not in model.report_
    assert model.report_["fold_by"] == "rows"


@pytest.fixture
def long_rows(small_shards):
    """Eleven shards of rows in an order, and the same shuffled."""
    n = 1600
    X = np.sort(np.random.default_rng(0).standard_normal((n, 1)), axis=0)
    assert len(ArraySource(X, X[:, 0]).shards(200, 100)) == 11
    y = np.exp(X[:, 0]) * np.sin(40 * X[:, 0])
    order = np.random.default_rng(1).permutation(n)
    return (X, y), (X[order], y[order])


def test_folds_by_shards_have_the_errors_of_fitting_again(long_rows):
    _, (X, y) = long_rows
    model = ridge(n_components=4, n_folds=2, fold_by="shards", alpha=[0.1, 1e4]).fit(X, y)
    sizes = [shard.n_rows for shard in ArraySource(X, y).shards(200, 100)]
    folds = np.repeat(naive.folds_of_shards(sizes, 2, 0), sizes)
    assert_curve_is_that_of_folds(model, X, y, folds)


# What does not go.

REFUSED = {
    "a grid with a number twice": ({"alpha": [1.0, 2.0, 1.0]}, "alpha 1 is in the grid twice"),
    "half a fold": ({"n_folds": 2.5}, r"n_folds must be a whole number of at least 2, not 2\.5"),
    "more folds than rows": ({"n_folds": 301}, "301 folds need as many rows, but there are 300"),
    "an unknown kind of fold": (
        {"fold_by": "time"},
        "one of auto, shards, rows, blocks, space, column:NAME, time:NAME, not 'time'",
    ),
    "a standard error of no folds": (
        {"alpha": "evidence", "one_standard_error": True},
        "the one-standard-error rule needs folds, but alpha is 'evidence'",
    ),
}


@pytest.mark.parametrize(("options", "match"), list(REFUSED.values()), ids=list(REFUSED))
def test_impossible_choices_are_refused_with_one_sentence(options, match):
    X, y = rows()
    model = ridge(**options)
    with pytest.raises(ParameterError, match=match) as caught:
        model.fit(X, y)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence
    assert not hasattr(model, "coef_")


def test_rows_that_are_skipped_are_in_no_fold_and_all_rows_of_one_are_needed():
    X, y = rows()
    bad = np.random.default_rng(0).random(len(X)) < 0.2
    X[bad] = np.nan
    model = ridge(alpha=GRID, on_bad_rows="skip", n_folds=3).fit(X, y)
    # A row is in the fold of its place among all rows.
    folds = np.array([naive.fold_of_row(i, 3, 0) for i in np.flatnonzero(~bad).tolist()])
    assert_curve_is_that_of_folds(model, X[~bad], y[~bad], folds)
    X[200:] = np.nan
    with pytest.raises(DataError, match="fold 3 of 3 has no rows that could be used; take"):
        model.set_params(fold_by="blocks").fit(X, y)


@pytest.mark.parametrize("alpha", ["gcv", "evidence"])
def test_the_unit_of_weights_that_cannot_count_rows_does_not_choose_the_penalty(alpha):
    X, y = rows()
    weights = np.random.default_rng(4).uniform(0.5, 1.5, len(X))
    weights /= weights.mean()
    one, other = (
        ridge(alpha=alpha).fit(X, y, sample_weight=unit * weights) for unit in (1.0, 1 / len(X))
    )
    assert other.alpha_ * len(X) == pytest.approx(one.alpha_, rel=1e-6)


@pytest.mark.filterwarnings("ignore:the error still falls at the smallest alpha")
def test_the_end_of_the_grid_is_noted():
    X, _ = rows()
    noise = np.random.default_rng(5).standard_normal(len(X))
    assert "the largest that was tried" in ridge().fit(X, noise).report_["note"]
    X, y = rows(2000)
    exact = ridge(precision="single", n_components=64).fit(X, np.sin(X[:, 0]))
    # Which of the two depends on how a processor rounds.
    note = exact.report_["note"]
    assert "at the precision floor" in note or "the smallest alpha that single precision" in note
    assert ridge().fit(X, y).report_["note"] == ""


def test_where_double_precision_predicts_better_single_precision_says_so():
    X = np.random.default_rng(6).standard_normal((1500, 4))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    options = {"kernel": Gaussian(3.0), "n_components": 256}
    double = RandomFeatureRidge(**options, precision="double").fit(X, y)
    with pytest.warns(StreamkernWarning, match=r"\(--precision double\) may predict better"):
        single = RandomFeatureRidge(**options).fit(X, y)
    assert "may predict better" in single.report_["note"]
    assert double.report_["cv_rmse"] < 0.9 * single.report_["cv_rmse"]
