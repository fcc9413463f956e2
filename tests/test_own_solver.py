"""A solver of one's own: a class, and a row of the table."""

import numpy as np
import pytest

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.solvers import table
from streamkern.solvers.direct import Direct

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((400, 2)), RNG.standard_normal(400)

pytestmark = pytest.mark.usefixtures("in_this_thread")


class AboutZero(Direct):
    """Sums of features as they are, where others are about a mean of the sample."""

    made = 0

    @classmethod
    def takes(cls, context, feature_map):  # noqa: ARG003
        return context.options.precision == "double"

    def empty(self, feature_map):
        type(self).made += 1
        empty = super().empty(feature_map)
        empty.feature_shift = np.zeros_like(empty.feature_shift)
        return empty


def model(**options):
    return RandomFeatureRidge(Gaussian(), **{"n_components": 32, **options})


def test_a_class_and_a_row_are_a_solver(monkeypatch):
    usual = model(precision="double").fit(X, Y)
    monkeypatch.setattr(table, "SOLVERS", {"about zero": AboutZero, **table.SOLVERS})
    own = model(precision="double").fit(X, Y)
    assert AboutZero.made == 1
    np.testing.assert_allclose(own.coef_, usual.coef_, rtol=1e-6, atol=1e-9)
    model().fit(X, Y)
    assert AboutZero.made == 1


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ({}, "Direct"),
        ({"precision": "double"}, "Direct"),
        ({"precision": "int8"}, "Integers"),
        ({"feature_map": "grid", "n_components": 1024}, "Toeplitz"),
        ({"solver": "cg"}, "ConjugateGradients"),
        ({"solver": "cg", "feature_map": "grid"}, "ConjugateGradients"),
    ],
)
def test_a_fit_has_the_first_solver_that_takes_it(monkeypatch, options, solver):
    found, solver_of = [], table.solver_of

    def noted(*arguments):
        found.append(solver_of(*arguments))
        return found[-1]

    monkeypatch.setattr("streamkern.fitting.sum_features.solver_of", noted)
    model(**options).fit(X, Y)
    assert [type(each).__name__ for each in found] == [solver]
