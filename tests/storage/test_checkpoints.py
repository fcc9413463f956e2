"""A folder of checkpoints: of one job, for one process at a time, and never half a file."""

import fcntl

import pytest
from rows_read import inside, python

from streamkern.errors import CheckpointError, StreamkernWarning
from streamkern.storage import plain_values
from streamkern.storage.checkpoints import SavedPass, opened_checkpoint, remove_checkpoint
from streamkern.storage.outputs import replacing

JOB = {"options": {"n_components": 32, "kernel": {"name": "gaussian"}}, "files": [["a.h5", 7]]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": JOB["options"] | {"n_components": 64}}, "options n_components was 32, now 64"),
        ({"files": [["a.h5", 8]]}, "files 1 2 was 7, now 8"),
        ({"files": []}, r'files was \[\["a.h5", 7\]\], now \[\]'),
        ({"files": None}, "now null"),
        ({"seed": 1}, "seed was null, now 1"),
    ],
)
def test_another_job_is_refused_with_what_differs(tmp_path, changes, said):
    with opened_checkpoint(tmp_path, JOB):
        pass
    before = inside(tmp_path)
    with pytest.raises(CheckpointError, match=said), opened_checkpoint(tmp_path, JOB | changes):
        pytest.fail("another job was let in")
    assert inside(tmp_path) == before


