"""Numbers as people write them."""

import pytest

from streamkern.extensions.report import numbers

NUMBERS = {"0": 0, "12,345": 12345, "1": 1.0, "0.01234": 0.01234, "1,235": 1234.5678, "10": 9.99996}
NUMBERS |= {"−3.25": -3.25, "2.5 × 10⁻⁷": 2.5e-7, "1 × 10²¹": 1e21, "0.001": 0.000999999}
NUMBERS |= {"infinite": float("inf"), "not a number": float("nan"), "not known": None}
NUMBERS |= {"0.5, 2": [0.5, 2], "1, 2, 3, 4, … (5)": [1.0, 2, 3, 4, 5]}
TIMES = {"0.00123 s": 0.00123, "12.3 s": 12.34, "100 s": 99.97, "119 s": 119.0}
TIMES |= {"3 min 0 s": 179.7, "59 min 59 s": 3599.0, "2 h 0 min": 7199.0, "25 h 0 min": 90000.0}


@pytest.mark.parametrize(("expected", "value"), NUMBERS.items())
def test_a_number_has_four_digits_that_count(expected, value):
    assert numbers.number(value) == expected
    assert numbers.number(0.0) == "0"


@pytest.mark.parametrize(("expected", "value"), TIMES.items())
def test_a_time_is_said_in_units_of_its_size(expected, value):
    assert numbers.seconds(value) == expected


def test_a_noun_takes_an_s_but_for_one_and_a_share_is_in_per_cent():
    assert [numbers.counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert (numbers.percent(0.12345), numbers.percent(-0.5, 0)) == ("12.3%", "−50%")
