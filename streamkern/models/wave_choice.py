"""The choice of kernel and length scale of waves on a lattice, from the sums of one pass.

Waves on a lattice are those of every kernel; only their amplitudes are others.  So sums over all
rows tell the cross-validated error of each, and no row is read again.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

from streamkern.engine.scheduler import run_all, shared, task
from streamkern.features import Standardized
from streamkern.kernels import Gaussian, Matern, ScaledKernel
from streamkern.models.checkpoint_job import RowPasses
from streamkern.runtime.threads import blas_threads
from streamkern.solve import Eigenbasis
from streamkern.statistics import ByFold, Moments, ToeplitzMoments
from streamkern.tune.column_pass import ColumnPass
from streamkern.tune.trials import near_the_best

# From rough to smooth.
_KERNELS = Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5), Gaussian()
# Half octaves from one length scale to the next, at first and in the end, and from the median to
# the longest and the shortest.
_STEPS, _PLACES = (2, 1), range(-14, 3)
# Features of the search at the most.
_COMPONENTS = 1024
# A penalty this much above what features leave out of a kernel is not there for that.
_ABOVE = 1.01


class _Tried(NamedTuple):
    kernel: ScaledKernel
    error: float  # the mean square of held-out errors, over the variance of the target
    is_resolved: bool  # whether the best penalty is larger than what features leave out


def with_chosen_kernel(rows: RowPasses, seen: ColumnPass) -> RowPasses:
    """Read the rows once if a kernel is to be chosen, and return passes with the best.

    That is the kernel of least error by the folds of the fit, of those that the features of the
    search resolve; where they resolve none, it is the roughest: of the others held-out rows near
    to rows would not tell how wrong they are in a gap.
    """
    begun, options = time.perf_counter(), rows.options
    if not options.chooses_kernel or rows.like is not None:
        return rows
    with blas_threads(1):  # frequencies are part of the result
        D = min(options.n_components, _COMPONENTS)
        few = replace(options, n_components=D, kernel=_KERNELS[0])
        sample = seen.standardizer(seen.sample.X)
        inner, median = few.map_for(seen.standardizer.outputs, sample, seen.weights)
    scale: Any = seen.target_scale
    feature_map = Standardized(seen.standardizer, inner)
    empty = ToeplitzMoments(feature_map, rows.source.n_targets, precision="single", **scale)
    sums: Any = rows.read(ByFold(rows.folds, empty), "kernels", group=rows.fold_of).statistic
    if any(fold not in sums.parts for fold in range(rows.folds.n_folds)):
        return rows  # the next pass says which fold has no rows
    found = _best_of_kernels(sums, median, intercept=options.fit_intercept)
    resolved = [each for each in found if each.is_resolved]
    kernel = min(resolved, key=lambda each: each.error).kernel if resolved else found[0].kernel
    errors = {each.kernel.name: each.error**0.5 for each in found}
    report: Any = {**(rows.scaled or {}), "kernel_errors": errors, "passes": 1}
    report["seconds"] = {**report.get("seconds", {}), "kernels": time.perf_counter() - begun}
    options = replace(options, kernel=kernel, chooses_kernel=False)
    return rows._replace(options=options, scaled=report)


def _best_of_kernels(sums: ByFold, median: Any, *, intercept: bool) -> list[_Tried]:
    """Return kernels at the length scale of least error, from rough to the first not resolved.

    Of a rough field the smoothest would look resolved: they take for noise what they leave out.
    """
    sent, found, start = shared(sums), list[_Tried](), 0
    for kernel in _KERNELS:
        at_median = kernel.with_length_scale(median.length_scale)

        def tried(places: Iterable[int], at_median: Any = at_median) -> list[_Tried]:
            several = [at_median.stretched(2.0 ** (place / 2)) for place in places]
            return run_all([task(_tried, sent, each, intercept, name="waves") for each in several])

        best, start = _downhill(tried, start)
        found.append(best)
        if not (best.is_resolved or kernel is _KERNELS[0]):
            break
    return found


def _downhill(tried: Callable[[Iterable[int]], list[_Tried]], start: int) -> tuple[_Tried, int]:
    """Return what is least in error of places on both sides of a start, and where that is."""
    known, best = dict(zip([start], tried([start]), strict=True)), start
    for step in _STEPS:
        while new := sorted({best - step, best + step} & set(_PLACES) - set(known)):
            known |= zip(new, tried(new), strict=True)
            best = min(known, key=lambda place: known[place].error)
    return known[best], best


@blas_threads(1)  # the choice is part of the result
def _tried(sums: ByFold, kernel: Any, intercept: bool) -> _Tried:
    empty: Any = sums.empty
    parts: dict[int, Any] = dict(sorted(sums.parts.items()))
    standardized = empty.feature_map
    feature_map = Standardized(standardized.standardizer, standardized.inner.of_kernel(kernel))
    folds = [part.of_amplitudes(feature_map).with_gram() for part in parts.values()]
    total = reduce(Moments.merge, folds)
    basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
    curve = near_the_best(basis, total, folds)
    chosen = curve.choose()
    alpha, least = float(curve.alphas[chosen[0]]), _ABOVE * basis.spectrum.left_out
    return _Tried(kernel, curve.combined(chosen)[0], alpha > least)
