"""Output files appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commandline import without_privileges

from streamkern.errors import OutputError
from streamkern.storage import RowWriter, check_output, make_folder, replacing


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_file_appears_with_what_was_written(tmp_path):
    with replacing(tmp_path / "a") as temporary:
        temporary.write_bytes(b"new")
        assert temporary.parent == tmp_path
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert inside(tmp_path) == ["a"]


def test_an_existing_file_is_refused_before_any_work(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with (
        pytest.raises(OutputError, match=r"a exists already; give --force to replace it"),
        replacing(tmp_path / "a"),
    ):
        pytest.fail("the writer was asked to work")
    with pytest.raises(OutputError, match="exists already"):
        check_output(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_force_replaces_at_the_last_moment(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    assert check_output(tmp_path / "a", force=True) == tmp_path / "a"
    with replacing(tmp_path / "a", force=True) as temporary:
        temporary.write_bytes(b"new")
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"
    assert inside(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, OutputError])
@pytest.mark.parametrize("old", [b"old", None])
def test_an_error_or_interruption_leaves_everything_as_it_was(tmp_path, error, old):
    if old:
        (tmp_path / "a").write_bytes(old)

    def write():
        with replacing(tmp_path / "a", force=True) as temporary:
            temporary.write_bytes(b"half")
            raise error("stop")

    with pytest.raises(error, match="stop"):
        write()
    assert inside(tmp_path) == (["a"] if old else [])
    if old:
        assert (tmp_path / "a").read_bytes() == old


def test_a_system_error_of_the_writer_becomes_one_sentence(tmp_path):
    def write():
        with replacing(tmp_path / "a"):
            raise OSError(5, "Input/output error")

    with pytest.raises(OutputError, match=r"a cannot be written \(Input/output error\); the part"):
        write()
    assert inside(tmp_path) == []


def test_a_writer_that_writes_nothing_is_an_error(tmp_path):
    def write():
        with replacing(tmp_path / "a"):
            pass

    with pytest.raises(OutputError, match="cannot be written"):
        write()
    assert inside(tmp_path) == []


@pytest.mark.parametrize("use", [check_output, lambda path: RowWriter.create(path).__enter__()])
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("none/a.h5", "the folder .*none does not exist; make it"),
        ("folder", "folder is a folder; name a file"),
        ("file/a.h5", "file does not exist|not a folder"),
    ],
)
def test_places_that_cannot_hold_a_file_are_refused(tmp_path, use, place, why):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=why):
        use(tmp_path / place)
    assert inside(tmp_path) == ["file", "folder"]


def test_a_folder_is_refused_even_with_force(tmp_path):
    with pytest.raises(OutputError, match="is a folder"):
        check_output(tmp_path, force=True)


def test_a_name_without_a_folder_is_in_this_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("a") as temporary:
        temporary.write_bytes(b"new")
    assert inside(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_may_not_be_written_to_is_refused(mode):
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "inner"
        folder.mkdir()
        folder.chmod(mode)
        try:
            # By writing, since os.access asks for the real user, whom seteuid leaves as root.
            with (
                without_privileges(),
                pytest.raises(OutputError, match=r"[Pp]ermission"),
                replacing(folder / "a") as temporary,
            ):
                temporary.write_bytes(b"new")
        finally:
            folder.chmod(0o755)
        assert inside(folder) == []


def test_a_folder_closed_to_this_user_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="cannot be written to; check its permissions"):
        check_output(tmp_path / "a")


FULL = """
import os, resource, signal, sys
import numpy as np
from streamkern.errors import OutputError
from streamkern.features import Identity
from streamkern.predictor import Predictor
from streamkern.storage import ModelFile, RowWriter, write_model

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
what, path = sys.argv[1:]
try:
    if what == "model":
        coef = np.random.default_rng(0).random((300_000, 1))
        predictor = Predictor(Identity().draw(300_000), coef, np.zeros(1))
        write_model(path, ModelFile(predictor, {}), force=True)
    elif what == "rows":
        with RowWriter.create(path, force=True) as writer:
            for _ in range(40):
                writer.append("y_pred", np.random.default_rng(0).random(10_000))
    else:
        with RowWriter.create(path, force=True) as writer:
            writer.append("y_pred", np.random.default_rng(0).random(1_000_000))
except OutputError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["model", "rows", "one append"])
@pytest.mark.parametrize("old", [b"old", None])
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(tmp_path, what, old):
    path = tmp_path / "a.h5"
    if old:
        path.write_bytes(old)
    done = subprocess.run(
        [sys.executable, "-c", FULL, what, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() == (
        f"{path} cannot be written: the disk or quota is full; the partial file was removed, make "
        f"room or write elsewhere."
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert inside(tmp_path) == (["a.h5"] if old else [])
    if old:
        assert path.read_bytes() == old


def test_a_row_writer_that_is_interrupted_leaves_nothing(tmp_path):
    import numpy as np

    def write():
        with RowWriter.create(tmp_path / "a.h5") as writer:
            writer.append("y_pred", np.zeros(10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert inside(tmp_path) == []


@pytest.mark.parametrize("write", [check_output, make_folder])
def test_a_url_is_refused_and_shown_without_its_secrets(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError) as error:
        write("s3://key:hunter2@bucket/model.h5")
    assert str(error.value) == (
        "s3://...@bucket/model.h5 is a URL, but outputs are files here; write a file, and copy it "
        "there."
    )
    assert inside(tmp_path) == []
