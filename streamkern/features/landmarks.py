"""Landmarks: rows that stand for all, chosen by weighted k-means."""

import warnings

import numpy as np

from streamkern._typing import Floats
from streamkern.features.base import stream
from streamkern.kernels import DistanceKernel, Kernel, ShiftInvariantKernel

# Lloyd's iterations: the first few move centres most, and a map is no better for the others.  More
# landmarks than so many have fewer, on so many rows each, so that they take no longer than a pass.
_ITERATIONS = 10
_MANY, _FEW_ITERATIONS, _FEW_ROWS = 8192, 2, 4
# The stream of waiting times.
_WAITING = 4
# A weight that counts for nothing beside the largest, so that products with it are not zero.
_NOTHING = 1e-150
# Rows whose kernel matrix is made for the sake of its diagonal.
_SIDE_BY_SIDE = 16


def landmarks(
    kernel: Kernel, rows: Floats, n_landmarks: int, *, seed: int, weights: Floats | None = None
) -> Floats:
    """Choose landmarks from rows in random order, fewer than m where so few are different.

    Rows of weight 0 are none; equal rows count by their weights together, but once where all
    weights are equal.
    """
    if weights is not None:
        rows, weights = _weighed(rows, weights, seed)
    distinct, weights = _distinct(rows, weights)
    if len(distinct) <= n_landmarks:
        return distinct
    return kmeans(kernel, distinct, weights, n_landmarks, seed)


def _weighed(rows: Floats, weights: Floats, seed: int) -> tuple[Floats, Floats | None]:
    """Return rows in an order where the next is any of those left in proportion to its weight.

    Rows that are in random order stay in it as far as they weigh the same.  The weights are those
    beside the largest, None where all are equal.  Efraimidis and Spirakis (2006), "Weighted random
    sampling with a reservoir".
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


def kmeans(
    kernel: Kernel, rows: Floats, weights: Floats | None, n_landmarks: int, seed: int
) -> Floats:
    """Take the centres of k-means, in the units of the length scales, begun at the first rows.

    On one thread, so that sums depend on neither workers nor cores; Dask-ML would take whatever
    scheduler is the current one.  The first rows are in random order.
    """
    from sklearn.cluster import KMeans  # noqa: PLC0415  slow, and only for this
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  predictions need NumPy alone

    iterations, p = _ITERATIONS, rows.shape[1]
    if n_landmarks > _MANY:
        iterations, rows = _FEW_ITERATIONS, rows[: _FEW_ROWS * n_landmarks]
        weights = None if weights is None else weights[: len(rows)]
    scales = kernel.scales(p) if isinstance(kernel, DistanceKernel) else np.ones(p)
    scaled = rows / scales
    clusters = KMeans(
        n_landmarks, init=scaled[:n_landmarks], n_init=1, max_iter=iterations, random_state=seed
    )
    # Loops of OpenMP that other threads begin go on as before.
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        found = clusters.fit(scaled, sample_weight=weights)
    return _distinct(found.cluster_centers_ * scales, None)[0]


def diagonal(kernel: Kernel, rows: Floats) -> Floats:
    if isinstance(kernel, ShiftInvariantKernel):
        return np.ones(len(rows))
    parts = [rows[start : start + _SIDE_BY_SIDE] for start in range(0, len(rows), _SIDE_BY_SIDE)]
    return np.concatenate([np.diagonal(kernel(part, part)) for part in parts] or [np.empty(0)])
