"""Random binning: cells of random grids, hashed."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import OverflowedError, ParameterError
from streamkern.features.base import cached_slices, checked_n_components, stream
from streamkern.features.kernel_map import KernelMap
from streamkern.kernels import Kernel, Laplacian
from streamkern.runtime.scratch import Scratch

# Entries of a grid, where D is a multiple.
_ENTRIES = 8
_ARRAYS = ("widths", "offsets", "multipliers")


class RandomBinning(KernelMap):
    """Cells of random grids, hashed to signed entries, for the Laplacian kernel.

    Two rows are in the same cell of a grid of width delta with probability max(0, 1 - d / delta);
    widths drawn from the density delta exp(-delta / l) / l^2 in every input make that the kernel.
    A grid has endlessly many cells, so each is hashed to one of B entries of the features and to a
    sign.  The signs let cells that share an entry cancel, so that phi(x)^T phi(x') = k(x, x') in
    expectation nevertheless, with the variance (k + (1 - k) / B - k^2) / P of P = D / B grids.

    Parameters
    ----------
    kernel : Laplacian
    n_components : int
        D.
    n_entries : int, optional
        B, which divides D; the largest that divides both D and 8 by default.
    random_state : int
        Seed.  Nested: the first features of a larger map of as many entries are those of a smaller
        one, up to scale.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Weinberger et al. (2009), "Feature hashing for large scale multitask learning", for the signs.
    """

    name = "binning"
    families: ClassVar = {"binning": ("cells of random grids, for the Laplacian kernel", {})}
    usual_kernel = Laplacian("median")

    widths: Floats  # (P, p), as are the others
    offsets: Floats
    multipliers: Array

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 2048,
        *,
        n_entries: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(kernel, n_components, random_state)
        B = math.gcd(self.n_components, _ENTRIES) if n_entries is None else n_entries
        self.n_entries = checked_n_components(B)
        if self.n_components % B:
            raise ParameterError(
                f"n_components must be a multiple of the {B} entries of a grid, not "
                f"{n_components}; give such a number."
            )
        self.nesting = self.n_entries
        self.n_grids = self.n_components // self.n_entries
        self.scale = 1.0 / math.sqrt(self.n_grids)

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, Laplacian):
            raise ParameterError(
                f"random binning is for the Laplacian kernel, not for {kernel!r}; take that "
                f"kernel, or another map."
            )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        self.check_some_inputs(n_features)
        shape = (self.n_grids, n_features)
        widths = stream(self.random_state, 0).gamma(2.0, size=shape)
        widths *= self.kernel.scales(n_features)
        offsets = stream(self.random_state, 1).random(shape) * widths
        bits = stream(self.random_state, 2).integers(1 << 64, size=shape, dtype=np.uint64)
        return self._drawn(widths, offsets, bits | np.uint64(1))

    def _drawn(self, widths: Floats, offsets: Floats, multipliers: Array) -> Self:
        self.widths, self.offsets, self.multipliers = widths, offsets, multipliers
        self.n_features = widths.shape[1]
        return self

    @np.errstate(invalid="ignore")
    def cells(self, X: Array) -> Array:
        """Return a hash (n, P), uint64, of the cell of every grid that rows (n, p) are in."""
        words = np.zeros((len(X), self.n_grids), dtype=np.uint64)
        for j in range(self.n_features):
            steps = np.floor((X[:, j, None] - self.offsets[:, j]) / self.widths[:, j])
            words += steps.astype(np.int64).view(np.uint64) * self.multipliers[:, j]
        words ^= words >> np.uint64(32)
        words *= np.uint64(0xD6E8FEB86659FD93)
        words ^= words >> np.uint64(32)
        return words

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:  # noqa: ARG002
        begins = self.n_entries * np.arange(self.n_grids)

        def write(X: Array, features: Array) -> None:
            inputs = np.asarray(X, dtype=np.float64)
            words = self.cells(inputs)
            entries = begins + (words % np.uint64(self.n_entries)).astype(np.int64)
            signs = 1.0 - 2.0 * (words >> np.uint64(63)).astype(dtype)
            features[...] = 0.0
            np.put_along_axis(features, entries, signs.astype(dtype), axis=1)
            features[~np.isfinite(inputs).all(axis=1)] = np.nan

        return write

    @property
    def bounds(self) -> float:
        return 1.0

    def round_into(self, X: Array, levels: int, out: Array, scratch: Scratch) -> None:
        write = self.prepared(np.dtype(np.float32), scratch)
        for rows in cached_slices(len(X), max(self.n_components, self.n_features // 2)):
            shape = rows.stop - rows.start, self.n_components
            features = scratch.array("features", shape, np.float32)
            write(X[rows], features)
            if not np.isfinite(features).all():
                raise OverflowedError("inputs are not finite numbers; standardise or rescale them.")
            np.multiply(features.T, levels, out=out[:, rows], casting="unsafe")

    def first(self, n_components: int) -> "RandomBinning":
        self.check_drawn()
        B = self.n_entries
        if not 1 <= n_components <= self.n_components or n_components % B:
            raise ParameterError(
                f"a part of this map has a multiple of {B} features, up to {self.n_components}, "
                f"not {n_components}; ask for such a number."
            )
        smaller = RandomBinning(self.kernel, **{**self.arguments(), "n_components": n_components})
        return smaller._drawn(*(array[: smaller.n_grids] for array in self.arrays().values()))

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in _ARRAYS}

    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        found = [arrays[name] for name in _ARRAYS]
        widths, _, multipliers = found
        P = self.n_grids
        if any(part.shape != widths.shape or part.ndim != 2 or len(part) != P for part in found):
            raise ParameterError(
                f"expected widths, offsets and multipliers of {P} grids, found shapes "
                f"{', '.join(str(part.shape) for part in found)}; the file is damaged."
            )
        if not (widths > 0).all() or multipliers.dtype != np.uint64 or not widths.size:
            raise ParameterError("grids must have positive widths; the file is damaged.")
        self._drawn(*found)
