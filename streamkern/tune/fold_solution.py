"""From the moments of folds to a solution: what is factorised runs where the moments are.

    folds --> total --> eigenbasis --+-- errors of fold 0 --.
                                     +-- errors of fold 1 ---+--> curve --> alpha --> solution
                                     +-- ...               --'

Smaller maps are leading blocks of the same moments.  The caller's process sees spectra, curves,
coefficients, and the one packed G that a model keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.scheduler import is_task, kept, run, run_all, shared, task
from streamkern.errors import DataError, ParameterError
from streamkern.runtime.memory import usable_cores
from streamkern.solve import Eigenbasis, NormalEquations, kept_gram, rounding_variance, solve_ridge
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve, default_grid
from streamkern.statistics import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from streamkern._typing import Array, Floats
    from streamkern.parameters.penalty_options import PenaltyOptions
    from streamkern.solve import RidgeSolution, Spectrum
    from streamkern.solve.cross_validation import HeldOut
    from streamkern.solve.sparse_selection import SparsityCurve
    from streamkern.statistics import ByFold, CentredMoments

    # Takes the task of an eigenbasis, its spectrum and penalties.
    LeaveOneOutCurve: TypeAlias = Callable[[Any, Spectrum, Floats], PenaltyCurve]

_SMALLEST_SIZE = 64
# Of the mean squared error, as a power of alpha: from here double precision gained a tenth or more.
_FALLING = 0.1


@dataclass(frozen=True)
class Size:
    """The leading features of the map, with the penalty that suits them."""

    n_components: int
    curve: PenaltyCurve
    # Indices of penalties on the curve, (q,) or (1,).
    chosen: Any
    # Tasks of Moments and Eigenbasis.
    total: Any
    basis: Any

    @property
    def cv_rmse(self) -> Floats | None:
        """The cross-validated or leave-one-out root mean squared error, (q,)."""
        if self.curve.criterion not in ("cv", "loo"):
            return None
        rmse: Floats = np.sqrt(self.curve.at(self.chosen))
        return rmse


@dataclass(frozen=True)
class Solved:
    solution: RidgeSolution
    equations: NormalEquations
    # The one that was solved for, unless the penalty was given, and all that were tried, ascending.
    size: Size | None = None
    sizes: tuple[Size, ...] = ()
    # The features that a sparse solution is on, and errors of such solutions, where folds were.
    support: Array | None = None
    sparsity: SparsityCurve | None = None

    @property
    def cv_rmse(self) -> Floats | None:
        """The held-out root mean squared error, (q,), where it is known of what was solved."""
        if self.sparsity is not None:
            return self.sparsity.rmse_of(len(self.solution.coef))
        return self.size.cv_rmse if self.size and self.support is None else None

    @property
    def held_out(self) -> Floats | None:
        """The mean squared error of folds, (q,), as their moments tell it."""
        by_rows = self.size is not None and self.size.curve.criterion == "loo"
        return None if self.cv_rmse is None or by_rows else np.square(self.cv_rmse)

    def ordered_rows(self, fold_by: str) -> str:
        """One sentence where the folds' errors lie far apart, else ''."""
        if self.size is None or fold_by == "rows":
            return ""
        return self.size.curve.ordered_rows(self.size.chosen, fold_by)

    def at_the_edge(self, precision: str) -> str:
        """One sentence where the best penalty is the first or last of the grid, else ''."""
        if self.size is None or len(self.size.curve.alphas) < 2:
            return ""
        alphas, chosen = self.size.curve.alphas, self.size.curve.alphas[self.size.chosen]
        if chosen.max() == alphas[-1]:
            return "the best alpha is the largest that was tried: the features explain little."
        if precision == "single" and chosen.min() <= self.solution.floor:
            return (
                f"the best alpha is at the precision floor {self.solution.floor:.3g}, below which "
                f"the sums are rounding; double precision lowers it."
            )
        return ""

    def short_of_precision(self, precision: str) -> str:
        """One sentence where the error still falls at the precision floor, else ''."""
        if self.size is None or precision == "double" or self.size.curve.criterion == "evidence":
            return ""
        curve, floor = self.size.curve, self.solution.floor
        if len(curve.alphas) < 2 or curve.alphas[self.size.chosen].min() > floor:
            return ""
        first, second = (curve.scores[:2] / curve.scale).mean(axis=1)  # 0 if all are constant
        if not second > first * (curve.alphas[1] / curve.alphas[0]) ** _FALLING:
            return ""
        return (
            f"the error still falls at the smallest alpha that single precision allows, "
            f"{floor:.3g}: precision 'double' (--precision double) may predict better."
        )


