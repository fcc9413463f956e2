"""What a fit takes is what was projected, and does not grow with the rows."""

import json
import os
import re
import resource
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from commandline import write
from rows_read import python, store

from streamkern.runtime import memory
from streamkern.runtime.memory import in_words, usable_cores

FIT = """
import json, sys, dask
from contextlib import nullcontext
from streamkern import RandomFeatureRidge, connect, open_hdf5
if __name__ == "__main__":
    with connect(n_workers=2) if "workers" in sys.argv else nullcontext():
        model = RandomFeatureRidge(n_components=int(sys.argv[2])).fit(open_hdf5(sys.argv[1]))
    report = model.report_
    print(json.dumps([report["peak_worker_bytes"], report["projected_worker_bytes"]]))
"""


def measured(tmp_path, n, D, *where):
    path, script = tmp_path / f"{n}.h5", tmp_path / "fit.py"
    X = np.random.default_rng(0).standard_normal((n, 8), dtype=np.float32)
    store(path, X, np.sin(X[:, 0]), chunks=(8192, 8))
    script.write_text(FIT)
    done = subprocess.run(
        [sys.executable, script, path, str(D), *where], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.cluster
def test_workers_take_no_more_than_projected_however_many_rows_there_are(tmp_path):
    few, projected = measured(tmp_path, 200_000, 1024, "workers")
    many, projected_for_many = measured(tmp_path, 1_600_000, 1024, "workers")
    assert 0 < few <= projected
    assert 0 < many <= projected_for_many
    # Twice the allowance that is measured at full size, because the matrices are small here.
    assert many <= 1.2 * few


def test_a_fit_in_this_process_takes_no_more_than_projected(tmp_path):
    peak, projected = measured(tmp_path, 20_000, 512)
    assert 0 < peak <= projected


def test_bytes_are_told_in_words():
    words = {12: "12 bytes", 2_500: "2.5 kB", 3.2e10: "32 GB", 1.28e14: "128 TB"}
    assert {number: in_words(number) for number in words} == words


GB = 1 << 30
V2 = "30 29 0:26 {root} {at} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 29 0:27 {root} {at} rw shared:5 - cgroup cgroup rw,{controller}\n"


class Groups:
    """Control groups as files, and a process that is in one of them."""

    def __init__(self, folder, line, mount, root="/"):
        memory._groups.cache_clear()
        self.folder, self.at = folder, folder / "sys"
        (folder / "cgroup").write_text(f"1:name=systemd:/\n{line}\n")
        text = mount.format(root=root, at=self.at, controller="memory")
        text += V1.format(root="/", at=folder / "cpu", controller="cpu,cpuacct")
        (folder / "mountinfo").write_text(f"29 1 0:25 / / rw - ext4 /dev/sda rw\n{text}")
        (folder / "status").write_text("VmSize:\t 100 kB\n")

    def write(self, group, **values):
        for name, value in values.items():
            file = self.at / group / name.replace("__", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of 64 GB, and where this process looks which groups it is in."""
    free = SimpleNamespace(total=64 * GB, available=60 * GB)
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    monkeypatch.setattr(memory, "_SELF", tmp_path, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "mount", "root", "limit"),
    [
        ("0::/jobs/1", V2, "/", ("jobs", "memory__max")),
        ("0::/jobs/1", V2, "/", (".", "memory__high")),
        ("0::/", V2, "/", (".", "memory__max")),
        ("0::/../other", V2, "/", (".", "memory__max")),
        ("4:memory:/slurm/job_1", V1, "/", ("slurm/job_1", "memory__limit_in_bytes")),
        ("4:cpuset,memory:/slurm/job_1", V1, "/", ("slurm", "memory__limit_in_bytes")),
        ("4:memory:/docker/1/inner", V1, "/docker/1", ("inner", "memory__limit_in_bytes")),
        ("4:memory:/docker/1", V1, "/elsewhere", (".", "memory__limit_in_bytes")),
    ],
)
def test_the_least_limit_of_the_groups_above_a_job_is_its_memory(machine, line, mount, root, limit):
    group, name = limit
    groups = Groups(machine, line, mount, root)
    for other in ("jobs/1", "jobs", "slurm/job_1", "."):
        groups.write(other, memory__max="max", memory__limit_in_bytes=9223372036854771712)
    groups.write("jobs/2", memory__max=1)
    groups.write(group, **{name: 3 * GB})
    assert memory.total_bytes() == memory.available_bytes() == 3 * GB


@pytest.mark.parametrize(
    ("line", "mount", "names"),
    [
        ("0::/a", V2, ("memory__max", "memory__current", "")),
        ("4:memory:/a", V1, ("memory__limit_in_bytes", "memory__usage_in_bytes", "total_")),
    ],
)
def test_what_others_of_a_group_take_is_not_free_but_cached_files_are(machine, line, mount, names):
    limit, taken, prefix = names
    stat = f"anon {2 * GB}\n{prefix}inactive_file {GB // 2}\n{prefix}active_file {GB // 2}"
    groups = Groups(machine, line, mount)
    groups.write("a", **{limit: 8 * GB, taken: 3 * GB, "memory__stat": stat})
    assert memory.total_bytes() == 8 * GB
    assert memory.available_bytes() == 6 * GB
    assert memory.available_bytes(3) == 2 * GB
    assert memory.worker_bytes(2) == 4 * GB - GB // 8


def test_a_system_that_tells_of_no_groups_has_all_its_memory(machine):
    assert memory.total_bytes() == 64 * GB
    assert memory.available_bytes() == 60 * GB


def test_the_quota_of_the_group_of_a_job_bounds_its_cores(machine, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    groups = Groups(machine, "0::/a/b", V2)
    groups.write("a", cpu__max="250000 100000")
    groups.write("a/b", cpu__max="max 100000")
    assert usable_cores() == 3
    groups = Groups(machine, "3:cpu,cpuacct:/a", V2)
    assert usable_cores() == 16
    groups.write("../cpu/a", cpu__cfs_quota_us=150_000, cpu__cfs_period_us=100_000)
    assert usable_cores() == 2


def test_blas_threads_are_counted_as_blas_starts_them(monkeypatch):
    monkeypatch.setattr(memory, "_addresses_left", lambda: 400 << 20)
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "128")
        memory.check_addresses()
        monkeypatch.delenv(name)
    memory.check_addresses()


@pytest.mark.parametrize(
    ("megabytes", "sentence"),
    [
        (200, r"Error: the libraries need 294 MB of virtual memory for 1 BLAS threads, but \d+"),
        (700, r"Error: .*4,096 components need [\d.]+ GB in a worker, but \d+ MB may be used; "),
    ],
)
def test_a_limit_on_addresses_ends_in_a_sentence_before_a_library_crashes(
    tmp_path, megabytes, sentence
):
    X = np.random.default_rng(0).standard_normal((500, 3))
    path = write(tmp_path / "rows.h5", X, X[:, 0])
    words = f"fit {path} --components 4096 --out {tmp_path}/model.h5 --quiet".split()
    done = python(
        "from streamkern.cli import main; main()",
        *words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2),
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 1
    assert re.fullmatch(f"{sentence}.*\\n", done.stderr), done.stderr
