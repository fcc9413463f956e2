"""The choice of the inputs' scale and of the kernel, by small fits and their held-out errors."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from streamkern.engine.scheduler import shared
from streamkern.errors import ParameterError
from streamkern.kernels import Gaussian, Laplacian, ShiftInvariantKernel
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import CHOICE_ROWS, OF_CATEGORIES, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import FEWEST_ROWS
from streamkern.runtime.threads import blas_threads
from streamkern.tune.budget import Clock, run_in_time
from streamkern.tune.candidates import far_steps
from streamkern.tune.column_pass import ColumnPass
from streamkern.tune.metric_rounds import HeldOutTrial, Tried

# What the kernel 'auto' is chosen from: what suits most tables, and what is smooth.
_KERNELS = Laplacian(), Gaussian()
# And the scale 'auto', beside 'common' of inputs of one unit, and those of categories.
_SCALES = "standard", "robust"
# Features of the small fits at the most, and half octaves from a kernel's own length scale.
_COMPONENTS, _STEPS = 1024, (0, -2, 2)
# What they take of the seconds by the formula, where nothing else runs.
_TIMES = 8.5


class _SmallFit(NamedTuple):
    scale: str
    tried: Tried  # with its kernel, and that with a number for its length scale

    @property
    def error(self) -> float:
        return math.sqrt(self.tried.relative_mse)


def chosen_on_sample(
    seen: ColumnPass, options: FitOptions, clock: Clock | None = None
) -> tuple[ColumnPass, FitOptions, FitReport]:
    """Return the column pass and options that predict best, and what is reported of the choice.

    Chosen are the scale, if it is 'auto', and the kernel with its length scale, if that is open.
    The first of either stays unless others are better by more than a standard error.  By a clock,
    what there is no time for is not tried.
    """
    begun, scales = time.perf_counter(), {options.scale: seen}
    if options.scale == "auto":
        options, names = replace(options, scale="standard"), list(_SCALES)
        names += ["common"] * seen.one_unit + [*OF_CATEGORIES] * bool(seen.categories)
        scales = {name: seen.in_scale(name, options.precision) for name in names}
    # Others were skipped, or do not count.
    few = options.chooses_kernel and len(seen.sample.X) < FEWEST_ROWS
    if few or options.is_identity or not isinstance(options.kernel, ShiftInvariantKernel):
        return seen, replace(options, chooses_kernel=False), {"scale": options.scale}
    fits = list(_small_fits(seen, options, scales, clock))
    by_error = sorted(fits, key=lambda fit: fit.error)
    # The last of every name is the best.
    of_scales = {name: fit for name in scales for fit in by_error[::-1] if fit.scale == name}
    first = fits[0] if options.chooses_kernel else of_scales[options.scale]
    best = next((fit for fit in by_error if fit.tried.beats(first.tried)), first)
    report: FitReport = {"scale": best.scale}
    if len(scales) > 1:
        report["scale_errors"] = {name: fit.error for name, fit in of_scales.items()}
    if options.chooses_kernel:
        options = replace(options, kernel=best.tried.kernel, chooses_kernel=False)
        mine = [fit for fit in reversed(by_error) if fit.scale == best.scale]
        report["kernel_errors"] = {fit.tried.kernel.name: fit.error for fit in mine}
    report["seconds"] = {"scale": time.perf_counter() - begun}
    return scales[best.scale], replace(options, scale=best.scale), report


def _small_fits(
    seen: ColumnPass, options: FitOptions, scales: Mapping[str, ColumnPass], clock: Clock | None
) -> Iterator[_SmallFit]:
    """Return fits to some rows in every scale, with every kernel that is open or the one given."""
    X = seen.sample.X[:CHOICE_ROWS]
    weights = None if seen.weights is None else seen.weights[:CHOICE_ROWS]
    sent = shared(X), shared(seen.targets[:CHOICE_ROWS]), shared(weights)
    D, parts = min(options.n_components, _COMPONENTS), list[Any]()
    for name, scaled in scales.items():
        standardizer, columns = scaled.standardizer, scaled.standardizer.columns
        trial = HeldOutTrial(options, standardizer, D, len(X))
        with blas_threads(1):  # length scales are part of the result
            rows = standardizer(X)
            kernels = [each.resolved(rows, columns, weights) for each in _kernels(seen, options)]
        for own in (each.restricted(columns) for each in kernels):
            tried = [own.stretched(2.0 ** (step / 2)) for step in (*_STEPS, *far_steps(own, rows))]
            calls = [("sample-try", _without_coef, trial, each, *sent) for each in tried]
            parts += zip(range(len(tried)), [name] * len(tried), calls, strict=True)
    # Own length scales come first, in case there is no time for others.
    _, names, several = zip(*sorted(parts, key=itemgetter(0)), strict=True)
    expected = _TIMES * trial.flops / rough_flops_per_second(options.precision)
    fewest = len(scales) * len(kernels)
    made = run_in_time(clock, several, 1.0, fewest=fewest, expected=expected)
    return map(_SmallFit, names, made)


def _without_coef(trial: HeldOutTrial, *arguments: Any) -> Tried:
    """Return what a trial came to, without the coefficients, which may be of many targets."""
    tried = trial(*arguments)
    return tried._replace(coef=tried.coef[:0])


def _kernels(seen: ColumnPass, options: FitOptions) -> list[Any]:
    """Return the kernel, or if it is open those that the map has features of."""
    if not options.chooses_kernel:
        return [options.kernel]
    found = []
    for kernel in _KERNELS:
        with suppress(ParameterError):
            replace(options, kernel=kernel).check_map(seen.standardizer.n_features)
            found.append(kernel)
    return found or [options.kernel]
