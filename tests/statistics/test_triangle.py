"""A symmetric matrix held as one triangle."""

import operator
from functools import cache

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.statistics import Triangle

every_order = pytest.mark.parametrize("order", [0, 1, 2, 511, 512, 513, 1100])


@cache
def symmetric(order: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).integers(-9, 9, (order, order)).astype(float)
    return matrix + matrix.T


@every_order
@pytest.mark.parametrize("combine", [operator.add, operator.sub])
def test_a_sum_or_difference_leaves_the_two_as_they_are(order, combine):
    left, right = Triangle.of(symmetric(order)), Triangle.of(symmetric(order, 1))
    both = combine(left, right)
    both.add_diagonal(2.0)
    assert np.array_equal(left.dense(), symmetric(order))
    assert np.array_equal(right.dense(), symmetric(order, 1))
    expected = combine(symmetric(order), symmetric(order, 1)) + 2.0 * np.eye(order)
    assert np.array_equal(both.dense(), expected)
    assert both.order == order


@pytest.mark.parametrize("part", [0, 1, 2, 511, 512, 513, 1023, 1024, 1025, 1099, 1100])
def test_the_leading_block_is_that_of_the_matrix(part):
    matrix = symmetric(1100)
    leading = Triangle.of(matrix).leading(part)
    assert leading.order == part
    assert np.array_equal(leading.dense(), matrix[:part, :part])
    assert np.array_equal(leading.packed(), matrix[:part, :part][np.tril_indices(part)])


@pytest.mark.parametrize("part", [1, 512, 600])
def test_the_leading_block_takes_no_memory_of_its_own(part):
    whole = Triangle.of(symmetric(1100))
    for mine, panel in zip(whole.leading(part).panels, whole.panels, strict=False):
        assert np.shares_memory(mine, panel)


@every_order
def test_a_triangle_holds_no_more_numbers_than_it_says(order):
    held = sum(panel.size for panel in Triangle(order).panels)
    assert order * (order + 1) / 2 <= held <= order * (order + 512) / 2


@pytest.mark.parametrize(("left", "right"), [(600, 400), (512, 1024), (1100, 513)])
def test_triangles_of_other_orders_do_not_add(left, right):
    for combined in (operator.add, operator.sub):
        with pytest.raises(ValueError, match=r"broadcast|longer|shorter"):
            combined(Triangle(left), Triangle(right))


@every_order
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_triangle_comes_back_from_its_packed_form(order, dtype):
    matrix, triangle = symmetric(order), Triangle.of(symmetric(order).astype(dtype))
    again = Triangle.unpacked(triangle.packed())
    assert again.order == order
    assert {panel.dtype for panel in again.panels} <= {np.dtype(dtype)}
    assert np.array_equal(again.dense(), matrix)
    assert np.array_equal(again.packed(), triangle.packed())
    again.add_diagonal(1.0)
    assert_close(again.dense(), matrix + np.eye(order), dtype=dtype)


@pytest.mark.parametrize("length", [2, 4, 5, 7, 32_895, 32_897])
def test_a_length_that_no_triangle_has_is_refused(length):
    message = rf"has D \(D \+ 1\) / 2 numbers, not {length:,}; the file is damaged"
    with pytest.raises(ParameterError, match=message):
        Triangle.unpacked(np.zeros(length))


@every_order
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_in_a_dtype_is_one(order, dtype):
    triangle = Triangle.of(symmetric(order))
    copied = triangle.astype(dtype)
    copied.add_diagonal(1.0)
    assert {panel.dtype for panel in copied.panels} <= {np.dtype(dtype)}
    assert np.array_equal(copied.dense(), symmetric(order) + np.eye(order))
    assert np.array_equal(triangle.dense(), symmetric(order))


@every_order
def test_outer_products_numbers_and_diagonals_are_added_in_place(order):
    triangle, expected = Triangle.of(symmetric(order)), symmetric(order)
    left, right = np.random.default_rng(1).integers(-5, 5, (2, order)).astype(float)
    triangle.add_outer(left, right, 3.0)
    triangle.add_outer(right, left, 3.0)
    triangle.add_diagonal(7.0)
    triangle.scale(0.5)
    expected = 0.5 * (expected + 3.0 * np.outer(left, right) + 3.0 * np.outer(right, left))
    assert np.array_equal(triangle.dense(), expected + 3.5 * np.eye(order))


@every_order
@pytest.mark.parametrize("k", [(), (1,), (4,)])
def test_product_and_norm_are_those_of_the_matrix(order, k):
    matrix = symmetric(order)
    columns = np.random.default_rng(2).integers(-5, 5, (order, *k)).astype(float)
    assert np.array_equal(Triangle.of(matrix) @ columns, matrix @ columns)
    assert Triangle.of(matrix).norm() == np.abs(matrix).sum(axis=0).max(initial=0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "indices",
    [[0], [1099], [3, 511, 512, 1024], range(0, 1100, 2), range(400, 1000), range(1100)],
    ids=["first", "last", "few", "every other", "middle", "all"],
)
def test_a_subset_has_the_rows_and_columns_of_the_matrix(indices, dtype):
    matrix, indices = symmetric(1100), np.array(indices)
    part = Triangle.of(matrix).astype(dtype).subset(indices)
    assert {panel.dtype for panel in part.panels} == {np.dtype(dtype)}
    assert np.array_equal(part.dense(), matrix[np.ix_(indices, indices)])


@pytest.mark.parametrize(
    ("order", "first_row", "dtype"),
    [
        *((1, 0, np.float32), (512, 512, np.float64), (2047, 1536, np.float32)),
        *((2048, 0, np.float64), (2049, 2048, np.float64), (2600, 512, np.float32)),
        *((2600, 1536, np.float64), (4700, 0, np.float32)),
    ],
)
def test_products_are_those_of_the_rows_to_the_last_digit(order, first_row, dtype):
    rows = np.random.default_rng(order).integers(-3, 4, (3, order)).astype(dtype)
    triangle = Triangle(order, first_row=first_row)
    buffer = np.full(Triangle.product_size(order), np.nan, dtype)
    for _ in range(2):
        triangle.add_products(rows, buffer)
    expected = 2.0 * (rows.T.astype(float) @ rows)
    for panel in triangle.panels:
        start, stop = panel.shape[1] - len(panel), panel.shape[1]
        assert np.array_equal(panel, expected[start:stop, :stop])
    assert sum(map(len, triangle.panels)) == max(order - first_row, 0)


@pytest.mark.parametrize("columns", [1, 100, 700])
def test_a_turned_triangle_is_that_of_the_turned_matrix(columns):
    rng = np.random.default_rng(0)
    rows, turning = rng.standard_normal((50, 700)), rng.standard_normal((700, columns))
    turned = Triangle.of(rows.T @ rows).turned(turning)
    expected = (rows @ turning).T @ (rows @ turning)
    assert np.abs(turned.dense() - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.array_equal(turned.dense(), turned.dense().T)
