"""Commands and Python calls give what the record holds: no result has changed."""

from __future__ import annotations

import pytest
from golden import record
from golden.cases import CASES


@pytest.fixture(scope="module")
def expected():
    return record.read()


def marks(case):
    return [pytest.mark.cluster] * case.on_cluster + [pytest.mark.slow] * case.is_slow


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks(case)) for name, case in CASES.items()]
)
def test_a_case_gives_what_the_record_holds(name, expected):
    reason = record.reason_to_skip(name, expected)
    if reason is not None:
        pytest.skip(reason)
    assert record.check(name, expected) == []


def test_the_record_holds_no_case_that_is_gone(expected):
    assert expected["cases"].keys() == CASES.keys()
