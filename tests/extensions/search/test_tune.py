"""`streamkern tune`."""

import pytest

from streamkern.estimators.classification import Classification
from streamkern.estimators.problems import Regression
from streamkern.extensions.search import tuned_fit
from streamkern.parameters.parameters import Parameters


@pytest.mark.parametrize(("more", "problem"), [("", Regression), (" --classify", Classification)])
def test_a_search_has_the_defaults_of_python(handed_by, more, problem):
    made, found, _ = handed_by(f"tune data.h5 --out m.h5{more}", tuned_fit, "tune")
    assert type(made) is problem
    assert vars(made) == vars(problem())
    assert found.values() == Parameters().values()
