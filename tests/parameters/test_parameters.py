"""The table of parameters: what estimators, commands and the contract make of it is the same."""

from inspect import signature

import click
import pytest
from click.testing import CliRunner

import streamkern
from streamkern.cli import main, parameter_options
from streamkern.errors import ParameterError
from streamkern.kernels import KERNELS, Matern
from streamkern.parameters.parameters import NAMES, OPTIONS, Parameters
from streamkern.registry import EXTENSIONS, extension, installed
from streamkern.solve.penalty_grid import CRITERIA

# The options of `fit` and `tune` that the contract names, and those that other pages name.
CONTRACT = """
kernel length-scale map phase components metric trend scale alpha folds fold-by sparse precision
no-standardize no-intercept weights classify on-bad-rows seed checkpoint report dry-run force
cluster scheduler
scheduler-file workers json quiet
alphas per-target one-standard-error sparse-method solver class-weight calibration
log-json debug out x y target id delimiter decimal thousands gap range
"""
# Every parameter, by its option.
GIVEN = {
    "--kernel matern(nu=1.5) --length-scale 1,2": {"kernel": Matern((1.0, 2.0), nu=1.5)},
    "--components 64": {"n_components": 64},
    "--alpha 1,2.5": {"alpha": [1.0, 2.5]},
    "--alphas 3": {"alphas": [3.0]},
    "--folds 7": {"n_folds": 7},
    "--fold-by blocks": {"fold_by": "blocks"},
    "--fold-by time:when --gap 7d": {"fold_by": "time:when", "gap": "7d"},
    "--per-target": {"per_target": True},
    "--one-standard-error": {"one_standard_error": True},
    "--sparse 9": {"sparse": 9},
    "--sparse-method lasso": {"sparse_method": "lasso"},
    "--solver cg": {"solver": "cg"},
    "--map auto": {"feature_map": "auto"},
    "--phase": {"paired": False},
    "--metric learn:2": {"metric": "learn:2"},
    "--trend height,linear": {"trend": "height,linear"},
    "--scale robust": {"scale": "robust"},
    "--no-standardize": {"standardize": False},
    "--no-intercept": {"fit_intercept": False},
    "--precision double": {"precision": "double"},
    "--on-bad-rows skip": {"on_bad_rows": "skip"},
    "--range 0,": {"target_range": (0.0, None)},
    "--seed 3": {"random_state": 3},
}


# Labels have no range.
OF_CLASSES = {name: v for name, v in Parameters().values().items() if name != "target_range"}


def made_of(line, *names):
    """The parameters that a command with all options makes of a line."""
    command = click.Command(
        "made", callback=lambda **given: parameter_options.parameters_of(given), params=[]
    )
    for option in reversed(parameter_options.parameter_options(*names)):
        command = option(command)
    return command.main(line.split(), standalone_mode=False)


@pytest.mark.parametrize(("line", "changes"), GIVEN.items(), ids=list(GIVEN))
def test_an_option_changes_its_parameter_and_no_other(line, changes):
    if "--trend" in line:
        extension("fields", "asked_trend")
    assert made_of(line).values() == Parameters(**changes).values() != Parameters().values()


def test_every_parameter_has_an_option():
    assert {name for changes in GIVEN.values() for name in changes} == set(NAMES)
    assert made_of("").values() == Parameters().values()
    assert made_of("--alpha loo --components auto --sparse auto").values() == (
        Parameters(alpha="loo", n_components="auto", sparse="auto").values()
    )
    assert made_of("--alpha 2").alpha == 2.0
    assert made_of("--length-scale 2.5").kernel == streamkern.Gaussian(2.5)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--components few", "--components must be a whole number or auto, not 'few'; give one"),
        ("--sparse some", "--sparse must be a whole number or auto, not 'some'"),
        (
            "--alpha much",
            "--alpha must be cv, guarded, gcv, evidence, loo, or numbers with commas between",
        ),
        ("--alphas 1,x", "--alphas must be numbers with commas between, not '1,x'; give some"),
        ("--length-scale wide", "--length-scale must be 'median' or numbers with commas between"),
        ("--kernel linear --length-scale 2", "the linear kernel has no length scale; leave"),
        ("--kernel laplacian(length_scale=3) --length-scale 2", "has its own length scale"),
    ],
)
def test_text_that_is_no_value_is_refused_with_the_forms_that_are(line, sentence):
    with pytest.raises(ParameterError) as refused:
        made_of(line)
    assert sentence in str(refused.value)


@pytest.mark.skipif(installed() != list(EXTENSIONS), reason="an extension has options, too")
@pytest.mark.parametrize("command", ["fit", "tune"])
def test_a_command_has_the_options_of_the_contract(command):
    text = CliRunner().invoke(main, [command, "--help-all"], terminal_width=200).output
    more = {"fit": {"like", "boost", "loss", "exposure", "offset"}, "tune": {"budget"}}[command]
    found = {word.strip(",") for word in text.split() if word.startswith("--")}
    in_help = {"--" + name for name in {*CONTRACT.split(), *more, "help-all"}}
    assert {name for name in found if f"  {name} " in text} == in_help


def test_choices_are_those_of_the_code():
    table = {each.name: each.metadata["option"] for each in OPTIONS}
    assert table["sparse_method"].choices == tuple(extension("sparse", "selection").METHODS)
    assert table["alpha"].form.split("|")[:-1] == list(CRITERIA)


OF_A_CLASSIFIER = {"class_weight": None, "calibration": "auto", "loss": "squared"}
BOOSTING = {
    "n_estimators": 10, "algorithm": "gentle", "learning_rate": 1.0, "class_weight": None,
}  # fmt: skip
COMPONENTS = {
    "kernel": streamkern.Gaussian("median"), "n_components": None, "n_random_features": 2048,
    "feature_map": "orthogonal", "paired": True, "standardize": True, "precision": "single",
    "on_bad_rows": "error", "random_state": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RandomFeatureRidge", Parameters().values()),
        ("RandomFeatureClassifier", OF_CLASSES | OF_A_CLASSIFIER),
        ("RandomFeatureAdaBoost", {"estimator": None} | BOOSTING),
        ("RandomFeaturePCA", COMPONENTS),
        ("ExactKernelRidge", None),
    ],
)
def test_an_estimator_takes_the_parameters_of_a_fit_and_keeps_them(name, expected):
    estimator = getattr(streamkern, name)
    known = signature(estimator).parameters.values()
    assert [each.name for each in known if each.kind is not each.KEYWORD_ONLY] == [
        "estimator" if name == "RandomFeatureAdaBoost" else "kernel"
    ]
    defaults = [(each.name, each.default) for each in known]
    assert expected is None or defaults == list(expected.items())
    assert all(each.annotation is not each.empty for each in known)
    assert list(vars(estimator()).items()) == defaults
    marks = {each.name: object() for each in known}
    assert vars(estimator(**marks)) == marks


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_the_same_by_its_name_alone_and_on_the_command_line(name):
    assert KERNELS[name] == made_of(f"--kernel {name}").kernel
    model = streamkern.RandomFeatureRidge(name, feature_map="nystroem")
    assert Parameters.of(model).pass_options().kernel == KERNELS[name]
    assert model.get_params()["kernel"] == name
