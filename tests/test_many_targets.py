"""Thousands of targets: as few at a time as memory is planned for, each as if it were alone."""

import json

import h5py
import numpy as np
import pytest
from rows_read import python
from tolerances import assert_close

from streamkern import RandomFeatureRidge
from streamkern.parameters.planning import plan_system
from streamkern.sources import ArraySource

ALPHAS = np.geomspace(1e-1, 1e4, 10)
Q = 2000
FIT = """
import json, sys
from streamkern import RandomFeatureRidge, open_hdf5
from streamkern.runtime.memory import peak_bytes
options = {"alpha": sys.argv[2], "alphas": [0.1, 1, 10, 100, 1000], "per_target": True}
model = RandomFeatureRidge(feature_map="identity", **options).fit(open_hdf5(sys.argv[1]))
peak = max(model.report_["peak_worker_bytes"], peak_bytes())
print(json.dumps([peak, model.report_["projected_worker_bytes"]]))
"""


def rows(n=300, p=24, q=Q):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal((p, q)) + np.geomspace(0.1, 100, q) * rng.standard_normal((n, q))
    return X, y


def identity(**options):
    given = {"feature_map": "identity", "standardize": False, "precision": "double"}
    return RandomFeatureRidge(**given | {"per_target": True} | options)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [300, 20])
def test_among_many_a_target_is_scored_as_if_it_were_alone(n, intercept):
    X, y = rows(n, q=300)
    options = {"alpha": ALPHAS, "fold_by": "blocks", "n_folds": 3, "fit_intercept": intercept}
    model = identity(**options).fit(X, y)
    some = [0, 77, 299]
    alone = identity(**options).fit(X, y[:, some])
    scores = model.penalty_curve_.fold_scores[:, :, some]
    assert scores == pytest.approx(alone.penalty_curve_.fold_scores, rel=1e-7)
    assert np.array_equal(np.array(model.alpha_)[some], alone.alpha_)
    assert_close(model.coef_[:, some], alone.coef_, steps=1e4)


def test_blocks_have_fewer_rows_where_these_have_many_targets():
    def plan(q):
        source = ArraySource(np.zeros((50_000, 3)), np.broadcast_to(0.0, (50_000, q)))
        return plan_system(source, 512, n_workers=0, n_threads=1, allowed_bytes=1 << 40)

    assert plan(1).block_rows == plan(30).block_rows == 8192
    assert 256 < plan(2000).block_rows < 2048
    assert plan(20_000).block_rows == 256


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["cv", "loo"])
def test_a_fit_of_many_targets_takes_no_more_memory_than_projected(tmp_path, alpha):
    path = tmp_path / "a.h5"
    X, y = rows(3000, 200)
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, dtype="f4", chunks=(1000, 200))
        file.create_dataset("y", data=y, dtype="f4", chunks=(1000, 500))
    done = python(FIT, path, alpha)
    assert done.returncode == 0, done.stderr
    peak, projected = json.loads(done.stdout)
    assert 0 < peak <= projected
