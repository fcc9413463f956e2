"""The benchmark: what it measures, what it makes of that, and what it draws."""

import json
import math
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from commandline import JOBS, job

import streamkern
from streamkern.sources import Shard

sys.path.append(str(JOBS))
from benchmarking import latency, measuring, roofline, rows
from benchmarking.cases import CODECS, Case, measured_by, together
from benchmarking.measuring import summary
from benchmarking.picture import draw
from benchmarking.rows import opened, path_of, write_rows
from benchmarking.table import table


def benchmark(folder, *arguments):
    """The results of a run, and what it says."""
    said = job(folder, "benchmark.py", "--out", folder, *arguments)
    (written,) = folder.glob("*.json")
    return json.loads(written.read_text()), said


@pytest.mark.slow
@pytest.mark.cluster
def test_one_run_gives_one_table_one_picture_and_one_file(tmp_path):
    size = ("--rows", 4000, "--components", 64, "--repeats", 1, "--workers", 2)
    results, said = benchmark(tmp_path, *size)
    assert {"command", "begun", "ended", "machine", "repeats", "sweeps", "cases"} <= results.keys()
    assert {"processor", "cores", "memory_bytes", "libraries", "blas"} <= results["machine"].keys()
    (entry,) = results["cases"]
    assert (entry["case"]["rows"], entry["case"]["workers"]) == (4000, 2)
    with h5py.File(tmp_path / "data" / "4000x90-none.h5") as file:
        spread = file["y_test"][:].std()
    found = entry["contenders"]
    rooflines = {"roofline", "roofline int8"}
    contenders = ["streamkern", "int8", "choice", "dask", "ridge", "nystroem", "sgd"]
    assert found.keys() == {*rooflines, *contenders}
    for name, contender in found.items():
        own = "roofline int8" if name in {"int8", "roofline int8"} else "roofline"
        base = found[own]["runs"][0]["seconds"]
        seconds = [run["seconds"] for run in contender["runs"]]
        assert len(seconds) == 1
        assert contender["seconds"]["median"] == pytest.approx(seconds[0])
        assert contender["ratio"] == pytest.approx(seconds[0] / base)
        assert 20e6 < contender["peak_bytes"] < 2e9
        if name not in rooflines:
            assert 0.0 < contender["test_rmse"] < spread
    passed, base = (
        found["streamkern"]["parts"]["accumulate"],
        found["roofline"]["runs"][0]["seconds"],
    )
    assert passed["ratio"] == pytest.approx(passed["seconds"]["median"] / base)
    assert passed["seconds"]["max"] <= found["streamkern"]["seconds"]["max"]
    assert said.startswith("n = 4,000, p = 90, D = 64, single precision")
    assert (tmp_path / "headline.md").read_text() == said
    for ending, begun in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (tmp_path / f"headline{ending}").read_bytes().startswith(begun)


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["--sweep prediction", "--contenders gradients"])
def test_what_is_no_fit_has_a_roofline_of_its_own(tmp_path, asked):
    size = ("--rows", 4000, "--components", 64, "--repeats", 1, "--place", "threads")
    results, said = benchmark(tmp_path, *asked.split(), *size)
    assert [sweep["cases"] for sweep in results["sweeps"].values()] == [[0]]
    found, name = results["cases"][0]["contenders"], asked.split()[1]
    assert (list(found), found[f"{name} roofline"]["ratio"]) == ([f"{name} roofline", name], 1.0)
    assert "on threads" in said
    assert not list(tmp_path.glob("data/tmp*"))


def test_a_sweep_is_one_axis_and_values_that_are_given_go_first():
    workers = measured_by("workers", {"rows": [100, 200]}, "processes")
    assert [(case.rows, case.workers) for case in workers.cases] == [
        *((100, 1), (100, 2), (200, 1), (200, 2))
    ]
    given = measured_by("workers", {"workers": [3]}, "threads", ["streamkern"])
    assert given.cases == [Case(workers=3, place="threads")]
    assert given.contenders == ("streamkern",)
    same = measured_by("headline", {"rows": [100], "workers": [1]}, "processes", ["dask"])
    everyone = together([workers, same])
    assert len(everyone) == 4
    assert everyone[same.cases[0]] == ["roofline", "streamkern", "dask"]


