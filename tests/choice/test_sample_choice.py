"""The kernel 'auto': what small fits to a sample choose, where they choose, and who is told."""

import dask
import numpy as np
import pytest
from harvests import same_bits

import streamkern
from streamkern import RandomFeatureClassifier, RandomFeatureRidge
from streamkern.choice import sample_choice
from streamkern.choice.held_out_fit import HeldOutResult
from streamkern.kernels import Gaussian, Laplacian

N, P = 900, 4
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (N, P))
SMOOTH = np.sin(2.0 * X[:, 0] + X[:, 1]) + X[:, 2] ** 2
ROUGH = np.sign(X).sum(axis=1) + 0.1 * RNG.standard_normal(N)


def ridge(**options):
    return RandomFeatureRidge(**{"n_components": 256, "precision": "double"} | options)


@pytest.mark.parametrize(("y", "kernel"), [(SMOOTH, "gaussian"), (ROUGH, "laplacian")])
def test_smooth_functions_have_the_gaussian_kernel_and_rough_ones_the_laplacian(y, kernel):
    model = ridge().fit(X, y)
    report, errors = model.report_, model.report_["kernel_errors"]
    assert report["kernel"] == model.kernel_.name == kernel == min(errors, key=errors.get)
    assert errors.keys() == {"gaussian", "laplacian"}
    assert report["scale"] in report["scale_errors"]
    chosen = {"kernel": model.kernel_, "scale": report["scale"], "metric": model.metric_}
    same = ridge(**chosen).fit(X, y)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_half_and_twice_the_median_length_scale_are_tried_too():
    def factor(rows, y):
        found = ridge().fit(rows, y)
        median = ridge(kernel=type(found.kernel_)(), scale=found.report_["scale"]).fit(rows, y)
        return found.kernel_.length_scale / median.kernel_.length_scale

    assert factor(X[:, :2], np.sin(9.0 * X[:, 0] + 5.0 * X[:, 1])) == pytest.approx(0.5)
    assert factor(X, X.sum(axis=1) + RNG.standard_normal(N)) == pytest.approx(2.0)


def test_the_best_of_those_that_are_surely_better_than_the_first_is_taken(monkeypatch):
    def fits(seen, options, scales, clock):
        squares = np.ones((3, 200))
        squares[1] = np.where(np.arange(200) < 2, 60.0, 0.2)  # less in the mean, but for two rows
        squares[2] = 0.9
        for square, factor in zip(squares, (1.0, 2.0, 3.0), strict=True):
            kernel, weights = Laplacian(factor), np.ones(200)
            tried = HeldOutResult(kernel, square.mean(), 1.0, np.empty((0, 1)), square, weights)
            yield "standard", tried

    monkeypatch.setattr(sample_choice, "_small_fits", fits)
    assert ridge(scale="standard").fit(X, SMOOTH).kernel_.length_scale == 3.0


@pytest.mark.parametrize(
    ("rows", "options"),
    [(X[:29], {}), (X[:29], {"standardize": False}), (X, {"metric": "learn:1"})],
)
def test_nothing_is_chosen_of_few_rows_and_in_a_metric(rows, options):
    model = ridge(n_components=64, **options).fit(rows, SMOOTH[: len(rows)])
    scale = "standard" if model.standardize else "none"
    assert (model.report_["kernel"], model.report_["scale"]) == ("gaussian", scale)
    assert "kernel_errors" not in model.report_


@pytest.mark.parametrize(
    ("feature_map", "kernels"), [("nystroem", {"gaussian", "laplacian"}), ("sorf", {"gaussian"})]
)
def test_the_map_decides_what_is_tried(feature_map, kernels):
    model = ridge(feature_map=feature_map, n_components=64).fit(X, ROUGH)
    assert model.report_["kernel_errors"].keys() == kernels
    assert model.kernel_.name in kernels


def test_a_scale_that_is_named_stays_and_boosting_has_the_gaussian_kernel():
    for scale in ("standard", "robust"):
        report = ridge(scale=scale).fit(X, ROUGH).report_
        assert report["scale"] == scale
        assert "scale_errors" not in report
    boosted = streamkern.RandomFeatureAdaBoost(RandomFeatureRidge(n_components=32), n_estimators=2)
    assert boosted.fit(X, ROUGH > 0).report_["kernel"] == "gaussian"


def test_a_search_within_seconds_is_never_of_a_kernel_that_is_not_named():
    report = ridge(n_components=64).tune(X, ROUGH, kernels=["matern52"], budget="3s").report_
    assert {each["kernel"] for each in report["tuning"]} == {"matern52"}
    assert not report["kernel_errors"]


@pytest.mark.parametrize("precision", ["int8", "auto"])
def test_integers_have_one_choice(precision):
    model = ridge(precision=precision, n_components=64).fit(X, SMOOTH)
    again = ridge(precision=model.report_["precision"], n_components=64, metric=model.metric_)
    again = again.set_params(kernel=model.kernel_, scale=model.report_["scale"]).fit(X, SMOOTH)
    assert again.report_["kernel_parameters"] == model.report_["kernel_parameters"]
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-6)
    assert model.report_["kernel_errors"].keys() == {"gaussian", "laplacian"}


