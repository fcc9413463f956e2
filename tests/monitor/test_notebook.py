"""Progress in the output of a cell, in a real kernel."""

import nbformat
import pytest
from nbclient import NotebookClient
from pages import Page

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=alert(1)>"
DATA = """
import numpy as np, streamkern
from streamkern.runtime.events import job
X = np.random.default_rng(0).standard_normal((200_000, 4))
y = X[:, 0] + np.random.default_rng(1).standard_normal(len(X))
"""
FIT = f"""
with streamkern.progress(), job({HOSTILE!r}):
    streamkern.RandomFeatureRidge(n_components=512).fit(X, y)
"""
FAILS = """
with streamkern.progress():
    streamkern.RandomFeatureRidge(n_components=8).fit(X[:9] * np.nan, X[:9, 0])
"""


class Updates(NotebookClient):
    """A notebook that counts how often outputs are written anew."""

    n_updates = 0

    def process_message(self, message, cell, index):
        self.n_updates += message["msg_type"] == "update_display_data"
        return super().process_message(message, cell, index)


@pytest.fixture(scope="module")
def notebook():
    cells = [nbformat.v4.new_code_cell(code) for code in (DATA, FIT, FAILS)]
    client = Updates(nbformat.v4.new_notebook(cells=cells), timeout=120, allow_errors=True)
    client.execute()
    return client


def test_a_fit_in_a_notebook_is_a_bar_that_is_written_anew_and_stays_in_the_end(notebook):
    assert notebook.n_updates >= 3
    (shown,) = notebook.nb.cells[1].outputs  # no lines beside it
    page = Page(shown["data"]["text/html"])
    assert not page.all("img")
    assert f"{HOSTILE} done" in page.text
    assert "moments 100% 200,000 rows in" in page.text
    assert "cross-validated RMSE" in page.text
    assert "width:100.0%" in shown["data"]["text/html"]
    plain = shown["data"]["text/plain"].splitlines()
    assert plain[0].startswith(f"{HOSTILE} done, ")
    assert "moments 100%  200,000 rows" in plain[-5] + plain[-6]


def test_a_fit_that_fails_says_so_above_the_error(notebook):
    shown, error = notebook.nb.cells[2].outputs
    assert "fit failed" in Page(shown["data"]["text/html"]).text
    assert error["ename"] == "DataError"
