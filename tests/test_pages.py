"""The pages of docs/ and the README: their code runs, and what they name exists."""

import re
import shlex
from functools import cache

import click
import pytest
from code_blocks import (
    REPOSITORY,
    SHELL,
    blocks_of,
    commands,
    copied_for,
    make_files,
    rows,
    run_blocks,
)

import streamkern
from streamkern.cli import COMMANDS, main
from streamkern.registry import EXTENSIONS, installed

DOCS = REPOSITORY / "docs"
DELETED = set(EXTENSIONS) - set(installed())
# What is built, and what the build itself runs.
MADE = ("_build", "generated")
PAGES = sorted(
    path
    for path in (REPOSITORY / "README.md", *DOCS.rglob("*.md"))
    if not set(path.relative_to(REPOSITORY).parts) & set(MADE)
)
IDS = [str(page.relative_to(REPOSITORY)) for page in PAGES]
RUN = [
    page
    for page in PAGES
    if "tutorials" not in page.parts
    and any(b.language in ("python", *SHELL) and not b.reason for b in blocks_of(page.read_text()))
]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    make_files(folder)
    X, y = rows()
    streamkern.RandomFeatureRidge(n_components=128).fit(X, y).save(folder / "model.h5")
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the table has cells that are missing")
@pytest.mark.filterwarnings("ignore:columns that are no inputs")
@pytest.mark.parametrize("page", RUN, ids=[str(page.relative_to(REPOSITORY)) for page in RUN])
def test_the_code_of_a_page_runs(page, files, tmp_path, monkeypatch):
    text = page.read_text()
    copied_for(text, files, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    X, y = rows()
    names = {"X": X, "y": y, "__name__": "__main__"}
    run_blocks(text, page.relative_to(REPOSITORY), names)


def prose(page):
    """Return a page with its blocks of code left out."""
    text = page.read_text()
    return re.sub(r"^ *(`{3,}).*?^ *\1 *$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page):
    """Return the anchors of the headings of a page, or None where other text makes some."""
    text = page.read_text()
    if re.search(r"^```\{(eval-rst|parameter-table|glossary)\}", text, flags=re.MULTILINE):
        return None
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in headings]
    return {heading.replace(" ", "-") for heading in plain} | set(
        re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE)
    )


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if place.stem in DELETED:
            continue
        assert place.exists(), target
        if anchor and place.suffix == ".md" and (known := anchors(place)) is not None:
            assert anchor in known, target


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_files_that_are_named_exist(page):
    paths = re.findall(
        r"`((?:streamkern|tests|jobs|benchmarks|docs)/[\w/.]+\.\w+)`", page.read_text()
    )
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert re.findall(r"(?:^|[\s`\"'(=])/(?:work|home|root|Users)/\S*", page.read_text()) == []
    assert re.findall(r"TODO|FIXME|XXX", page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
@pytest.mark.skipif(set() != DELETED, reason="pages name what an extension has")
def test_commands_and_options_that_are_named_exist(page):
    for block in blocks_of(page.read_text()):
        assert block.language, f"line {block.line}: a block says no language"
        if block.language in SHELL:
            text = commands(block).replace("\\\n", " ")
            for line in text.splitlines():
                _check_words(shlex.split(line, comments=True))
    for name in re.findall(r"`streamkern ([a-z-]+)", prose(page)):
        assert name in COMMANDS, name


def _check_words(words):
    if words[:1] == ["python"] and words[1:2] and words[1].startswith(("jobs/", "benchmarks/")):
        assert (REPOSITORY / words[1]).exists(), words[1]
    if words[:1] != ["streamkern"] or len(words) < 2 or words[1].startswith("-"):
        return
    assert words[1] in COMMANDS, words[1]
    command = main.get_command(click.Context(main), words[1])
    options = {name for each in command.params for name in each.opts}
    named = {word.split("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
    assert named <= options | {"--help", "-h"}, (words[1], sorted(named - options))
