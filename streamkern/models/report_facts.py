"""Figures of a fit report: those of a kernel, of a solution, and of numbers of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.kernels import length_scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats
    from streamkern.kernels import Kernel
    from streamkern.parameters.fit_report import FitReport
    from streamkern.solve import NormalEquations, RidgeSolution
    from streamkern.tune.penalty_search import Size


def kernel_facts(kernel: Kernel) -> FitReport:
    return {
        "kernel": kernel.name,
        "kernel_parameters": kernel.parameters(),
        "length_scale": length_scale_of(kernel),
    }


def facts_of(solution: RidgeSolution, equations: NormalEquations, flat: bool) -> FitReport:
    return {
        "n_components": len(solution.coef),
        "alpha": plain(solution.alpha),
        "train_rmse": as_stored(np.sqrt(equations.train_rss / equations.weight), flat),
        "effective_dof": plain(solution.effective_dof),
        "noise": as_stored(np.sqrt(equations.noise_variance), flat),
        "condition": solution.condition if np.isfinite(solution.condition) else None,
        "precision_floor": solution.floor,
        "solver": solution.solver,
    }


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def as_stored(per_target: Floats, flat: bool) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if flat else per_target.tolist()


def sizes_as_dict(sizes: Sequence[Size], flat: bool) -> dict[str, Any]:
    if len(sizes) < 2:
        return {}
    scores = [size.curve.combined(size.chosen) for size in sizes]
    return {
        "n_components": [size.n_components for size in sizes],
        "cv_rmse": [as_stored(size.cv_rmse, flat) for size in sizes if size.cv_rmse is not None],
        "relative_mse": [score for score, _ in scores],
        "standard_errors": [error for _, error in scores],
        "alpha": [size.curve.alphas[size.chosen].tolist() for size in sizes],
    }
