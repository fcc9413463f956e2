"""Kernels as text: what is read, and how what cannot be read is refused."""

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkern.errors import ParameterError
from streamkern.kernels import (
    KERNELS,
    Gaussian,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    parsed_kernel,
    separated,
)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (" gaussian ", Gaussian()),
        ("gaussian(length_scale=2)", Gaussian(2.0)),
        ("gaussian(length_scale=(1,2e1,.5))", Gaussian((1.0, 20.0, 0.5))),
        ("gaussian(length_scale=median)", Gaussian("median")),
        ("gaussian(length-scale=1e-3)", Gaussian(1e-3)),
        ("matern(nu=2)", Matern(nu=2.0)),
        ("RBF", Gaussian()),
        ("periodic(period=(7,365.25), length_scale=1e-1)", Periodic(0.1, period=(7.0, 365.25))),
        ("polynomial(degree=3,constant=0)", Polynomial(3, 0.0)),
        ("rational-quadratic(shape=.5)", RationalQuadratic(shape=0.5)),
        *KERNELS.items(),
    ],
)
def test_a_text_is_the_kernel_that_python_makes(text, kernel):
    assert parsed_kernel(text) == kernel


def test_a_length_scale_is_that_of_kernels_for_which_the_text_says_none():
    assert parsed_kernel("matern(nu=2)", "median") == Matern("median", nu=2.0)
    assert parsed_kernel("gaussian(length_scale=3)", 2.0) == Gaussian(3.0)
    assert parsed_kernel("polynomial", 2.0) == Polynomial()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "kernel must be one of gaussian, .* not ''"),
        ("gausian", "kernel must be one of gaussian, .* not 'gausian'"),
        ("gaussian+laplacian", r"kernel must be one of gaussian, .* not 'gaussian\+laplacian'"),
        ("gaussian(length_scale)", "takes .* not|expected the parameters of a kernel, as in"),
        ("gaussian(length_scale=1", "expected the parameters of a kernel, as in matern"),
        ("gaussian(length_scale=1)*2", "expected the parameters of a kernel, as in matern"),
        ("gaussian(length_scale=1,length_scale=2)", "expected the parameters of a kernel"),
        ("gaussian(**x)", "expected the parameters of a kernel"),
        ("gaussian(length_scale=" + "(" * 100_000, "expected the parameters of a kernel"),
        ("gaussian(length_scale=mean)", "length_scale must be 'median'"),
        ("gaussian(nu=2)", r"takes \['length_scale'\], not \['nu'\]"),
        ("matern(nu=median)", "nu must be positive"),
        ("multiquadric", "not positive definite"),
    ],
)
def test_a_text_that_is_no_kernel_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        parsed_kernel(text)


@naive.quick
@given(text=st.text(alphabet="gaussian periodic([0-9],)*+=.laplacian", max_size=40))
def test_any_text_is_read_or_refused_with_a_sentence(text):
    try:
        kernel = parsed_kernel(text)
    except ParameterError as error:
        assert str(error).endswith(".")  # noqa: PT017  the other way out is a kernel
    else:
        assert parsed_kernel(kernel.name).name == kernel.name


def test_commas_in_parentheses_do_not_separate():
    texts = "gaussian,periodic(period=(7,365)),matern(nu=2,length_scale=1)"
    assert separated(texts) == [
        "gaussian",
        "periodic(period=(7,365))",
        "matern(nu=2,length_scale=1)",
    ]
    assert separated("a,,b") == ["a", "", "b"]
