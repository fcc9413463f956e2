"""Every bad input through the command line: one sentence, a status, and nothing written."""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import commandline
import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from commandline import write

from streamkern.cli import main

N, P = 200, 3


class Outcome(NamedTuple):
    status: int
    message: str
    output: str


def streamkern(*arguments: object) -> Outcome:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Outcome(result.exit_code, result.stderr, result.stdout)


def rows(n: int = N, p: int = P) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return {"X": X, "y": np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.h5", **rows())
    return tmp_path


@pytest.fixture
def model(folder):
    path = folder / "model.h5"
    assert streamkern("fit", folder / "good.h5", "--components", 16, "--out", path).status == 0
    return path


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden files and empty folders included."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refused(folder: Path, *arguments: object, status: int = 1) -> str:
    """The one sentence that a command refuses its arguments with, having written nothing."""
    before = contents(folder)
    sentence = commandline.refused(*arguments, status=status)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert contents(folder) == before
    return sentence


def with_value(name: str, row: int | slice, value: float) -> dict[str, np.ndarray]:
    data = rows()
    data[name][row] = value
    return data


def test_a_file_without_permission_is_refused(folder):
    (folder / "good.h5").chmod(0)
    outcome = with_permissions_that_count(("fit", "good.h5", "--out", "out.h5"))
    assert outcome.status == 1
    assert "good.h5 cannot be read: permission denied" in outcome.message
    assert "Traceback" not in outcome.message


def test_bad_rows_can_be_skipped_and_are_counted(folder):
    data = rows()
    data["X"][[3, 50]] = np.nan
    data["y"][120] = np.inf
    path = write(folder / "data.h5", **data)
    out = folder / "out.h5"
    skipping = ("--on-bad-rows", "skip", "--quiet", "--json")
    fitted = streamkern("fit", path, "--out", out, "--components", 16, *skipping)
    assert fitted.status == 0
    report = json.loads(fitted.output.splitlines()[-1])
    assert (report["rows"], report["skipped_rows"]) == (N - 3, 3)
    evaluated = json.loads(streamkern("evaluate", out, path, *skipping).output.splitlines()[-1])
    assert (evaluated["rows"], evaluated["skipped_rows"]) == (N - 3, 3)
    predicted = streamkern("predict", out, path, "--out", "predicted.h5", *skipping)
    assert json.loads(predicted.output.splitlines()[-1])["skipped_rows"] == 2
    with h5py.File("predicted.h5") as file:
        assert np.flatnonzero(np.isnan(file["y_pred"][:])).tolist() == [3, 50]


def test_a_job_beyond_memory_is_refused_with_both_numbers_before_reading(folder):
    begun = time.perf_counter()
    sentence = refused(folder, *f"fit good.h5 {OUT} --solver direct --components 1000000".split())
    assert time.perf_counter() - begun < 5
    assert "1,000,000 components need" in sentence
    assert "TB" in sentence
    assert "GB may be used" in sentence


COMMANDS_THAT_WRITE = {
    "fit": lambda _model, out: ("fit", "good.h5", "--components", 16, "--out", out),
    "predict": lambda model, out: ("predict", model, "good.h5", "--out", out),
}


@pytest.mark.parametrize("command", list(COMMANDS_THAT_WRITE))
class TestOutputs:
    def test_an_existing_file_is_refused_and_kept(self, folder, model, command):
        (folder / "out.h5").write_text("precious")
        arguments = COMMANDS_THAT_WRITE[command](model, "out.h5")
        assert "out.h5 exists already; give --force" in refused(folder, *arguments)
        assert streamkern(*arguments, "--force", "--quiet").status == 0
        assert h5py.is_hdf5(folder / "out.h5")

    def test_an_output_that_cannot_be_is_refused(self, folder, model, command):
        for out, words in (("missing/out.h5", "does not exist"), (folder, "is a folder")):
            assert words in refused(folder, *COMMANDS_THAT_WRITE[command](model, out))


def test_a_folder_without_permission_is_refused(folder):
    locked = folder / "locked"
    locked.mkdir(mode=0o555)
    fit = COMMANDS_THAT_WRITE["fit"](None, locked / "out.h5")
    outcome = with_permissions_that_count(fit)
    assert outcome.status == 1
    assert "cannot be written to" in outcome.message
    assert "Traceback" not in outcome.message
    assert list(locked.iterdir()) == []


def somewhere_else(arguments: tuple[object, ...], **options: object) -> Outcome:
    command = [sys.executable, "-c", "from streamkern.cli import main; main()"]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )
    return Outcome(done.returncode, done.stderr, done.stdout)


