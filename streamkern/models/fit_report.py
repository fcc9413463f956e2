"""What a fit says of itself, under the names of the command line's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats
    from streamkern.solve import NormalEquations, RidgeSolution
    from streamkern.tune.fold_solution import Size


def facts_of(solution: RidgeSolution, equations: NormalEquations, flat: bool) -> dict[str, Any]:
    """Return what a solution says of itself, for the report."""
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
    """Return an array as a list, and anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def as_stored(per_target: Floats, flat: bool) -> Any:
    """Return a number for a single target that is stored as (n,), else a list."""
    return float(per_target[0]) if flat else per_target.tolist()


def sizes_as_dict(sizes: Sequence[Size], flat: bool) -> dict[str, Any]:
    """Return the error left out at every number of features, as plain JSON values."""
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
