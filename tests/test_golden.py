"""Commands and Python calls give what the record holds: no result has changed."""

import pytest
from golden import cases, record

EXPECTED = record.read()


def marked(name):
    marks = [pytest.mark.cluster] if name in cases.ON_CLUSTER else []
    return pytest.param(name, marks=[*marks, pytest.mark.slow] if name in cases.SLOW else marks)


@pytest.mark.parametrize("name", [*map(marked, cases.CASES)])
def test_a_case_gives_what_the_record_holds(name):
    if reason := record.reason_to_skip(name, EXPECTED):
        pytest.skip(reason)
    assert record.check(name, EXPECTED) == []


def test_the_record_holds_every_case_and_no_other():
    assert EXPECTED["cases"].keys() == cases.CASES.keys()
