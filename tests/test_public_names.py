"""The public names are these, and each can be imported."""

import ast
import dataclasses
import inspect
import re
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import streamkern
from streamkern.registry import installed, public_names

NAMES = """
Cauchy ColumnStatistics DataMoments ExactKernelRidge FeatureMap Gaussian GridFourierFeatures
Identity IntegerMoments InverseMultiquadric Kernel Laplacian Linear Matern ModelPlots Moments
Nystroem Periodic Polynomial
QuasiRandomFourierFeatures RandomFeatureAdaBoost RandomFeatureClassifier
RandomFeaturePCA RandomFeatureRegressor RandomFeatureRidge RandomFourierFeatures
RationalQuadratic Recipe
StructuredFourierFeatures Sum __version__ accumulate compare connect convert load
load_moments load_predictor open_hdf5 permutation_importance progress read_recipe sparsify
to_c to_onnx write_report
"""
PUBLIC = set(NAMES.split())


def test_the_list_is_explicit_and_every_name_has_a_docstring():
    assert set(streamkern.__all__) == set(dir(streamkern)) == PUBLIC
    for name in PUBLIC - {"__version__"}:
        assert len(inspect.getdoc(getattr(streamkern, name))) > 40
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streamkern.nothing


def test_the_names_for_type_checkers_are_the_same():
    stub = ast.parse(Path(streamkern.__file__).with_suffix(".pyi").read_text())
    imported = {a.name for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    listed = next(ast.literal_eval(n.value) for n in stub.body if isinstance(n, ast.Assign))
    assert set(listed) == PUBLIC == imported | {"__version__"}


def test_what_people_call_has_a_docstring_of_its_own_or_inherits_one():
    without = [
        f"{name}.{attribute}"
        for name in PUBLIC
        for attribute, value in inspect.getmembers_static(getattr(streamkern, name))
        if not attribute.startswith("_")
        and (callable(value) or isinstance(value, (property, classmethod, staticmethod)))
        and not inspect.getdoc(getattr(getattr(streamkern, name), attribute))
    ]
    assert not without


def members_of_ours(public):
    """A public name, and what people call of it that this package defines, fields included."""
    yield public
    for base in public.__mro__ if isinstance(public, type) else ():
        shown = [name for name in vars(base) if base.__module__.startswith("streamkern.")]
        own = [name for name in shown if name[0] != "_" and not name.endswith("_request")]
        yield from (getattr(public, name) for name in own)


def errors_of(member):
    """The errors that a docstring names."""
    section = inspect.getdoc(member).partition("\nRaises\n------\n")[2].partition("\n\n")[0]
    return {each for names in re.findall(r"(?m)^\S.*$", section) for each in names.split(", ")}


# What nobody takes: so are functions annotated that return nothing, or never, or yield nothing.
NOTHING = (inspect.Signature.empty, None, "None", NoReturn, "Iterator[None]")


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_a_docstring_says_what_a_public_member_takes_and_a_field_is(name):
    public = getattr(streamkern, name)
    for member in members_of_ours(public):
        if callable(member) and not isinstance(member, type):
            section = inspect.getdoc(member).partition("\nParameters\n")[2].partition("\n\n")[0]
            said = re.findall(r"\w+", " ".join(re.findall(r"(?m)^\S.*?(?= : |$)", section)))
            taken = {each for each in inspect.signature(member).parameters if each[0] != "_"}
            assert taken <= {"self", *said}, member
            if inspect.signature(member).return_annotation not in NOTHING:
                assert re.search(r"\n(Returns|Yields)\n-", inspect.getdoc(member)), member
            if isinstance(public, type) and issubclass(public, BaseEstimator):
                assert errors_of(member), member
    fields = dataclasses.fields(public) if dataclasses.is_dataclass(public) else ()
    docs = "\n".join(f"{inspect.getdoc(base)}\n" for base in public.__mro__) if fields else ""
    found = re.findall(r"(?ms)^(?:Parameters|Attributes)\n-+\n(.*?\n)(?:\n|\Z)", docs)
    said = "\n".join(found)
    for each in fields:
        entry = rf"(?m)^([\w, ]+, )?{each.name}\b[\w, ]* : "
        assert each.name == "_" or re.search(entry, said), each


FITS = {"fit", "save", "set_fit_request", "recipe_", "model_", "report_"}
PREDICTS = {"predict", "evaluate", "predict_to_hdf5", "score", "set_score_request", "predictor_"}
GROWS = {"partial_fit", "update", "forget", "set_partial_fit_request"}
TRANSFORMS = {"transform", "fit_transform", "get_feature_names_out", "set_output"}
FEATURES = {"alpha_", "coef_", "feature_map_", "intercept_", "kernel_", "metric_", "support"}
MOMENTS = {"moments", "moments_", "plot", "solve", "tune"}
CLASSES = {"classes_", "class_factors_", "rule_"}
CLASSES |= {"decision_function", "predict_proba", "predict_log_proba"}
VARIANCES = {"explained_variance_", "explained_variance_ratio_", "singular_values_"}
METHODS = {
    "RandomFeatureRidge": FITS
    | PREDICTS
    | GROWS
    | TRANSFORMS
    | FEATURES
    | MOMENTS
    | {"diagnose", "normal_equations", "gradient_outer_product", "set_predict_request"}
    | {"equations_", "penalty_curve_", "predict_grid"},
    "RandomFeatureClassifier": FITS
    | PREDICTS
    | GROWS
    | TRANSFORMS
    | FEATURES
    | MOMENTS
    | CLASSES
    | {"calibrate", "predict_sets", "ridge_"},
    "RandomFeatureAdaBoost": FITS
    | PREDICTS
    | CLASSES
    | {"staged_evaluate", "on_bad_rows", "ensemble_"},
    "RandomFeatureRegressor": FITS
    | PREDICTS
    | TRANSFORMS
    | FEATURES
    | MOMENTS
    | {"update", "forget", "set_predict_request"},
    "RandomFeaturePCA": FITS
    | TRANSFORMS
    | VARIANCES
    | {"solve", "transform_to_hdf5", "components_", "feature_map_", "kernel_", "mean_"}
    | {"n_components_", "n_samples_", "principal_"},
    "ExactKernelRidge": {"fit", "predict", "score", "set_fit_request", "set_score_request"},
}


BEFORE_A_FIT = """
predict predict_proba predict_log_proba predict_sets decision_function transform evaluate score
staged_evaluate diagnose support save normal_equations gradient_outer_product update forget
calibrate predict_to_hdf5 transform_to_hdf5 predict_grid
"""


@pytest.mark.parametrize("name", BEFORE_A_FIT.split())
def test_errors_before_a_fit_are_named(name):
    X, y = np.zeros((9, 2)), np.arange(9) % 3
    public = [getattr(streamkern, each) for each in METHODS if name in METHODS[each]]
    ours = [cls for cls in public if getattr(cls, name).__module__.startswith("streamkern.")]
    of_it = [cls for cls in ours if issubclass(cls, BaseEstimator)]
    assert of_it
    for cls in of_it:
        given = {"X": X, "y": y, "points": [2, 2], "path": "m.h5"}
        method = getattr(cls(), name)
        taken = [each for each in given if each in inspect.signature(method).parameters]
        with pytest.raises(Exception, match=r"\w") as error:
            method(**{each: given[each] for each in taken})
        assert type(error.value).__name__ in errors_of(method), cls


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_estimator_shows_what_people_call_and_nothing_else(name):
    shown = {each for each in dir(getattr(streamkern, name)) if not each.startswith("_")}
    assert shown - set(dir(BaseEstimator)) == METHODS[name]


ESTIMATORS = [
    name
    for name in sorted(
        PUBLIC - {each for each, ext in public_names().items() if ext not in installed()}
    )
    if isinstance(made := getattr(streamkern, name), type) and issubclass(made, BaseEstimator)
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_docstring_of_an_estimator_names_its_parameters_and_what_is_fitted(name):
    estimator = getattr(streamkern, name)
    sections = re.split(r"\n(Parameters|Attributes|Notes|References)\n-+\n", estimator.__doc__)
    sections = dict(zip(sections[1::2], sections[2::2], strict=True))
    parameters = re.findall(r"(?m)^(\w+) : ", sections.get("Parameters", ""))
    assert parameters == list(inspect.signature(estimator).parameters)
    shown = {each for each in METHODS.get(name, ()) if each.endswith("_")}
    described = re.findall(r"(?m)^(\w+)", sections["Attributes"])
    assert shown | {"n_features_in_"} <= set(described)
