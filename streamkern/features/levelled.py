"""Levelled values of a kernel at landmarks: what a pass sums in the place of Nystroem features.

Whitened features L^-1 k cost as much a row as their products.  Summing products of plain values k
and whitening the sums costs nothing a row, but K_nm^T K_nm has the squares of the eigenvalues of
K_mm, and in single precision the small ones drown in the rounding of the large.  Here the few
largest eigenvalues s_1, ..., s_r of K_mm are levelled: with an orthogonal Q whose first r columns
are their eigenvectors, up to signs,

    psi = T Q^T k,   T = diag(s_r / s_1, ..., s_r / s_r, 1, ..., 1),

which makes sums of psi psi^T about flat in these directions.  Q is the product of r reflections, so
that takes 4 m r operations a row, and

    L^-1 k = R^T psi,   R = T^-1 Q^T L^-T

turns the sums into those of whitened features, once, in double.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, stream
from streamkern.features.families import MAPS
from streamkern.features.kernel_map import ChosenFeatures
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from streamkern.features.nystroem import Nystroem

# Eigenvectors of K_mm that are levelled: a share of all, and at least so many.
_LEVELLED, _FEWEST = 1 / 8, 64
_LEVELLING = ("reflectors", "factors", "levels")
# Steps of the iteration that finds them, vectors that it takes besides, and its stream.
_STEPS, _MORE, _BEGINNING = 3, 16, 3


class DeflatedNystroem(ChosenFeatures):
    """Values of a kernel at the landmarks of a Nystroem map, levelled.

    Reflectors Y (m, r) and factors F (r, r) are of Q = I - Y F Y^T, levels are s_r / s_i.
    """

    name = "flattened"
    no_part = (
        "levelled values have no part of {} that stands for the kernel; take that of the Nystroem "
        "map."
    )
    exact_rows = True

    def __init__(
        self, whitened: "Nystroem", reflectors: Floats, factors: Floats, levels: Floats
    ) -> None:
        m, r = whitened.n_components, len(levels)
        if reflectors.shape != (m, r) or factors.shape != (r, r) or not (levels > 0).all():
            raise ParameterError(
                f"expected {r} reflectors of {m} numbers and positive levels, found shapes "
                f"{reflectors.shape} and {factors.shape}; the file is damaged."
            )
        self.whitened, self.factors, self.levels = whitened, factors, levels
        self.reflectors = np.ascontiguousarray(reflectors)
        self.n_components, self.n_features = m, whitened.n_features

    @classmethod
    def of(cls, whitened: "Nystroem") -> Self:
        m = whitened.n_components
        largest, vectors = _leading(whitened.factor, min(max(int(m * _LEVELLED), _FEWEST), m))
        return cls(whitened, *_reflections(vectors), largest[-1:] / largest)

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        write_values = self.whitened.similarities.prepared(dtype, scratch)
        reflectors, levels = self.reflectors.astype(dtype), self.levels.astype(dtype)
        changes = (self.factors @ self.reflectors.T).astype(dtype)

        def write(X: Array, features: Array) -> None:
            write_values(X, features)
            along = scratch.array("along", (len(features), len(levels)), dtype)
            change = scratch.array("change", features.shape, dtype)
            np.matmul(features, reflectors, out=along)
            features -= np.matmul(along, changes, out=change)
            features[:, : len(levels)] *= levels

        return write

    def solve_map(self, n_components: int | None = None) -> "tuple[Nystroem, Floats]":
        k = self.n_components if n_components is None else n_components
        whitening = self.whitened.weights[:, :k]
        along = self.factors.T @ (self.reflectors.T @ whitening)
        turning = whitening - self.reflectors @ along
        turning[: len(self.levels)] /= self.levels[:, None]
        return self.whitened.first(k), turning

    def subset(self, indices: Array) -> FeatureMap:  # noqa: ARG002
        raise ParameterError(
            "levelled values have no subset that stands for something; take one of the features "
            "of the Nystroem map."
        )

    def parameters(self) -> dict[str, Any]:
        return self.whitened.parameters()

    def arrays(self) -> dict[str, Array]:
        return {**self.whitened.arrays(), **{name: getattr(self, name) for name in _LEVELLING}}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        whitened: Any = MAPS["nystroem"].restore(parameters, arrays)
        return cls(whitened, *(arrays[name] for name in _LEVELLING))


def _leading(factor: Floats, r: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues (r,) of L L^T, descending, and eigenvectors (m, r), about.

    By subspace iteration: Halko, Martinsson and Tropp (2011), "Finding structure with randomness".
    A few steps do, since whatever orthogonal matrix is taken, it is undone.
    """
    m = len(factor)
    block = stream(0, _BEGINNING).standard_normal((m, min(r + _MORE, m)))
    for _ in range(_STEPS):
        block = np.linalg.qr(factor @ (factor.T @ block))[0]
    narrow = factor.T @ block
    eigenvalues, vectors = np.linalg.eigh(narrow.T @ narrow)
    return eigenvalues[: -r - 1 : -1], block @ vectors[:, : -r - 1 : -1]


def _reflections(columns: Floats) -> tuple[Floats, Floats]:
    """Return Y and F of Q = I - Y F Y^T, whose first columns are orthonormal ones, up to signs."""
    from scipy.linalg import qr  # noqa: PLC0415  where it is needed

    (packed, scales), _ = qr(columns, mode="raw")
    r = columns.shape[1]
    reflectors = np.tril(packed[:, :r], -1) + np.eye(len(columns), r)
    factors = np.zeros((r, r))
    products = reflectors.T @ reflectors
    for j, scale in enumerate(scales):
        factors[:j, j] = -scale * (factors[:j, :j] @ products[:j, j])
        factors[j, j] = scale
    return reflectors, factors
