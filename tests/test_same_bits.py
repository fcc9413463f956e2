"""The same coefficients, to the bit, wherever a fit runs and whoever dies on the way."""

import os
from functools import partial

import cloudpickle
import dask
import dask.local
import dask.multiprocessing
import numpy as np
import psutil
import pytest
from conftest import wait_until
from hearing import killer_of_workers
from rows_read import chunked, python

import streamkern
from streamkern.features import FAMILIES
from streamkern.parameters import chunking
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import plan_here
from streamkern.runtime.events import observed
from streamkern.runtime.resources import current_client

N, P = 105_000, 5
CHUNK_ROWS = 1024


def write(path, n, p=P):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)
    return streamkern.open_hdf5(chunked(path, CHUNK_ROWS, X=X, y=y))


def fit(source, n_components=64, **options):
    options = {"alpha": 0.1, "kernel": "gaussian"} | options
    return streamkern.RandomFeatureRidge(n_components=n_components, **options).fit(source)


def bits(model) -> bytes:
    return model.coef_.tobytes() + np.float64(model.intercept_).tobytes()


@pytest.fixture(scope="module", autouse=True)
def many_shards():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SHARD_ROWS", "_BLOCK_ROWS"):
            patch.setattr(chunking, name, (CHUNK_ROWS, CHUNK_ROWS))
        yield


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "train.h5", N)


@pytest.fixture(scope="module")
def expected(source):
    with dask.config.set(scheduler="synchronous"):
        options = Parameters.of(
            streamkern.RandomFeatureRidge(n_components=64, alpha=0.1)
        ).pass_options()
        assert plan_here(source, options).n_shards >= 100
        return bits(fit(source))


class Pickled:
    """A Dask scheduler that runs tasks one by one, and sends each task and result by pickle."""

    def __init__(self):
        self.sent = 0

    def dumps(self, value):
        self.sent += 1
        return cloudpickle.dumps(value, protocol=5)

    @property
    def get(self):
        return partial(
            dask.multiprocessing.get,
            pool=dask.local.SynchronousExecutor(),
            func_dumps=self.dumps,
            func_loads=cloudpickle.loads,
            optimize_graph=False,
        )


@pytest.mark.parametrize("pickled", [None, Pickled()], ids=["threads", "pickled"])
def test_a_fit_in_this_process_gives_the_same_bits(pickled, source, expected):
    with dask.config.set(scheduler=pickled.get if pickled else "threads"):
        assert bits(fit(source)) == expected
    assert pickled is None or pickled.sent >= 2 * 100


@pytest.mark.cluster
@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_fit_on_a_local_cluster_gives_the_same_bits(n_workers, source, expected):
    with streamkern.connect(n_workers=n_workers) as client:
        model = fit(source)
        assert current_client() is client
        assert len(client.nthreads()) == n_workers
    assert bits(model) == expected
    assert model.report_["rows"] == N


@pytest.mark.cluster
@pytest.mark.parametrize("fold_by", ["shards", "rows"])
def test_a_penalty_is_chosen_by_the_same_bits(tmp_path, fold_by, external_scheduler):
    source = write(tmp_path / "train.h5", 22_500)
    options = {"alpha": "cv", "fold_by": fold_by, "n_folds": 3}
    with dask.config.set(scheduler="synchronous"):
        alone = fit(source, **options)
    with dask.config.set(scheduler=Pickled().get):
        pickled = fit(source, **options)
    with streamkern.connect(scheduler=external_scheduler):
        elsewhere = fit(source, **options)
    assert alone.report_["n_folds"] == 3
    for model in (pickled, elsewhere):
        assert bits(model) == bits(alone)
        assert model.report_["alpha_curve"] == alone.report_["alpha_curve"]


@pytest.mark.parametrize(
    ("feature_map", "paired"),
    [(name, True) for name in FAMILIES]
    + [(name, False) for name, family in FAMILIES.items() if family.has_phases],
)
def test_every_map_gives_the_same_bits(tmp_path, feature_map, paired):
    source = write(tmp_path / "train.h5", 10_000, 2)
    kernel = streamkern.Gaussian("median")
    found = set()
    for scheduler in ("synchronous", "threads", Pickled().get):
        with dask.config.set(scheduler=scheduler):
            found.add(bits(fit(source, kernel=kernel, feature_map=feature_map, paired=paired)))
    assert len(found) == 1


HASHES = """
import hashlib, sys
from streamkern import RandomFeatureRidge, open_hdf5

many, few = map(open_hdf5, sys.argv[1:])
models = (
    RandomFeatureRidge("gaussian", n_components=512, standardize=False).fit(many),
    RandomFeatureRidge(n_components=512, alpha="cv").fit(few),
)
print([hashlib.sha256(model.coef_.tobytes()).hexdigest() for model in models])
"""


def test_the_number_of_cores_of_the_callers_process_changes_no_bit(tmp_path):
    paths = tmp_path / "many.h5", tmp_path / "few.h5"
    for path, n in zip(paths, (6000, 506), strict=True):
        write(path, n)
    one, two = (
        python(HASHES, *paths, env=os.environ | {"OPENBLAS_NUM_THREADS": threads})
        for threads in ("1", "2")
    )
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    assert one.stdout == two.stdout


@pytest.mark.cluster
def test_workers_that_are_killed_change_no_bit_and_lose_or_double_no_row(tmp_path):
    n, n_components = 262_144, 384
    source = write(tmp_path / "train.h5", n)
    with dask.config.set(scheduler="synchronous"):
        undisturbed = fit(source, n_components)
    with streamkern.connect(n_workers=2) as client:
        # All of them die, so what the first shard yielded is lost for certain.
        killer, victims = killer_of_workers(client, "moments")
        with observed(killer):
            model = fit(source, n_components)
        assert killer.left <= 0
        wait_until(lambda: not any(map(psutil.pid_exists, victims)), "the end of the victims")
        client.wait_for_workers(1, timeout=20)
        assert victims.isdisjoint(client.run(os.getpid).values())
    assert model.report_["retried_shards"] >= 1
    assert model.report_["rows"] == n
    assert model.report_["skipped_rows"] == 0
    assert bits(model) == bits(undisturbed)
    assert killer.rows == n