def runs_of(*seconds, **others):
    run = {"peak_bytes": 1e9, "load_of_others": 0.1, "test_rmse": 0.5} | others
    return [{"seconds": value} | run for value in seconds]


def test_ratios_are_those_of_medians():
    found = summary(
        Case(rows=1000),
        {
            "roofline": runs_of(2.0, 9.0, 1.0),
            "streamkern": runs_of(3.0, 4.0, 11.0, parts={"accumulate": 2.5}),
            "nystroem": [{"refused": "needs 9 GB, 1 GB is free"}],
            "sgd": [{"failed": "exit status 1"}, *runs_of(6.0, 8.0)],
        },
    )
    assert found["roofline"]["ratio"] == 1.0
    ours = found["streamkern"]
    assert ours["ratio"] == 2.0
    assert ours["parts"]["accumulate"]["ratio"] == 1.25
    assert ours["microseconds_a_row"] == 4000.0
    spread = {"lower_quartile": 3.5, "upper_quartile": 7.5, "min": 3.0, "max": 11.0}
    assert ours["seconds"] == {"median": 4.0} | spread
    assert "seconds" not in found["nystroem"]
    assert found["nystroem"]["refused"] == "needs 9 GB, 1 GB is free"
    assert (found["sgd"]["seconds"]["median"], found["sgd"]["failed"]) == (7.0, "exit status 1")


