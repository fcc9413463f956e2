"""The weighted mean of kernels, each of some of the inputs."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from tolerances import assert_close

from streamkern import Gaussian, Laplacian, Linear, Matern, Sum
from streamkern.errors import ModelFileError, ParameterError
from streamkern.kernels import kernel_from

PARTS = {"kernels": (Gaussian((1.0, 2.0)), Laplacian(0.7)), "weights": (1.0, 0.5)}
SUM = Sum(columns=((0, 1), (2,)), **PARTS)


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 3))


def formula(X, Z):
    gaussian = Gaussian((1.0, 2.0))(X[:, :2], Z[:, :2])
    return (gaussian + 0.5 * Laplacian(0.7)(X[:, 2:], Z[:, 2:])) / 1.5


def test_the_value_is_the_weighted_mean():
    X, Z = rows(7), rows(5, 1)
    assert_close(SUM(X, Z), formula(X, Z))
    assert_close(SUM.stretched(2.0)(2.0 * X, 2.0 * Z), formula(X, Z))


def test_the_mean_cosine_over_spectral_draws_is_the_kernel():
    n, rng = 200_000, np.random.default_rng(1)
    drawn = SUM.spectral(rng.standard_normal((n, 3)), 1.0 - rng.random((n, 1)))
    X, Z = rows(4), rows(3, 1)
    found = [[np.cos(drawn @ (x - z)).mean() for z in Z] for x in X]
    assert np.abs(found - formula(X, Z)).max() < 5.0 / np.sqrt(n)


def test_it_survives_its_json_parameters_and_those_of_earlier_versions():
    text = json.dumps(SUM.parameters(), allow_nan=False)
    assert kernel_from(SUM.name, json.loads(text)) == SUM
    terms = [
        {"name": f"{kernel.name}{list(columns)}", "parameters": {
            "kernel": {"name": kernel.name, "parameters": kernel.parameters()},
            "columns": list(columns)}}
        for kernel, columns in zip(SUM.kernels, SUM.columns, strict=True)
    ]  # fmt: skip
    earlier = {"terms": terms, "weights": [1.0, 0.5]}
    assert kernel_from("gaussian[0,1]+0.5*laplacian[2]", earlier) == SUM
    with pytest.raises(ModelFileError, match=r"is a product, .* or before reads the file; fit"):
        kernel_from("gaussian[0]*laplacian[1]", {"factors": terms})


def test_columns_are_counted_anew_where_some_are_left_out():
    assert SUM.restricted([1, 2]) == Sum(
        kernels=(Gaussian((2.0,)), Laplacian(0.7)), weights=(1.0, 0.5), columns=((0,), (1,))
    )
    assert SUM.restricted([0, 1]).kernels == (Gaussian((1.0, 2.0)),)
    with pytest.raises(ParameterError, match=r"all inputs of the kernel .* are constant"):
        SUM.restricted([])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": (0.0, 1.0)}, "weights of a sum of kernels must be positive"),
        ({"weights": (1.0,)}, "for every kernel a weight and columns"),
        ({"columns": ((0, 0), (2,))}, "columns named once"),
        ({"columns": ((0,), (2,))}, "length_scale must be one number or one per input"),
        ({"kernels": (Gaussian("median"), Matern(1.0))}, "numbers for length scales"),
    ],
)
def test_what_is_no_sum_is_refused(change, words):
    with pytest.raises(ParameterError, match=words):
        Sum(**({"columns": ((0, 1), (2,))} | PARTS | change))
    with pytest.raises(ParameterError, match="is one of column 2, but columns go from 0 to 1"):
        SUM.check_inputs(2)


@pytest.mark.parametrize("kernel", [Gaussian([1.0, 2.0]), SUM, Linear()])
def test_the_clone_of_a_kernel_is_itself(kernel):
    assert clone(kernel) is kernel
    with pytest.raises(ParameterError, match=r"has the parameters .* not 'gamma'"):
        kernel.with_params(gamma=1.0)
