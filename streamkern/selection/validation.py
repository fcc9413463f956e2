"""The error on rows left out, from moments: K-fold cross-validation without reading again.

A model trained on all folds but one is scored on that one: with the held-out moments about their
own means, SSE = S - 2 w^T C + w^T G w + N (ybar - mu - phibar^T w)^2.  That is exact, at any
penalty, for the map that all rows gave.

The training systems of the folds differ little from the whole one, so the eigendecomposition of the
whole, made once, preconditions conjugate gradients for every fold and all penalties at once; each
iteration is three products of D x D with D x A matrices.  What has not converged after some, small
penalties mostly, is factorised on its own.  Where there are fewer rows than features, the few
eigenvectors that the rows can span carry a small problem instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from streamkern.solve import precision_floor

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.solve import Eigenbasis
    from streamkern.statistics import CentredMoments, Moments

# Relative to the right-hand side, in the preconditioned norm: below what the sums are good for.
_TOLERANCE = {"single": 1e-7, "double": 1e-11}
_MOST_ITERATIONS = 60
# After so many, so many more foretold take longer than a decomposition: they slow down later.
_TRIAL, _HOPELESS = 8, 27
# So many Cholesky factorisations take less than an eigendecomposition.
_FEW = 5
# A rank below this share of D is worth a change of basis.
_LOW_RANK = 0.75


class HeldOut(NamedTuple):
    """The errors of one fold.

    Parameters
    ----------
    weight : float
        N of the fold.
    sse : ndarray of shape (A, q)
        The sum of squared errors at every penalty, of every target.
    n_rows : int
    """

    weight: float
    sse: Floats
    n_rows: int


def held_out_errors(basis: Eigenbasis, total: Moments, fold: Moments, alphas: Floats) -> HeldOut:
    """Score on one fold the models that are trained on all the others.

    Parameters
    ----------
    basis : Eigenbasis
        Of the total.
    total, fold : Moments
        Of all rows, and of those left out.
    alphas : ndarray of shape (A,)
        Positive.
    """
    intercept = basis.spectrum.intercept
    training = total.without(fold).centred(intercept=intercept)
    held = fold.centred()
    D, q = training.cross.shape
    sse = np.empty((len(alphas), q))
    step = max(D // len(alphas), 1)  # so that the solutions take no more than G does
    rank = min(total.n_rows - intercept, D)
    for start in range(0, q, step):
        part = slice(start, start + step)
        coef = _solutions(training, training.cross[:, part], alphas, basis, rank)
        fitted = held.gram @ coef.reshape(D, -1)
        squares = np.einsum("dk,dk->k", coef.reshape(D, -1), fitted).reshape(len(alphas), -1)
        products = np.einsum("daq,dq->aq", coef, held.cross[:, part])
        intercepts = training.target_mean[part] - np.tensordot(training.feature_mean, coef, 1)
        gap = held.target_mean[part] - intercepts - np.tensordot(held.feature_mean, coef, 1)
        spread = np.diagonal(held.target)[part]
        sse[:, part] = spread - 2.0 * products + squares + held.weight * gap**2
    return HeldOut(held.weight, np.maximum(sse, 0.0), fold.n_rows)


def _solutions(
    training: CentredMoments, cross: Floats, alphas: Floats, basis: Eigenbasis, rank: int
) -> Floats:
    """Return (G + alpha I)^-1 C for every penalty, (D, A, q)."""
    D, q = cross.shape
    columns = np.repeat(cross[:, None, :], len(alphas), axis=1).reshape(D, -1)
    shifts = np.repeat(alphas, q)
    if rank < _LOW_RANK * D:
        return _within(training, shifts, columns, basis.vectors[:, D - rank :]).reshape(D, -1, q)
    found = np.empty_like(columns)
    left = np.arange(len(shifts))
    if alphas.min() >= basis.spectrum.floor:
        share = training.weight / basis.spectrum.weight
        tolerance = _TOLERANCE[training.precision]
        found, left = preconditioned_solution(
            training.gram, shifts, columns, basis, share=share, tolerance=tolerance
        )
        distinct = np.unique(shifts[left])
        if len(distinct) <= _FEW:
            for shift in distinct:
                those = left[shifts[left] == shift]
                found[:, those] = _by_cholesky(training, shift, columns[:, those])
            left = left[:0]
    if len(left):
        found[:, left] = _within(training, shifts[left], columns[:, left])
    return found.reshape(D, -1, q)


def _within(training: CentredMoments, shifts: Floats, columns: Floats, span: Any = None) -> Floats:
    """Solve by eigendecomposition, in the span (D, r) of orthonormal columns that holds G.

    As in any solution, eigenvalues below the precision floor do not count for penalties below it.
    """
    gram = training.gram
    if span is not None:
        gram, columns = span.T @ (gram @ span), span.T @ columns
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)[:, None]
    floor = precision_floor(training, float(values[-1, 0]))
    shifted = np.where((values > floor) | (shifts >= floor), values + shifts, np.inf)
    found: Floats = vectors @ ((vectors.T @ columns) / shifted)
    return found if span is None else span @ found


def _by_cholesky(training: CentredMoments, shift: float, columns: Floats) -> Floats:
    try:
        factor = np.linalg.cholesky(training.gram + shift * np.eye(len(columns)))
    except np.linalg.LinAlgError:  # noise of single precision, below zero by more than the shift
        return _within(training, np.full(columns.shape[1], shift), columns)
    halfway = solve_triangular(factor, columns, lower=True)
    found: Floats = solve_triangular(factor, halfway, lower=True, trans="T")
    return found


def preconditioned_solution(
    gram: Floats,
    shifts: Floats,
    columns: Floats,
    basis: Eigenbasis,
    *,
    share: float = 1.0,
    tolerance: float = 1e-11,
) -> tuple[Floats, Array]:
    """Solve (G + shift I) x = b for every column by preconditioned conjugate gradients.

    Parameters
    ----------
    gram : ndarray of shape (D, D)
        Near `share` times the matrix of the basis.
    shifts : ndarray of shape (k,)
        Positive, one a column.
    columns : ndarray of shape (D, k)
    basis : Eigenbasis
    share : float
    tolerance : float
        On the residual, relative to the right-hand side in the preconditioned norm.

    Returns
    -------
    solution : ndarray of shape (D, k)
    left : ndarray of int
        Columns that have not converged.

    References
    ----------
    Golub and Van Loan (2013), "Matrix computations", section 11.5.
    """
    values, V = share * basis.spectrum.values[:, None], basis.vectors
    solution = np.zeros_like(columns)
    active = np.arange(columns.shape[1])
    x, r, s = solution.copy(), columns.copy(), shifts
    z = V @ ((V.T @ r) / (values + s))
    p, rz = z, np.einsum("dk,dk->k", r, z)
    goal = tolerance**2 * rz
    for iteration in range(_MOST_ITERATIONS):
        if iteration == _TRIAL:
            # At the rate so far, the iterations that each column still needs.
            rates = np.log(goal / tolerance**2 / rz) / _TRIAL
            needed = np.log(rz / goal) / np.maximum(rates, 1e-9)
            if (needed > _HOPELESS).sum() > _FEW:
                break
        going = rz > goal
        if not going.all():
            solution[:, active[~going]] = x[:, ~going]
            active, s, rz, goal = active[going], s[going], rz[going], goal[going]
            x, r, p = x[:, going], r[:, going], p[:, going]
        if not len(active):
            break
        product = gram @ p + s * p
        step = rz / np.einsum("dk,dk->k", p, product)
        x = x + step * p
        r = r - step * product
        z = V @ ((V.T @ r) / (values + s))
        before, rz = rz, np.einsum("dk,dk->k", r, z)
        p = z + (rz / before) * p
    return solution, active
