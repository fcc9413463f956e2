"""`streamkern tune`."""

import pytest

from streamkern.estimators.problems import Regression
from streamkern.extensions.search import tuned_fit
from streamkern.parameters.parameters import Parameters
from streamkern.registry import extension


@pytest.mark.parametrize("more", ["", " --classify"])
def test_a_search_has_the_defaults_of_python(handed_by, more):
    problem = extension("classes", "classification").Classification if more else Regression
    made, found, _ = handed_by(f"tune data.h5 --out m.h5{more}", tuned_fit, "tune")
    assert type(made) is problem
    assert vars(made) == vars(problem())
    assert found.values() == Parameters().values()
