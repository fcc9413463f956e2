"""ONNX graphs and C files, run, against the predictions that they stand for."""

import ctypes
import json
import shutil
import subprocess
import sys
from functools import partial
from itertools import product

import harvests
import numpy as np
import onnx
import onnxruntime
import pytest
from commandline import refused, report_of

import streamkern
from streamkern import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RandomFeatureClassifier,
    RationalQuadratic,
    Sum,
)
from streamkern.errors import OutputError, ParameterError
from streamkern.extensions.export import onnx as onnx_export

P = 3
TYPES = {None: np.float32, "single": np.float32, "double": np.float64}


def rows(n=600, seed=0):
    """Inputs of different units, with a mean that single precision would not forgive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * [1.0, 10.0, 0.1] + [0.0, 500.0, -1.0]
    y = np.stack([np.sin(X[:, 0]) + 50, X[:, 1] * X[:, 2]], axis=1)
    return X, y + 0.1 * rng.standard_normal(y.shape)


ridge = partial(harvests.ridge, n_components=64, alpha=1e-3)


def answers(path, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"X": X})
    return answer


def answers_in_c(path, X, n_targets):
    """What a C file says of rows at once; compilers do not warn of it, and rows do not matter."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    library = path.with_name(f"{len(list(path.parent.iterdir()))}.so")  # each name is loaded once
    warnings = "-std=c99 -O1 -Wall -Wextra -Werror -pedantic -Wno-unused-function"
    subprocess.run(
        ["cc", *warnings.split(), "-shared", "-fPIC", path, "-lm", "-o", library], check=True
    )
    functions, rows = ctypes.CDLL(str(library)), np.array(X, dtype=float, order="C")
    answer, one = np.zeros((len(X), n_targets)), np.zeros(n_targets)
    at = [ctypes.c_void_p(each.ctypes.data) for each in (rows, answer, one)]
    functions.predict_rows(ctypes.c_long(len(X)), *at[:2])
    functions.predict(at[0], at[2])
    assert np.array_equal(one, answer[0], equal_nan=True)
    return answer


def apart(model, path, X, precision):
    """The largest difference to what the model says, over the spread of that."""
    in_c = path.suffix == ".c"
    (streamkern.to_c if in_c else streamkern.to_onnx)(model, path, precision=precision, force=True)
    inputs = X.astype(float if in_c else TYPES[precision])
    said = (model.predict if hasattr(model, "predict") else model.transform)(inputs)
    if in_c:
        answer = answers_in_c(path, inputs, said[0].size).reshape(said.shape)
    else:
        answer = answers(path, inputs)
    assert answer.dtype == inputs.dtype
    assert answer.shape == said.shape
    return (np.abs(answer - said).max(axis=0) / said.std(axis=0)).max()


MAPS = {
    **{name: {"feature_map": name} for name in ("orthogonal", "iid", "sorf", "qmc", "grid")},
    "phases": {"paired": False},
    "odd": {"n_components": 2055},
    "other kernel": {"kernel": Laplacian(4.0), "n_components": 2056},  # several panels
    "frequencies that were chosen": {"sparse": 10},
    "identity": {"feature_map": "identity", "kernel": Linear()},
    "inputs as they are": {"standardize": False, "kernel": Gaussian((2.0, 20.0, 1.0))},
    "weighted inputs": {"metric": np.diag([1.0, 4.0, 0.25])},
    "turned inputs": {"metric": np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1.0]])},
}


def test_chosen_waves_of_one_frequency_are_one_in_the_file(tmp_path):
    X, y = rows()
    whole = ridge(alpha="cv").fit(X, y[:, 0])
    most = ridge(alpha="cv", sparse=60).fit(X, y[:, 0])
    assert apart(most, tmp_path / "most.c", rows(50, seed=1)[0], "double") < 1e-9
    streamkern.to_c(whole, tmp_path / "whole.c")
    sizes = [(tmp_path / f"{name}.c").stat().st_size for name in ("most", "whole")]
    assert sizes[0] < 1.05 * sizes[1]


