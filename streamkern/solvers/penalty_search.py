"""The search for the penalty, over its criterion, for every number of leading features.

What is factorised stays where the moments are; the caller's process sees spectra and curves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, compute_all, delayed, persist, scatter
from streamkern.errors import DataError, ParameterError
from streamkern.features import LandmarkFolds
from streamkern.parameters.fit_options import has_few_rows
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.memory import usable_cores
from streamkern.solve import Eigenbasis, Spectrum, rounding_variance
from streamkern.solve.cross_validation import HeldOut, held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_errors import leave_one_out_scores
from streamkern.solve.penalty_grid import default_grid
from streamkern.statistics import FeatureSums, FoldStatistics, Split

# Takes the task of an eigenbasis, its spectrum and penalties.
LeaveOneOutCurve: TypeAlias = Callable[[Any, Spectrum, Floats], PenaltyCurve]


@dataclass(frozen=True)
class Size:
    """The leading features of the map, with the penalty that suits them."""

    n_components: int
    curve: PenaltyCurve
    # Indices of penalties on the curve, (q,) or (1,).
    chosen: Any
    # Tasks of FeatureSums and Eigenbasis.
    total: Any
    basis: Any
    # `coef` (D, q) and `intercept` (q,) without every fold, at the chosen penalties.
    without_folds: dict[int, dict[str, Floats]] | None = None

    @property
    def cv_rmse(self) -> Floats | None:
        """The cross-validated or leave-one-out root mean squared error, (q,)."""
        if self.curve.criterion not in ("cv", "loo"):
            return None
        return np.sqrt(self.curve.at(self.chosen))


def solve_sizes(
    folds: Any,
    options: PenaltyOptions,
    *,
    intercept: bool,
    sizes: Sequence[int],
    leave_one_out: LeaveOneOutCurve | None = None,
    landmarks: LandmarkFolds | None = None,
    rows: Any = None,
) -> tuple[Size, ...]:
    """Choose the penalty for every number of leading features.

    Of few rows at landmarks, and of a guarded choice, each fold is predicted without its own.  A
    guarded choice of few rows takes the errors of these without themselves: `rows` are blocks of
    them, if they are all there.
    """
    own = scatter(landmarks)
    numbers: list[int] = compute(delayed(FoldStatistics.tests, folds, name="folds"))
    if options.needs_folds and len(numbers) < 2:
        raise ParameterError(
            f"cross-validation needs at least 2 folds with rows, but the moments have "
            f"{len(numbers)}; add rows, take alpha 'gcv' or 'evidence', give a number, or compute "
            f"the moments with more folds."
        )
    if leave_one_out is None:
        options.check_without_rows()

    def sized(n_components: int) -> Size:
        total = persist(delayed(FoldStatistics.total, folds, n_components, name="total"))
        basis = persist(delayed(_eigenbasis, total, intercept, name="eigenbasis"))
        known: tuple[Spectrum, int] = compute(delayed(_known, total, basis, name="spectrum"))
        (spectrum, n_rows), grid = known, options.grid
        few = has_few_rows(n_rows, len(spectrum.values))
        alphas = default_grid(spectrum) if grid is None else np.array(grid)
        held_out: list[HeldOut] = []
        if options.needs_folds:
            judged = own if few or options.is_guarded else None
            errors = [
                delayed(
                    _held_out,
                    basis,
                    total,
                    split,
                    alphas,
                    len(numbers),
                    k,
                    judged,
                    name=f"fold-{k}",
                )
                for k, split in splits(folds, numbers, n_components).items()
            ]
            variance, held_out = spectrum.target / spectrum.weight, compute_all(errors)
            curve = PenaltyCurve.of_folds(alphas, held_out, variance)
            if options.is_guarded:
                near = None
                if few and rows is not None:
                    call = leave_one_out_scores, total, basis, alphas, scatter(rows)
                    near = compute(delayed(*call, name="leave-one-out"))
                curve = curve.guarded(spectrum, held_out, near)
        elif leave_one_out is not None and options.reads_rows:
            curve = leave_one_out(basis, spectrum, alphas)
        else:
            curve = PenaltyCurve.of_spectrum(options.alpha, alphas, spectrum)
        chosen = options.chosen(curve)
        each = zip(numbers, held_out, strict=False)  # none without folds
        models = {k: fold.model_at(chosen) for k, fold in each if fold.models}
        return Size(len(spectrum.values), curve, chosen, total, basis, models or None)

    return tuple(map(sized, sizes))


def _known(total: FeatureSums, basis: Eigenbasis) -> tuple[Spectrum, int]:
    return basis.spectrum, total.n_rows


def _eigenbasis(total: FeatureSums, intercept: bool) -> Eigenbasis:
    if total.n_rows < 2:
        raise DataError(
            f"a penalty cannot be chosen from {total.n_rows} row; add rows, or give alpha a number."
        )
    basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
    # Targets that vary by rounding alone do not vary.
    spectrum = basis.spectrum
    varies = spectrum.target > spectrum.weight * rounding_variance(basis.target_mean)
    return replace(basis, spectrum=replace(spectrum, target=np.where(varies, spectrum.target, 0.0)))


def _held_out(  # noqa: PLR0917  a task
    basis: Eigenbasis,
    total: FeatureSums,
    split: Split,
    alphas: Floats,
    n_folds: int,
    number: int,
    landmarks: LandmarkFolds | None,
) -> HeldOut:
    """Score a fold, all of which may be side by side on the cores of one machine."""
    n_threads = max(usable_cores() // n_folds, 1)
    if landmarks is not None:
        D = len(basis.vectors)
        split = split._replace(span=landmarks.span_without(number, D))
    return held_out_errors(basis, total, split, alphas, n_threads, keep_models=True)


def splits(folds: Any, numbers: Sequence[int], n_components: int) -> dict[int, Any]:
    return {
        k: delayed(FoldStatistics.split, folds, k, n_components, name=f"part-{k}") for k in numbers
    }
