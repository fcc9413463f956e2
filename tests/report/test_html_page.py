"""A report says what the model says of itself, runs nothing, and is there whole or not at all."""

import base64
import hashlib
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from commandline import small_files, write
from harvests import smooth_rows as rows
from pages import Page

import streamkern
from streamkern import (
    Gaussian,
    Laplacian,
    Matern,
    Periodic,
    RandomFeatureRidge,
    Sum,
    open_hdf5,
    write_report,
)
from streamkern.errors import OutputError, ParameterError, StreamkernWarning
from streamkern.report import numbers, page_facts
from streamkern.sources.hdf5 import HDF5Reader

N, P = 400, 3
HOSTILE = (
    "</style></svg><script>document.title='ran'</script><svg onload=alert(1)>",
    "\"'><img src=x onerror=\"document.title='ran'\">",
    "a\nb\x1b[31m\x00c{{ 1234 * 5678 }}{% raw %}",
)


def fitted(X, y, *, tune=False, **options):
    kernels = options.pop("kernels", None)
    options = {"n_components": 32} | options
    model = RandomFeatureRidge(options.pop("kernel", Gaussian("median")), **options)
    if tune:
        return model.tune(X, y, kernels=kernels, keep_moments=True)
    return model.fit(X, y, keep_moments=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "report.html"


def written(model, path, *data, **options):
    write_report(model, path, *data, **options)
    return Page(path.read_text(encoding="utf-8"))


def undated(path):
    """A report without its date, and without seconds."""
    html = re.sub(r"<time.*?</time>", "", path.read_text(encoding="utf-8"))
    besides = r"(for this report, besides</th>\s*<td.*?>).*?</tr>"
    return re.sub(besides, r"\1", html, flags=re.DOTALL)


COMBINATION = Sum(kernels=(Gaussian(1.0), Matern(2.0)), weights=(1.0, 0.5), columns=((0, 1), (2,)))
CASES = {
    "cross-validation": {},
    "a given penalty": {"alpha": 0.5},
    "a grid": {"alpha": [0.01, 1.0, 100.0]},
    "gcv": {"alpha": "gcv"},
    "evidence": {"alpha": "evidence"},
    "one standard error": {"one_standard_error": True},
    "sizes": {"n_components": "auto"},
    "some features": {"sparse": 8},
    "as few features as will do": {"sparse": "auto"},
    "the inputs": {"feature_map": "identity"},
    "a length scale an input": {"kernel": Matern((1.0, 20.0, 5.0), nu=1.5)},
    "phases": {"paired": False},
    "double": {"precision": "double"},
    "blocks": {"fold_by": "blocks"},
    "a search": {"tune": True, "kernels": [Gaussian("median"), Laplacian("median")]},
    "a search of maps": {"tune": True, "feature_map": "auto"},
    "a combination": {"kernel": COMBINATION},
    "a search of combinations": {"tune": True, "kernels": [COMBINATION, Periodic(period=9.0)]},
    "more features than rows": {"n_components": 1024, "alpha": 1e-8},
}


@pytest.mark.filterwarnings("ignore::streamkern.errors.StreamkernWarning")
@pytest.mark.parametrize(("case", "q"), [*zip(CASES, [None, 2] * len(CASES), strict=False)])
def test_every_kind_of_model_has_a_report_with_its_own_numbers(case, q, path):
    X, y = rows(q=q)
    model = fitted(X, y, **CASES[case])
    found = written(model, path, X, y)
    report, number = model.report_, numbers.number
    scale, cv_rmse = report["length_scale"], report["cv_rmse"]
    expected = {
        "rows x inputs": "400 x 3",
        "kernel": report["kernel"] + (f", length scale {number(scale)}" if scale else ""),
        "alpha": number(report["alpha"]),
        "effective degrees of freedom": number(report["effective_dof"]),
        "training rmse": number(report["train_rmse"]),
        "cross-validated rmse": number(cv_rmse),
        "solver": f"{report['solver']}, condition {number(report['condition'])}",
        "components": f"{report['n_components']:,}",
    }
    for name, value in expected.items():
        assert found.value_of(name).startswith(value)
    html = path.read_text(encoding="utf-8")
    assert not re.search("infinite|not a number|None|nan", html)
    maps = {each["feature_map"] for each in report.get("tuning", ())}
    assert ("Landmarks are chosen among the rows" in html) == ("nystroem" in maps)
    assert ("nystroem" in maps) == (case == "a search of maps")
    assert path.stat().st_size < 1_000_000


def hostile_file(folder, name):
    """A data file whose own name and the names of whose datasets are hostile."""
    where = folder / name.replace("/", "\N{DIVISION SLASH}").replace("\x00", "")
    names = [f"{part}{name.replace('/', '').replace(chr(0), '')}" for part in "Xy"]
    return open_hdf5(write(where, *rows(), *names), *names)


@pytest.fixture(scope="module", params=["gcv", "a search"])
def page(request, tmp_path_factory):
    """The path of a report, the same of another call, and what is in it."""
    X, y = rows(q=2)
    model, folder = fitted(X, y, **CASES[request.param]), tmp_path_factory.mktemp("page")
    write_report(model, folder / "other.html", X, y)
    path = folder / "report.html"
    return path, folder / "other.html", written(model, path, X, y)


def test_a_report_can_be_read_without_seeing_it(page):
    *_, found = page
    assert found.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    pictures = [each for each in found.all("svg") if "width" not in each]
    assert len(pictures) >= 6
    assert all(each["role"] == "img" and len(each["aria-label"]) > 1 for each in pictures)
    assert len(found.all("figure")) == len(found.all("figcaption"))
    assert all(each.get("scope") in {"row", "col"} for each in found.all("th"))
    names = [each["id"] for _, each in found.elements if "id" in each]
    links = {each["href"].removeprefix("#") for each in found.all("a")}
    assert len(set(names)) == len(names)
    assert set() < links <= set(names)


def test_a_report_refers_to_nothing_outside_and_allows_its_own_style_alone(page):
    path, _, found = page
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes in found.elements:
        assert not {"src", "srcset", "style", "xlink:href", "background"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
    html = path.read_text(encoding="utf-8")
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html
    assert "//" not in re.sub(r"<style>.*?</style>|<pre>.*?</pre>", "", html, flags=re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = (each["content"] for each in found.all("meta") if "http-equiv" in each)
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "script" not in policy


def test_the_same_model_gives_the_same_bytes_but_for_the_date_and_seconds(page):
    path, other, _ = page
    assert undated(path) == undated(other)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_the_data_stay_text(name, tmp_path, path):
    source = hostile_file(tmp_path, name)
    model = RandomFeatureRidge(n_components=32).fit(source, keep_moments=True)
    found = written(model, path, source, title=name, command=name)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "img", "iframe", "object", "embed", "base"}
    assert not [key for _, attributes in found.elements for key in attributes if key[:2] == "on"]
    shown = "".join(c if c.isprintable() else "" for c in name.replace("\x00", ""))
    assert shown[:8] in found.text or "\\n" in found.text
    assert not set(path.read_text(encoding="utf-8")) & {"\x1b", "\x00"}
    assert str(1234 * 5678) not in found.text


def test_what_cannot_be_written_is_found_before_rows_are_read(tmp_path, path, monkeypatch):
    X, y = rows()
    model = fitted(X, y)
    with small_files(), pytest.raises(OutputError, match="the disk or quota is full"):
        write_report(model, path, X, y)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(ParameterError, match="a report is made of a fitted"):
        write_report(RandomFeatureRidge(), path)
    assert not path.exists()
    source = hostile_file(tmp_path, "data")
    model = RandomFeatureRidge(n_components=32).fit(source, keep_moments=True)
    path.write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr(HDF5Reader, "blocks", lambda *_: pytest.fail("rows were read"))
        with pytest.raises(OutputError, match=r"exists already; give force=True \(--force\)"):
            write_report(model, path, source)
        with pytest.raises(OutputError):
            write_report(model, tmp_path / "folder" / "report.html", source)
    assert path.read_text() == "precious"
    write_report(model, path, source, force=True)
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_without_rows_or_moments_sentences_say_what_would_bring_them(tmp_path, path):
    X, y = rows()
    model = RandomFeatureRidge(n_components=64)
    model.solve(model.moments(X, y), keep_moments=True)
    found = written(model, path)
    assert found.text.count("The rows were not read for this report") == 2
    assert any("folds" in each.get("aria-label", "") for each in found.all("svg"))
    assert "model.solve(moments)" in found.text
    # A model that was loaded has a report of what its file tells.
    fitted(X, y, n_components=128).save(tmp_path / "model.h5")
    found = written(streamkern.load(tmp_path / "model.h5"), tmp_path / "loaded.html", X, y)
    assert "No fold can be left out, because the moments of the fit were not kept" in found.text
    assert "The errors of single folds are known to the fit alone" in found.text
    assert "needs the moments of the fit" in found.text


def test_the_seconds_of_no_part_of_the_fit_are_left_out():
    bars = page_facts.phase_bars({"seconds": {"pass": 2.0, "solve": 1.0, "total": 4.0}}, 0.5)
    assert [name for name, *_ in bars[:2]] == ["second reading: moments", "choosing and solving"]
    assert [name for name, *_ in bars[2:]] == ["the rest", "for this report, besides"]
    assert [share for *_, share in bars] == [0.5, 0.25, 0.25, 0.125]
    assert [seconds for _, seconds, _ in bars] == ["2 s", "1 s", "1 s", "0.5 s"]


def test_inputs_are_ordered_by_what_the_kernel_makes_of_them(path):
    X, y = rows()
    X = np.column_stack([np.ones(N), X])
    with pytest.warns(StreamkernWarning, match="constant column"):
        model = fitted(X, y, kernel=Gaussian((1.0, 9.0, 20.0, 5.0)))
    found = written(model, path, X, y)
    order = [row[0] for row in found.rows if row and re.fullmatch(r"column \d", row[0])]
    assert order == ["column 3", "column 1", "column 2"]
    scales = {row[0]: row[1:3] for row in found.rows if row and row[0] in order}
    deviations = X.std(axis=0)
    assert scales["column 2"] == ["20", numbers.number(20 * deviations[2])]


@pytest.mark.filterwarnings("ignore:columns that are no inputs")
def test_a_default_fit_of_a_table_names_its_inputs_its_worst_rows_and_simpler_models(path):
    X, y = rows()
    y = y - 100.0 * (np.arange(N) == 17)
    table = pd.DataFrame(X, columns=["rooms", "<b>age</b>", "tax"]).assign(city="Ulm")
    model = fitted(table, pd.Series(y, name="price"))
    found = written(model, path, table, pd.Series(y, name="price"))
    for words in ("Predicted price", "Actual price", "rooms", "<b>age</b>", "tax"):
        assert words in found.words
    (worst,) = [row for row in found.rows if row and row[0] == "17"]
    assert worst[1] == numbers.number(y[17])
    errors = [float(found.value_of(each)) for each in ("this model", "linear ridge", "the mean")]
    assert errors[2] == pytest.approx(y.std(), rel=1e-3)
    assert len([each for each in found.all("svg") if "all of which get" in str(each)]) == 3


def test_a_metric_says_which_inputs_and_directions_matter(path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0]
    y = np.sin(2.0 * (X[:, 1] / 10.0 + X[:, 3])) + 0.1 * rng.standard_normal(1200)
    model = fitted(X, y, metric="learn:2", n_components=128)
    found = written(model, path, X, y)
    metric = model.report_["metric"]
    parts = {row[0]: row[1:] for row in found.rows if row and row[0].startswith("column ")}
    assert set(list(parts)[:2]) == {"column 1", "column 3"}
    assert parts["column 1"][0] == numbers.percent(metric["importance"][1])
    assert parts["column 1"][1] == numbers.number(metric["per_unit"][1])
    (first,) = [row for row in found.rows if row and row[0] == "direction 1"]
    assert first[1] == numbers.percent(metric["eigenvalues"][0])
    assert re.fullmatch(r"\+0\.\d+ column [13], \+0\.\d+ column [13]", first[2])
    kept = metric["rounds"][metric["kept"]]["number"]
    assert f"Round {kept} predicted the rows held out best" in found.text
    assert "learning the metric" in found.text


def test_rounds_that_begin_with_weights_are_called_so(path):
    found = written(fitted(*rows(), metric="diagonal:1"), path)
    (cells,) = [row for row in found.rows if row and row[0] == "1 (weights)"]
    assert cells[1:3] == ["gaussian", "orthogonal"]
    assert "descent of the cross-validated error" in found.text


def test_what_was_skipped_and_dropped_is_shown_and_a_metric_that_was_given(path):
    X, y = rows()
    X[:, 1], X[5, 0] = 3.0, np.nan
    with pytest.warns(StreamkernWarning, match="constant column"):
        model = fitted(X, y, on_bad_rows="skip", metric=np.diag([4.0, 1.0, 1.0]))
    found = written(model, path, X, y)
    assert "The metric was given." in found.text
    assert "metric=metric" in found.text
    assert "Rounds;" not in found.text
    assert found.value_of("rows skipped") == "1"
    assert found.value_of("constant columns left out") == "1"
    assert not [row for row in found.rows if row and row[0] == "shards retried"]
    assert "No faults" not in found.text
    found = written(fitted(*rows()), path.with_name("other.html"))
    assert "No faults: no row was left out" in found.text


@pytest.mark.parametrize(("tune", "kernel"), [(False, Laplacian(2.0)), (True, COMBINATION)])
def test_the_call_makes_the_same_model(tune, kernel, tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whose names are those of files alone
    X, y = rows()
    source = open_hdf5(write(tmp_path / "it's.h5", X, y, "in puts"), "in puts")
    model = RandomFeatureRidge(kernel, n_components=32, alpha=[0.1, 1.0], random_state=3)
    found = written((model.tune if tune else model.fit)(source), path, source)
    (call,) = [words for words in found.words if words.startswith("import streamkern")]
    names: dict[str, object] = {}
    exec(call, names)  # noqa: S102
    assert np.array_equal(names["model"].coef_, model.coef_)


def test_ten_targets_have_figures_of_four_and_errors_of_all(path):
    X, _ = rows()
    y = np.random.default_rng(0).standard_normal((N, 10)) + X[:, :1]
    found = written(fitted(X, y), path, X, y)
    assert "Predicted target 3" in found.text
    assert "Predicted target 4" not in found.text
    assert [row[0] for row in found.rows if row and row[0].startswith("target")][-1] == "target 9"
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(("alpha", "q"), [(0.0, 1), ("gcv", 2), ("cv", 1)])
def test_targets_without_noise_have_a_report_and_no_warning(alpha, q, path):
    X, _ = rows()
    y = X @ np.array([[1.0, 3.0], [2.0, 0.0], [0.5, 1.0]])[:, :q]
    options = {"feature_map": "identity", "kernel": "linear", "precision": "double"}
    found = written(fitted(X, y, alpha=alpha, **options), path, X, y)
    assert not re.search(r"\b(nan|inf|not a number)\b", found.text)


def test_rows_that_all_determine_their_own_predictions_have_a_report(path):
    X, y = np.random.default_rng(0).standard_normal((5, 200)), np.arange(5.0)
    model = fitted(X, y, alpha=1e-12, precision="double", n_components=64)
    write_report(model, path, X, y)
    assert "Every row determines its own prediction" in path.read_text()
