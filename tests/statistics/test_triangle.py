"""A symmetric matrix held as one triangle."""

from __future__ import annotations

import numpy as np
import pytest

from streamkern.statistics.triangle import Triangle

every_order = pytest.mark.parametrize("order", [0, 1, 2, 255, 256, 257, 600])


def symmetric(order: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).integers(-9, 9, (order, order)).astype(float)
    return matrix + matrix.T


def holding(matrix: np.ndarray) -> Triangle:
    triangle = Triangle(len(matrix))
    triangle.add(matrix)
    return triangle


@every_order
def test_what_was_added_comes_back_whole(order):
    matrix = symmetric(order)
    assert np.array_equal(holding(matrix).dense(), matrix)


@every_order
def test_a_triangle_to_which_nothing_was_added_is_zero(order):
    assert np.array_equal(Triangle(order).dense(), np.zeros((order, order)))


@every_order
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adding_again_and_again_is_adding_matrices(order, dtype):
    triangle = Triangle(order)
    expected = np.zeros((order, order))
    for seed in range(3):
        matrix = symmetric(order, seed)
        triangle.add(matrix.astype(dtype))
        expected += matrix
    assert np.array_equal(triangle.dense(), expected)


def test_single_matrices_are_summed_in_double():
    triangle = holding(np.full((2, 2), 2.0**24, dtype=np.float32))
    triangle.add(np.ones((2, 2), dtype=np.float32))
    assert np.array_equal(triangle.dense(), np.full((2, 2), 2.0**24 + 1))


@every_order
def test_a_sum_leaves_the_two_as_they_are(order):
    left, right = holding(symmetric(order)), holding(symmetric(order, 1))
    total = left + right
    total.add(symmetric(order, 2))
    assert np.array_equal(left.dense(), symmetric(order))
    assert np.array_equal(right.dense(), symmetric(order, 1))
    expected = symmetric(order) + symmetric(order, 1) + symmetric(order, 2)
    assert np.array_equal(total.dense(), expected)
    assert total.order == order


@every_order
def test_a_triangle_holds_no_more_numbers_than_it_says(order):
    held = sum(panel.size for panel in Triangle(order).panels)
    assert order * (order + 1) / 2 <= held <= order * (order + 256) / 2


@pytest.mark.parametrize(("left", "right"), [(300, 200), (256, 512), (600, 257)])
def test_triangles_of_other_orders_do_not_add(left, right):
    with pytest.raises(ValueError, match=r"broadcast|longer|shorter"):
        Triangle(left) + Triangle(right)
