"""Values of a kernel at landmarks with the dynamic range taken out: what products are summed of.

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

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.made import MadeFeatures
from streamkern.features.random_streams import stream
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array, Floats
    from streamkern.features.base import FeatureMap
    from streamkern.features.nystroem import Nystroem

# Eigenvectors of K_mm that are levelled: a share of all, and at least so many.
_LEVELLED, _FEWEST = 1 / 8, 64
# Steps of the iteration that finds them, vectors that it takes besides, and the stream of those it
# begins with.
_STEPS, _MORE, _BEGINNING = 3, 16, 3


class FlattenedSimilarities(MadeFeatures):
    """Values of a kernel at the landmarks of a Nystroem map, levelled.

    Parameters
    ----------
    whitened : Nystroem
        The map whose features the sums are turned into.
    reflectors : ndarray of shape (m, r)
        Y, of Q = I - Y F Y^T.
    factors : ndarray of shape (r, r)
        F.
    levels : ndarray of shape (r,)
        s_r / s_i.

    References
    ----------
    Schreiber and Van Loan (1989), "A storage-efficient WY representation for products of
    Householder transformations".
    """

    name: ClassVar[str] = "flattened"
    scale = 1.0
    exact_rows = True

    def __init__(
        self, whitened: Nystroem, reflectors: Floats, factors: Floats, levels: Floats
    ) -> None:
        m, r = whitened.n_components, len(levels)
        if reflectors.shape != (m, r) or factors.shape != (r, r) or not (levels > 0).all():
            raise ParameterError(
                f"expected {r} reflectors of {m} numbers and positive levels, found shapes "
                f"{reflectors.shape} and {factors.shape}; the file is damaged."
            )
        self.whitened = whitened
        self.reflectors = np.ascontiguousarray(reflectors)
        self.factors = factors
        self.levels = levels
        self.n_components, self.n_features = m, whitened.n_features

    @classmethod
    def of(cls, whitened: Nystroem) -> Self:
        """Return the map for a drawn Nystroem map."""
        m = whitened.n_components
        r = min(max(int(m * _LEVELLED), _FEWEST), m)
        largest, vectors = _leading(whitened.factor, r)
        reflectors, factors = _reflections(vectors)
        return cls(whitened, reflectors, factors, largest[-1:] / largest)

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the levelled values, less `shift`, into `out`."""
        scratch, shifted = scratch or Scratch(), np.any(shift)
        reflectors = self.reflectors.astype(out.dtype)
        changes = (self.factors @ self.reflectors.T).astype(out.dtype)
        levels = self.levels.astype(out.dtype)
        for rows in self.whitened.similarities.evaluated(X, out, scratch=scratch):
            features = out[rows]
            along = scratch.array("along", (len(features), len(levels)), out.dtype)
            change = scratch.array("change", features.shape, out.dtype)
            np.matmul(features, reflectors, out=along)
            features -= np.matmul(along, changes, out=change)
            features[:, : len(levels)] *= levels
            if shifted:
                features -= shift
            yield rows

    def solved(self, n_components: int | None = None) -> tuple[Nystroem, Floats]:
        """Return the Nystroem map, or its leading part, and R; see `FeatureMap`."""
        k = self.n_components if n_components is None else n_components
        whitening = self.whitened.whitening[:, :k]
        along = self.factors.T @ (self.reflectors.T @ whitening)
        turning = whitening - self.reflectors @ along
        turning[: len(self.levels)] /= self.levels[:, None]
        return self.whitened.first(k), turning

    def first(self, n_components: int) -> FlattenedSimilarities:
        """Refuse: what sums are made of has a leading part only once they are turned."""
        raise ParameterError(
            f"levelled values have no part of {n_components} that stands for the kernel; take "
            f"that of the Nystroem map."
        )

    def subset(self, indices: Array) -> FeatureMap:  # noqa: ARG002
        """Refuse, as `first` does."""
        raise ParameterError(
            "levelled values have no subset that stands for something; take one of the features "
            "of the Nystroem map."
        )

    def parameters(self) -> dict[str, Any]:
        """Return those of the Nystroem map."""
        return self.whitened.parameters()

    def arrays(self) -> dict[str, Array]:
        """Return those of the Nystroem map, the reflectors, their factors and the levels."""
        return {
            **self.whitened.arrays(),
            "reflectors": self.reflectors,
            "factors": self.factors,
            "levels": self.levels,
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        from streamkern.features.nystroem import Nystroem  # noqa: PLC0415  it makes this one

        whitened = Nystroem.restore(parameters, arrays)
        return cls(whitened, *(arrays[name] for name in ("reflectors", "factors", "levels")))


def _leading(factor: Floats, r: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues (r,) of L L^T, descending, and eigenvectors (m, r), about.

    By a few steps of subspace iteration, since whatever orthogonal matrix is taken, it is undone.

    References
    ----------
    Halko, Martinsson and Tropp (2011), "Finding structure with randomness".
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
