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
from streamkern import Gaussian, Matern, RandomFeatureRidge, Sum, open_hdf5, write_report
from streamkern.errors import OutputError, ParameterError, StreamkernWarning
from streamkern.extensions.report import numbers
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
    """A report without its date."""
    return re.sub(r"<time.*?</time>", "", path.read_text(encoding="utf-8"))


def pictures(found):
    """The pictures of a page by their titles, as the texts of their SVG."""
    shown = found.all("img")
    head = "data:image/svg+xml;base64,"
    assert all(each["src"].startswith(head) for each in shown)
    return {
        each["alt"]: base64.b64decode(each["src"].removeprefix(head)).decode() for each in shown
    }


COMBINATION = Sum(kernels=(Gaussian(1.0), Matern(2.0)), weights=(1.0, 0.5), columns=((0, 1), (2,)))
CASES = {
    "cross-validation": {},
    "a penalty a target": {"per_target": True},
    "a given penalty": {"alpha": 0.5},
    "evidence": {"alpha": "evidence"},
    "one standard error": {"one_standard_error": True, "sparse": "auto"},
    "the inputs": {"feature_map": "identity"},
    "a length scale an input": {"kernel": Matern((1.0, 20.0, 5.0), nu=1.5)},
    "a search of maps": {"tune": True, "feature_map": "auto", "kernels": "gaussian"},
    "a combination": {"kernel": COMBINATION, "n_components": "auto"},
    "more features than rows": {"n_components": 1024, "alpha": 1e-8},
}
PREDICTED = {"cross-validation", "a given penalty", "more features than rows"}


@pytest.mark.filterwarnings("ignore::streamkern.errors.StreamkernWarning")
@pytest.mark.parametrize(("case", "q"), [*zip(CASES, [None, 2] * len(CASES), strict=False)])
def test_every_kind_of_model_has_a_report_with_its_own_numbers(case, q, path):
    X, y = rows(q=q)
    model = fitted(X, y, **CASES[case])
    found = written(model, path, *((X, y) if case in PREDICTED else ()))
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
    assert not re.search("infinite|not a number|None|nan", found.text)
    assert ("Error against cost" in found.text) == bool(report.get("tuning"))
    assert path.stat().st_size < 2_000_000


def hostile_file(folder, name):
    """A data file whose own name and the names of whose datasets are hostile."""
    where = folder / name.replace("/", "\N{DIVISION SLASH}").replace("\x00", "")
    names = [f"{part}{name.replace('/', '').replace(chr(0), '')}" for part in "Xy"]
    return open_hdf5(write(where, *rows(), *names), *names)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The path of a report that has every picture, the same of another call, and what is in it."""
    X, y = rows()
    model = fitted(X, y, **CASES["a search of maps"])
    folder = tmp_path_factory.mktemp("page")
    write_report(model, folder / "other.html", X, y)
    path = folder / "report.html"
    return path, folder / "other.html", written(model, path, X, y)


def test_a_report_can_be_read_without_seeing_it(page):
    *_, found = page
    assert found.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert len(pictures(found)) >= 6
    assert all(len(each["alt"]) > 1 for each in found.all("img"))
    assert len(found.all("figure")) == len(found.all("figcaption"))
    assert all(each.get("scope") in {"row", "col"} for each in found.all("th"))


def test_a_report_refers_to_nothing_outside_and_allows_its_own_style_alone(page):
    path, _, found = page
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base", "form", "a"}
    for tag, attributes in found.elements:
        assert not {"srcset", "style", "href", "background"} & set(attributes)
        assert "src" not in attributes or tag == "img"
    for picture in pictures(found).values():
        assert "<script" not in picture
        assert not re.search(r'href="(?!#|data:image/png)', picture.partition("<defs")[2])
    html = path.read_text(encoding="utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert not re.search(r"url\(|@import", style)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = (each["content"] for each in found.all("meta") if "http-equiv" in each)
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:;")
    assert "script" not in policy


def test_the_same_model_gives_the_same_bytes_but_for_the_date(page):
    path, other, _ = page
    assert undated(path) == undated(other)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_the_data_stay_text(name, tmp_path, path):
    source = hostile_file(tmp_path, name)
    model = RandomFeatureRidge("gaussian", n_components=32).fit(source, keep_moments=True)
    found = written(model, path, source, title=name, command=name)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "iframe", "object", "embed", "base"}
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
    model = RandomFeatureRidge("gaussian", n_components=32).fit(source, keep_moments=True)
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
    model = RandomFeatureRidge("gaussian", n_components=64)
    model.solve(model.moments(X, y), keep_moments=True)
    found = written(model, path)
    assert "The rows were not read for this report" in found.text
    assert set(pictures(found)) == {"The penalty"}
    # A model that was loaded has a report of what its file tells.
    fitted(X, y, n_components=128).save(tmp_path / "model.h5")
    found = written(streamkern.load(tmp_path / "model.h5"), tmp_path / "loaded.html", X, y)
    assert "are predicted by the model without each of them in turn" in found.text
    assert "The errors of single folds are known to the fit alone" in found.text


def test_inputs_are_ordered_by_what_the_kernel_makes_of_them(path):
    X, y = rows()
    X = np.column_stack([np.ones(N), X])
    with pytest.warns(StreamkernWarning, match="constant column"):
        model = fitted(X, y, kernel=Gaussian((1.0, 9.0, 20.0, 5.0)))
    found = written(model, path)
    texts = re.findall(r">(column \d)</text>", pictures(found)["What the kernel weighs"])
    assert texts == ["column 3", "column 1", "column 2"]
    assert found.value_of("constant columns left out") == "0"


@pytest.mark.filterwarnings("ignore:columns that are no inputs")
def test_names_of_a_table_are_those_of_its_pictures(path):
    X, y = rows()
    table = pd.DataFrame(X, columns=["rooms", "<b>age</b>", "$t^a$"]).assign(city="Ulm")
    model = fitted(table, pd.Series(y, name="price"))
    found = written(model, path, table, pd.Series(y, name="price"))
    shown = pictures(found)
    for words in ("Predicted price", "Actual price"):
        assert words in shown["Predicted and actual"]
    for words in ("rooms", "&lt;b&gt;age", "$t^a$"):
        assert words in shown["Permutation importance"]


def test_ten_targets_have_figures_of_four_and_errors_of_all(path):
    X, _ = rows()
    y = np.random.default_rng(0).standard_normal((N, 10)) + X[:, :1]
    found = written(fitted(X, y), path, X, y)
    assert path.read_text().count("<h3>Residuals</h3>") == 4
    assert [row[0] for row in found.rows if row and row[0].startswith("target")][-1] == "target 9"
    assert path.stat().st_size < 2_000_000


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
