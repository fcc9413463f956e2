"""The Nystroem map: features from the kernel at landmarks, for every kernel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import (
    FeatureMap,
    checked_n_components,
    checked_seed,
    kernel_and_options,
)
from streamkern.features.dynamic_range import FlattenedSimilarities
from streamkern.features.kernel_values import Similarities, has_slopes
from streamkern.features.landmarks import checked_choice, diagonal, landmarks
from streamkern.features.made import MadeFeatures
from streamkern.features.random_streams import stream
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike

    from streamkern._typing import Array, Floats
    from streamkern.kernels import Kernel

# The stream of the order that rows are taken in; landmarks have others.
_ORDER = 2


class Nystroem(FeatureMap):
    """The features phi(x) = L^-1 (k(x, z_1), ..., k(x, z_m)), with K_mm = L L^T.

    phi(x)^T phi(x') is the Nystroem approximation of the kernel, exact where x or x' is a
    landmark, but for the jitter.  L is lower triangular, so the first features are those of the
    first landmarks.

    Parameters
    ----------
    kernel : Kernel
        With a numeric length scale, if it has one.
    n_components : int
        D, the number m of landmarks; fewer are drawn where rows are fewer, or where landmarks can
        hardly be told apart.
    landmarks : {'kmeans', 'uniform', 'pivoted'}
        The centres of k-means, rows at random, or the pivots of a randomly pivoted Cholesky
        factorisation of the kernel.
    jitter : float
        Added to the diagonal of K_mm, as a part of the largest k(z, z).  A landmark of which less
        is left beside the others is left out.
    random_state : int
        Seed.

    Raises
    ------
    ParameterError
        If D or the jitter is not positive, or there is no such choice of landmarks.

    References
    ----------
    Williams and Seeger (2001), "Using the Nystroem method to speed up kernel machines".
    Chen, Epperly, Tropp and Webber (2022), "Randomly pivoted Cholesky".
    """

    name: ClassVar[str] = "nystroem"
    nesting = 1
    scale = 1.0
    exact_rows = True

    similarities: Similarities
    factor: Floats

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 2048,
        *,
        landmarks: str = "kmeans",
        jitter: float = 1e-10,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = self._most = checked_n_components(n_components)
        self.landmarks = checked_choice(landmarks)
        self.jitter = _checked_jitter(jitter)
        self.random_state = checked_seed(random_state)

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Choose landmarks for rows such as those of `X`, whatever order these are in."""
        rows = np.asarray(X, dtype=float)
        order = stream(self.random_state, _ORDER).permutation(len(rows))
        return self.draw(rows.shape[1], rows[order])

    def draw(self, n_features: int, rows: Array | None = None) -> Self:
        """Choose landmarks among rows, or from them, and factorise their kernel matrix."""
        if rows is None or not len(rows):
            raise ParameterError(
                "landmarks are made from rows, but there are none; call fit(X), or give draw some."
            )
        if n_features < 1 or rows.shape[1] != n_features:
            raise ParameterError(
                f"landmarks for rows of {n_features} inputs are made from such rows, not from "
                f"{rows.shape[1]} inputs; pass the same inputs."
            )
        return self._drawn(*_independent(self.kernel, self.chosen(rows), self.jitter))

    def chosen(self, rows: Array, weights: Floats | None = None) -> Floats:
        """Return landmarks, of which `draw` takes all."""
        rows = np.asarray(rows, dtype=np.float64)
        how, seed, m = self.landmarks, self.random_state, self._most  # whatever was found earlier
        return landmarks(self.kernel, rows, m, how=how, seed=seed, weights=weights)

    def representatives(self, rows: Array, weights: Floats | None = None) -> Array | None:
        """Return the landmarks, unless their choice depends on the length scale."""
        return None if self.landmarks == "pivoted" else self.chosen(rows, weights)

    def _drawn(self, chosen: Floats, factor: Floats) -> Self:
        self.__dict__.pop("whitening", None)  # of an earlier draw
        self.similarities = Similarities(self.kernel, chosen)
        self.factor = factor
        self.n_components, self.n_features = chosen.shape
        return self

    @cached_property
    def whitening(self) -> Floats:
        """L^-T (m, m): features are the kernel's values times this."""
        from scipy.linalg import solve_triangular  # noqa: PLC0415  where it is needed

        identity = np.eye(self.n_components)
        upper: Floats = solve_triangular(self.factor, identity, lower=True).T
        return np.ascontiguousarray(upper)

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the features, less `shift`, into `out`."""
        scratch, shifted = scratch or Scratch(), np.any(shift)
        m = self.n_components
        whitening = scratch.array("whitening", (m, m), out.dtype)
        whitening[...] = self.whitening
        for rows in self.similarities.evaluated(X, out, scratch=scratch):
            features = out[rows]
            values = scratch.array("similarities", features.shape, out.dtype)
            values[...] = features
            np.matmul(values, whitening, out=features)
            if shifted:
                features -= shift
            yield rows

    def summed(self) -> FlattenedSimilarities:
        """Return the map whose products are summed: no whitening a row, and as good digits."""
        return FlattenedSimilarities.of(self)

    def first(self, n_components: int) -> Nystroem:
        """Return the map of the first landmarks; see `FeatureMap`."""
        k = self.checked_part(n_components)
        smaller = Nystroem(
            self.kernel,
            k,
            landmarks=self.landmarks,
            jitter=self.jitter,
            random_state=self.random_state,
        )
        return smaller._drawn(
            self.similarities.landmarks[:k], np.ascontiguousarray(self.factor[:k, :k])
        )

    def subset(self, indices: Array) -> Projected:
        """Return some of the features, made from the kernel at the landmarks that they need."""
        chosen = self.checked_subset(indices)
        needed = int(chosen.max()) + 1
        similarities = Similarities(self.kernel, self.similarities.landmarks[:needed])
        return Projected(similarities, np.ascontiguousarray(self.whitening[:needed, chosen]))

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:  # noqa: ARG002
        """Return the kernel at the landmarks: the function sum_j c_j k(x, z_j), c = L^-T coef."""
        return self.similarities, self.whitening @ coef

    @property
    def has_gradients(self) -> bool:
        """Whether the kernel at the landmarks has."""
        return has_slopes(self.kernel)

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return gradients of the kernel at the landmarks; see `FeatureMap`."""
        return self.similarities.gradients(X, self.whitening @ coef, scratch)

    def kernel_diagonal(self, X: Array) -> Floats:
        """Return k(x, x), of which the landmarks explain a part; see `FeatureMap`."""
        return diagonal(self.kernel, X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return {name: value for name, value in vars(self).items() if name != "whitening"}

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return {
            "kernel": self.kernel.name,
            "kernel_parameters": self.kernel.parameters(),
            "n_components": self.n_components,
            "landmarks": self.landmarks,
            "jitter": self.jitter,
            "random_state": self.random_state,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the landmarks (m, p), and L row by row up to the diagonal."""
        rows, columns = np.tril_indices(self.n_components)
        return {"landmarks": self.similarities.landmarks, "factor": self.factor[rows, columns]}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form: the landmarks and the factor that were made."""
        kernel, options = kernel_and_options(parameters)
        restored = cls(kernel, **options)
        chosen, packed, m = arrays["landmarks"], arrays["factor"], restored.n_components
        if chosen.ndim != 2 or len(chosen) != m or packed.shape != (m * (m + 1) // 2,):
            raise ParameterError(
                f"expected {m} landmarks and their factor, found shapes {chosen.shape} and "
                f"{packed.shape}; the file is damaged."
            )
        factor = np.zeros((m, m))
        factor[np.tril_indices(m)] = packed
        if not (np.diagonal(factor) > 0).all():
            raise ParameterError("a factor's diagonal must be positive; the file is damaged.")
        return restored._drawn(np.asarray(chosen, dtype=np.float64), factor)


class Projected(MadeFeatures):
    """Linear combinations of the values of a kernel at landmarks.

    Parameters
    ----------
    similarities : Similarities
        Of m landmarks.
    weights : ndarray of shape (m, K)
    """

    name: ClassVar[str] = "projected"
    scale = 1.0
    exact_rows = True

    def __init__(self, similarities: Similarities, weights: Floats) -> None:
        m = similarities.n_components
        if weights.ndim != 2 or len(weights) != m or not weights.size:
            raise ParameterError(
                f"expected weights of {m} landmarks, found shape {weights.shape}; give one row a "
                f"landmark."
            )
        self.similarities = similarities
        self.weights = weights
        self.n_features, self.n_components = similarities.n_features, weights.shape[1]

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the combinations, less `shift`, into `out`."""
        scratch, shifted = scratch or Scratch(), np.any(shift)
        weights = self.weights.astype(out.dtype)
        values = scratch.array("similarities", (len(out), len(weights)), out.dtype)
        for rows in self.similarities.evaluated(X, values, scratch=scratch):
            features = out[rows]
            np.matmul(values[rows], weights, out=features)
            if shifted:
                features -= shift
            yield rows

    def subset(self, indices: Array) -> Projected:
        """Return some of the combinations."""
        chosen = self.checked_subset(indices)
        return Projected(self.similarities, np.ascontiguousarray(self.weights[:, chosen]))

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:  # noqa: ARG002
        """Return the kernel at the landmarks."""
        return self.similarities, self.weights @ coef

    @property
    def has_gradients(self) -> bool:
        """Whether the kernel at the landmarks has."""
        return self.similarities.has_gradients

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return gradients of the kernel at the landmarks; see `FeatureMap`."""
        return self.similarities.gradients(X, self.weights @ coef, scratch)

    def parameters(self) -> dict[str, Any]:
        """Return those of the kernel."""
        return self.similarities.parameters()

    def arrays(self) -> dict[str, Array]:
        """Return the landmarks (m, p) and the weights (m, K)."""
        return {**self.similarities.arrays(), "weights": self.weights}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        return cls(Similarities.restore(parameters, arrays), arrays["weights"])


def _independent(kernel: Kernel, chosen: Floats, jitter: float) -> tuple[Floats, Floats]:
    """Return the landmarks that others leave enough of, in their order, and their factor."""
    from scipy.linalg.lapack import dpstrf  # noqa: PLC0415  where it is needed

    added = jitter * diagonal(kernel, chosen).max()
    if not added > 0:
        raise ParameterError(
            f"the kernel {kernel.name!r} is zero at all landmarks; take another kernel, or give "
            f"it a constant."
        )
    matrix = kernel(chosen, chosen)
    _, pivots, rank, _ = dpstrf(matrix, lower=1, tol=added)
    kept = np.sort(pivots[:rank] - 1)
    factor: Any = np.linalg.cholesky(matrix[np.ix_(kept, kept)] + added * np.eye(len(kept)))
    return chosen[kept], factor


def _checked_jitter(jitter: Any) -> float:
    if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 < jitter < 1:
        raise ParameterError(
            f"jitter must be a number between 0 and 1, not {jitter!r}; give a small one."
        )
    return float(jitter)