def test_of_sparse_rows_the_kernel_is_chosen_and_not_the_scale():
    sparse = pytest.importorskip("scipy.sparse")
    model = ridge().fit(sparse.csr_array(X * (np.abs(X) > 0.3)), ROUGH)
    assert model.report_["scale"] == "standard"
    assert model.report_["kernel_errors"].keys() == {"gaussian", "laplacian"}
    assert "scale_errors" not in model.report_


def test_files_say_auto_and_rows_like_the_model_have_what_was_chosen(tmp_path):
    model = ridge().fit(X, SMOOTH)
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert (loaded.kernel, loaded.kernel_) == ("auto", model.kernel_)
    for like in (model, tmp_path / "model.h5"):
        again = ridge().fit(X, ROUGH, like=like)
        assert again.kernel_ == model.kernel_
        assert again.feature_map_.equals(model.feature_map_)
    grown = ridge().partial_fit(X[:600], SMOOTH[:600]).partial_fit(X[600:], SMOOTH[600:])
    first = ridge().fit(X[:600], SMOOTH[:600])
    assert grown.kernel_ == first.kernel_


def test_the_choice_is_the_same_for_any_scheduler_and_goes_on_from_a_checkpoint(tmp_path):
    model = ridge().fit(X, SMOOTH, checkpoint=tmp_path / "kept")
    again = ridge().fit(X, SMOOTH, checkpoint=tmp_path / "kept")
    assert again.report_["resumed_shards"] > 0
    with dask.config.set(scheduler="synchronous"):
        alone = ridge().fit(X, SMOOTH)
    assert same_bits(model, again)
    assert same_bits(model, alone)
    with pytest.raises(streamkern.errors.CheckpointError):
        ridge(kernel="gaussian").fit(X, SMOOTH, checkpoint=tmp_path / "kept")


def test_classes_and_columns_of_targets_choose_too():
    model = RandomFeatureClassifier(n_components=256).fit(X, ROUGH > 0)
    assert model.kernel_.name == "laplacian"
    assert ridge().fit(X, np.column_stack([SMOOTH, 2.0 * SMOOTH])).kernel_.name == "gaussian"


def test_a_length_scale_that_is_set_makes_auto_gaussian():
    assert ridge().set_params(kernel__length_scale=2.0).kernel == Gaussian(2.0)
    assert isinstance(ridge().fit(X, ROUGH).kernel_, Laplacian)


def relevant(n=900, n_noise=7):
    """Rows whose first input alone matters, and what is noise."""
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (n, 1 + n_noise))
    return rows, np.sin(9.0 * rows[:, 0]) + 0.01 * rng.standard_normal(n)


def test_inputs_have_weights_where_few_of_them_matter():
    rows, y = relevant()
    model = ridge().fit(rows[:700], y[:700])
    report, errors = model.report_, model.report_["metric_errors"]
    assert errors["weights"] < 0.5 * errors["plain"]
    assert report["metric"]["kind"] == "weights of inputs"
    assert np.argmax(report["metric"]["importance"]) == 0
    weights = np.diagonal(model.metric_)
    np.testing.assert_array_equal(model.metric_, np.diag(weights))
    plain = ridge(kernel=type(model.kernel_)()).fit(rows[:700], y[:700])
    held = [each.score(rows[700:], y[700:]) for each in (model, plain)]
    assert 1.0 - held[0] < 0.25 * (1.0 - held[1])


def test_weights_are_not_kept_where_they_do_not_help():
    rng = np.random.default_rng(0)
    report = ridge().fit(X, rng.standard_normal(N)).report_
    assert report["metric"] is None
    assert report["metric_errors"].keys() == {"plain", "weights"}


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (150, {}),  # of which too few are fitted
        (700, {"kernel": "gaussian"}),
        (700, {"feature_map": "grid", "n_components": 1024}),
    ],
)
def test_a_kernel_that_is_named_and_few_rows_have_no_weights(rows, options):
    X, y = relevant(rows, 1)
    assert "metric_errors" not in ridge(**options).fit(X, y).report_


def test_one_input_and_very_many_have_no_weights():
    X, y = relevant()
    for rows in (X[:, :1], np.tile(X, 10) + 1e-3 * np.arange(80) * X[:, :1]):
        assert "metric_errors" not in ridge().fit(rows, y).report_


def test_the_levels_of_a_category_have_one_weight():
    pd = pytest.importorskip("pandas")
    X, y = relevant()
    level = np.random.default_rng(1).integers(0, 6, len(X))
    frame = pd.DataFrame(X[:, :2]).assign(kind=np.array(list("abcdef"))[level]).rename(columns=str)
    model = ridge(scale="standard").fit(frame, y + 0.5 * np.sin(level))
    weights = np.diagonal(model.metric_)[-6:] * 1.0
    assert "metric_errors" in model.report_
    assert len(np.unique(weights)) == 1
    model = ridge().fit(frame, y + 0.5 * np.sin(level))
    assert np.isfinite(model.predict(frame)).all()
