"""Every bad input through the command line: one sentence, a status, and nothing written."""

import ctypes
import json
import os
import resource

import h5py
import numpy as np
import pytest
from commandline import refused, report_of, streamkern, unchanged_by, write
from harvests import labelled_rows
from rows_read import python

N, P = 200, 3


def rows(n: int = N, p: int = P) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return {"X": X, "y": np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.h5", **rows())
    return tmp_path


def with_value(name: str, row: int | slice, value: float) -> dict[str, np.ndarray]:
    data = rows()
    data[name][row] = value
    return data


def test_bad_rows_can_be_skipped_and_are_counted(folder):
    data = rows()
    data["X"][[3, 50]] = np.nan
    data["y"][120] = np.inf
    path = write(folder / "data.h5", **data)
    out = folder / "out.h5"
    skipping = ("--on-bad-rows", "skip")
    evaluate = ("evaluate", out, path, *skipping)
    left_out = (*evaluate, "--leave-one-out", 5)
    fit = ("fit", path, "--out", out, "--components", 16, *skipping)
    for arguments in (fit, evaluate, left_out):
        report = report_of(*arguments)
        assert (report["rows"], report["skipped_rows"]) == (N - 3, 3)
    assert "3 of 200 rows" in refused(*evaluate[:3], "--leave-one-out", 5, "--quiet")
    assert "rows skipped" in streamkern(*evaluate).stdout
    predict = ("predict", out, path, "--out", "predicted.h5", "--force", *skipping)
    assert report_of(*predict)["skipped_rows"] == 2
    assert "200 predictions in predicted.h5:y_pred, 2 of them NaN" in streamkern(*predict).stdout
    with h5py.File("predicted.h5") as file:
        assert np.flatnonzero(np.isnan(file["y_pred"][:])).tolist() == [3, 50]


def test_a_job_beyond_memory_is_refused_with_both_numbers_before_reading(folder):
    fit = f"fit good.h5 {OUT} --solver direct --components 1000000"
    sentence = unchanged_by(folder, *fit.split())
    assert "1,000,000 components need" in sentence
    assert "TB" in sentence
    assert "GB may be used" in sentence


CALL = """
import sys
from streamkern.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        print(end.code)
"""


def without_override() -> None:
    """Take away the capability of root to pass over permissions (capabilities(7))."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override, dac_read_search = 24, 1, 2
        for capability in (dac_override, dac_read_search):
            ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def test_files_and_folders_without_permission_are_refused(folder):
    write(folder / "shut.h5", **rows())
    (folder / "shut.h5").chmod(0)
    (folder / "locked").mkdir(mode=0o555)
    fits = "fit shut.h5 --out out.h5", "fit good.h5 --components 16 --out locked/out.h5"
    done = python(CALL, *fits, preexec_fn=without_override)
    assert done.stdout == "1\n1\n"
    assert "shut.h5 cannot be read: permission denied" in done.stderr
    assert "cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((folder / "locked").iterdir()) == []


def test_more_files_than_may_be_open_are_read_one_after_the_other(folder):
    for i in range(40):
        write(folder / f"part-{i:02}.h5", **rows(n=6))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

    fit = ("fit", "part-*.h5", "--out", "out.h5", "--components", 16, "--quiet", "--json")
    outcome = python("from streamkern.cli import main; main()", *fit, preexec_fn=limit)
    assert outcome.returncode == 0, outcome
    assert json.loads(outcome.stdout.splitlines()[-1])["rows"] == 240


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
        *("kwargs.hosts", "your own Dask configuration"),
    ),
}
OPTIONS = {
    "--components 0": ("Error: --components must be at least 1", "not 0"),
    "--alpha -1": ("Error: --alpha must be a finite number of at least 0", "-1.0"),
    "--alpha 1,,2": ("numbers with commas between", "'1,,2'"),
    "--folds 1": ("at least 2 folds, not 1",),
    "--folds -3": ("--folds must be a whole number", "not -3"),
    "--fold-by shards": ("5 folds need as many shards, but there are 1", "--fold-by rows"),
    "--length-scale -2": ("--length-scale must be positive", "-2.0"),
    "--length-scale 1,2": ("one per input, 3 here, not 2",),
    "--dry-run --scheduler tcp://127.0.0.1:9": ("plans for this machine",),
    "--map identity --kernel laplacian": ("no kernel but the linear one",),
    **{f"--{name} x": (f"Error: --{name} must be",) for name in ("kernel", "metric")},
    "--sparse 17": ("more features than the 16",),
    "--sparse auto --alpha 1": ("'auto' is chosen by cross-validation",),
    "--sparse 4 --components auto": ("give the number of components",),
    "--sparse 4 --map identity": ("more features than the 3",),
    "--kernel gaussian[0]*": ("kernel must be one of",),
    "--kernel polynomial": ("need a shift-invariant kernel",),
    "--boost 3": ("--boost is for classes",),
    "--classify --boost many": ("--boost must be a number of rounds",),
    "--classify --boost 3:x": ("algorithm must be one of gentle, real, discrete",),
    "--classify --boost 3 --calibration none": ("--calibration is not for rounds",),
    "--classify --boost 3 --report r.html": ("--report is not for rounds",),
    "--class-weight balanced": (
        "is for labels of classes, which y is taken for with --classify; leave it out for",
    ),
    **dict.fromkeys(("--folds 2.5", "--workers 0", "--no-such-option"), ()),
}
COMPARED = {
    "components": ("many", "8,,16", "8.5", "0", "8,8"),
    "maps": ("", "sobol", "identity", "phase", "iid,iid"),
    "seeds": ("0", "two"),
    "alpha": ("-1",),
    "folds": ("1",),
    "length-scale": ("0",),
    "seed": ("-1",),
    "kernel": ("multiquadric",),
}
OUT = "--out out.h5 --components 16 --quiet"
NO_MODEL = "is not a streamkern model"
# What is refused with status 1 in a folder with these files, and what the sentence says.
REFUSALS = {
    "fit absent.h5 --out out.h5": ("Error: absent.h5 does not exist",),
    "fit part-*.h5 --out out.h5": ("no file matches part-*.h5",),
    "predict model.h5 good.h5 --out out.h5 --x absent": ("no dataset 'absent'",),
    "inspect absent.h5": ("does not exist; check the path.",),
    "inspect none-*.h5": ("no file matches",),
    "inspect empty.csv": ("cannot be read",),
    "inspect .": ("is a folder",),
    "convert t.csv out.h5": ("needs a target; name a column as y (--target), of: a, b; or",),
    "convert t.csv out.h5 --target x": ("no column 'x'; its columns are a, b.",),
    "convert none.csv out.h5 --target x": ("does not exist or is not a file",),
    "convert t.xls out.h5 --json": ("must end in .csv,",),
    "convert t.csv none/out.h5 --target a": ("the folder",),
    "convert words.csv out.h5 --target a": ("column 'b' holds numbers ('2') and text ('red')",),
    "fit labels.h5 --out out.h5": (
        "if these are labels of classes, take a classifier (--classify)",
    ),
    "fit hay.h5 --classify --out out.h5": ("every label is 'hay', but a classifier needs",),
    "fit good.h5 --classify --out out.h5": ("the target is continuous",),
    "evaluate classifier.h5 rye.h5": ("row 3 has the label 'rye', which is none of the 3 classes",),
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
    f"fit good.h5 {OUT} --out missing/out.h5": ("does not exist",),
    f"fit good.h5 {OUT} --out .": ("is a folder",),
    "predict model.h5 good.h5 --out missing/out.h5": ("does not exist",),
    "predict model.h5 good.h5 --out .": ("is a folder",),
    f"fit good.h5 nan-x.h5 {OUT}": ("1 of 400 rows", "nan-x.h5, row 17"),
    f"fit sum.h5 {OUT} --kernel linear --alpha 0": ("1 of 3 eigenvalues", "precision floor"),
    "compare absent.h5 --out found": ("does not exist",),
    "compare good.h5 --out missing/found": ("missing/found cannot be made",),
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
    "evaluate short.h5 good.h5": ("is a truncated HDF5 file",),
    **{f"fit {name}.h5 {OUT}": words for name, (_, *words) in FILES.items()},
}
# What is wrong usage, of status 2.
USAGE = {f"fit good.h5 {OUT} {options}": words for options, words in OPTIONS.items()} | {
    f"fit good.h5 {OUT} --cluster {name}.yaml": (f"{name}.yaml", *words)
    for name, (_, *words) in CLUSTERS.items()
}
USAGE |= {
    f"compare good.h5 --out found --{option}={value}": (option,)
    for option, values in COMPARED.items()
    for value in values
}
USAGE |= {
    f"pca good.h5 --out out.h5 --components {value}": ("omponents must be a whole number",)
    for value in ("1.5", "most", "0")
}
USAGE |= {
    f"tune good.h5 {OUT} --map iid,iid": ("--map iid,iid names a map twice",),
    f"tune good.h5 {OUT} --kernel gaussian,auto": ("kernel must be one of",),
    "pca good.h5 --out out.h5 --map auto": ("--map must be one of",),
    "convert t.csv out.h5 --no-target --target a": ("exclude each other",),
    "predict classifier.h5 labels.h5 --out out.h5 --std": ("--std is for regressions",),
    "predict model.h5 good.h5 --out out.h5 --proba": ("--proba is for classifiers",),
    **dict.fromkeys(
        ("show", "fit good.h5", "train", "demo --rows 3999", "convert", "convert t.csv"), ()
    ),
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
    (path / "words.csv").write_text("a,b\n1,red\n1,2\n")
    for name in ("empty", "empty.csv"):
        (path / name).write_bytes(b"")
    X, labels = labelled_rows()
    write(path / "labels.h5", X, labels)
    write(path / "rye.h5", X, np.where(np.arange(len(X)) == 3, "rye", labels))
    write(path / "hay.h5", X, np.full(len(X), "hay"))
    classify = ("--classify", "--components", 16, "--out", path / "classifier.h5")
    streamkern("fit", path / "labels.h5", *classify)
    os.mkfifo(path / "pipe")
    fit = ("fit", path / "good.h5", "--components", 16, "--scale", "standard")
    streamkern(*fit, "--out", path / "model.h5")
    whole = (path / "model.h5").read_bytes()
    (path / "short.h5").write_bytes(whole[: len(whole) // 2])
    (path / "new.h5").write_bytes(whole)
    with h5py.File(path / "new.h5", "r+") as file:
        file.attrs["format_version"] = 99
    return path


@pytest.mark.parametrize("command", [*REFUSALS, *USAGE])
def test_what_cannot_be_done_is_refused_in_one_sentence(files, monkeypatch, command):
    monkeypatch.chdir(files)
    sentence = unchanged_by(files, *command.split(), status=1 if command in REFUSALS else 2)
    # `compare` names some options as the command line writes them and some as Python does.
    said = sentence.replace("_", "-") if command.startswith("compare") else sentence
    for word in (REFUSALS | USAGE)[command]:
        assert word in said
    if command.startswith("fit"):
        assert "n_components" not in sentence  # the command's option is --components
