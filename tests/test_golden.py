"""Commands and Python calls give what the record holds: no result has changed."""

from __future__ import annotations

import pytest
from golden import cases, record


@pytest.fixture(scope="module")
def expected():
    return record.read()


def marked(name):
    marks = [pytest.mark.cluster] if name in cases.ON_CLUSTER else []
    return pytest.param(name, marks=[*marks, pytest.mark.slow] if name in cases.SLOW else marks)


@pytest.mark.parametrize("name", map(marked, cases.CASES))
def test_a_case_gives_what_the_record_holds(name, expected):
    reason = record.reason_to_skip(name, expected)
    if reason is not None:
        pytest.skip(reason)
    assert record.check(name, expected) == []


def test_the_record_holds_every_case_and_no_other(expected):
    assert expected["cases"].keys() == cases.CASES.keys()
