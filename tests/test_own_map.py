"""A map in a user's own module is fitted, searched, reported, saved, loaded and a transformer."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import dask
import numpy as np
import pytest
from rows_read import python
from test_own_kernel import MODULE as KERNEL
from test_own_kernel import undo_after

import streamkern
from streamkern.errors import ParameterError
from streamkern.features import (
    FeatureMap,
    Standardized,
    Standardizer,
    bounds,
    combined,
    compress,
    drawn_from,
    gradients,
    gram_map,
    has_gradients,
    innermost,
    kernel_diagonal,
    round_into,
    solve_map,
    trended,
    uncombined,
    unwhitened,
)
from streamkern.features.families import FAMILIES, MAPS
from streamkern.kernels.catalogue import DECLARED
from streamkern.parameters.fit_options import FitOptions
from streamkern.runtime.scratch import Scratch

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
    modules = (sys.modules, "own_kernel"), (sys.modules, "own_map")
    undo_after(monkeypatch, *modules, (DECLARED, "wide"), (FAMILIES, "ramps"), (MAPS, "ramps"))
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


@pytest.fixture
def squares():
    """A map that has what every map needs and nothing else, declared for one test."""

    class Squares(FeatureMap):
        """The squares of the inputs."""

        name = "squares"
        families = {"squares": ("the squares of the inputs", {})}  # noqa: RUF012  as users write it

        def draw(self, n_features, rows=None):  # noqa: ARG002
            self.n_features = self.n_components = n_features
            return self

        def evaluated(self, X, out, shift=0.0, scratch=None):  # noqa: ARG002
            out[...] = np.square(X) - shift
            yield slice(0, len(out))

        def subset(self, indices):  # noqa: ARG002
            raise ParameterError("squares have no subset; take all.")

        def parameters(self):
            return {"n_features": self.n_features}

        def arrays(self):
            return {}

        @classmethod
        def restore(cls, parameters, arrays):  # noqa: ARG003
            return cls().draw(parameters["n_features"])

    yield Squares
    for known in (MAPS, FAMILIES):
        del known["squares"]


def test_a_map_without_abilities_is_small_and_told_so_where_one_is_asked_for(squares):
    X = np.random.default_rng(0).standard_normal((50, 3))
    plain = drawn_from(squares(), X, np.ones(50))
    whole = Standardized(Standardizer(np.arange(3), np.zeros(3), np.ones(3), 3), plain)
    for phi in (plain, whole):
        coef = np.ones((3, 1))
        np.testing.assert_allclose(combined(phi, coef).transform(X)[:, 0], (X**2).sum(axis=1))
        assert compress(phi, coef) == (phi, coef)
        assert uncombined(phi) is gram_map(phi) is unwhitened(phi) is phi
        assert solve_map(phi) == (phi, None)
        assert (bounds(phi), trended(phi), kernel_diagonal(phi, X)) == (None,) * 3
        assert (innermost(phi).left_out, has_gradients(phi)) == (0.0, False)
        with pytest.raises(ParameterError, match="'squares' have no gradients; take a map"):
            gradients(phi, X, coef[:, 0])
        with pytest.raises(ParameterError, match="'squares' have no bound to round them by; take"):
            round_into(phi, X, 127, np.empty((3, 50), np.int8), Scratch())
    options = {"n_components": 3, "feature_map": "squares", "paired": True, "standardize": True}
    options |= {"fit_intercept": True, "on_bad_rows": "error", "random_state": 0}
    with pytest.raises(ParameterError, match="features that have a bound, which those of the map"):
        FitOptions("gaussian", precision="int8", **options)
    with pytest.raises(ParameterError, match="gradients, which the map 'squares' of the kernel"):
        FitOptions("gaussian", precision="single", metric="learn", **options).check_map(3)


def test_a_map_without_abilities_is_fitted_and_comes_back_from_its_file(squares, tmp_path):
    X = np.random.default_rng(0).standard_normal((80, 3))
    y = (X**2) @ [1.0, 2.0, -1.0]
    model = streamkern.RandomFeatureRidge(
        n_components=3, feature_map=squares.name, alpha=1e-6, kernel="gaussian", precision="double"
    ).fit(X, y)
    model.save(tmp_path / "m.h5")
    assert np.array_equal(streamkern.load(tmp_path / "m.h5").predict(X), model.predict(X))