FILES = pytest.mark.parametrize("file", ["model.onnx", "model.c"])


@FILES
@pytest.mark.parametrize("options", list(MAPS.values()), ids=list(MAPS))
def test_a_file_predicts_what_the_model_predicts(options, file, tmp_path):
    X, y = rows()
    model, new = ridge(**options).fit(X, y), rows(50, seed=1)[0]
    assert apart(model, tmp_path / file, new, "double") < 1e-9
    assert apart(model, tmp_path / file, new, "single") < 2e-5


@FILES
@pytest.mark.parametrize("scale", ["robust", "quantile"])
@pytest.mark.parametrize("metric", [None, np.diag([1.0, 4.0, 0.25])])
def test_a_scale_that_bends_is_in_the_file(scale, metric, file, tmp_path):
    X, y = rows()
    X[0] *= 1e6
    model = ridge(scale=scale, metric=metric).fit(X, y)
    new = np.concatenate([rows(50, seed=1)[0], X[:1], np.full((1, P), -1e300)])
    assert apart(model, tmp_path / file, new, "double") < 1e-9


SUM = Sum(kernels=(Laplacian(2.0), Matern(2.0)), weights=(1.0, 0.25), columns=((0, 1), (1, 2)))
KERNELS = [
    *(Gaussian(2.0), Gaussian((1.0, 2.0, 3.0)), RationalQuadratic(2.0), InverseMultiquadric(2.0)),
    *(Matern(2.0, nu=0.5), Matern(2.0, nu=1.5), Matern(2.0, nu=2.5), Polynomial(3), Linear()),
    *(Laplacian((1.0, 2.0, 3.0)), SUM),
]


@FILES
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_at_landmarks_are_made_in_double(kernel, file, tmp_path):
    X, y = rows()
    model = ridge(kernel=kernel, feature_map="nystroem").fit(X, y)
    new = rows(50, seed=1)[0]
    assert apart(model, tmp_path / file, new, "double") < 1e-6
    assert apart(model, tmp_path / file, new, "single") < 1e-5


@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("options", [{}, {"feature_map": "nystroem"}, MAPS["identity"]])
def test_a_row_that_is_not_finite_is_nan_in_c_and_others_keep_their_range(options, tmp_path):
    X, y = rows()
    X[:, 2] = 7.0  # constant, so that no function reads it
    limits = np.quantile(y[:, 0], [0.4, 0.6]).tolist()
    model = ridge(on_bad_rows="skip", target_range=limits, **options)
    model.fit(X, np.clip(y[:, 0], *limits))
    new = rows(50, seed=1)[0]
    new[[0, 3], [0, 1]], new[4, 0], new[5, 2] = np.nan, -np.inf, np.nan
    streamkern.to_c(model, tmp_path / "model.c")
    answer, said = answers_in_c(tmp_path / "model.c", new, 1)[:, 0], model.predict(new)
    assert {*limits} < {*said.tolist()}
    assert np.flatnonzero(np.isnan(said)).tolist() == [0, 3, 4]
    assert np.allclose(answer, said, rtol=1e-9, equal_nan=True)


BESIDE = {
    "one target": {},
    "several targets": {"q": 2},
    "targets of their own": {"q": 2, "per_target": True},
    "a range, whose ends are predicted often": {"target_range": (-0.2, 0.2)},
    "an odd number": {"n_components": 65},
    "phases": {"paired": False},
    "chosen frequencies": {"sparse": 10},
    "identity": MAPS["identity"],
    "landmarks": {"q": 2, "feature_map": "nystroem"},
    "chosen combinations of a sum at landmarks": {
        "kernel": SUM,
        "feature_map": "nystroem",
        "sparse": 40,
    },
}


