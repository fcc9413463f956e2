"""The choice of the penalty: a criterion over a grid of them, the rules that choose, and notes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, ParameterError
from streamkern.solve import Spectrum
from streamkern.solve.cross_validation import HeldOut
from streamkern.solve.solution import is_on_or_below

# Of robust GCV: 1 would be GCV itself.  Of 0.05 to 0.4, that which does best on real data.
_ROBUST = 0.2
# Times the mean squared error of the mean, or the least, that a guarded choice has on the folds.
_GUARD = 1.1
# Of the mean squared error, as a power of alpha: from here double precision gained a tenth or more.
_FALLING = 0.1


@dataclass(frozen=True)
class PenaltyCurve:
    """The score of every penalty by a criterion, one of `penalty_grid.CRITERIA`."""

    criterion: str
    alphas: Floats  # (A,), ascending
    # (A, q), less is better: the held-out mean squared error for 'cv' and 'loo', robust GCV, or
    # minus the log evidence; infinite where it is unknown.
    scores: Floats
    # What the scores of targets are divided by before they are averaged, (q,): their variances; 1
    # for logs; for 'loo' the mean variance for all, so that errors are averaged as they are.
    # Infinite for targets that are constant, which do not count.
    scale: Floats
    fold_scores: Floats | None = None  # the mean squared errors of the folds, (K, A, q)
    near: Floats | None = None  # those between neighbours, (A, q), where folds guard
    near_spread: float = 0.0  # and their standard error over themselves: of N squares
    mse_of_mean: Any = None  # and there of what the mean of the other folds predicts, (q,)

    @classmethod
    def of_folds(cls, alphas: Floats, folds: Sequence[HeldOut], target_variance: Floats) -> Self:
        weights = np.array([fold.weight for fold in folds])
        sse = np.array([fold.sse for fold in folds])
        scores, scale = sse.sum(axis=0) / weights.sum(), _scale(target_variance)
        return cls("cv", alphas, scores, scale, sse / weights[:, None, None])

    def guarded(
        self, spectrum: Spectrum, folds: Sequence[HeldOut], near: Floats | None = None
    ) -> Self:
        """Return the curve of folds for a choice by GCV that these guard.

        Folds of regions tell what is predicted where no rows are, and alone would smooth away what
        neighbours tell.  GCV tells the error between neighbours, and alone takes penalties at which
        predictions swing where no rows are.  So GCV chooses among the penalties whose error on the
        folds is at most that of the mean of the other folds, or the least of all.  GCV takes all
        leverages for their mean, which those of few rows are far from: `near` (A, q) is the mean
        squared errors of such rows without themselves.
        """
        counted, sse = spectrum.counting_rows(), sum(fold.sse_of_mean for fold in folds)
        if near is None:
            near = counted.gcv(self.alphas / spectrum.row_weight)
        of_mean: Any = sse / sum(fold.weight for fold in folds)
        spread = float(np.sqrt(2.0 / counted.weight))
        return replace(self, near=near, near_spread=spread, mse_of_mean=of_mean)

    @classmethod
    def of_rows(cls, alphas: Floats, scores: Floats, target_variance: Floats) -> Self:
        varies = target_variance > 0
        return cls("loo", alphas, scores, _scale(np.where(varies, target_variance.mean(), 0.0)))

    @classmethod
    def of_spectrum(cls, criterion: str, alphas: Floats, spectrum: Spectrum) -> Self:
        """Return the curve of robust GCV or of the evidence.

        Both take residuals to be no smaller than the precision of the sums can tell from none.
        Robust GCV is GCV (g + (1 - g) tr(A^2) / N) with g = 0.2 and A the matrix from targets to
        fitted values.  GCV itself replaces the leverage of every row by their mean, and so misses
        rows far from all others, which are fitted by themselves.  Weights whose mean is below 1 do
        not count rows, and are divided by their mean.

        Lukas (2006), "Robust generalized cross-validation for choosing the regularization
        parameter".
        """
        given, alphas = alphas, alphas / spectrum.row_weight
        spectrum = spectrum.counting_rows()
        N, m = spectrum.weight, spectrum.weight - spectrum.intercept
        largest = spectrum.largest
        least = spectrum.target * (spectrum.floor / largest if largest > 0 else 0.0)
        if criterion == "evidence":
            if N < 2:
                raise DataError(
                    f"the evidence needs rows that weigh 2 or more, but they weigh {N:.5g}; give "
                    f"weights that count rows, or take alpha 'cv'."
                )
            volume = np.log1p(spectrum.values / alphas[:, None]).sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                bound = 0.5 * (m * np.log(2.0 * np.pi * least / m) + volume + m)
            varies = spectrum.target > 0
            scores = np.where(varies, np.maximum(-spectrum.log_evidence(alphas), bound), 0.0)
            return cls(criterion, given, scores, np.where(varies, 1.0, np.inf))
        scores, dof = spectrum.gcv(alphas), spectrum.effective_dof(alphas)[:, None]
        if not np.isfinite(scores).any(axis=0).all():
            raise DataError(
                f"GCV needs rows that weigh more than the degrees of freedom, which are at least "
                f"{dof.min():.5g}, but they weigh {N:.5g}; give weights that count rows, or take "
                f"alpha 'cv'."
            )
        shares = spectrum.values / (spectrum.values + alphas[:, None])
        squares = np.square(shares).sum(axis=1, keepdims=True) + spectrum.intercept
        scores = np.maximum(scores, N * least / np.where(dof < N, N - dof, np.inf) ** 2)
        scores *= _ROBUST + (1.0 - _ROBUST) * squares / N
        return cls(criterion, given, scores, _scale(spectrum.target / N))

    def _combined(self, scores: Floats, *, per_target: bool) -> Floats:
        """Return the scores that are compared, (..., q) or (..., 1)."""
        together: Floats = (scores / self.scale).mean(axis=-1, keepdims=True)
        # Constant targets are predicted alike at every penalty.
        return np.where(np.isfinite(self.scale), scores, together) if per_target else together

    def standard_errors(self, *, per_target: bool = True) -> Floats | None:
        """Return the standard error of the scores across folds, (A, q) or (A, 1)."""
        if self.fold_scores is None:
            return None
        folds = self._combined(self.fold_scores, per_target=per_target)
        return folds.std(axis=0, ddof=1) / np.sqrt(len(folds))

    def choose(self, *, per_target: bool = False, one_standard_error: bool = False) -> Array:
        """Return the index of the chosen penalty: for every target, or one for all.

        By the one-standard-error rule it is the largest penalty whose score is within one standard
        error of the best.  A guarded choice is that of `guarded`, whose errors are those between
        neighbours.

        Hastie, Tibshirani and Friedman (2009), "The elements of statistical learning", 7.10.
        """
        scores, errors = self._combined(self.scores, per_target=per_target), None
        if self.near is not None:
            mean = self._combined(self.mse_of_mean, per_target=per_target)
            allowed = scores <= _GUARD * np.maximum(scores.min(axis=0), mean)
            near = self._combined(self.near, per_target=per_target)
            known = allowed & np.isfinite(near)
            # Where no error between neighbours is known, those of folds choose.
            scores = np.where(known, near, np.where(known.any(axis=0), np.inf, scores))
            errors = scores * self.near_spread
        best: Array = scores.argmin(axis=0)
        if one_standard_error:
            errors = self.standard_errors(per_target=per_target) if errors is None else errors
            if errors is None:
                raise ParameterError(
                    f"the one-standard-error rule needs folds, but the criterion is "
                    f"{self.criterion}; take alpha 'cv', or leave the rule out."
                )
            close = scores <= (scores + errors)[best, np.arange(scores.shape[1])]
            best = len(scores) - 1 - close[::-1].argmax(axis=0)
        return best

    def at(self, chosen: Array) -> Floats:
        return self.scores[chosen, np.arange(self.scores.shape[1])]

    def combined(self, chosen: Array) -> tuple[float, float]:
        """Return the mean score of the targets at the chosen penalties, and its standard error.

        Of a guarded choice it is the error between neighbours, where that of all targets is known.
        """
        if self.near is not None:
            score = float((self.near[chosen, np.arange(self.near.shape[1])] / self.scale).mean())
            if math.isfinite(score):
                return score, score * self.near_spread
        score = float((self.at(chosen) / self.scale).mean())
        if self.fold_scores is None:
            return score, 0.0
        each = self.fold_errors(chosen)
        return score, float(each.std(ddof=1) / np.sqrt(len(each)))

    def fold_errors(self, chosen: Array) -> Floats:
        """Return the mean score of the targets at the chosen penalties in every fold, (K,)."""
        folds: Any = self.fold_scores
        return (folds[:, chosen, np.arange(self.scores.shape[1])] / self.scale).mean(axis=1)

    def as_dict(self) -> dict[str, Any]:
        """Return the curve as plain JSON values; errors as roots of mean squares."""
        if self.criterion == "evidence":
            values, errors = -self.scores, None
        else:
            values, errors = np.sqrt(self.scores), self.standard_errors()
        if errors is not None:
            errors = errors_of_roots(values, errors)
        # The values of a single target are a list of numbers.
        column = 0 if values.shape[1] == 1 else slice(None)
        return {
            "criterion": self.criterion,
            "alphas": self.alphas.tolist(),
            "values": _plain(values, column),
            "standard_errors": None if errors is None else errors[:, column].tolist(),
            **({} if self.near is None else {"near": _plain(np.sqrt(self.near), column)}),
        }


def _plain(values: Floats, column: Any) -> Any:
    plain: Any = values.astype(object)
    plain[~np.isfinite(values)] = None  # JSON has no infinity
    return plain[:, column].tolist()


def _scale(variance: Floats) -> Floats:
    """Return the units of targets of these variances (q,), infinite for those that are constant."""
    return np.where(variance > 0, variance, np.inf)


def errors_of_roots(values: Floats, errors: Floats) -> Floats:
    """Return the standard errors of roots of mean squares, given those of the mean squares."""
    return errors / (2.0 * np.where(values > 0, values, 1.0))


def at_the_edge(curve: PenaltyCurve, chosen: Array, floor: float, precision: str) -> str:
    """Return a note if the best penalty is the first or last of the grid."""
    alphas, best = curve.alphas, curve.alphas[chosen]
    if len(alphas) < 2:
        return ""
    if best.max() == alphas[-1]:
        return "the best alpha is the largest that was tried: the features explain little."
    if precision == "single" and is_on_or_below(floor, best.min()):
        return (
            f"the best alpha is at the precision floor {floor:.3g}, below which the sums are "
            f"rounding; double precision lowers it."
        )
    return ""


def short_of_precision(curve: PenaltyCurve, chosen: Array, floor: float, precision: str) -> str:
    """Return a note if the error still falls at the precision floor."""
    alphas = curve.alphas
    if precision != "single" or curve.criterion == "evidence" or len(alphas) < 2:
        return ""
    first, second = (curve.scores[:2] / curve.scale).mean(axis=1)  # 0 if all are constant
    falls = second > first * (alphas[1] / alphas[0]) ** _FALLING
    if not (falls and is_on_or_below(floor, alphas[chosen].min())):
        return ""
    return (
        f"the error still falls at the smallest alpha that single precision allows, {floor:.3g}: "
        f"precision 'double' (--precision double) may predict better."
    )
