"""Kernels have parameters by name, and one with others is another kernel."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from streamkern import Gaussian, Linear, Matern, Periodic, Polynomial
from streamkern.errors import ParameterError

SEASONAL = Gaussian((2.0, 3.0)).on([0, 1]) * Periodic(period=7).on([2])
SUM = SEASONAL + 0.5 * Matern(4.0, nu=2.5)


def test_parameters_are_those_that_the_kernel_was_made_with():
    assert Matern(2.0, nu=1.5).get_params() == {"length_scale": 2.0, "nu": 1.5}
    assert Polynomial(3).get_params(deep=False) == {"degree": 3, "constant": 1.0}
    assert Linear().get_params() == {}


def test_parameters_of_parts_have_the_place_of_the_part_in_front():
    found = SUM.get_params()
    assert found["1__length_scale"] == 4.0
    assert found["0__0__kernel__length_scale"] == (2.0, 3.0)
    assert found["0__1__columns"] == (2,)
    assert set(SUM.get_params(deep=False)) == {"terms", "weights"}


def test_a_kernel_with_other_parameters_is_another_kernel():
    kernel = Matern(2.0, nu=1.5)
    assert kernel.with_params(nu=2.5) == Matern(2.0, nu=2.5)
    assert kernel == Matern(2.0, nu=1.5)


def test_parameters_of_parts_are_changed_by_their_names():
    changed = SUM.with_params(**{"1__length_scale": 9.0, "0__1__kernel__period": 30.0})
    other = Gaussian((2.0, 3.0)).on([0, 1]) * Periodic(period=30).on([2])
    assert changed == other + 0.5 * Matern(9.0, nu=2.5)
    assert changed.with_params(**SUM.get_params()) == SUM


def test_own_parameters_are_set_before_those_of_the_parts_that_they_bring():
    changed = SUM.with_params(**{"1__nu": 0.5, "terms": (SEASONAL, Matern(1.0, nu=1.5))})
    assert changed.get_params()["1__nu"] == 0.5
    assert changed.get_params()["1__length_scale"] == 1.0


@pytest.mark.parametrize("name", ["gamma", "kernel__length_scale", "2__length_scale"])
def test_an_unknown_parameter_is_refused_with_the_names_there_are(name):
    with pytest.raises(ParameterError, match=r"has the parameters .*1__nu, not"):
        SUM.with_params(**{name: 1.0})


def test_a_value_that_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="positive"):
        Gaussian().with_params(length_scale=-1.0)


@pytest.mark.parametrize("kernel", [Gaussian([1.0, 2.0]), SUM, Linear()])
def test_the_clone_of_a_kernel_is_itself(kernel):
    assert clone(kernel) is kernel
