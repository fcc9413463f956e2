"""Figures of a fit report: those of a kernel, of a solution, and of numbers of features."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors.formatting import listed
from streamkern.kernels import Kernel, length_scale_of
from streamkern.parameters.fit_report import FitReport
from streamkern.solve import NormalEquations, RidgeSolution
from streamkern.solvers.penalty_search import Size

_MOST_CLASSES = 8
# Rows of a summary that a line has no room for.
_LONG = {"seconds", "note"}


def kernel_facts(kernel: Kernel) -> FitReport:
    return {
        "kernel": kernel.name,
        "kernel_parameters": kernel.parameters(),
        "length_scale": length_scale_of(kernel),
    }


def facts_of(solution: RidgeSolution, equations: NormalEquations, flat: bool) -> FitReport:
    return {
        "n_components": len(solution.coef),
        "alpha": np.asarray(solution.alpha).tolist(),
        "train_rmse": as_stored(np.sqrt(equations.train_rss / equations.weight), flat),
        "effective_dof": np.asarray(solution.effective_dof).tolist(),
        "noise": as_stored(np.sqrt(equations.noise_variance), flat),
        "condition": solution.condition if np.isfinite(solution.condition) else None,
        "precision_floor": solution.floor,
        "solver": solution.solver,
    }


def summary_rows(report: FitReport) -> list[tuple[str, str]]:
    """Return what people ask of a model first, in words, as far as it is known."""
    classes, seconds = report.get("classes"), report["seconds"]
    D = report.get("n_random_features", report.get("n_components"))
    parts = ", ".join(f"{name} {each:.1f}" for name, each in seconds.items() if name != "total")
    rows = {
        "rows x inputs": f"{report['rows']:,} x {report['n_features']:,}",
        "classes": listed(classes["values"], _MOST_CLASSES) if classes else "",
        "kernel": report.get("kernel"),
        "length scale": report.get("length_scale"),
        "features": f"{D:,}, {report['precision']} precision",
        "principal components": report["n_components"] if "rank" in report else "",
        "rounds": len(report["rounds"]) if "rounds" in report else "",
        "alpha": report.get("alpha"),
        "cross-validated RMSE": report.get("cv_rmse"),
        "training RMSE": report.get("train_rmse"),
        "training error": report.get("train_error"),
        "seconds": f"{seconds['total']:.1f}: {parts}",
        "note": report.get("note"),
    }
    return [(name, brief(value)) for name, value in rows.items() if value not in (None, "")]


def summary_line(name: str, report: FitReport) -> str:
    """Return an object's name with the same in a line."""
    known = (f"{name}: {words}" for name, words in summary_rows(report) if name not in _LONG)
    return f"{name}({', '.join(known)})"


def brief(value: Any) -> str:
    """Return a number with five digits, or the first four of several."""
    if isinstance(value, (list, tuple)):
        shown = ", ".join(brief(item) for item in value[:4])
        return shown + (f", ... ({len(value)})" if len(value) > 4 else "")
    if value is None:
        return "none"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def as_stored(per_target: Floats, flat: bool) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if flat else per_target.tolist()


def sizes_as_dict(sizes: Sequence[Size], flat: bool) -> dict[str, Any] | None:
    if len(sizes) < 2:
        return None
    scores = [size.curve.combined(size.chosen) for size in sizes]
    return {
        "n_components": [size.n_components for size in sizes],
        "cv_rmse": [as_stored(size.cv_rmse, flat) for size in sizes if size.cv_rmse is not None],
        "relative_mse": [score for score, _ in scores],
        "standard_errors": [error for _, error in scores],
        "alpha": [size.curve.alphas[size.chosen].tolist() for size in sizes],
    }