@pytest.mark.parametrize("name", ["thesis.txt", "site-group-00001.h5"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(CheckpointError, match=f"holds {name!r}"), opened_checkpoint(tmp_path, JOB):
        pytest.fail("a stranger's folder was taken")
    assert (tmp_path / name).read_text() == "mine"


def test_a_second_job_is_refused_at_once(tmp_path):
    opening = f"with opened_checkpoint({str(tmp_path)!r}, {JOB!r}): pass"
    with opened_checkpoint(tmp_path, JOB):
        other = python(f"from streamkern.storage.checkpoints import opened_checkpoint\n{opening}")
    assert other.returncode == 1
    assert "is in use by another job" in other.stderr


def test_a_file_system_without_locks_is_worked_on(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with opened_checkpoint(tmp_path, JOB) as checkpoint:
        assert checkpoint.folder == str(tmp_path)


def test_totals_take_the_place_of_what_is_in_them(tmp_path):
    saved = SavedPass(str(tmp_path), "moments")
    for number in (0, 2, 3):
        saved.write_group(number, [number])
    assert [saved.holds(number) for number in range(5)] == [True, False, True, True, False]
    saved.write_total(0, [0])
    saved.write_total(2, [2])
    assert inside(tmp_path) == ["moments-group-00003.h5", "moments-up-to-00002.h5"]
    assert [saved.holds(number) for number in range(5)] == [True, True, True, True, False]
    assert (saved.last_total(), saved.read_total(2), saved.read_group(3)) == (2, [2], [3])
    other = SavedPass(str(tmp_path), "moments-1-of-2")  # takes none of these files
    assert not any(map(other.holds, range(5)))
    other.write_group(9, [9])
    assert not saved.holds(9)


def test_damaged_files_and_those_of_killed_processes_are_removed_and_said(tmp_path):
    with opened_checkpoint(tmp_path, JOB) as checkpoint:
        checkpoint.of_pass("moments", "token").write_group(0, [0])
        checkpoint.of_pass("moments", "token").write_group(1, [1])
    for ending in ("partial", "lock"):
        (tmp_path / f".streamkern-elsewhere-0.{ending}").write_bytes(b"half")
    (half,) = tmp_path.glob("moments-*-group-00001.h5")
    half.write_bytes(b"half")
    opening = opened_checkpoint(tmp_path, JOB)
    with pytest.warns(StreamkernWarning, match=r"1 of the files .* is computed again"):
        opening.__enter__()
    opening.__exit__(None, None, None)
    saved = checkpoint.of_pass("moments", "token")
    assert [saved.holds(number) for number in range(2)] == [True, False]
    assert inside(tmp_path) == ["job.json", "lock", f"{saved.name}-group-00000.h5"]


NO_JOBS = ["", "{", "[1]", "\0", "[" * 200_000, '{"a":' * 900 + "1" + "}" * 900, "1e400"]
NO_JOBS += ['{"seed": 1' + "0" * 400 + "}"]


@pytest.mark.parametrize("text", NO_JOBS, ids=range(len(NO_JOBS)))
def test_a_description_of_a_job_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "job.json").write_text(text)
    with pytest.raises(CheckpointError) as error, opened_checkpoint(tmp_path, JOB):
        pytest.fail("it was taken for that of this job")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_sums_of_other_jobs_and_of_other_passes_are_not_found(tmp_path):
    with opened_checkpoint(tmp_path / "one", JOB) as checkpoint:
        checkpoint.of_pass("moments", "token").write_group(0, [0])
        assert checkpoint.of_pass("moments", "token").holds(0)
        assert not checkpoint.of_pass("moments", "another").holds(0)
    with opened_checkpoint(tmp_path / "other", JOB | {"files": []}) as checkpoint:
        for path in (tmp_path / "one").glob("*.h5"):  # as a worker of the other job may write
            path.rename(tmp_path / "other" / path.name)
        assert not checkpoint.of_pass("moments", "token").holds(0)


def test_what_workers_of_a_job_that_is_gone_write_is_in_nobodys_way(tmp_path):
    with opened_checkpoint(tmp_path, JOB) as checkpoint:
        late = checkpoint.of_pass("moments", "token")
    remove_checkpoint(tmp_path)
    tmp_path.mkdir()
    late.write_group(3, [3])
    with opened_checkpoint(tmp_path, JOB | {"files": []}) as checkpoint:
        assert not checkpoint.of_pass("moments", "token").holds(3)
    remove_checkpoint(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()])
def test_sums_that_cannot_be_read_now_are_not_removed(tmp_path, monkeypatch, error):
    with opened_checkpoint(tmp_path, JOB) as checkpoint:
        checkpoint.of_pass("moments", "token").write_group(0, [0])

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(plain_values.h5py, "File", fail)
        with pytest.raises((CheckpointError, MemoryError)), opened_checkpoint(tmp_path, JOB):
            pytest.fail("what could not be read was taken")
    with opened_checkpoint(tmp_path, JOB) as checkpoint:
        assert checkpoint.of_pass("moments", "token").holds(0)


def test_a_checkpoint_that_another_job_has_taken_is_not_removed(tmp_path):
    with opened_checkpoint(tmp_path / "saved", JOB) as checkpoint:
        checkpoint.of_pass("moments", "token").write_group(0, [0])
        remove_checkpoint(tmp_path / "saved")
        assert checkpoint.of_pass("moments", "token").holds(0)
    remove_checkpoint(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    remove_checkpoint(tmp_path / "saved")


def test_removing_a_checkpoint_leaves_what_is_not_its_own(tmp_path):
    folder = tmp_path / "saved"
    with opened_checkpoint(folder, JOB) as checkpoint:
        checkpoint.of_pass("columns", "token").write_total(0, [0])
        checkpoint.of_pass("columns", "token").write_group(1, [0])
    (folder / "notes.txt").write_text("mine")
    (folder / ".streamkern-elsewhere-0.partial").touch()  # of a worker that was killed
    (folder / ".mine.lock").symlink_to("nowhere")
    (folder / ".mine.partial").touch()
    with replacing(folder / "rows.h5") as other:  # of another job, which goes on
        other.touch()
        with opened_checkpoint(folder, JOB):
            assert other.exists()
    remove_checkpoint(folder)
    left = [".mine.lock", ".mine.partial", "notes.txt", "rows.h5"]
    assert inside(folder) == left
    for name in left:
        (folder / name).unlink()
    remove_checkpoint(folder)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["lock", "job.json", "columns-0123456789ab-group-00000.h5"])
def test_a_link_in_a_checkpoint_is_refused_and_not_followed(tmp_path, name):
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=f"'{name}', a link"), opened_checkpoint(folder, JOB):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_the_place_of_sums_is_told(tmp_path):
    with opened_checkpoint(tmp_path, JOB):
        pass
    (tmp_path / "columns-0123456789ab-group-00000.h5").mkdir()
    with pytest.raises(CheckpointError, match="h5 is a folder"), opened_checkpoint(tmp_path, JOB):
        pass
