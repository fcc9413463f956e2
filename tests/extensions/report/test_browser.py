"""A report in a real browser, without the network: nothing runs, and nothing is complained of."""

import pytest
from browser import Watched
from commandline import rows, write
from pages import Page

from streamkern import RandomFeatureRidge, open_hdf5, write_report

RAN = "document.documentElement.id='ran'"
HOSTILE = f'"\'><script>{RAN}</script><img src=x onerror="{RAN}"><svg onload="{RAN}">\n.h5'


def opened(browser, path):
    """The page as the browser has it when it is loaded, and what it complains of."""
    watched = Watched(browser, offline=True)
    watched.page.goto(path.as_uri())
    return watched.page.content(), watched.errors


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    X, y = rows()
    where = folder / HOSTILE.replace("/", "\N{DIVISION SLASH}")
    x_name, y_name = (f"{letter}{HOSTILE.replace('/', '')}" for letter in "Xy")
    source = open_hdf5(write(where, X, y, x_name, y_name), x_name, y_name)
    model = RandomFeatureRidge(n_components=32).tune(source, kernels="gaussian", keep_moments=True)
    path = folder / "report.html"
    write_report(model, path, source, title=HOSTILE, command=HOSTILE)
    return path


def test_nothing_runs_whatever_the_names_are(report, browser):
    html, complaints = opened(browser, report)
    found = Page(html)
    assert found.all("html") == [{"lang": "en"}]
    assert "script" not in {tag for tag, _ in found.elements}
    assert not [each for _, each in found.elements if "onerror" in each]
    assert len(found.all("figure")) >= 6
    assert complaints == []


def test_a_script_that_was_put_in_by_hand_does_not_run(report, browser, tmp_path):
    html = report.read_text(encoding="utf-8")
    forged, unguarded = tmp_path / "forged.html", tmp_path / "unguarded.html"
    with_script = html.replace("<main>", f"<main><script>{RAN}</script>")
    forged.write_text(with_script, encoding="utf-8")
    shown, complaints = opened(browser, forged)
    assert 'id="ran"' not in shown
    assert any("Content Security Policy" in line for line in complaints)
    # Without the policy it would have run.
    policy = html[html.index("<meta http-equiv") :].partition(">")[0] + ">"
    unguarded.write_text(with_script.replace(policy, ""), encoding="utf-8")
    assert 'id="ran"' in opened(browser, unguarded)[0]
