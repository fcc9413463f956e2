"""One check of integers stands behind every option that is one."""

import numpy as np
import pytest

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError, StreamkernWarning, warn
from streamkern.errors.checks import checked_integer, is_integer
from streamkern.estimators.comparison import checked_comparison
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian, Polynomial
from streamkern.registry import extension

X, y = np.random.default_rng(0).standard_normal((2, 40, 2))


def fit(**options):
    return RandomFeatureRidge(**{"n_components": 8, "alpha": 0.1} | options).fit(X, y[:, 0])


OPTIONS = {
    "random_state": lambda value: fit(random_state=value),
    "n_folds": lambda value: fit(n_folds=value),
    "n_components": lambda value: fit(n_components=value),
    "sparse": lambda value: extension("sparse", "selection").checked_size(value),
    "components": lambda value: extension("components", "fitted_components").checked_number(value),
    "degree": lambda value: Polynomial(degree=value),
    "seed of a map": lambda value: RandomFourierFeatures(Gaussian(), 8, random_state=value),
    "n_estimators": lambda value: streamkern.RandomFeatureAdaBoost(n_estimators=value).fit(
        X, y[:, 0] > 0
    ),
    "n_seeds": lambda value: checked_comparison(fit(), [8], ["iid"], value),
}


@pytest.mark.parametrize("value", [True, np.True_, 2.0, "2", -1, [2]], ids=repr)
@pytest.mark.parametrize("option", list(OPTIONS))
def test_what_is_no_integer_is_refused_in_every_option(option, value):
    with pytest.raises(ParameterError, match=r"whole number|at least 1"):
        OPTIONS[option](value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integers_of_numpy_are_integers(value):
    found = checked_integer(value, "not {}", 3)
    assert (found, type(found)) == (3, int)
    assert not is_integer(value, 4)
    with pytest.raises(ParameterError, match="not 3"):
        checked_integer(value, "not {}", 4)


def test_a_warning_is_at_the_line_that_is_meant():
    with pytest.warns(StreamkernWarning, match="once") as told:
        warn("once")
    with pytest.warns(StreamkernWarning, match="constant column") as of_a_fit:
        fit().fit(np.column_stack([X, np.ones(len(X))]), y[:, 0])
    assert {each.filename for each in (*told, *of_a_fit)} == {__file__}
