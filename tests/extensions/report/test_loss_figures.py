"""The page of another loss: what rows lose by models without their fold, and no other rows."""

import numpy as np
import pytest
from pages import Page
from rows_read import skip_without_extension

from streamkern import RandomFeatureClassifier, RandomFeatureRegressor, load, write_report
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.report.loss_figures import coverage_figure, mean_figure
from streamkern.extensions.report.numbers import number, percent
from streamkern.extensions.report.validation_pass import HeldOutSample

skip_without_extension("losses")
N = 600
LOSSES = {
    "poisson": "deviance",
    "gamma": "deviance",
    "logistic": "log_loss",
    "huber": "huber_loss",
    "quantile:0.2,0.9": "pinball",
}


def rows(loss="poisson"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    mean = np.exp(np.sin(2.0 * X[:, 0]))
    if loss == "poisson":
        return X, rng.poisson(mean).astype(float)
    if loss == "logistic":
        return X, (mean > rng.uniform(0.0, 3.0, N)).astype(float)
    return X, mean * np.exp(0.3 * rng.standard_normal(N))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_page_has_the_losses_of_rows_held_out(loss, tmp_path):
    X, y = rows(loss)
    model = RandomFeatureRegressor(loss, n_components=32).fit(X, y, keep_moments=True)
    write_report(model, tmp_path / "page.html", X, y)
    found, report, name = Page((tmp_path / "page.html").read_text()), model.report_, LOSSES[loss]
    held = report[f"cv_{name}"]
    assert number(held, 3) in found.text
    assert found.value_of(name.replace("_", " ")).startswith(f"{np.ravel(held)[0]:.6g}"[:5])
    assert percent(float(np.mean(report["cv_d2"]))) in found.text
    assert "minimises the sum of the losses" in found.text
    titles = [each["alt"] for each in found.all("img")]
    expected = ["Coverage", "Quantile 0.2", "Quantile 0.9"]
    if not loss.startswith("quantile"):
        expected = ["Calibration", "Predicted and actual", "Residuals", "Distribution"]
    assert titles[: len(expected)] == expected
    assert "Permutation importance" in titles


def test_classes_by_their_log_loss_have_a_page(tmp_path):
    X, y = rows("logistic")
    model = RandomFeatureClassifier(loss="logistic", n_components=32).fit(X, y, keep_moments=True)
    write_report(model, tmp_path / "page.html", X, y)
    found, held = Page((tmp_path / "page.html").read_text()), model.report_["cv_log_loss"]
    assert float(found.value_of("log loss")) == pytest.approx(held, rel=1e-3)
    assert "ROC curve" in [each["alt"] for each in found.all("img")]


@pytest.mark.parametrize("loss", ["poisson", "quantile:0.2,0.9"])
def test_other_rows_are_refused(loss, tmp_path):
    X, y = rows(loss)
    model = RandomFeatureRegressor(loss, n_components=32).fit(X, y, keep_moments=True)
    with pytest.raises(DataError, match="not the rows that the model was fitted on"):
        write_report(model, tmp_path / "page.html", X, y[::-1])
    assert not list(tmp_path.iterdir())


def test_a_model_from_a_file_has_a_page_without_rows(tmp_path):
    X, y = rows()
    model = RandomFeatureRegressor("poisson", n_components=32).fit(X, y)
    model.save(tmp_path / "model.h5")
    loaded = load(tmp_path / "model.h5")
    for each in (model, loaded):
        with pytest.raises(ParameterError, match="known to the fit alone; fit with keep_moments"):
            write_report(each, tmp_path / "page.html", X, y)
    write_report(loaded, tmp_path / "page.html")
    assert number(model.report_["cv_deviance"], 3) in (tmp_path / "page.html").read_text()


def test_rows_with_an_exposure_are_those_of_the_command(tmp_path):
    X, y = rows()
    model = RandomFeatureRegressor("poisson", n_components=32).fit(X, y, exposure=np.full(N, 2.0))
    with pytest.raises(ParameterError, match="an exposure, which cannot be given here"):
        write_report(model, tmp_path / "page.html", X, y)


def drawn(figure):
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    figure.draw(axes)
    return axes


def test_calibration_compares_weighted_means_of_groups_of_rows():
    predicted, weights = np.repeat([1.0, 3.0], 30), np.tile([3.0, 1.0], 30)
    actual = predicted + np.tile([1.0, -1.0], 30)
    held = HeldOutSample(predicted[:, None], actual, weights)
    axes = drawn(mean_figure(held, "y", is_log=True))
    (marks, *_) = axes.lines
    np.testing.assert_allclose(marks.get_xydata(), [[1.0, 1.5], [3.0, 3.5]])
    assert axes.get_xscale() == "log"


def test_coverage_is_the_share_of_weight_up_to_the_quantiles():
    y, weights = np.arange(300.0), np.tile([9.0, 1.0], 150)
    quantiles = np.column_stack([np.full(300, -1.0), y - np.tile([0.5, 0.0], 150)])
    axes = drawn(coverage_figure(HeldOutSample(quantiles, y, weights), [0.1, 0.9]))
    shares = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 10]
    np.testing.assert_allclose(shares, [[0.0] * 10, [10.0] * 10], atol=0.5)


def test_of_many_quantiles_a_few_are_drawn_and_that_is_said(tmp_path):
    X, y = rows("gamma")
    loss = f"quantile:{','.join(f'{k / 10:g}' for k in range(1, 10))}"
    model = RandomFeatureRegressor(loss, n_components=16, alpha=1.0).fit(X, y, keep_moments=True)
    write_report(model, tmp_path / "page.html", X, y)
    found = Page((tmp_path / "page.html").read_text())
    titles = [each["alt"] for each in found.all("img")]
    assert titles[:5] == ["Coverage", *(f"Quantile {level}" for level in (0.1, 0.4, 0.6, 0.9))]
    assert "Drawn are 4 of 9 quantiles." in found.text
    assert "eight of ten rows" not in found.text


def test_a_few_rows_have_a_page_and_other_weights_are_other_rows(tmp_path):
    X, y = (each[:40] for each in rows())
    model = RandomFeatureRegressor("poisson", n_components=16).fit(X, y, keep_moments=True)
    with pytest.raises(DataError, match=r"a total weight of 40 and .* these have 80"):
        write_report(model, tmp_path / "page.html", X, y, np.full(40, 2.0))
    write_report(model, tmp_path / "page.html", X, y)
    assert "40 rows in 1 group" in Page((tmp_path / "page.html").read_text()).text
