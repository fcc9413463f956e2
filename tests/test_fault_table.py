"""The pages name tests and files that there are."""

import os
import re
from pathlib import Path

import pytest

import streamkern
from streamkern.registry import EXTENSIONS, installed

TESTS = Path(__file__).parent
PACKAGE = Path(streamkern.__file__).parent
TABLE = TESTS.parent / "docs" / "reference" / "faults.md"


def table_rows():
    cells = [line.strip("|").split("|") for line in TABLE.read_text().splitlines() if "| `" in line]
    return [[cell.strip() for cell in row] for row in cells]


@pytest.mark.skipif(installed() != list(EXTENSIONS), reason="tests of an extension are deleted")
def test_every_fault_says_what_happens_and_which_test_shows_it():
    written = [path.read_text() for path in TESTS.rglob("test_*.py")]
    rows = table_rows()
    for fault, what_happens, shown_by in rows:
        assert fault
        assert what_happens
        name = re.fullmatch(r"`(test_\w+)(?:\[(\w+)\])?`", shown_by)
        assert name, shown_by
        found = [text for text in written if f"def {name[1]}(" in text]
        if not found and "STREAMKERN_WITHOUT" in os.environ:
            continue  # which is shown by tests of an extension
        assert found, shown_by
        assert not name[2] or any(name[2] in text for text in found), shown_by


def test_every_file_that_a_page_names_is_there():
    folders = (TESTS.parent, PACKAGE, TESTS.parent / "jobs")
    gone = tuple(f"extensions/{name}/" for name in EXTENSIONS if name not in installed())
    pages = [*TESTS.parent.glob("*.md"), *(TESTS.parent / "docs").rglob("*.md")]
    for page in pages:
        for name in re.findall(r"`([a-z0-9_]+/[a-z0-9_/]+\.py)`", page.read_text()):
            is_there = name.startswith(gone) or any((each / name).exists() for each in folders)
            assert is_there, f"{name} of {page.name}"
