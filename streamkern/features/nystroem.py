"""The Nystroem map: features from the kernel at landmarks, for every kernel."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import given_rows, stream
from streamkern.features.kernel_map import KernelMap
from streamkern.features.kernel_values import KernelColumns, LandmarkFeatures, Projected, has_slopes
from streamkern.features.landmarks import diagonal, landmarks
from streamkern.features.levelled import DeflatedNystroem
from streamkern.kernels import Kernel
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads

# Up to so many landmarks are pivoted where some can hardly be told apart; more are looked at in
# their own order, since pivots take several times as long.
_PIVOTED = 8192
# Columns of a factor that are made at a time, and rows of these that are one piece of work.
_PANEL, _STRIP = 512, 256
# So many take one core, of which trials that are made side by side have one each.
_ALONE = 2048
# Matrices of so many rows and columns that are in memory meanwhile.
_SQUARES_OF_PIVOTS, _SQUARES_OF_PANELS = 5.0, 1.25
# The stream of the order that rows are taken in; landmarks have others.
_ORDER = 2


class Nystroem(KernelMap, LandmarkFeatures):
    """The kernel at landmarks, for every kernel: phi(x) = L^-1 (k(x, z_1), ..., k(x, z_m)).

    With K_mm = L L^T, phi(x)^T phi(x') is the Nystroem approximation of the kernel, exact where x
    or x' is a landmark, but for the jitter.  L is lower triangular, so the first features are those
    of the first landmarks.

    Parameters
    ----------
    kernel : Kernel
    n_components : int
        The number m of landmarks, the centres of k-means in a sample of eight rows for each, or
        four of more than 8,192; fewer are drawn where rows are fewer, or where landmarks can
        hardly be told apart.
    jitter : float
        Added to the diagonal of K_mm, as a part of the largest k(z, z).  A landmark of which less
        is left beside the others is left out.
    random_state : int
        Seed.

    References
    ----------
    Williams and Seeger (2001), "Using the Nystroem method to speed up kernel machines".
    Zhang, Tsang and Kwok (2008), "Improved Nystroem low-rank approximation and error analysis".
    """

    name = "nystroem"
    families: ClassVar = {"nystroem": ("the kernel at landmarks, centres of k-means", {})}
    rows_a_feature = 8
    nesting = 1

    similarities: KernelColumns
    factor: Floats

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 2048,
        *,
        jitter: float = 1e-10,
        random_state: int = 0,
    ) -> None:
        super().__init__(kernel, n_components, random_state)
        self._most = self.n_components
        if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 < jitter < 1:
            raise ParameterError(
                f"jitter must be a number between 0 and 1, not {jitter!r}; give a small one."
            )
        self.jitter = float(jitter)
        self.has_gradients = has_slopes(kernel)

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Choose landmarks for rows such as those of `X`, whatever order these are in."""
        rows = given_rows(X)
        order = stream(self.random_state, _ORDER).permutation(len(rows))
        return self.draw(rows.shape[1], rows[order])

    def draw(self, n_features: int, rows: Array | None = None) -> Self:
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
        m, seed = self._most, self.random_state  # whatever was found earlier
        return landmarks(self.kernel, rows, m, seed=seed, weights=weights)

    def _drawn(self, chosen: Floats, factor: Floats) -> Self:
        self.__dict__.pop("weights", None)  # of an earlier draw
        self.similarities, self.factor = KernelColumns(self.kernel, chosen), factor
        self.n_components, self.n_features = chosen.shape
        return self

    @cached_property
    def weights(self) -> Floats:  # type: ignore[override]
        """L^-T (m, m): features are the kernel's values times this."""
        from streamkern.runtime.lapack import triangular_solution  # noqa: PLC0415  where it is needed

        identity = np.eye(self.n_components)
        return np.ascontiguousarray(triangular_solution(self.factor, identity).T)

    def gram_map(self) -> DeflatedNystroem:
        """Return the map whose products are summed: no whitening a row, and as good digits."""
        return DeflatedNystroem.of(self)

    def first(self, n_components: int) -> "Nystroem":
        k = self.checked_part(n_components)
        smaller = Nystroem(self.kernel, **{**self.arguments(), "n_components": k})
        factor = np.ascontiguousarray(self.factor[:k, :k])
        return smaller._drawn(self.similarities.landmarks[:k], factor)

    def subset(self, indices: Array) -> Projected:
        chosen = self.checked_subset(indices)
        needed = int(chosen.max()) + 1
        similarities = KernelColumns(self.kernel, self.similarities.landmarks[:needed])
        return Projected(similarities, np.ascontiguousarray(self.weights[:needed, chosen]))

    def unwhitened(self) -> KernelColumns:
        return self.similarities

    def apply_r(self, vectors: Floats, *, back: bool = False) -> Floats:
        """Return L^-T v of vectors (m, k), or L^-1 v."""
        from streamkern.runtime.lapack import triangular_solution  # noqa: PLC0415  where it is needed

        n_threads = usable_cores()
        return triangular_solution(self.factor, vectors, transposed=not back, n_threads=n_threads)

    def span_without(self, left_out: Array) -> Floats:
        """Return orthonormal columns (m, r) of coefficients that some landmarks, (m,), leave at 0.

        f = phi^T w has the coefficients L^-T w of the kernel at the landmarks.
        """
        return np.linalg.qr(self.factor[~left_out].T)[0]

    def combined(self, weights: Floats) -> "CombinedLandmarks":
        return CombinedLandmarks(self.similarities, np.ascontiguousarray(self.apply_r(weights)))

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return {name: value for name, value in vars(self).items() if name != "weights"}

    def arrays(self) -> dict[str, Array]:
        """Return the landmarks (m, p), and L row by row up to the diagonal."""
        rows, columns = np.tril_indices(self.n_components)
        return {"landmarks": self.similarities.landmarks, "factor": self.factor[rows, columns]}

    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        chosen, packed, m = arrays["landmarks"], arrays["factor"], self.n_components
        if chosen.ndim != 2 or len(chosen) != m or packed.shape != (m * (m + 1) // 2,):
            raise ParameterError(
                f"expected {m} landmarks and their factor, found shapes {chosen.shape} and "
                f"{packed.shape}; the file is damaged."
            )
        factor = np.zeros((m, m))
        factor[np.tril_indices(m)] = packed
        if not (np.diagonal(factor) > 0).all():
            raise ParameterError("a factor's diagonal must be positive; the file is damaged.")
        self._drawn(np.asarray(chosen, dtype=np.float64), factor)


class CombinedLandmarks(Projected):
    """Linear combinations of the values of a kernel, which stand for those of all landmarks."""

    name = "combined landmarks"


def drawing_bytes(n_landmarks: int) -> int:
    """Return what the factor of so many landmarks takes while it is made."""
    squares = _SQUARES_OF_PANELS if n_landmarks > _PIVOTED else _SQUARES_OF_PIVOTS
    return int(8 * squares * n_landmarks**2)


def _factor(kernel: Kernel, chosen: Floats, added: float) -> Floats:
    """Return the factor of K_mm + added I by columns, in memory of one matrix beside strips.

    Strips of rows below the diagonal are made on all cores, and are the same whatever their number,
    which changes no bit.  Golub and Van Loan (2013), "Matrix computations", section 4.2.5.
    """
    from streamkern.runtime.lapack import triangular_solution  # noqa: PLC0415  where it is needed

    m = len(chosen)
    n_threads = usable_cores() if m > _ALONE else 1
    factor = np.zeros((m, m), order="F")

    def rest(rows: slice, panel: slice) -> Floats:
        """Return what columns before the panel leave of its kernel values."""
        known = slice(0, panel.start)
        values = kernel(chosen[rows], chosen[panel])
        values -= factor[rows, known] @ factor[panel, known].T
        return values

    def strip(panel: slice, square: Floats, start: int) -> None:
        rows = slice(start, start + _STRIP)
        factor[rows, panel] = triangular_solution(square, rest(rows, panel).T).T

    with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
        for start in range(0, m, _PANEL):
            panel = slice(start, min(start + _PANEL, m))
            square: Any = rest(panel, panel)
            square = np.linalg.cholesky(square + added * np.eye(len(square)))
            factor[panel, panel] = square
            list(pool.map(partial(strip, panel, square), range(panel.stop, m, _STRIP)))
    return factor


def _independent(kernel: Kernel, chosen: Floats, jitter: float) -> tuple[Floats, Floats]:
    """Return the landmarks that others leave enough of, in their order, and their factor."""
    added = jitter * diagonal(kernel, chosen).max()
    if not added > 0:
        raise ParameterError(
            f"the kernel {kernel.name!r} is zero at all landmarks; take another kernel, or give "
            f"it a constant."
        )
    can_pivot = len(chosen) <= _PIVOTED
    kept = np.zeros(len(chosen), bool)
    try:
        factor = _factor(kernel, chosen, added)
        # Those that the ones before them leave more of than was added.
        kept = np.square(np.diagonal(factor)) > 2.0 * added
    except np.linalg.LinAlgError:  # rounding leaves less than nothing
        if not can_pivot:
            raise ParameterError(
                f"rounding makes the kernel matrix of {len(chosen):,} landmarks indefinite at "
                f"jitter {jitter:g}; give a larger jitter, or at most {_PIVOTED:,} landmarks."
            ) from None
    if kept.all():
        return chosen, factor
    factor = np.zeros((0, 0))  # gives back its memory
    return (
        _pivoted(kernel, chosen, added) if can_pivot else _independent(kernel, chosen[kept], jitter)
    )


def _pivoted(kernel: Kernel, chosen: Floats, added: float) -> tuple[Floats, Floats]:
    """Return the landmarks that a pivoted factorisation keeps, in their order, and their factor."""
    from scipy.linalg.lapack import dpstrf  # noqa: PLC0415  where it is needed

    _, pivots, rank, _ = dpstrf(kernel(chosen, chosen), lower=1, tol=added)
    chosen = chosen[np.sort(pivots[:rank] - 1)]
    return chosen, _factor(kernel, chosen, added)
