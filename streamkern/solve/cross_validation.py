"""K-fold cross-validation from moments, without reading the rows again.

A model of all folds but one is scored on that one: with the held-out moments about their own means,
SSE = S - 2 w^T C + w^T G w + N (ybar - mu - phibar^T w)^2.  That is exact, at any penalty, for the
map that all rows gave.

The systems of the folds differ little from that of all rows, whose eigendecomposition therefore
preconditions conjugate gradients for every fold and all penalties at once; an iteration is three
products of D x D with D x A matrices.  Where penalties have not converged after some iterations,
mostly small ones, the system of the fold is made tridiagonal, which serves all of these; few have a
factor each.  So it is where there are hardly more rows than features.  With fewer rows, the problem
is solved in the eigenvectors that the rows can span.  Many targets have an eigenbasis of the fold.
The system of a fold without its landmarks is made tridiagonal in the span of the others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.features.base import slices
from streamkern.solve import Cholesky, Eigenbasis, RidgeSolution, decomposed
from streamkern.solve.eigendecomposition import are_taken, shifted_solutions
from streamkern.solve.preconditioned_solution import FEW, preconditioned_solution
from streamkern.solve.solution import are_below, are_kept, precision_floor, relative_rounding
from streamkern.statistics import CentredMoments, FeatureSums, Split

# Relative to the right-hand side, in the preconditioned norm: below what the sums are good for.
_TOLERANCE = {"single": 1e-7, "double": 1e-11}
# A rank below this share of D is worth a change of basis.
_LOW_RANK = 0.75
# Columns that are solved for together, as a share of D: what is held of them is ten times that.
_AT_ONCE = 0.125
# For more columns than so many times D, all is turned into the eigenbasis, which saves a product.
_MANY_COLUMNS = 2
# For more columns than this share of D, gradients take longer than a decomposition.
_FEW_COLUMNS = 0.0625
# With fewer rows a feature, G without a fold is too far from the whole for gradients to pay.
_FEW_ROWS = 1.5
# Coefficients of a fold at all penalties that are kept: 32 MB.
_MOST_KEPT = 1 << 22


class HeldOut(NamedTuple):
    weight: float  # N of the fold
    # Sums of squared errors (A, q), never less than the rounding of the squared targets: so the
    # smallest is the best of all penalties that leave no error.
    sse: Floats
    # `coef` (D, A, q) and `intercept` (A, q) of the models, if they are kept.
    models: dict[str, Floats] | None = None
    sse_of_mean: Any = None  # of what the mean of the other rows predicts, (q,)

    def model_at(self, chosen: Any) -> dict[str, Floats]:
        """Return coefficients (D, q) and intercepts (q,) at penalties, by their indices."""
        at = chosen, np.arange(self.sse.shape[1])
        return {name: each[..., *at] for name, each in (self.models or {}).items()}


def held_out_errors(
    basis: Eigenbasis,
    total: FeatureSums,
    split: Split,
    alphas: Floats,
    n_threads: int = 1,
    *,
    keep_models: bool = False,
) -> HeldOut:
    """Score the models without what is predicted, at penalties > 0 (A,), by the total's basis.

    The models are kept, if that is asked for and they are few.
    """
    intercept = basis.spectrum.intercept
    training = split.training(total).centred(intercept=intercept)
    D, q = training.cross.shape
    freedom = total.n_rows - intercept
    solutions = _solutions(training, alphas, basis, freedom, n_threads, split.span)
    held = split.held_out.centred()
    mean = held.target + held.weight * np.square(held.target_mean - training.target_mean)
    if isinstance(solutions, _InEigenbasis) and len(alphas) * q > _MANY_COLUMNS * D:
        sse = solutions.squared_errors(training, held)
        return HeldOut(held.weight, _at_least_rounding(sse, held), None, mean)
    sse, models = np.empty((len(alphas), q)), None
    if keep_models and D * sse.size <= _MOST_KEPT:
        models = {"coef": np.empty((D, *sse.shape)), "intercept": np.empty(sse.shape)}
    for part in slices(q, max(int(_AT_ONCE * D) // len(alphas), 1)):
        coef = solutions(training.cross[:, part])
        fitted = held.gram @ coef.reshape(D, -1)
        squares = np.einsum("dk,dk->k", coef.reshape(D, -1), fitted).reshape(len(alphas), -1)
        products = np.einsum("daq,dq->aq", coef, held.cross[:, part])
        intercepts = training.target_mean[part] - np.tensordot(training.feature_mean, coef, 1)
        if models is not None:
            models["coef"][..., part], models["intercept"][..., part] = coef, intercepts
        gap = held.target_mean[part] - intercepts - np.tensordot(held.feature_mean, coef, 1)
        sse[:, part] = held.target[part] - 2.0 * products + squares + held.weight * gap**2
    return HeldOut(held.weight, _at_least_rounding(sse, held), models, mean)


def squared_errors(held: CentredMoments, solution: RidgeSolution) -> Floats:
    """Return the sums of squared errors of a solution on other rows with centred moments, (q,)."""
    coef = solution.coef
    products = np.einsum("dq,dq->q", coef, held.gram @ coef - 2.0 * held.cross)
    gap = held.target_mean - solution.intercept - held.feature_mean @ coef
    return _at_least_rounding(held.target + products + held.weight * gap**2, held)


def _at_least_rounding(errors: Floats, held: CentredMoments) -> Floats:
    """Return sums of squared errors (..., q), but no less than the rounding of their terms."""
    return np.maximum(errors, relative_rounding(held.precision) * np.maximum(held.target, 0.0))


def _solutions(  # noqa: PLR0917  how, and in what span
    training: CentredMoments,
    alphas: Floats,
    basis: Eigenbasis,
    freedom: int,
    n_threads: int,
    span: Any = None,
) -> "Callable[[Floats], Floats] | _InEigenbasis":
    """Return what solves (G + alpha I) w = C at every penalty: (D, q) to (D, A, q).

    `freedom` is the rank that the rows of all folds allow, or more.  Solutions are in the span of
    orthonormal columns (D, r), if one is given.
    """
    D, q = training.cross.shape
    if span is None and freedom < _LOW_RANK * D:
        return _by_eigenvectors(training, alphas, n_threads, basis.vectors[:, D - freedom :])
    few = len(alphas) * q <= _FEW_COLUMNS * (D if span is None else span.shape[1])
    if not few or are_below(basis.spectrum.floor, alphas.min()):
        return _by_eigenvectors(training, alphas, n_threads, span)
    if span is not None:
        return partial(_in_span, training, alphas, n_threads, span)
    if freedom >= _FEW_ROWS * D or len(alphas) <= FEW:
        return partial(_by_gradients, training, alphas, basis, n_threads)
    return partial(_by_factors, training, alphas, n_threads)


class _InEigenbasis(NamedTuple):
    """Solutions (G + alpha I)^-1 C at every penalty, for G = V diag(d) V^T."""

    vectors: Floats  # V (D, r)
    inverse: Floats  # 1 / (d + alpha), and 0 where an eigenvalue is left out, (r, A)

    def __call__(self, cross: Floats) -> Floats:
        along = (self.vectors.T @ cross)[:, None, :] * self.inverse[:, :, None]
        coef = self.vectors @ along.reshape(len(along), -1)
        return coef.reshape(len(cross), *along.shape[1:])

    def squared_errors(self, training: CentredMoments, held: CentredMoments) -> Floats:
        """Return the sums of squared errors (A, q) on held-out rows; here they save a product."""
        V, (r, A) = self.vectors, self.inverse.shape
        gram, cross = V.T @ (held.gram @ V), V.T @ training.cross
        between = (held.feature_mean - training.feature_mean) @ V
        gap = held.target_mean - training.target_mean
        gap = gap - self.inverse.T @ (between[:, None] * cross)
        sse: Floats = held.target + held.weight * gap**2
        sse -= 2.0 * (self.inverse.T @ (cross * (V.T @ held.cross)))
        for part in slices(cross.shape[1], max(int(_AT_ONCE * r) // A, 1)):
            coef = (cross[:, part, None] * self.inverse[:, None, :]).reshape(r, -1)
            sse[:, part] += np.einsum("dk,dk->k", coef, gram @ coef).reshape(-1, A).T
        return sse


def _by_eigenvectors(
    training: CentredMoments, alphas: Floats, n_threads: int, span: Any = None
) -> _InEigenbasis:
    """Decompose G, in the span (D, r) of orthonormal columns that holds it.

    As in any solution, eigenvalues below the precision floor do not count for penalties below it.
    """
    inside = training if span is None else training.turned(span)
    values, vectors = decomposed(inside.gram.dense(), n_threads)
    values = np.maximum(values, 0.0)[:, None]
    floor = precision_floor(training, float(values[-1, 0]))
    shifted = np.where(are_kept(values, floor, alphas), values + alphas, np.inf)
    return _InEigenbasis(vectors if span is None else span @ vectors, 1.0 / shifted)


def _in_span(
    training: CentredMoments, alphas: Floats, n_threads: int, span: Floats, cross: Floats
) -> Floats:
    """Solve in the span (D, r) of orthonormal columns."""
    coef = _by_factors(training.turned(span), alphas, n_threads, span.T @ cross)
    return np.tensordot(span, coef, 1)


def _by_gradients(
    training: CentredMoments, alphas: Floats, basis: Eigenbasis, n_threads: int, cross: Floats
) -> Floats:
    """Solve by conjugate gradients, and by factors where these do not converge."""
    D, q = cross.shape
    columns, shifts = np.repeat(cross[:, None, :], len(alphas), axis=1), np.repeat(alphas, q)
    share, tolerance = training.weight / basis.spectrum.weight, _TOLERANCE[training.precision]
    coef, left = preconditioned_solution(
        training.gram, shifts, columns.reshape(D, -1), basis, share=share, tolerance=tolerance
    )
    if len(left):
        coef = coef.reshape(D, -1, q)
        slow = np.unique(left // q)
        coef[:, slow] = _by_factors(training, alphas[slow], n_threads, cross)
    return coef.reshape(D, -1, q)


def _by_factors(training: CentredMoments, alphas: Floats, n_threads: int, cross: Floats) -> Floats:
    """Solve by a Cholesky factor for every penalty, where they are few, or a tridiagonal matrix."""
    coef = np.empty((len(cross), len(alphas), cross.shape[1]))
    try:
        if len(alphas) > FEW and are_taken(len(cross)):
            return shifted_solutions(training.gram.dense(), alphas, cross, n_threads)
        for a, alpha in enumerate(alphas):
            coef[:, a] = Cholesky.of_shifted(training.gram, alpha, n_threads).solve(cross)
    except np.linalg.LinAlgError:  # noise of single precision makes G indefinite
        return _by_eigenvectors(training, alphas, n_threads)(cross)
    return coef
