"""The choice of the inputs' scale and of the kernel, by small fits and their held-out errors."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from streamkern._typing import Array
from streamkern.engine.scheduler import compute_all, delayed, scatter
from streamkern.errors import ParameterError
from streamkern.kernels import Gaussian, Laplacian, Matern, ShiftInvariantKernel
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import CHOICE_ROWS, OF_CATEGORIES, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.runtime.threads import blas_threads
from streamkern.tune.budget import Clock, run_in_time
from streamkern.tune.metric_rounds import HeldOutResult, HeldOutTrial
from streamkern.tune.settings import far_steps
from streamkern.tune.trials import Trial

# What the kernel 'auto' is chosen from: what suits most tables, and what is smooth.
_KERNELS = Laplacian(), Gaussian()
# And the scale 'auto', beside 'common' of inputs of one unit, and those of categories.
_SCALES = "standard", "robust"
# Features of the small fits at the most, and half octaves from a kernel's own length scale.
_COMPONENTS, _STEPS = 1024, (0, -2, 2)
# What kernels are chosen from where rows crowd: what is rough is not sure of gaps.  How often their
# length scales are halved at the most, how many are tried at once, and by how much the mean squared
# error between neighbours may rise for a shorter one.
_ROUGH, _HALVINGS, _AT_ONCE, _NEXT_TO_NOTHING = (Laplacian(), Matern(1.5)), 8, 2, 1.1
_CROWDED_COMPONENTS, _ROWS_A_FEATURE = 768, 4
# What they take of the seconds by the formula, where nothing else runs.
_TIMES = 8.5


class _SmallFit(NamedTuple):
    scale: str
    tried: HeldOutResult  # with its kernel, and that with a number for its length scale

    @property
    def error(self) -> float:
        return math.sqrt(self.tried.relative_mse)


def chosen_where_rows_crowd(
    summary: ColumnSummary, options: FitOptions, folds: Array
) -> tuple[FitOptions, FitReport]:
    """Return options with the rough kernel that predicts best between neighbours, guarded by folds.

    `folds` (m,) are those of the sample.  At long length scales only large penalties keep
    predictions from swinging where no rows are, and at short ones the kernel does.  So length
    scales are halved while that costs next to nothing, and the shortest of these is taken: of all
    rows, which are denser than the sample, it costs less still.
    """
    begun, m = time.perf_counter(), len(folds)
    weights = None if summary.weights is None else summary.weights[:m]
    with blas_threads(1):  # length scales are part of the result
        X = summary.standardizer(summary.sample.X[:m])
        columns = summary.standardizer.columns
        kernels = [each.resolved(X, columns, weights).restricted(columns) for each in _ROUGH]
    sample: Any = scatter(X), scatter(summary.targets[:m])
    dealt, weighed = scatter(folds), scatter(weights)
    D = max(min(options.n_components, _CROWDED_COMPONENTS, m // _ROWS_A_FEATURE) // 2 * 2, 2)
    found: list[tuple[int, float, Any]] = []
    for own in kernels:
        trial, errors = Trial(replace(options, kernel=own), D, is_guarded=True), list[float]()
        while len(errors) < _HALVINGS and min(errors[-1:], default=0) <= _NEXT_TO_NOTHING * min(
            errors, default=1
        ):
            halvings = range(len(errors), len(errors) + _AT_ONCE)
            tasks = [
                delayed(trial, *sample, 0.5**k, weighed, dealt, name="crowded-try")
                for k in halvings
            ]
            made = [each.relative_mse for each in compute_all(tasks)]
            found += [(k, e, own.stretched(0.5**k)) for k, e in zip(halvings, made, strict=True)]
            errors += made
    most = _NEXT_TO_NOTHING * min(error for _, error, _ in found)
    cheap = (each for each in found if each[1] <= most)
    _, _, kernel = min(cheap, key=lambda each: (-each[0], each[1]))
    by_error = sorted(found, key=itemgetter(1), reverse=True)
    report: FitReport = {
        "scale": options.scale,
        "kernel_errors": {each.name: math.sqrt(error) for _, error, each in by_error},
        "seconds": {"scale": time.perf_counter() - begun},
    }
    return replace(options, kernel=kernel, chooses_kernel=False), report


def chosen_on_sample(
    summary: ColumnSummary, options: FitOptions, clock: Clock | None = None
) -> tuple[ColumnSummary, FitOptions, FitReport]:
    """Return the column pass and options that predict best, and what is reported of the choice.

    Chosen are the scale, if it is 'auto', and the kernel with its length scale, if that is open.
    The first of either stays unless others are better by more than a standard error.  By a clock,
    what there is no time for is not tried.
    """
    begun, scales = time.perf_counter(), {options.scale: summary}
    if options.scale == "auto":
        options, names = replace(options, scale="standard"), list(_SCALES)
        names += ["common"] * summary.one_unit + [*OF_CATEGORIES] * bool(summary.categories)
        scales = {name: summary.in_scale(name, options.precision) for name in names}
    # Others were skipped, or do not count.
    few = options.chooses_kernel and len(summary.sample.X) < FEWEST_ROWS
    if few or options.is_identity or not isinstance(options.kernel, ShiftInvariantKernel):
        return summary, replace(options, chooses_kernel=False), {"scale": options.scale}
    fits = list(_small_fits(summary, options, scales, clock))
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
    summary: ColumnSummary,
    options: FitOptions,
    scales: Mapping[str, ColumnSummary],
    clock: Clock | None,
) -> Iterator[_SmallFit]:
    """Return fits to some rows in every scale, with every kernel that is open or the one given."""
    X = summary.sample.X[:CHOICE_ROWS]
    weights = None if summary.weights is None else summary.weights[:CHOICE_ROWS]
    sent = scatter(X), scatter(summary.targets[:CHOICE_ROWS]), scatter(weights)
    D, parts = min(options.n_components, _COMPONENTS), list[Any]()
    for name, scaled in scales.items():
        standardizer, columns = scaled.standardizer, scaled.standardizer.columns
        trial = HeldOutTrial(options, standardizer, D, len(X))
        with blas_threads(1):  # length scales are part of the result
            rows = standardizer(X)
            kernels = [each.resolved(rows, columns, weights) for each in _kernels(summary, options)]
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


def _without_coef(trial: HeldOutTrial, *arguments: Any) -> HeldOutResult:
    """Return what a trial came to, without the coefficients, which may be of many targets."""
    tried = trial(*arguments)
    return tried._replace(coef=tried.coef[:0])


def _kernels(summary: ColumnSummary, options: FitOptions) -> list[Any]:
    """Return the kernel, or if it is open those that the map has features of."""
    if not options.chooses_kernel:
        return [options.kernel]
    found = []
    for kernel in _KERNELS:
        with suppress(ParameterError):
            replace(options, kernel=kernel).check_map(summary.standardizer.n_features)
            found.append(kernel)
    return found or [options.kernel]