def nested_sizes(n_components: int, nesting: int = 2) -> list[int]:
    """Return D, D / 2, D / 4 and so on, ascending from about 64."""
    sizes = [n_components]
    step = math.lcm(nesting, 2)
    while nesting and sizes[-1] >= 2 * max(_SMALLEST_SIZE, step):
        sizes.append(sizes[-1] // (2 * step) * step)
    return sizes[::-1]


def solve_folds(
    folds: Any,
    options: PenaltyOptions,
    *,
    intercept: bool,
    sizes: Sequence[int] | None = None,
    leave_one_out: LeaveOneOutCurve | None = None,
) -> Solved:
    """Choose the penalty, and the number of features, from the moments of folds, and solve."""
    folds = folds if is_task(folds) else shared(folds)
    if options.is_fixed and (sizes is None or len(sizes) == 1):
        total = kept(task(total_of, folds, sizes and sizes[0], name="total"))
        return Solved(*run(task(_solved, total, options.alpha, intercept, name="solve")))
    if sizes is not None and len(sizes) > 1 and not options.needs_folds:
        raise ParameterError(
            "the number of components is chosen by cross-validation; take alpha 'cv' or a grid "
            "of penalties, or give the number."
        )
    tried = solve_sizes(
        folds, options, intercept=intercept, sizes=sizes or [None], leave_one_out=leave_one_out
    )
    size = tried[0]
    if len(tried) > 1:  # the smallest size within one standard error of the best
        scores = [each.curve.combined(each.chosen) for each in tried]
        most = sum(min(scores))
        size = next(each for each, (score, _) in zip(tried, scores, strict=True) if score <= most)
    alphas = size.curve.alphas[size.chosen]
    alpha = alphas if len(alphas) > 1 else float(alphas[0])
    solution, equations = run(task(_solved_in, size.basis, size.total, alpha, name="solve"))
    return Solved(solution, equations, size, tried)


def solve_sizes(
    folds: Any,
    options: PenaltyOptions,
    *,
    intercept: bool,
    sizes: Sequence[int | None],
    leave_one_out: LeaveOneOutCurve | None = None,
) -> tuple[Size, ...]:
    """Choose the penalty for every number of leading features, None for all of them."""
    numbers: list[int] = run(task(folds_with_rows, folds, name="folds"))
    if options.needs_folds and len(numbers) < 2:
        raise ParameterError(
            f"cross-validation needs at least 2 folds with rows, but the moments have "
            f"{len(numbers)}; add rows, take alpha 'gcv' or 'evidence', give a number, or compute "
            f"the moments with more folds."
        )
    if leave_one_out is None:
        options.check_without_rows()
    return tuple(
        _sized(folds, numbers, options, size, intercept=intercept, leave_one_out=leave_one_out)
        for size in sizes
    )


def _sized(
    folds: Any,
    numbers: Sequence[int],
    options: PenaltyOptions,
    n_components: int | None,
    *,
    intercept: bool,
    leave_one_out: LeaveOneOutCurve | None,
) -> Size:
    total = kept(task(total_of, folds, n_components, name="total"))
    basis = kept(task(_eigenbasis, total, intercept, name="eigenbasis"))
    spectrum: Spectrum = run(task(attrgetter("spectrum"), basis, name="spectrum"))
    grid = options.grid
    alphas = default_grid(spectrum) if grid is None else np.array(grid)
    if options.needs_folds:
        parts = fold_parts(folds, numbers, n_components)
        held_out = [
            task(_held_out, basis, total, part, alphas, len(numbers), name=f"fold-{k}")
            for k, part in parts.items()
        ]
        variance = spectrum.target / spectrum.weight
        curve = PenaltyCurve.of_folds(alphas, run_all(held_out), variance)
    elif leave_one_out is not None and options.reads_rows:
        curve = leave_one_out(basis, spectrum, alphas)
    else:
        curve = PenaltyCurve.of_spectrum(options.alpha, alphas, spectrum)
    chosen = curve.choose(
        per_target=options.per_target, one_standard_error=options.one_standard_error
    )
    return Size(len(spectrum.values), curve, chosen, total, basis)


def folds_with_rows(folds: ByFold) -> list[int]:
    return sorted(folds.parts)


def total_of(folds: ByFold, n_components: int | None) -> Moments:
    """Return the moments of all folds together, of all or of the leading features."""
    return reduce(Moments.merge, [part_of(folds, k, n_components) for k in folds_with_rows(folds)])


def part_of(folds: ByFold, fold: int, n_components: int | None) -> Moments:
    part: Any = folds.parts[fold]
    moments: Moments = part
    return moments if n_components is None else moments.leading(n_components)


def fold_parts(folds: Any, numbers: Sequence[int], n_components: int | None) -> dict[int, Any]:
    return {k: task(part_of, folds, k, n_components, name=f"part-{k}") for k in numbers}


def _solved(total: Moments, alpha: float, intercept: bool) -> tuple[RidgeSolution, NormalEquations]:
    def centred() -> CentredMoments:
        return total.centred(intercept=intercept)

    moments = centred()
    gram = kept_gram(moments)
    solution = solve_ridge(moments, alpha, again=centred)
    return solution, NormalEquations.of(moments, solution, gram)


def _solved_in(
    basis: Eigenbasis, total: Moments, alpha: float | Floats
) -> tuple[RidgeSolution, NormalEquations]:
    solution = basis.solve(alpha)
    moments = total.centred(intercept=basis.spectrum.intercept)
    return solution, NormalEquations.of(moments, solution)


def _eigenbasis(total: Moments, intercept: bool) -> Eigenbasis:
    if total.n_rows < 2:
        raise DataError(
            f"a penalty cannot be chosen from {total.n_rows} row; add rows, or give alpha a number."
        )
    basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
    # Targets that vary by rounding alone do not vary.
    spectrum = basis.spectrum
    varies = spectrum.target > spectrum.weight * rounding_variance(basis.target_mean)
    target = np.where(varies, spectrum.target, 0.0)
    return replace(basis, spectrum=replace(spectrum, target=target))


def _held_out(
    basis: Eigenbasis, total: Moments, part: Moments, alphas: Floats, n_folds: int
) -> HeldOut:
    """Score a fold, all of which may be side by side on the cores of one machine."""
    return held_out_errors(basis, total, part, alphas, max(usable_cores() // n_folds, 1))
