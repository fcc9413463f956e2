"""Reproduction: the Python call that makes a model again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamkern.kernels import as_kernel, kernel_from, simple_kernels
from streamkern.models.classification import Classification
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.parameters.parameters import Parameters
from streamkern.sources import LabelledSource

if TYPE_CHECKING:
    from streamkern.kernels import Kernel
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.sources import Source


def python_call(model: FittedRidge | FittedClassifier, source: Source | None) -> str:
    """Return Python statements that fit the model again; arrays go by the names of `fit`."""
    is_classifier, given = isinstance(model, FittedClassifier), model.ridge.parameters.values()
    kernel, default = as_kernel(given.pop("kernel")), Parameters().values() | vars(Classification())
    if isinstance(model, FittedClassifier):
        given |= {"class_weight": model.class_weight, "calibration": model.calibration}
    made = [repr(kernel)]
    for name, each in given.items():
        if name == "metric" and not (each is None or isinstance(each, str)):
            made.append("metric=metric")  # a matrix, by the name of the parameter
            continue
        value = each.tolist() if hasattr(each, "tolist") else each
        if value != default[name]:
            made.append(f"{name}={value!r}")
    kernels = model.report.get("tuning_kernels")
    estimator = "RandomFeatureClassifier" if is_classifier else "RandomFeatureRidge"
    rows = _rows(model.report["data"], source, labels=is_classifier)
    arguments, method = [rows], "fit"
    used = _classes(kernel)
    if source is None:
        arguments, method = ["moments"], "solve"
    elif kernels is not None:
        tried = [kernel_from(each["name"], each["parameters"]) for each in kernels]
        used = used.union(*map(_classes, tried))
        # Every name as it was resolved, whatever 'auto' will mean.
        arguments += [f"kernels={tried!r}", f"maps={model.report['tuning_maps']!r}"]
        budget, method = model.report["tuning_budget"], "tune"
        arguments += [] if budget is None else [f"budget={budget!r}"]
    return (
        f"import streamkern\n{_imports(used, estimator)}\n"
        f"model = {estimator}({', '.join(made)})\n"
        f"model.{method}({', '.join(arguments)})"
    )


def _classes(kernel: Kernel) -> set[type]:
    return {type(simple) for simple in simple_kernels(kernel)}


def _imports(kernels: set[type], estimator: str) -> str:
    """Return statements that import kernels, from the modules of their own where they have some."""
    own = {
        (k.__module__, k.__name__) for k in kernels if not k.__module__.startswith("streamkern.")
    }
    names = sorted(k.__name__ for k in kernels if (k.__module__, k.__name__) not in own)
    each = [("streamkern", ", ".join([*names, estimator])), *sorted(own)]
    return "".join(f"from {module} import {names}\n" for module, names in each)


def _rows(data: dict[str, Any], source: Source | None, *, labels: bool) -> str:
    if data["kind"] != "hdf5":
        source = source.rows if isinstance(source, LabelledSource) else source
        weighted = source is not None and source.is_weighted
        return "X, y, sample_weight" if weighted else "X, y"
    paths = [file["path"] for file in data["files"]]
    how = f", weights={data['weights']!r}" if data.get("weights") else ""
    how += ", labels=True" if labels else ""
    return f"streamkern.open_hdf5({paths!r}, {data['x']!r}, {data['y']!r}{how})"
