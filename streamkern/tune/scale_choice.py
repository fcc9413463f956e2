"""The choice of the inputs' scale, by small fits that are cross-validated on the sample."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamkern.engine.scheduler import run_all, shared, task
from streamkern.features import LEVELS
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.fit_options import FitOptions, large_sample
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import dtype_of_features
from streamkern.tune.candidates import far_factors
from streamkern.tune.column_scaling import common, robust
from streamkern.tune.trials import Attempt, Trial

if TYPE_CHECKING:
    from streamkern.parameters.fit_report import FitReport
    from streamkern.tune.column_pass import ColumnPass

# Features of these fits at the most, and what the kernel's own length scale is multiplied by.
_COMPONENTS, _FACTORS = 512, (0.25, 0.5, 1.0, 2.0)
# The squared error of another scale, over that of the standard one, from which it is taken.
_BETTER = 0.99


def in_best_scale(
    seen: ColumnPass, options: FitOptions, pair: tuple[Any, str]
) -> tuple[ColumnPass, FitOptions, FitReport]:
    """Return the column pass and options in the scale that predicts best, and what is reported."""
    kernel, feature_map = pair
    options = replace(options, scale="standard")
    if options.is_identity or not isinstance(kernel, ShiftInvariantKernel):
        return seen, options, {"scale": options.scale}
    begun, plain = time.perf_counter(), seen.standardizer
    n_rows = large_sample(plain.n_features + seen.sample.y.shape[1])
    weights = None if seen.weights is None else seen.weights[:n_rows]
    targets, sent = shared(seen.targets[:n_rows]), shared(weights)
    scales = {
        "standard": plain,
        "robust": robust(plain, seen.sample, seen.constant),
        "common": common(plain, seen.columns, seen.constant),
    }
    if options.precision in LEVELS:
        scales = {name: each.coarsened() for name, each in scales.items()}
    D, trials = min(options.n_components, _COMPONENTS), []
    for standardizer in scales.values():
        with blas_threads(1):  # the length scale is part of the result
            rows = standardizer(seen.sample.X[:n_rows])
            own = kernel.resolved(rows, standardizer.columns, weights)
        own = own.restricted(standardizer.columns)
        few = replace(options, kernel=own, feature_map=feature_map, metric=None)
        factors = [*_FACTORS, *far_factors(own, rows)]
        rows = shared(rows.astype(dtype_of_features(options.precision)))
        trials.append(task(Trial(few, D), rows, targets, factors, sent, name="scale-try"))
    tried: list[list[Attempt]] = run_all(trials)
    errors = {
        name: min(each.relative_mse for each in attempts)
        for name, attempts in zip(scales, tried, strict=True)
    }
    least = min(errors, key=errors.__getitem__)
    best = least if errors[least] < _BETTER * errors["standard"] else "standard"
    report: FitReport = {
        "scale": best,
        "scale_errors": {name: error**0.5 for name, error in errors.items()},
        "seconds": {"scale": time.perf_counter() - begun},
    }
    return replace(seen, standardizer=scales[best]), replace(options, scale=best), report
