"""Numbers as people write them."""

import pytest

from streamkern.report import numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.0, "0"),
        (12345, "12,345"),
        (1.0, "1"),
        (0.01234, "0.01234"),
        (1234.5678, "1,235"),
        (9.99996, "10"),
        (-3.25, "−3.25"),
        (2.5e-7, "2.5 × 10⁻⁷"),
        (1e21, "1 × 10²¹"),
        (0.000999999, "0.001"),
        (float("inf"), "infinite"),
        (float("nan"), "not a number"),
        (None, "not known"),
        ([0.5, 2], "0.5, 2"),
        ([1.0, 2, 3, 4, 5], "1, 2, 3, 4, … (5)"),
    ],
)
def test_a_number_has_four_digits_that_count(value, expected):
    assert numbers.number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.00123, "0.00123 s"),
        (12.34, "12.3 s"),
        (99.97, "100 s"),
        (119.0, "119 s"),
        (179.7, "3 min 0 s"),
        (3599.0, "59 min 59 s"),
        (7199.0, "2 h 0 min"),
        (90000.0, "25 h 0 min"),
    ],
)
def test_a_time_is_said_in_units_of_its_size(value, expected):
    assert numbers.seconds(value) == expected


def test_a_noun_takes_an_s_but_for_one():
    assert [numbers.counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]


def test_a_share_is_in_per_cent():
    assert (numbers.percent(0.12345), numbers.percent(-0.5, 0)) == ("12.3%", "−50%")
