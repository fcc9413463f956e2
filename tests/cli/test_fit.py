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
UNITS = ("--no-standardize", "--no-intercept", "--precision", "double")
OPTIONS = {
    "nothing": ((), {}),
    "map": (
        ("--map", "iid", "--seed", 4, "--phase", "--length-scale", "1,2.5,3e1", *UNITS),
        {"feature_map": "iid", "random_state": 4, "paired": False, "standardize": False}
        | {"fit_intercept": False, "precision": "double", "kernel": library.Gaussian((1, 2.5, 30))},
    ),
    "metric": (
        ("--metric", "learn:1", "--on-bad-rows", "skip", "--alpha", "evidence", "--per-target"),
        {"metric": "learn:1", "on_bad_rows": "skip", "alpha": "evidence", "per_target": True},
    ),
    "identity": (("--map", "identity", "--alpha", 2.5), {"feature_map": "identity", "alpha": 2.5}),
    "loo": (("--alpha", "loo", "--alphas", "1,10"), {"alpha": "loo", "alphas": [1.0, 10.0]}),
    "folds": (
        ("--alpha", "10,0.1,1", "--folds", 3, "--fold-by", "blocks", "--one-standard-error"),
        {"alpha": [10.0, 0.1, 1.0], "n_folds": 3, "fold_by": "blocks", "one_standard_error": True},
    ),
    "sparse": (("--sparse", "auto"), {"sparse": "auto"}),
    "components": (("--components", "auto"), {"n_components": "auto"}),
    "lasso": (("--sparse", 7, "--sparse-method", "lasso"), {"sparse": 7, "sparse_method": "lasso"}),
}


@pytest.mark.parametrize("case", list(OPTIONS))
def test_an_option_is_the_parameter_of_python(case):
    arguments, parameters = OPTIONS[case]
    streamkern(*FIT, *arguments)
    model, expected = library.load("model.h5"), ridge(**parameters)
    assert model.get_params() == expected.get_params()
    assert same_bits(model, expected)
    plan = report_of(*FIT, *arguments, "--dry-run")
    assert model.report_["projected_worker_bytes"] == plan["worker_bytes"]


def test_several_files_are_one_data_set_in_the_order_given():
    X, y = rows()
    write("b.h5", X[:100], y[:100])
    write("a.h5", X[100:], y[100:])
    report = report_of("fit", "b.h5", "a.h5", *FIT[2:])
    assert report["rows"] == 300
    assert same_bits(library.load("model.h5"), ridge())


def test_datasets_may_have_other_names():
    X, y = rows()
    write("named.h5", X, y, "inputs/raw", "target")
    streamkern("fit", "named.h5", *FIT[2:], "--x", "inputs/raw", "--y", "target")
    assert same_bits(library.load("model.h5"), ridge())


@pytest.mark.usefixtures("no_reading")
def test_a_dry_run_of_a_search_plans_for_what_a_budget_tries_and_refuses_what_it_would():
    tune = ("tune", *FIT[1:], "--dry-run")
    budgeted = report_of(*tune, "--budget", 2)
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


def test_moments_are_solved_to_the_sparse_model_of_a_fit_which_has_few_features_of_many():
    streamkern("moments", "data.h5", "--out", "moments.h5", "--components", 32)
    sparse = ("--sparse", 7, "--sparse-method", "lasso")
    streamkern("solve", "moments.h5", "--out", "solved.h5", *sparse)
    streamkern(*FIT, *sparse)
    assert same_bits(library.load("solved.h5"), library.load("model.h5"))
    assert "7 of 32 by lasso (single precision)" in streamkern("show", "model.h5").stdout
    assert report_of("predict", "model.h5", "data.h5", "--out", "p.h5", "--std")["rows"] == 300
    arguments = ("solve", "moments.h5", "--out", "none.h5", "--sparse", 33)
    assert "more features than the 32" in refused(*arguments, status=2)


def test_a_kernel_is_tuned_before_features_are_chosen():
    report = report_of("tune", *FIT[1:], "--sparse", 7, "--kernel", "gaussian")
    assert (report["n_components"], report["sparse_of"]) == (7, 32)


def test_what_a_search_would_try_is_said_where_nothing_of_that_was_chosen():
    hint = "`streamkern tune --budget 3m`"
    assert hint in streamkern(*FIT).stderr
    for option in (("--kernel", "matern52"), ("--quiet",), ("--json",), ("--checkpoint", "saved")):
        assert hint not in streamkern(*FIT, "--force", *option).stderr
