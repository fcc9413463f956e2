"""A real browser without a window, and what it says on its console."""

import shutil
from contextlib import contextmanager

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def opened_browser():
    """Start Chromium, or skip the test where it, or what drives it, is not installed."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page of a browser, and every error that its console or its scripts report.

    Parameters
    ----------
    browser
        From `opened_browser`.
    **options
        Of the page, such as its viewport.
    """

    def __init__(self, browser, **options):
        self.page = browser.new_page(**options)
        self.errors = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", self._asked)

    def _heard(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, dialog):
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()
