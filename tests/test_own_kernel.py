"""A kernel in a user's own module is fitted, searched, reported, saved and loaded."""

import sys

import numpy as np
import pytest
from rows_read import python

import streamkern
from streamkern.kernels.catalogue import DECLARED

MODULE = """
from dataclasses import dataclass
import numpy as np
from streamkern.kernels.radial import RadialKernel
@dataclass(frozen=True)
class Wide(RadialKernel):
    width: float = 2.0
    family = "wide"
    def profile(self, r): return np.exp(-0.5 * (r / self.width) ** 2)
    def slope(self, r): return -self.profile(r) / self.width**2
    def stretch(self, uniform): return np.full(len(uniform), 1 / self.width)
    def unit_log_density(self, w): return -0.5 * ((w * self.width) ** 2).sum(axis=1)
"""


def undo_after(monkeypatch, *places):
    """Take what a module of one's own declares out of tables, now and after the test."""
    for table, name in places:
        monkeypatch.setitem(table, name, None)
        del table[name]


@pytest.mark.slow
def test_a_kernel_is_its_class(tmp_path, monkeypatch):
    (tmp_path / "own_kernel.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    undo_after(monkeypatch, (sys.modules, "own_kernel"), (DECLARED, "wide"))
    from own_kernel import Wide

    X, y = np.random.default_rng(0).standard_normal((2, 300, 2))
    model = streamkern.RandomFeatureRidge("wide(width=3)", n_components=32, alpha=9).fit(X, y)
    model.tune(X, y, kernels=["wide(width=3)"], maps=["orthogonal", "nystroem"])
    assert (type(model.kernel_), model.kernel_.width) == (Wide, 3)
    streamkern.write_report(model.set_params(kernel=Wide()).fit(X, y), tmp_path / "report.html")
    assert "kernel=Wide(" in (tmp_path / "report.html").read_text()
    model.save(tmp_path / "m.h5")
    assert np.array_equal(streamkern.load(tmp_path / "m.h5").predict(X), model.predict(X))
    load = "import streamkern, sys; streamkern.load(sys.argv[1])"
    error = python(load, tmp_path / "m.h5").stderr
    assert "kernel 'wide' of the file is not declared here; import the module" in error
