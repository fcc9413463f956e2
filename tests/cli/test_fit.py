"""`streamkern fit`: every option does what the Python parameter of its name does."""

import pytest
from commandline import invoke, refused, report_of, rows, streamkern, write
from harvests import same_bits

import streamkern as library

pytestmark = pytest.mark.usefixtures("folder")

FIT = ("fit", "data.h5", "--out", "model.h5", "--components", 32)


def ridge(kernel="auto", **options):
    model = library.RandomFeatureRidge(kernel, **{"n_components": 32} | options)
    return model.fit(library.open_hdf5("data.h5"))


# Each option by itself is in the table of parameters; here they reach the fit.


def test_datasets_may_have_other_names():
    X, y = rows()
    write("named.h5", X, y, "inputs/raw", "target")
    streamkern("fit", "named.h5", *FIT[2:], "--x", "inputs/raw", "--y", "target")
    assert same_bits(library.load("model.h5"), ridge())


@pytest.mark.usefixtures("no_reading")
def test_a_dry_run_of_a_search_plans_for_what_a_budget_tries_and_refuses_what_it_would():
    tune = ("tune", *FIT[1:], "--dry-run")
    budgeted = report_of(*tune, "--budget", "10s")
    assert budgeted["worker_bytes"] > report_of(*tune, "--map", "iid")["worker_bytes"]
    named = report_of(*tune, "--map", "auto", "--kernel", "auto")
    assert {**budgeted, "allowed_bytes": 0} == {**named, "allowed_bytes": 0}
    assert "a budget is a positive number" in refused(*tune, "--budget", "nonsense", status=2)
    assert "has no checkpoint" in refused(*tune, "--budget", "5s", "--checkpoint", "kept", status=2)


@pytest.mark.usefixtures("no_reading")
def test_the_json_of_a_dry_run_is_the_plan_and_what_does_not_fit_fails_with_both_numbers(folder):
    plan = report_of(*FIT, "--dry-run")
    assert (plan["n_rows"], plan["n_features"], plan["n_components"]) == (300, 3, 32)
    assert plan["worker_bytes"] > 0
    result = invoke(*FIT[:-1], 1_000_000, "--solver", "direct", "--dry-run")
    assert result.exit_code == 1
    assert "1,000,000 components need" in result.stderr
    assert "may be used" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["data.h5"]


def test_what_a_search_would_try_is_said_where_nothing_of_that_was_chosen():
    hint = "`streamkern tune --budget 3m`"
    assert hint in streamkern(*FIT).stderr
    for option in (("--kernel", "matern52"), ("--quiet",), ("--json",), ("--checkpoint", "saved")):
        assert hint not in streamkern(*FIT, "--force", *option).stderr
