"""Landmarks: rows that stand for all, chosen from a sample that is spread over them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.features.random_streams import stream
from streamkern.kernels import Kernel, ShiftInvariantKernel
from streamkern.kernels.scaled import DistanceKernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern._typing import Array, Floats

# Lloyd's iterations: the first few move centres most, and a map is no better for the others.
_ITERATIONS = 10
# The stream of waiting times; pivots have another.
_WAITING = 4
# A weight that counts for nothing beside the largest, so that products with it are not zero.
_NOTHING = 1e-150
# Pivots that are proposed at once, as a share of all, and at most.
_PROPOSED_SHARE, _MOST_PROPOSED = 1 / 8, 256
# Rows whose kernel matrix is made for the sake of its diagonal.
_SIDE_BY_SIDE = 16
# A residual of the diagonal that is rounding, as a part of the largest diagonal element.
_ROUNDING = 1e-13


def landmarks(
    kernel: Kernel,
    rows: Floats,
    n_landmarks: int,
    *,
    how: str,
    seed: int,
    weights: Floats | None = None,
) -> Floats:
    """Choose landmarks (m', p) from a spread sample of rows in random order.

    There are fewer than m where so few rows are different, or tell landmarks apart.  Rows of weight
    0 are none; equal rows count by their weights together, but once where all weights are equal.
    """
    if weights is not None:
        rows, weights = _weighed(rows, weights, seed)
    distinct, weights = _distinct(rows, weights)
    if len(distinct) <= n_landmarks:
        return distinct
    return CHOICES[how](kernel, distinct, weights, n_landmarks, seed)


def _weighed(rows: Floats, weights: Floats, seed: int) -> tuple[Floats, Floats | None]:
    """Return rows in an order where the next is any of those left in proportion to its weight.

    Rows that are in random order stay in it as far as they weigh the same.  The weights are those
    beside the largest, None where all are equal.

    References
    ----------
    Efraimidis and Spirakis (2006), "Weighted random sampling with a reservoir".
    """
    shares = weights / weights.max(initial=_NOTHING)
    there = shares > _NOTHING
    rows, shares = rows[there], shares[there]
    waiting = np.sort(stream(seed, _WAITING).standard_exponential(len(shares)))
    order = np.argsort(waiting / shares, kind="stable")
    return rows[order], None if (shares == 1.0).all() else shares[order]


def _distinct(rows: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return the rows, each once, in the order of their first appearance, and what they weigh."""
    _, firsts, places = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    if weights is not None:
        weights = np.bincount(places.ravel(), weights).astype(np.float64)[order]
    return rows[firsts[order]], weights


def uniform(
    kernel: Kernel,  # noqa: ARG001
    rows: Floats,
    weights: Floats | None,  # noqa: ARG001
    n_landmarks: int,
    seed: int,  # noqa: ARG001
) -> Floats:
    """Take the first rows, which are in random order already, heavy ones sooner."""
    return rows[:n_landmarks]


def kmeans(
    kernel: Kernel, rows: Floats, weights: Floats | None, n_landmarks: int, seed: int
) -> Floats:
    """Take the centres of k-means, in the units of the length scales, begun at the first rows.

    On one thread, so that sums depend on neither workers nor cores: by scikit-learn, since Dask-ML
    takes whatever scheduler is the current one, which only a configuration of all threads changes.
    The first rows are in random order; k-means|| would take most centres at random as well for so
    many, and one by one.

    References
    ----------
    Zhang, Tsang and Kwok (2008), "Improved Nystroem low-rank approximation and error analysis".
    """
    from sklearn.cluster import KMeans  # noqa: PLC0415  slow, and only for this
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415

    from streamkern.runtime.threads import openmp_thread  # noqa: PLC0415  predictions need NumPy alone

    p = rows.shape[1]
    scales = kernel.scales(p) if isinstance(kernel, DistanceKernel) else np.ones(p)
    scaled = rows / scales
    clusters = KMeans(
        n_landmarks, init=scaled[:n_landmarks], n_init=1, max_iter=_ITERATIONS, random_state=seed
    )
    with warnings.catch_warnings(), openmp_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        found = clusters.fit(scaled, sample_weight=weights)
    return _distinct(found.cluster_centers_ * scales, None)[0]


def pivoted(
    kernel: Kernel, rows: Floats, weights: Floats | None, n_landmarks: int, seed: int
) -> Floats:
    """Take the pivots of a randomly pivoted Cholesky factorisation of the kernel of the rows.

    Each is drawn in proportion to what those before it leave unexplained of every row, times its
    weight.  They are proposed many at a time and thinned out by rejection, which has the same law
    and is made of matrix products.

    References
    ----------
    Chen, Epperly, Tropp and Webber (2022), "Randomly pivoted Cholesky".
    Epperly, Tropp and Webber (2024), "Embrace rejection: kernel matrix approximation by
    accelerated randomly pivoted Cholesky".
    """
    rng = stream(seed, 1)
    residual = diagonal(kernel, rows)
    smallest = _ROUNDING * residual.max(initial=0.0)
    factor = np.empty((len(rows), n_landmarks))
    chosen: list[int] = []
    n_proposed = int(min(max(n_landmarks * _PROPOSED_SHARE, 1), _MOST_PROPOSED))
    while len(chosen) < n_landmarks and residual.max(initial=0.0) > smallest:
        done = factor[:, : len(chosen)]
        shares = residual if weights is None else residual * weights
        proposed = rng.choice(len(rows), n_proposed, p=shares / shares.sum())
        left = kernel(rows[proposed], rows[proposed]) - done[proposed] @ done[proposed].T
        # What is refused because rounding has left so little of it is not to be proposed again.
        residual[proposed] = np.minimum(residual[proposed], np.maximum(np.diagonal(left), 0.0))
        accepted, triangle = _accepted(left, rng.random(n_proposed), smallest)
        accepted = accepted[: n_landmarks - len(chosen)]
        triangle = triangle[: len(accepted), : len(accepted)]
        pivots = proposed[accepted]
        columns = kernel(rows, rows[pivots]) - done @ done[pivots].T
        columns = np.asarray(np.linalg.solve(triangle, columns.T), dtype=np.float64).T
        factor[:, len(chosen) : len(chosen) + len(pivots)] = columns
        residual = np.maximum(residual - np.square(columns).sum(axis=1), 0.0)
        chosen += pivots.tolist()
        residual[chosen] = 0.0
    return rows[chosen]


def _accepted(left: Floats, uniform: Floats, smallest: float) -> tuple[Array, Floats]:
    """Thin out proposed pivots, given their residual matrix, and factorise that of the others.

    A pivot is kept with the probability that those kept before it have not explained it.
    """
    at_first = np.diagonal(left).copy()
    kept: list[int] = []
    factor = np.zeros_like(left)
    for i in range(len(left)):
        row = factor[i, : len(kept)]
        pivot = left[i, i] - row @ row
        if not pivot > max(uniform[i] * at_first[i], smallest):
            continue
        below = slice(i + 1, None)
        factor[below, len(kept)] = (left[below, i] - factor[below, : len(kept)] @ row) / np.sqrt(
            pivot
        )
        factor[i, len(kept)] = np.sqrt(pivot)
        kept.append(i)
    return np.array(kept, dtype=int), factor[kept][:, : len(kept)]


def diagonal(kernel: Kernel, rows: Floats) -> Floats:
    """Return k(x, x) of every row, (n,)."""
    if isinstance(kernel, ShiftInvariantKernel):
        return np.ones(len(rows))
    parts = [rows[start : start + _SIDE_BY_SIDE] for start in range(0, len(rows), _SIDE_BY_SIDE)]
    return np.concatenate([np.diagonal(kernel(part, part)) for part in parts] or [np.empty(0)])


CHOICES: dict[str, Callable[[Kernel, Floats, Floats | None, int, int], Floats]] = {
    "kmeans": kmeans,
    "uniform": uniform,
    "pivoted": pivoted,
}


def checked_choice(how: str) -> str:
    """Return how landmarks are chosen, or raise ParameterError unless there is such a way."""
    if how not in CHOICES:
        raise ParameterError(
            f"landmarks must be one of {', '.join(CHOICES)}, not "
            f"{unknown(how, CHOICES)}; choose one of them."
        )
    return how
