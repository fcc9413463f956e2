"""The Python statements that fit the model of a report again."""

from typing import Any

from streamkern.kernels import as_kernel, simple_kernels
from streamkern.models.classification import Classification
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_model import restored_kernel
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.sources import LabelledSource, Source
from streamkern.sources.tables import is_table


def python_call(model: FittedRidge | FittedClassifier, source: Source | None) -> str:
    """Return Python statements that fit the model again; arrays go by the names of `fit`."""
    given, default = model.ridge.parameters.values(), Parameters().values() | vars(Classification())
    estimator, kernel = "RandomFeatureRidge", given.pop("kernel")
    if isinstance(model, FittedClassifier):
        estimator = "RandomFeatureClassifier"
        given |= {"class_weight": model.class_weight, "calibration": model.calibration}
    kernels = [] if kernel == AUTO else [as_kernel(kernel)]
    options = [repr(each) for each in kernels]
    for name, each in given.items():
        if name == "metric" and not (each is None or isinstance(each, str)):
            options.append("metric=metric")  # a matrix, by the name of the parameter
            continue
        value = each.tolist() if hasattr(each, "tolist") else each
        if value != default[name]:
            options.append(f"{name}={value!r}")
    arguments, method, tried = ["moments"], "solve", model.report.get("tuning_kernels")
    if source is not None:
        arguments, method = [_rows_of_call(model.report["data"], source)], "fit"
    if source is not None and tried is not None:
        # Every name as it was resolved, whatever 'auto' will mean.
        kernels += (resolved := list(map(restored_kernel, tried)))
        arguments += [f"kernels={resolved!r}", f"maps={model.report['tuning_maps']!r}"]
        budget, method = model.report["tuning_budget"], "tune"
        arguments += [] if budget is None else [f"budget={budget!r}"]
    imports = {"streamkern": {estimator}}
    for used in (type(simple) for each in kernels for simple in simple_kernels(each)):
        # A user's kernel is imported from its own module.
        module = "streamkern" if used.__module__.startswith("streamkern.") else used.__module__
        imports.setdefault(module, set()).add(used.__name__)
    return "\n".join(
        (
            "import streamkern",
            *(f"from {each} import {', '.join(sorted(imports[each]))}" for each in sorted(imports)),
            "",
            f"model = {estimator}({', '.join(options)})",
            f"model.{method}({', '.join(arguments)})",
        )
    )


def _rows_of_call(data: dict[str, Any], source: Source) -> str:
    is_labelled = isinstance(source, LabelledSource)
    if data["kind"] != "hdf5":
        rows = source.rows if isinstance(source, LabelledSource) else source
        return "X, y, sample_weight" if rows.is_weighted else "X, y"
    how = f", weights={data['weights']!r}" if data.get("weights") else ""
    how += ", labels=True" if is_labelled else ""
    paths = [file["path"] for file in data["files"]]
    if is_table(paths[0]):
        targets = list(data["recipe"]["targets"])
        weights = f", sample_weight={data['recipe']['weights']!r}" if how else ""
        return f"{paths!r}, y={targets!r}{weights}"
    return f"streamkern.open_hdf5({paths!r}, {data['x']!r}, {data['y']!r}{how})"
