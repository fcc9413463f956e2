"""What every test has: Ctrl-C that is heard, and Dask clusters that somebody else started."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path
from unittest.mock import create_autospec

import dask
import pytest
import scipy.linalg  # noqa: F401  whose threads are limited, as NumPy's
import yaml
from hypothesis import settings
from threadpoolctl import threadpool_limits

import streamkern
from streamkern import registry

SECONDS_TO_START = 60
# The same examples every time, however slow the machine is.
settings.register_profile("usual", deadline=None, derandomize=True)
settings.load_profile("usual")
# Whoever starts tests in the background has them, and what they start, ignore these.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Without an extension, tests that import its public names are collected; to call one is to miss it.
GONE = [name for name, of in registry.public_names().items() if of not in registry.installed()]
for gone in GONE if "STREAMKERN_WITHOUT" in os.environ else ():
    setattr(streamkern, gone, lambda *_, name=gone, **__: registry.named(name))


def pytest_collection_finish():
    for name in GONE:
        vars(streamkern).pop(name, None)


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        threadpool_limits(1)  # of tests side by side: threads of two would wait for each other


@pytest.fixture(autouse=True)
def ctrl_c():
    """Take back what dask_jobqueue makes of Ctrl-C where it is imported: an end without a word."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def usual_handlers():
    """Python's own handlers of signals, and those of the tests afterwards."""
    from streamkern.runtime.stopping import stopping

    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    stopping.clear()  # of which every thread of this process hears
    for number, handler in usual.items():
        signal.signal(number, handler)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):  # which would end this process
            thread.cancel()


@pytest.fixture
def small_shards(monkeypatch):
    """Cut rows into shards of 200, and these into blocks of 100."""
    monkeypatch.setattr("streamkern.parameters.chunking.SHARD_ROWS", (200, 200))
    monkeypatch.setattr("streamkern.parameters.chunking._BLOCK_ROWS", (100, 100))
    monkeypatch.setattr("streamkern.parameters.chunking._COLUMN_BLOCK_ROWS", 100)


@pytest.fixture
def cluster_file(tmp_path):
    """Write a cluster file: a valid one, changed by keywords; None leaves a key out."""

    def write(text: str | None = None, **changes: object) -> Path:
        content = {"version": 1, "module": "dask.distributed", "class": "LocalCluster"}
        changes = {key.rstrip("_"): value for key, value in changes.items()}
        content = {k: v for k, v in (content | changes).items() if v is not None}
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump(content) if text is None else text)
        return path

    return write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that commands are run in: one for each test, with small rows in data.h5."""
    from commandline import rows, write

    monkeypatch.chdir(tmp_path)
    write("data.h5", *rows())
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Rows a and b, both together, and their moments A and B; a model of a, and a table."""
    from commandline import rows, write

    from streamkern import RandomFeatureRidge

    folder = tmp_path_factory.mktemp("made")
    X, y = rows(300)
    write(folder / "a.h5", X[:200], y[:200])
    write(folder / "b.h5", X[200:], y[200:])
    write(folder / "some.h5", X[:20], y[:20])
    write(folder / "both.h5", X, y)
    model = RandomFeatureRidge("gaussian", n_components=32, precision="double", alpha=0.1)
    first = model.moments(X[:200], y[:200])
    first.save(folder / "A.h5")
    model.moments(X[200:], y[200:], like=first).save(folder / "B.h5")
    model.solve(first).save(folder / "model.h5")
    (folder / "table.csv").write_text("x,y\n1,2\n2,3\n4,5\n")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def all_files(folder, made):
    for name, content in made.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def handed_by(tmp_path, monkeypatch):
    """Call a command, and return what it handed to a function, whose defaults are checked."""
    import numpy as np
    from commandline import invoke, write

    from streamkern.errors import DataError

    monkeypatch.chdir(tmp_path)
    write("data.h5", np.random.default_rng(0).random((60, 3)), np.arange(60) % 2)

    def run(line, owner, name, **chosen):
        handed = create_autospec(getattr(owner, name), side_effect=DataError("that was all."))
        monkeypatch.setattr(owner, name, handed)
        assert "that was all" in invoke(*line.split()).output
        known = signature(handed).parameters
        for key, value in handed.call_args.kwargs.items():
            if key in known:
                expected = chosen.get(key, known[key].default)
                assert type(expected)(value) == expected if expected else value == expected
        return handed.call_args.args

    return run


def or_skipped():
    """Without an extension, skip what asks for it: the others show that all else works."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        from streamkern.errors import MissingExtensionError

        missed = [e for e in (error, error.__context__) if isinstance(e, MissingExtensionError)]
        if "STREAMKERN_WITHOUT" in os.environ and missed:
            pytest.skip(str(missed[0]))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    return (yield from or_skipped())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    return (yield from or_skipped())


@contextmanager
def dask_process(log, *arguments):
    found = str(Path(__file__).parent), os.environ.get("PYTHONPATH")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *map(str, arguments)],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, found))},
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(condition, what, seconds=SECONDS_TO_START):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)


@contextmanager
def running_scheduler(folder, *more, dashboard=False):
    """Run a `dask scheduler` and yield its scheduler file."""
    file = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", 0, "--dashboard-address", "127.0.0.1:0", *more]
    if not dashboard:
        options.append("--no-dashboard")
    with dask_process(folder / "scheduler.log", "scheduler", "--scheduler-file", file, *options):
        wait_until(lambda: file.exists() and file.read_text(), "writing the scheduler file")
        yield file


@contextmanager
def running_worker(file, *more, log="worker"):
    """Run a `dask worker` of one thread for a scheduler that wrote a file."""
    where = ("--scheduler-file", file, "--local-directory", file.parent, "--host", "127.0.0.1")
    options = ("worker", *where, "--nthreads", 1, "--no-dashboard", *more)
    with dask_process(file.with_name(f"{log}.log"), *options) as process:
        yield process


@pytest.fixture(scope="session")
def external_scheduler_file(tmp_path_factory):
    """The scheduler file of a `dask scheduler` with two `dask worker` processes."""
    from distributed import Client

    folder = tmp_path_factory.mktemp("external")
    with ExitStack() as stack:
        file = stack.enter_context(running_scheduler(folder))
        for i in range(2):
            stack.enter_context(running_worker(file, "--memory-limit", "4GB", log=f"worker-{i}"))
        with Client(json.loads(file.read_text())["address"], set_as_default=False) as client:
            client.wait_for_workers(2, timeout=SECONDS_TO_START)
        yield file


@pytest.fixture(scope="session")
def external_scheduler(external_scheduler_file):
    """The address of a running scheduler with two workers of one thread each."""
    address: str = json.loads(external_scheduler_file.read_text())["address"]
    return address


@pytest.fixture(scope="module")
def bucket():
    """A bucket of an S3 server on this machine."""
    from servers import Bucket, s3_server

    with s3_server() as server:
        yield Bucket(server)


@pytest.fixture(scope="module")
def browser():
    from browser import opened_browser

    with opened_browser() as browser:
        yield browser


@pytest.fixture
def in_this_thread():
    """Compute everything in the calling thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frames_in_this_thread():
    """Compute everything in the calling thread, and leave texts of data frames as they are."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


@pytest.fixture
def threads_in(monkeypatch):
    """Watches a function of a module: the set of threads that called it since."""

    def watch(module, name):
        seen, function = set(), getattr(module, name)

        def watched(*arguments):
            seen.add(threading.get_ident())
            return function(*arguments)

        monkeypatch.setattr(module, name, watched)
        return seen

    return watch