@pytest.mark.parametrize("options", list(BESIDE.values()), ids=list(BESIDE))
def test_deviations_and_intervals_are_beside_the_predictions(options, tmp_path):
    X, y = rows()
    given = dict(options)
    q, limits = given.pop("q", None), given.get("target_range")
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    y = y[:, 1] if q is None else y
    model = ridge(alpha="cv", **given).fit(X, y if limits is None else np.clip(y, *limits))
    new = rows(300, seed=1)[0]
    predicted, deviations, ends = model.predict(new, return_std=True, interval=0.8)
    said = predicted, deviations, ends[..., 0], ends[..., 1]
    how = {"return_std": True, "interval": 0.8}
    assert streamkern.to_onnx(model, tmp_path / "model.onnx", **how) == "y_pred"
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [each.name for each in session.get_outputs()]
    assert names == ["y_pred", "y_std", "y_lower", "y_upper"]
    streamkern.to_c(model, tmp_path / "model.c", **how)
    in_c = answers_in_c(tmp_path / "model.c", new, 4 * (q or 1))
    for found in (session.run(None, {"X": new}), np.split(in_c, 4, axis=1)):
        for one, other in zip(found, said, strict=True):
            assert np.abs(one.reshape(other.shape) - other).max() < 1e-9
    repeated = np.diff(model.model_.intervals.ranks, axis=0) == 0
    assert repeated.any() == (limits is not None)  # where ranks jump
    new[5, 0] = np.nan
    session_said = np.stack(session.run(None, {"X": new}))
    assert np.isnan(session_said).sum() == np.isnan(session_said[:, 5]).sum() > 0


