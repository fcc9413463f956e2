"""Output files appear whole or not at all."""

import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rows_read import inside

from streamkern.cli.signals import Stopped, stoppable
from streamkern.errors import OutputError
from streamkern.storage.hdf5_files import RowWriter
from streamkern.storage.outputs import check_output, replacing


@pytest.mark.parametrize("old", [b"old", None])
def test_a_file_appears_at_the_last_moment_and_is_replaced_by_force_alone(
    tmp_path, monkeypatch, old
):
    monkeypatch.chdir(tmp_path)  # a name without a folder is here
    if old:
        Path("a").write_bytes(old)
        with (
            pytest.raises(
                OutputError, match=r"a exists already; give force=True \(--force\) to replace it"
            ),
            replacing("a"),
        ):
            pytest.fail("the writer was asked to work")
    assert check_output("a", force=bool(old)) == tmp_path / "a"
    with replacing("a", force=bool(old)) as temporary:
        temporary.write_bytes(b"new")
        assert temporary.parent == tmp_path
        assert (Path("a").read_bytes() if Path("a").exists() else None) == old
    assert Path("a").read_bytes() == b"new"
    assert inside(tmp_path) == ["a"]


def no_links(*_, **__):
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def no_locks(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_of_two_jobs_to_one_new_path_the_second_is_refused(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)

    def write():
        with replacing(tmp_path / "a") as temporary:
            with replacing(tmp_path / "a") as other:
                other.write_bytes(b"first")
            temporary.write_bytes(b"second")

    with pytest.raises(OutputError, match="a was made by another job meanwhile, and is kept"):
        write()
    assert (tmp_path / "a").read_bytes() == b"first"
    assert inside(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", [0o640, 0o444])
def test_a_file_that_is_replaced_passes_on_its_mode_and_a_new_one_heeds_the_umask(tmp_path, mode):
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    old.chmod(mode)
    if os.geteuid() == 0:
        os.chown(old, 1234, 2345)
    before = old.stat()
    umask = os.umask(0o027)
    for path in (old, new):
        with replacing(path, force=True) as temporary:
            temporary.write_bytes(b"secret")
            if path == old:  # nobody reads it while it is written
                assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    os.umask(umask)
    kept = ("st_mode", "st_uid", "st_gid")
    assert all(getattr(old.stat(), name) == getattr(before, name) for name in kept)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_a_group_that_cannot_be_kept_gives_its_rights_to_no_other(tmp_path, monkeypatch):
    (tmp_path / "a").touch(0o600)
    (tmp_path / "a").chmod(0o660)
    true = Path.stat

    def of_another_group(path, **options):
        found = list(true(path, **options))
        found[5] += path.name == "a"
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", of_another_group)
    monkeypatch.setattr(os, "chown", no_links)
    with replacing(tmp_path / "a", force=True) as temporary:
        temporary.write_bytes(b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to("a")
    with replacing(tmp_path / "link", force=True) as temporary:
        temporary.write_bytes(b"new")
    assert (tmp_path / "link").readlink() == Path("a")
    assert (tmp_path / "a").read_bytes() == b"new"


KILLED = """
import os, signal, sys, time
from pathlib import Path
from streamkern.storage.hdf5_files import exported
from streamkern.storage.outputs import replacing

with replacing(sys.argv[1]) as file, exported(sys.argv[2]) as rows:
    file.touch()
    rows.touch()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_job_left_is_removed_by_the_next_one_and_no_living_job_loses_any(tmp_path):
    command = [sys.executable, "-c", KILLED, tmp_path / "a", tmp_path / "b.csv"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    elsewhere = (f"elsewhere-{'0' * 32}", f"{socket.gethostname()}-2-{'0' * 32}")
    endings = (".lock", ".partial")
    foreign = [tmp_path / f".streamkern-{name}{end}" for name in elsewhere for end in endings]
    with subprocess.Popen(command, **pipes) as job:
        job.stdout.readline()
        held = set(inside(tmp_path))
        for path in foreign:  # of a machine whose locks are not seen here
            path.touch()
        with replacing(tmp_path / "c") as temporary:
            temporary.touch()
            assert held < set(inside(tmp_path))
        assert held < set(inside(tmp_path))
        job.kill()
    with replacing(tmp_path / "d") as temporary:
        temporary.touch()
        assert not held & set(inside(tmp_path))
    assert inside(tmp_path) == [*sorted(path.name for path in foreign), "c", "d"]
    for path in foreign:
        before = time.time() - 8 * 24 * 3600
        os.utime(path, (before, before))
    with replacing(tmp_path / "e") as temporary:
        temporary.touch()
    assert inside(tmp_path) == ["c", "d", "e"]


def test_what_looks_like_a_temporary_path_but_leads_elsewhere_harms_nothing(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").touch()
    for name, ending in (("a" * 32, "partial"), ("b" * 32, "lock")):
        place = tmp_path / f".streamkern-{socket.gethostname()}-{name}.{ending}"
        place.symlink_to(tmp_path / "mine")
    (tmp_path / f".streamkern-{socket.gethostname()}-{'a' * 32}.lock").touch()
    with replacing(tmp_path / "new") as temporary:
        temporary.touch()
    assert inside(tmp_path / "mine") == ["kept"]


def test_a_link_that_somebody_puts_at_the_temporary_path_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "mine").write_bytes(b"precious")
    lock = fcntl.flock

    def locked(descriptor, how):
        lock(descriptor, how)
        (made,) = tmp_path.glob(".streamkern-*.lock")
        made.with_suffix(".partial").symlink_to(tmp_path / "mine")

    monkeypatch.setattr("fcntl.flock", locked)
    with (
        pytest.raises(OutputError, match="a cannot be written"),
        replacing(tmp_path / "a") as temporary,
    ):
        temporary.write_bytes(b"new")
    assert (tmp_path / "mine").read_bytes() == b"precious"
    assert inside(tmp_path) == ["mine"]


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", no_locks)
    with replacing(tmp_path / "a") as temporary:
        temporary.write_bytes(b"new")
        assert inside(tmp_path) == [temporary.name]
        with replacing(tmp_path / "b") as other:
            other.touch()
    assert inside(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "old"), [(KeyboardInterrupt, b"old"), (OutputError, b"old"), (SystemExit, None)]
)
def test_an_error_or_interruption_leaves_everything_as_it_was(tmp_path, error, old):
    path = tmp_path / "a.h5"
    if old:
        path.write_bytes(old)

    def fail(made):
        made.append("y", np.zeros(9)) if isinstance(made, RowWriter) else made.write_bytes(b"half")
        raise error("stop")

    for making in (replacing(path, force=True), RowWriter.create(path, force=True)):
        with pytest.raises(error, match="stop"), making as made:
            fail(made)
    assert inside(tmp_path) == (["a.h5"] if old else [])
    assert not old or path.read_bytes() == old


def test_a_system_error_of_the_writer_becomes_one_sentence(tmp_path):
    said = r"a cannot be written \(Input/output error\); the part"
    with pytest.raises(OutputError, match=said), replacing(tmp_path / "a"):
        raise OSError(5, "Input/output error")
    with pytest.raises(OutputError, match="cannot be written"), replacing(tmp_path / "a"):
        pass  # nothing is written
    assert inside(tmp_path) == []


@pytest.mark.parametrize(
    "use", [check_output, lambda path, **options: RowWriter.create(path, **options).__enter__()]
)
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("none/a.h5", "the folder .*none does not exist; make it"),
        ("folder", "folder is a folder; name a file"),
        ("file/a.h5", "file does not exist|not a folder"),
    ],
)
def test_places_that_cannot_hold_a_file_are_refused(tmp_path, monkeypatch, use, place, why):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=why):
        use(tmp_path / place, force=True)
    assert inside(tmp_path) == ["file", "folder"]
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="cannot be written to; check its permissions"):
        use(tmp_path / "a.h5")


@pytest.mark.usefixtures("usual_handlers")
def test_a_signal_while_a_temporary_file_is_made_leaves_no_lock(tmp_path, monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("fcntl.flock", interrupted)
    with pytest.raises(Stopped), stoppable(), replacing(tmp_path / "new.txt"):
        pass
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_link_to_nothing_is_refused(tmp_path):
    (tmp_path / "link.h5").symlink_to(tmp_path / "elsewhere.h5")
    with pytest.raises(OutputError, match=r"a link to .*elsewhere\.h5, which does not exist"):
        check_output(tmp_path / "link.h5")