def with_permissions_that_count(arguments: tuple[object, ...]) -> Outcome:
    """Run without the capability of root to pass over permissions (capabilities(7))."""

    def drop() -> None:
        if os.geteuid() == 0:
            drop_from_bounding_set, dac_override, dac_read_search = 24, 1, 2
            for capability in (dac_override, dac_read_search):
                ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)

    return somewhere_else(arguments, preexec_fn=drop)


def test_more_files_than_may_be_open_are_read_one_after_the_other(folder):
    for i in range(40):
        write(folder / f"part-{i:02}.h5", **rows(n=6))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

    fit = ("fit", "part-*.h5", "--out", "out.h5", "--components", 16, "--quiet", "--json")
    outcome = somewhere_else(fit, preexec_fn=limit)
    assert outcome.status == 0, outcome
    assert json.loads(outcome.output.splitlines()[-1])["rows"] == 240


# Files of rows that cannot be used, and what the sentence must say.
FILES = {
    "flat": ({"X": np.ones(5), "y": np.ones(5)}, "X must be 2-D", "(5,)"),
    "nan-x": (
        with_value("X", 17, np.nan),
        "1 of 200 rows",
        "nan-x.h5, row 17",
        "--on-bad-rows skip",
    ),
    "inf-x": (with_value("X", 3, np.inf), "1 of 200 rows", "inf-x.h5, row 3"),
    "nan-y": (with_value("y", 199, np.nan), "1 of 200 rows", "nan-y.h5, row 199"),
    "one-y": (rows() | {"y": np.full(N, 2.5)}, "every y equals 2.5", "nothing to learn"),
    "one-x": (rows() | {"X": np.ones((N, P))}, "all 3 columns of X are constant"),
    "far": (with_value("X", 0, 1e300), "column 0", "overflows", "rescale"),
    "cut": (rows(), "cut.h5 is a truncated HDF5 file"),
}
CLUSTERS = {
    "workers": (
        "version: 1\nmodule: dask.distributed\nclass: LocalCluster\nworkers: 3\n",
        "workers",
    ),
    "tag": ("!!python/object/apply:os.system ['touch owned']\n",),
    "host": (
        "version: 1\nmodule: distributed\nclass: SSHCluster\nkwargs: {hosts: [me, you]}\n",
        *("kwargs.hosts", "--trust-cluster-file"),
    ),
}
OPTIONS = {
    "--components 0": ("--components must be at least 1", "not 0"),
    "--alpha -1": ("alpha must be a finite number of at least 0", "-1.0"),
    "--alpha nan": ("alpha must be a finite number of at least 0", "nan"),
    "--alpha much": ("--alpha must be cv, gcv, evidence", "'much'"),
    "--alpha 1,,2": ("numbers with commas between", "'1,,2'"),
    "--alpha 1,0": ("positive numbers only", "leave out the 0"),
    "--alpha 1,-2": ("number of at least 0", "-2.0"),
    "--folds 1": ("at least 2 folds, not 1",),
    "--folds -3": ("--folds must be a whole number", "not -3"),
    "--fold-by shards": ("5 folds need as many shards, but there are 1", "--fold-by rows"),
    "--length-scale -2": ("--length-scale must be positive", "-2.0"),
    "--length-scale mean": ("--length-scale", "'mean'"),
    "--length-scale 1,2": ("one per input, 3 here, not 2",),
    "--dry-run --scheduler tcp://127.0.0.1:9": ("plans for this machine",),
    "--map identity --kernel laplacian": ("no kernel but the linear one",),
    "--trust-cluster-file": ("name it, or leave --trust-cluster-file",),
    **dict.fromkeys(("--kernel none", "--folds 2.5", "--workers 0", "--no-such-option"), ()),
}
OUT = "--out out.h5 --components 16 --quiet"
NO_MODEL = "is not a streamkern model"
# What is refused with status 1 in a folder with these files, and what the sentence says.
REFUSALS = {
    "fit absent.h5 --out out.h5": ("Error: absent.h5 does not exist",),
    "fit part-*.h5 --out out.h5": ("no file matches part-*.h5",),
    "fit t.csv --out out.h5": ("t.csv needs a target", "--target"),
    f"fit good.h5 {OUT} --x absent": ("no dataset 'absent'", "X, group/other, y"),
    f"fit good.h5 {OUT} --y absent": ("no dataset 'absent'", "X, group/other, y"),
    f"fit good.h5 wide.h5 {OUT}": ("3 inputs", "5 inputs", "wide.h5"),
    f"fit good.h5 ./good.h5 {OUT}": ("is named twice",),
    f"fit no-targets.h5 {OUT} --on-bad-rows skip": ("of 200 rows, 200 were skipped",),
    f"fit half.h5 {OUT} --on-bad-rows skip --fold-by blocks": (
        "fold 1 of 5 has no rows that could be used",
    ),
    f"fit large.h5 {OUT} --kernel linear --no-standardize": ("overflowed in single precision",),
    f"fit good.h5 {OUT} --force --out pipe": ("is not a plain file",),
    f"fit good.h5 {OUT} --out {'x' * 300}": ("cannot be written",),
    f"fit good.h5 nan-x.h5 {OUT}": ("1 of 400 rows", "nan-x.h5, row 17"),
    f"fit sum.h5 {OUT} --kernel linear --alpha 0": ("1 of 3 eigenvalues", "precision floor"),
    "compare absent.h5 --out found": ("does not exist",),
    "predict model.h5 wide.h5 --out out.h5": ("rows must have 3 columns", "(200, 5)"),
    "evaluate model.h5 wide.h5": ("rows must have 3 columns", "(200, 5)"),
    "evaluate model.h5 two.h5": ("predicts 1 target, but the data has 2",),
    "predict model.h5 nan-x.h5 --out out.h5 --quiet": ("1 of 200 rows", "nan-x.h5, row 17"),
    "evaluate model.h5 nan-x.h5 --quiet": ("1 of 200 rows", "nan-x.h5, row 17"),
    "predict model.h5 far.h5 --out out.h5 --quiet": (
        *("1 of 200 rows have no finite prediction", "far.h5, row 0"),
    ),
    "evaluate model.h5 far.h5 --quiet --json": ("overflow",),
    "show absent.h5": ("does not exist",),
    "predict t.csv good.h5 --out out.h5": (NO_MODEL,),
    "evaluate empty good.h5": (NO_MODEL,),
    "evaluate good.h5 good.h5": ("is HDF5 but not a streamkern model",),
    "show new.h5": ("format version 99", "install a newer one"),
    "evaluate short.h5 good.h5": ("was cut short",),
    **{f"fit {name}.h5 {OUT}": words for name, (_, *words) in FILES.items()},
}
# What is wrong usage, of status 2.
USAGE = {f"fit good.h5 {OUT} {options}": words for options, words in OPTIONS.items()} | {
    f"fit good.h5 {OUT} --cluster {name}.yaml": (f"{name}.yaml", *words)
    for name, (_, *words) in CLUSTERS.items()
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with files of every kind."""
    path = tmp_path_factory.mktemp("files")
    write(path / "good.h5", **rows(), **{"group/other": np.ones(3)})
    write(path / "wide.h5", **rows(p=P + 2))
    write(path / "two.h5", **rows() | {"y": np.ones((N, 2))})
    write(path / "no-targets.h5", **rows() | {"y": np.full(N, np.nan)})
    write(path / "half.h5", **with_value("X", slice(100), np.nan))
    write(path / "large.h5", **rows() | {"X": 1e25 * rows()["X"]})
    for name, (data, *_) in FILES.items():
        write(path / f"{name}.h5", **data)
    for name, (text, *_) in CLUSTERS.items():
        (path / f"{name}.yaml").write_text(text)
    os.truncate(path / "cut.h5", (path / "cut.h5").stat().st_size // 2)
    X = rows()["X"]
    write(path / "sum.h5", **rows() | {"X": np.c_[X[:, :2], 2 * X[:, 0] + X[:, 1]]})
    (path / "t.csv").write_text("a,b\n1,2\n")
    (path / "empty").write_bytes(b"")
    os.mkfifo(path / "pipe")
    fit = ("fit", path / "good.h5", "--components", 16, "--out", path / "model.h5")
    assert streamkern(*fit).status == 0
    whole = (path / "model.h5").read_bytes()
    (path / "short.h5").write_bytes(whole[: len(whole) // 2])
    (path / "new.h5").write_bytes(whole)
    with h5py.File(path / "new.h5", "r+") as file:
        file.attrs["format_version"] = 99
    return path


@pytest.mark.parametrize("command", [*REFUSALS, *USAGE])
def test_what_cannot_be_done_is_refused_in_one_sentence(files, monkeypatch, command):
    monkeypatch.chdir(files)
    sentence = refused(files, *command.split(), status=1 if command in REFUSALS else 2)
    for word in (REFUSALS | USAGE)[command]:
        assert word in sentence


@pytest.mark.cluster
@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_given_up_within_30_seconds(folder):
    before = contents(folder)
    begun = time.perf_counter()
    address = "tcp://127.0.0.1:9"
    outcome = somewhere_else(
        ("fit", "good.h5", "--out", "out.h5", "--scheduler", address, "--quiet")
    )
    assert time.perf_counter() - begun < 30
    assert outcome.status == 1
    assert address in outcome.message
    assert "Traceback" not in outcome.message
    assert contents(folder) == before
