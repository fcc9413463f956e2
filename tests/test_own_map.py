"""A map in a user's own module is fitted, searched, reported, saved, loaded and a transformer."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import dask
import numpy as np
import pytest
from rows_read import python
from test_own_kernel import MODULE as KERNEL

import streamkern

MODULE = '''
import numpy as np
from streamkern.features import KernelMap
from streamkern.estimators.transformers import KernelTransformer

class Ramps(KernelMap):
    """Positive parts of random projections."""

    name = "ramps"
    families = {"ramps": ("positive parts of random projections", {})}
    nesting = 1

    def __init__(self, kernel, n_components=2048, random_state=0):
        super().__init__(kernel, n_components, random_state)
        self.scale = n_components**-0.5

    def draw(self, n_features, rows=None):
        self.check_some_inputs(n_features)
        random = np.random.default_rng(self.random_state)
        normal, uniform = (random.standard_normal((self.n_components, n_features)) for _ in "ab")
        self.take_arrays({"w": self.kernel.spectral(normal, np.abs(uniform))})
        return self

    def prepared(self, dtype, scratch):
        w = self.w.T.astype(dtype)
        return lambda X, out: np.maximum(X.astype(dtype) @ w, 0, out=out)

    def first(self, n_components):
        return self.subset(np.arange(self.checked_part(n_components)))

    def subset(self, indices):
        part = Ramps(self.kernel, len(indices), self.random_state)
        part.take_arrays({"w": self.w[self.checked_subset(indices)]})
        part.scale = self.scale
        return part

    def arrays(self):
        return {"w": self.w}

    def take_arrays(self, arrays):
        self.w, self.n_features = arrays["w"], arrays["w"].shape[1]

class RampsTransformer(KernelTransformer, makes=Ramps): ...
'''


@pytest.mark.slow
def test_a_map_is_its_class(tmp_path, monkeypatch):
    (tmp_path / "own_map.py").write_text(MODULE)
    (tmp_path / "own_kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    import own_kernel
    from own_map import Ramps, RampsTransformer

    X, y = np.random.default_rng(0).standard_normal((2, 300, 2))
    model = streamkern.RandomFeatureRidge("wide", feature_map="ramps", n_components=32, alpha=1.0)
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        model.fit(X, y)
    assert isinstance(model.kernel_, own_kernel.Wide)
    model.tune(X, y, kernels=["gaussian"], maps=["ramps"])
    assert isinstance(model.feature_map_.inner, Ramps)
    streamkern.write_report(model.set_params(feature_map="ramps").fit(X, y), tmp_path / "m.html")
    model.save(tmp_path / "m.h5")
    assert np.array_equal(streamkern.load(tmp_path / "m.h5").predict(X), model.predict(X))
    load = "import streamkern, sys; streamkern.load(sys.argv[1])"
    error = python(load, tmp_path / "m.h5").stderr
    assert "the map 'ramps' of the file is not declared here; import the module" in error
    drawn = RampsTransformer("gaussian", n_components=8, random_state=1).fit(X)
    assert drawn.get_params()["n_components"] == drawn.transform(X).shape[1] == 8
