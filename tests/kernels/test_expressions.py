"""Kernels as text: what is read, and how what cannot be read is refused."""

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkern.errors import ParameterError
from streamkern.kernels import (
    KERNELS,
    Cauchy,
    Gaussian,
    Laplacian,
    Matern,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
    parsed_kernel,
    separated,
)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("gaussian", Gaussian()),
        (" gaussian ", Gaussian()),
        ("gaussian(length_scale=2)", Gaussian(2.0)),
        ("gaussian(length-scale=(1,2e1,.5))", Gaussian((1.0, 20.0, 0.5))),
        ("gaussian(length_scale=median)", Gaussian("median")),
        ("matern(nu=2)", Matern(nu=2.0)),
        ("matern", Matern(nu=1.5)),
        ("RBF", Gaussian()),
        ("matern12", Matern(nu=0.5)),
        ("periodic(period=(7,365.25), length_scale=1e-1)", Periodic(0.1, period=(7.0, 365.25))),
        ("polynomial(degree=3,constant=0)", Polynomial(3, 0.0)),
        ("rational-quadratic(shape=.5)[2]", RationalQuadratic(shape=0.5).on([2])),
        ("gaussian[0-2,5]", Gaussian().on([0, 1, 2, 5])),
        ("gaussian [ 0 - 2 , 5 ]", Gaussian().on([0, 1, 2, 5])),
        ("gaussian*laplacian+cauchy", Gaussian() * Laplacian() + Cauchy()),
        ("gaussian*(laplacian+cauchy)", Gaussian() * (Laplacian() + Cauchy())),
        ("(gaussian+laplacian)[1,3]", Gaussian().on([1, 3]) + Laplacian().on([1, 3])),
        ("0.5*gaussian+2*3*laplacian", 0.5 * Gaussian() + 6.0 * Laplacian()),
        ("gaussian*0.5+1e-3*cauchy", 0.5 * Gaussian() + 1e-3 * Cauchy()),
        (
            "gaussian[0-2]*periodic(period=7)[3]+0.5*matern(nu=2)",
            Gaussian().on([0, 1, 2]) * Periodic(period=7.0).on([3]) + 0.5 * Matern(nu=2.0),
        ),
    ],
)
def test_a_text_is_the_kernel_that_python_makes(text, kernel):
    assert parsed_kernel(text) == kernel


def test_a_length_scale_is_that_of_kernels_for_which_the_text_says_none():
    kernel = parsed_kernel("gaussian(length_scale=3)[0]*cauchy+matern(nu=2)", "median")
    assert kernel == Gaussian(3.0).on([0]) * Cauchy("median") + Matern("median", nu=2.0)
    assert parsed_kernel("polynomial", 2.0) == Polynomial()


@pytest.mark.parametrize("name", KERNELS)
def test_every_name_is_a_text(name):
    assert parsed_kernel(name) == KERNELS[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a kernel in the kernel '', but found its end; write kernels"),
        ("gaussian+", "expected the name of a kernel .* found its end"),
        ("gaussian laplacian", r"expected '\+', '\*' or the end .* found 'laplacian'"),
        ("gaussian)", r"expected '\+', '\*' or the end .* found '\)'"),
        ("(gaussian", r"expected '\)' .* found its end"),
        ("gaussian/2", "expected .* found '/'"),
        ("0.5", r"expected '\*' and a kernel"),
        ("gaussian[", "expected a column's number"),
        ("gaussian[1.5]", "expected a column's number .* found '1.5'"),
        ("gaussian[3-1]", "expected columns from 3 up to less than 1,000,000"),
        ("gaussian[0-99999999999]", "expected columns from 0 up to"),
        ("gaussian[0,0]", "columns are different whole numbers"),
        ("gaussian(length_scale)", "expected '='"),
        ("gaussian(length_scale=)", "expected a value of length_scale"),
        ("gaussian(length_scale=(1,))", "expected a number"),
        ("gaussian(length_scale=1", r"expected ',' .* found its end"),
        ("gaussian(length_scale=mean)", "length_scale must be 'median'"),
        ("gaussian(length_scale=1,length-scale=2)", "has length_scale twice"),
        ("gaussian(nu=2)", r"takes \['length_scale'\], not \['nu'\]"),
        ("matern(nu=median)", "nu must be positive"),
        ("gausian", "kernel must be one of gaussian, .* not 'gausian'"),
        ("multiquadric", "not positive definite"),
        ("linear+gaussian", "sums, products and columns are for kernels of differences, not lin"),
        ("polynomial[0]", "for kernels of differences, not polynomial"),
        ("0*gaussian+cauchy", "weights of a sum of kernels must be positive"),
        ("gaussian()", "expected the name of a parameter"),
        ("*".join(["gaussian"] * 2001), "a product has at most 2,000 kernels"),
        ("(" * 51 + "gaussian" + ")" * 51, "at most 50 parentheses"),
        ("(" * 100_000 + "gaussian", "at most 50 parentheses"),
        ("gaussian[" + ",".join(["0-999998"] * 3) + "]", "columns from 0 up to less than 1,000,0"),
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


def test_commas_in_parentheses_and_brackets_do_not_separate():
    texts = "gaussian,periodic(period=(7,365))[0,1]*cauchy[2],matern(nu=2,length_scale=1)"
    assert separated(texts) == [
        "gaussian",
        "periodic(period=(7,365))[0,1]*cauchy[2]",
        "matern(nu=2,length_scale=1)",
    ]
    assert separated("gaussian") == ["gaussian"]
    assert separated("a,,b") == ["a", "", "b"]


@pytest.mark.parametrize("columns", ["", "[0]", "[1-3]"])
@pytest.mark.parametrize("sign", ["*", "+"])
def test_a_text_is_read_in_time_that_grows_with_its_length(monkeypatch, sign, columns):
    made = []
    for kind in (Product, Sum):
        init = kind.__post_init__

        def counted(kernel, init=init):
            init(kernel)
            made.append(len(kernel.parts))

        monkeypatch.setattr(kind, "__post_init__", counted)
    n = 100
    kernel = parsed_kernel(sign.join([f"gaussian{columns}"] * n))
    assert len(kernel.parts) == n
    assert sum(made) <= 2 * n
    if sign == "*":
        assert kernel.normal_sets == n


def test_sets_of_normal_numbers_are_the_first_that_are_free():
    text = "gaussian[0-1]*gaussian[2]*gaussian[0]*gaussian*gaussian[1]*gaussian[1-2]*gaussian[0]"
    assert parsed_kernel(text)._first_sets() == [0, 0, 1, 2, 1, 3, 3]