def test_what_cannot_fit_in_memory_is_refused_and_not_run(monkeypatch):
    monkeypatch.setattr(measuring, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(measuring.subprocess, "Popen", None)
    found = measuring.measure("nystroem", Case(), Path("rows.h5"))
    assert found == {"refused": "needs 6.7 GB, 1 GB is free"}


def test_rows_do_not_depend_on_the_codec(tmp_path):
    cases = [Case(rows=3000, inputs=8, codec=codec) for codec in CODECS]
    write_rows(tmp_path, cases)
    expected, sizes = None, []
    for case in cases:
        with opened(path_of(tmp_path, case)) as file:
            X, y = file["X"][:], file["y"][:]
            assert file["X"].chunks == (1024, 8)
            sizes.append(file["X"].id.get_storage_size())
            assert len(file["y_test"]) == 10_000
        expected = (X, y) if expected is None else expected
        assert np.array_equal(X, expected[0])
        assert np.array_equal(y, expected[1])
    assert np.abs(X.std(axis=0) - 1.0).max() < 0.1
    assert max(sizes[1:]) < 0.7 * sizes[0]
    before = path_of(tmp_path, cases[0]).stat().st_mtime_ns
    write_rows(tmp_path, cases)
    assert path_of(tmp_path, cases[0]).stat().st_mtime_ns == before


def test_rows_that_the_disk_has_no_room_for_are_not_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(rows.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    with pytest.raises(SystemExit, match=r"need 3.64 GB in .* but 1 MB is free"):
        rows.write_rows(tmp_path / "data", [Case(rows=10_000_000)])
    assert not list(tmp_path.glob("data/*"))


def test_every_chunk_comes_late_once(tmp_path, monkeypatch):
    n = 10_000
    X = np.arange(2.0 * n).reshape(n, 2)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(1000, 2))
        file.create_dataset("y", data=X[:, 0], chunks=(4000,))
    waited = []
    monkeypatch.setattr(latency.time, "sleep", waited.append)
    inner = streamkern.open_hdf5(tmp_path / "rows.h5")
    source = latency.LateSource(inner, 0.5)
    assert source.shards(5000) == inner.shards(5000)
    assert (source.n_samples, source.dtype) == (n, inner.dtype)
    for shard, chunks in ((Shard(0, 0, n), 10 + 3), (Shard(1, 5000, 7000), 2 + 1)):
        waited.clear()
        reader = pickle.loads(pickle.dumps(source.reader(shard)))  # noqa: S301  our own
        seen = [block.X.copy() for block in reader.blocks(1500)]
        assert np.array_equal(np.concatenate(seen), X[shard.start : shard.stop])
        assert len(waited) == len(seen)
        assert sum(waited) == 0.5 * chunks


@pytest.mark.parametrize("work", ["fit", "predict"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_roofline_works_on_every_row(work, precision):
    case = Case(rows=9000, components=32, workers=2, precision=precision, place="threads")
    found = roofline.measure(case, work)
    assert found["seconds"] > 0.0
    operations = 9000 * 32 * (90 + (32 if work == "fit" else 2))
    assert found["operations_per_second"] * found["seconds"] == pytest.approx(operations)


def results_of(*cases, **contenders):
    machine = {"processor": "Some", "cores": 2, "blas": [{"architecture": "Zen"}]}
    names = ("roofline", *contenders)
    return {
        "machine": machine,
        "repeats": 3,
        "sweeps": {"headline": {"cases": list(range(len(cases))), "contenders": names}},
        "cases": [
            {
                "case": case.as_dict(),
                "contenders": summary(case, {"roofline": runs_of(2.0)} | contenders),
            }
            for case in cases
        ],
    }


def test_the_table_says_what_rows_have_in_common_and_what_sets_them_apart():
    parts = {"survey": 0.2, "accumulate": 2.2, "solve": 0.1}
    found = results_of(
        Case(components=1024, workers=2),
        Case(components=2048, workers=2),
        streamkern=runs_of(3.0, 2.5, 11.0, parts=parts),
        nystroem=[{"refused": "needs 9 GB, 1 GB is free"}],
    )
    title, _, head, rule, *rows = table(found).splitlines()
    assert title == (
        "n = 400,000, p = 90, single precision, 2 workers.  Medians of 3 (fastest to slowest); "
        "Some, 2 cores, BLAS for Zen; other programs took 0.10 cores."
    )
    assert len({len(line) for line in (head, rule, *rows)}) == 1
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert [row[0] for row in cells] == ["D = 1,024", "", "", "", "D = 2,048", "", "", ""]
    figures = ["3.00 (2.50 to 11.00)", "1.50", "7.5", "1.00 GB", "0.5000"]
    assert cells[1][1:] == ["streamkern", *figures]
    assert cells[2][1:4] == ["of these, accumulating", "2.20 (2.20 to 2.20)", "1.10"]
    assert cells[3][1] == "Nystroem + Ridge, in memory refused: needs 9 GB, 1 GB is free"


@pytest.mark.parametrize("axis", ["none", "components", "codec", "workers", "precision"])
def test_pictures_say_what_was_measured(tmp_path, axis):
    values = {
        "none": [{}],
        "components": [{"components": D} for D in (512, 1024, 2048, 4096, 8192)],
        "codec": [{"codec": codec} for codec in ("none", "gzip")],
        "workers": [{"workers": w} for w in (1, 2)],
        "precision": [{"precision": p, "rows": n} for p in ("single", "double") for n in (10, 99)],
    }
    parts = {"survey": 0.2, "accumulate": 2.2, "solve": 0.1}
    found = results_of(
        *(Case(**{"workers": 2} | value) for value in values[axis]),
        streamkern=runs_of(3.0, 2.5, 11.0, parts=parts),
        ridge=runs_of(30.0, peak_bytes=9e9),
        nystroem=[{"refused": "needs 9 GB, 1 GB is free"}],
    )
    draw(found, tmp_path / "picture.svg")
    said = (tmp_path / "picture.svg").read_text()
    for words in ("streamkern", "RBFSampler + Ridge, in memory", "roofline", "Some, 2 cores"):
        assert words in said
    assert ("needs 9 GB, 1 GB is free" in said) == (axis == "none")
    assert ("would not have fitted" in " ".join(re.sub("<[^>]+>", " ", said).split())) == (
        axis != "none"
    )
    if axis == "none":
        draw(found, tmp_path / "again.svg")
        assert (tmp_path / "again.svg").read_text() == said


@pytest.mark.slow
def test_earlier_runs_are_drawn_together(tmp_path):
    for name, workers in (("one", 1), ("two", 2)):
        found = results_of(Case(workers=workers), sgd=runs_of(3.0))
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    earlier = ("--draw", tmp_path / "one.json", tmp_path / "two.json")
    said = job(tmp_path, "benchmark.py", "--out", tmp_path, "--name", "both", *earlier)
    assert "| 1 worker " in said
    assert "| 2 workers " in said
    assert (tmp_path / "both.png").exists()
    assert not (tmp_path / "both.json").exists()


def test_the_penalty_grows_with_the_rows():
    assert Case(rows=10_000_000).alpha == pytest.approx(10.0)
    assert Case(inputs=784).length_scale == math.sqrt(784)