def test_the_command_gives_deviations_and_intervals(tmp_path):
    X, y = rows()
    model = ridge(alpha="cv").fit(X, y[:, 0])
    model.save(tmp_path / "model.h5")
    out = "--out", tmp_path / "model.onnx", "--std", "--interval", "90%"
    assert report_of("export", tmp_path / "model.h5", *out)["output"] == "y_pred"
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found, said = session.run(None, {"X": X}), model.predict(X, return_std=True, interval=0.9)
    assert np.allclose(np.stack(found, 1), np.column_stack(said), rtol=1e-9)
    model.save(tmp_path / "model.h5", compact=True, force=True)
    refused("export", tmp_path / "model.h5", *out, "--force")
    for wanted, sentence in (
        (
            RandomFeatureClassifier("gaussian", n_components=16).fit(X, y[:, 0] > 50),
            "are of regressions",
        ),
        (ridge(Linear(), feature_map="nystroem").fit(X, y), "deviation at landmarks of the"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            streamkern.to_c(wanted, tmp_path / "model.c", return_std=True)


LOADED = """
import sys, onnxruntime, numpy
print("begun", file=sys.stderr)
for path in sys.argv[1:]:
    for level in onnxruntime.GraphOptimizationLevel.__members__.values():
        how = onnxruntime.SessionOptions()
        how.graph_optimization_level = level
        session = onnxruntime.InferenceSession(path, how)
        (X,) = session.get_inputs()
        kind = numpy.float32 if X.type == "tensor(float)" else float
        session.run(None, {X.name: numpy.ones((3, X.shape[1]), kind)})
"""


def test_no_graph_makes_the_runtime_warn(tmp_path):
    X, y = rows()
    labels = np.digitize(y[:, 1], np.quantile(y[:, 1], [0.3, 0.6]))
    models = [ridge(**options).fit(X, y) for options in MAPS.values()]
    models += [ridge(kernel=each, feature_map="nystroem").fit(X, y) for each in KERNELS]
    models += [ridge(scale=each).fit(X, y[:, 0]) for each in ("robust", "quantile")]
    models += [
        RandomFeatureClassifier("gaussian", n_components=64, calibration=each).fit(X, labels)
        for each in ("spline", "sigmoid", "isotonic", None)
    ]
    models += [streamkern.RandomFeaturePCA(n_random_features=16).fit(X)]
    paths = [tmp_path / f"{k}-{precision}.onnx" for k in range(len(models)) for precision in TYPES]
    for path, (model, precision) in zip(paths, product(models, TYPES), strict=True):
        streamkern.to_onnx(model, path, precision=precision)
    model, more = ridge(alpha="cv").fit(X, y), tmp_path / "more.onnx"
    streamkern.to_onnx(model, more, return_std=True, interval=0.9)
    said = subprocess.run(
        [sys.executable, "-c", LOADED, *paths, more], capture_output=True, text=True, check=True
    )
    assert said.stderr[said.stderr.index("begun") :] == "begun\n"


@pytest.mark.parametrize("calibration", ["spline", "sigmoid", "isotonic", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_gives_the_probabilities_of_its_classes(n_classes, calibration, tmp_path):
    X, y = rows()
    cuts = np.quantile(y[:, 1], [0.3, 0.6][: n_classes - 1])
    labels = np.array(["hay", "oats", "straw"])[np.digitize(y[:, 1], cuts)]
    options = {"n_components": 64, "alpha": 0.1, "calibration": calibration}
    model = RandomFeatureClassifier(Gaussian(1.5), precision="double", **options).fit(X, labels)
    new = rows(50, seed=1)[0] * 2  # further out, where probabilities are cut off
    for precision, tolerance in (("double", 1e-9), ("single", 1e-4)):
        path = tmp_path / f"{precision}.onnx"
        streamkern.to_onnx(model, path, precision=precision)
        inputs = new.astype(TYPES[precision])
        answer, said = answers(path, inputs), model.predict_proba(inputs)
        assert answer.shape == (50, n_classes)
        assert answer.dtype == inputs.dtype
        assert np.abs(answer - said).max() < tolerance
        inputs[3, 0] = np.nan
        assert np.flatnonzero(np.isnan(answers(path, inputs)).all(axis=1)).tolist() == [3]
        in_c = tmp_path / f"{precision}.c"
        streamkern.to_c(model, in_c, precision=precision)
        inputs = inputs.astype(float)
        assert np.nanmax(np.abs(answers_in_c(in_c, inputs, n_classes) - said)) < tolerance
        assert np.flatnonzero(np.isnan(answers_in_c(in_c, inputs, n_classes)[:, 0])) == [3]
    facts = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(facts["classes"]) == model.classes_.tolist()
    model.save(tmp_path / "model.h5")
    report = report_of("export", tmp_path / "model.h5", "--out", tmp_path / "again.onnx")
    assert report["output"] == "y_proba"
    assert np.array_equal(
        answers(tmp_path / "again.onnx", new), answers(tmp_path / "double.onnx", new)
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [({"feature_map": "nystroem", "kernel": Matern(2.0, nu=2.0)}, "'matern.*' at landmarks")],
)
def test_what_has_no_graph_is_refused_in_a_sentence(options, said, tmp_path):
    X, y = rows()
    model = ridge(**options).fit(X, y)
    for write in (streamkern.to_onnx, streamkern.to_c):
        with pytest.raises(ParameterError, match=said):
            write(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_the_graph_of_a_model_and_of_components(tmp_path):
    X, y = rows()
    model, pca = ridge().fit(X, y), streamkern.RandomFeaturePCA(n_random_features=16).fit(X)
    cases = (("model", model, "y_pred", "double"), ("pca", pca, "scores", "single"))
    for name, fit, *expected in cases:
        fit.save(tmp_path / f"{name}.h5")
        report = report_of("export", tmp_path / f"{name}.h5", "--out", tmp_path / f"{name}.onnx")
        assert [report["output"], report["precision"]] == expected
    assert np.allclose(answers(tmp_path / "model.onnx", X), model.predict(X), rtol=1e-9)
    report = report_of("export", tmp_path / "model.h5", "--out", tmp_path / "model.c")
    assert report["bytes"] == (tmp_path / "model.c").stat().st_size
    assert np.allclose(answers_in_c(tmp_path / "model.c", X, 2), model.predict(X), rtol=1e-9)
    written = onnx.load(tmp_path / "pca.onnx")
    used = {name for node in written.graph.node for name in node.input}
    assert {each.name for each in written.graph.initializer} < used  # or runtimes warn
    assert written.producer_name == "streamkern"
    assert [each.name for each in written.graph.output] == ["scores"]


def test_what_cannot_be_written_is_refused(monkeypatch, tmp_path):
    path, model = tmp_path / "model.onnx", ridge().fit(*rows())
    for write in (streamkern.to_onnx, streamkern.to_c):
        with pytest.raises(ParameterError, match="fit one first"):
            write(ridge(), path)
    with monkeypatch.context() as patch:
        patch.setattr(onnx_export, "_MOST_BYTES", 1000)
        with pytest.raises(ParameterError, match="more than the 1 kB that an ONNX file holds"):
            streamkern.to_onnx(model, path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OutputError, match=r"pip install 'streamkern\[onnx\]'"):
        streamkern.to_onnx(model, path)
    assert not list(tmp_path.iterdir())


@FILES
@pytest.mark.parametrize("scale", [1.5, 300.0])
def test_a_model_in_single_precision_has_a_file_in_it(scale, file, tmp_path):
    X, y = rows()
    model = ridge(kernel=Gaussian(scale), precision="single").fit(X, y[:, 0])
    assert apart(model, tmp_path / file, X, None) < 1e-4


QUANTILES = ["quantile:0.3", "quantile:0.2,0.4,0.5,0.6"]


@pytest.mark.parametrize("loss", ["poisson", "logistic", *QUANTILES])
def test_means_of_other_losses_are_given(loss, tmp_path):
    X, y = rows()
    wave = y[:, 0]
    y = {"logistic": wave > 50, "poisson": np.round(np.exp(wave - 50))}.get(loss, wave)
    how = {"kernel": "gaussian", "n_components": 64, "alpha": 1e-2}
    fitted = streamkern.RandomFeatureRegressor(loss, **how).fit(X, np.asarray(y, float))
    if "," in loss:
        assert np.any(np.diff(fitted.model_.predictor.linear.predict(X), axis=1) < 0)  # they cross
    for name in ("model.onnx", "model.c"):
        assert apart(fitted, tmp_path / name, X, "double") < 1e-5


@pytest.mark.parametrize("loss", ["poisson", "logistic", "gamma", "tweedie:1.5"])
@pytest.mark.parametrize("feature_map", ["orthogonal", "nystroem"])
def test_deviations_of_other_losses_are_given(loss, feature_map, tmp_path):
    X, y = rows()
    wave = y[:, 0] - y[:, 0].mean()
    y = {"logistic": wave > 0, "poisson": np.round(np.exp(wave))}.get(loss, np.exp(wave))
    how = {"kernel": "gaussian", "n_components": 64, "alpha": 1e-2, "precision": "double"}
    y = np.asarray(y, float)
    how["target_range"] = (y.min(), y.max()) if loss == "gamma" else None
    fitted = streamkern.RandomFeatureRegressor(loss, feature_map=feature_map, **how).fit(X, y)
    X = 3.0 * X  # some means are at the ends of the range
    said = np.stack(fitted.predict(X, return_std=True), axis=1)
    streamkern.to_onnx(fitted, tmp_path / "model.onnx", return_std=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(np.stack(session.run(None, {"X": X}), axis=1), said, rtol=1e-6)
    streamkern.to_c(fitted, tmp_path / "model.c", return_std=True)
    np.testing.assert_allclose(answers_in_c(tmp_path / "model.c", X, 2), said, rtol=1e-6)


def test_deviations_of_a_loss_that_has_none_are_refused(tmp_path):
    X, y = rows()
    fitted = streamkern.RandomFeatureRegressor("quantile:0.5", n_components=32).fit(X, y[:, 0])
    with pytest.raises(ParameterError, match=r"which the loss quantile:0\.5 has none of"):
        streamkern.to_onnx(fitted, tmp_path / "model.onnx", return_std=True)


@pytest.mark.parametrize("edges", [[50], [49, 51]])
def test_classes_by_the_log_loss_are_given(edges, tmp_path):
    X, y = rows()
    how = {"kernel": "gaussian", "n_components": 64, "loss": "multinomial", "alpha": 0.1}
    fitted = RandomFeatureClassifier(**how).fit(X, np.digitize(y[:, 0], edges))
    streamkern.to_onnx(fitted, tmp_path / "model.onnx", precision="double")
    found = answers(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-6)
