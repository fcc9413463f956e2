"""Metrics: the distance that a kernel takes of two rows, as a matrix, given or learnt."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features import FeatureMap, Standardized, Standardizer
from streamkern.kernels import Kernel, Periodic, ShiftInvariantKernel, Sum

N_ROUNDS = 4
_MOST_ROUNDS = 20
# What files call a matrix that was given, and reports one of a weight an input.
_GIVEN, _WEIGHTS = "given", "weights of inputs"
# Of a metric, the eigenvalues and directions that are told.
_EIGENVALUES, _DIRECTIONS = 40, 3
_SPELLINGS = re.compile(r"(learn|diagonal|auto)(?::([0-9]{1,9}))?")
# Of the largest eigenvalue: what rounding may leave below zero.
_ROUNDING = 1e-9
# Of the largest element: what the two sides of a matrix may differ by.
_ASYMMETRY = 1e-6


@dataclass(frozen=True)
class Learning:
    n_rounds: int = N_ROUNDS  # fits besides the one of plain distances
    diagonal: bool | None = False  # one weight for every input, or directions; None: the better


@dataclass(frozen=True, eq=False)
class GivenMetric:
    """A metric M: the kernel takes (x - x')^T M (x - x') for the squared distance.

    The matrix (p, p) is positive semi-definite, in units of the standardised inputs.
    """

    matrix: Floats
    name: ClassVar[str] = _GIVEN

    def parameters(self) -> dict[str, Any]:
        held = np.ascontiguousarray(self.matrix)
        return {"shape": list(held.shape), "sha256": hashlib.sha256(held.data).hexdigest()}

    def linear(self, kept: Array) -> Floats:
        """Return A with M = A^T A for the inputs that are kept."""
        return root_of(self.matrix[np.ix_(kept, kept)])


def checked_metric(value: Any) -> str | GivenMetric | None:
    """Return a metric as options hold it: None, a text, or a matrix that was checked."""
    if value is None or isinstance(value, GivenMetric):
        return value
    if isinstance(value, str):
        learning_of(value)
        return value
    try:
        matrix = np.array(value, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        shape = getattr(value, "shape", None)
        shown = repr(value) if shape is None else f"an array of shape {tuple(shape)}"
        raise ParameterError(
            f"metric must be 'learn', 'diagonal' or 'auto', or one of these as 'learn:ROUNDS', or "
            f"a matrix (p, p), not {shown}; give one of these."
        )
    largest = np.abs(matrix).max()
    if not np.isfinite(largest) or (np.abs(matrix - matrix.T) > _ASYMMETRY * largest).any():
        raise ParameterError(
            "a metric must be symmetric and finite, but this one is not; give (M + M^T) / 2."
        )
    matrix = (matrix + matrix.T) / 2.0
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -_ROUNDING * eigenvalues[-1] or not eigenvalues[-1] > 0:
        raise ParameterError(
            f"a metric must be positive semi-definite and not 0, but this one has eigenvalues from "
            f"{eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}; leave out what is negative."
        )
    return GivenMetric(matrix)


def learning_of(metric: Any) -> Learning | None:
    """Return how a metric is to be learnt, None where it is not."""
    if not isinstance(metric, str):
        return None
    found = _SPELLINGS.fullmatch(metric)
    n_rounds = int(found[2] or N_ROUNDS) if found else 0
    if not found or not 1 <= n_rounds <= _MOST_ROUNDS:
        raise ParameterError(
            f"metric must be 'learn', 'diagonal' or 'auto', or one of these as 'learn:ROUNDS' with "
            f"1 to {_MOST_ROUNDS} rounds, or a matrix (p, p), not {metric!r}; give one of these."
        )
    return Learning(n_rounds, None if found[1] == "auto" else found[1] == "diagonal")


def check_metric(metric: str | GivenMetric | None, n_features: int) -> None:
    """Raise ParameterError unless a metric that is given is one of so many inputs."""
    if isinstance(metric, GivenMetric) and len(metric.matrix) != n_features:
        raise ParameterError(
            f"the metric is a matrix of {len(metric.matrix)} inputs, but the rows have "
            f"{n_features}; give one of ({n_features}, {n_features})."
        )


def check_kernel_in_metric(kernel: Kernel) -> None:
    """Raise ParameterError unless a kernel means something in a metric.

    It has one length scale for all inputs, and no parts or periods of its own along some of them.
    Where it is of another distance than the Euclidean, rows are turned by the symmetric root of M.
    """
    if not isinstance(kernel, ShiftInvariantKernel):
        reason = f"is for kernels with a length scale, not for {kernel!r}; leave it out."
    elif isinstance(kernel, (Periodic, Sum)):
        reason = f"turns the inputs that the parts of {kernel!r} are of; leave out either."
    elif isinstance(kernel.length_scale, tuple):
        reason = (
            "weighs the inputs, and so do length scales of their own; give one length scale, or "
            "leave the metric out."
        )
    else:
        return
    raise ParameterError(f"a metric {reason}")


def root_of(matrix: Floats) -> Floats:
    """Return A with A^T A = M: the symmetric root (p, p), or of a diagonal M its diagonal (p,)."""
    diagonal = np.diagonal(matrix)
    if np.array_equal(matrix, np.diag(diagonal)):
        return np.sqrt(np.maximum(diagonal, 0.0))
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def metric_of(linear: Floats | None, kept: Array, n_features: int) -> Floats:
    """Return M (p, p) of A, by default the identity; it is 0 for inputs that are left out."""
    if linear is None:
        linear = np.ones(len(kept))
    inner = np.diag(linear**2) if linear.ndim == 1 else linear.T @ linear
    metric = np.zeros((n_features, n_features))
    metric[np.ix_(kept, kept)] = inner
    return metric


def standardizer_of(feature_map: FeatureMap) -> Standardizer:
    """Return what rows go through before they meet a fitted map."""
    if not isinstance(feature_map, Standardized):
        raise ParameterError(
            f"the map {feature_map.name!r} is not one of standardised rows; take that of a model "
            f"that `fit` made."
        )
    return feature_map.standardizer


def metric_of_map(feature_map: FeatureMap) -> Floats:
    """Return the metric (p, p) that a fitted map takes distances in."""
    standardizer = standardizer_of(feature_map)
    return metric_of(standardizer.linear, standardizer.columns, standardizer.n_features)


def metric_in(feature_map: FeatureMap) -> GivenMetric | None:
    """Return the metric of a fitted map, None of plain distances."""
    plain = standardizer_of(feature_map).linear is None
    return None if plain else GivenMetric(metric_of_map(feature_map))


def described_metric(metric: Any) -> str | None:
    """Return a metric as the options in a file name it; a matrix is in the map."""
    return metric if metric is None or isinstance(metric, str) else _GIVEN


def with_metric(options: Mapping[str, Any], feature_map: FeatureMap) -> dict[str, Any]:
    """Return options from a file with the matrix that they do not hold."""
    given = {"metric": metric_of_map(feature_map)} if options.get("metric") == _GIVEN else {}
    return {**options, **given}


def metric_facts(standardizer: Standardizer, metric: Any) -> dict[str, Any] | None:
    """Return what a metric says of the inputs, as plain JSON values; None where there is none.

    Of the `columns` that are kept: `per_unit`, how far apart in the metric two rows are that differ
    by 1 in one; `importance`, the same for a deviation, over the sum of all; `eigenvalues`, the
    largest, as parts of their sum; and `directions`, unit vectors of the first of them.
    """
    if metric is None and standardizer.linear is None:
        return None
    p, linear = len(standardizer.columns), standardizer.linear
    kind = _GIVEN if linear is None or linear.ndim == 2 else _WEIGHTS
    matrix = metric_of(linear, np.arange(p), p)
    values, vectors = np.linalg.eigh(matrix)
    weights, directions = np.sqrt(np.diagonal(matrix)), vectors[:, ::-1].T[:_DIRECTIONS]
    # Their sign has no meaning: their largest entry is positive.
    largest = np.abs(directions).argmax(axis=1)[:, None]
    directions = directions * np.sign(np.take_along_axis(directions, largest, axis=1))
    return {
        "kind": metric if isinstance(metric, str) else kind,
        "columns": standardizer.columns.tolist(),
        "importance": (weights / weights.sum()).tolist(),
        "per_unit": (weights / standardizer.deviation).tolist(),
        "eigenvalues": (values[::-1] / values.sum())[:_EIGENVALUES].tolist(),
        "directions": directions.tolist(),
    }
