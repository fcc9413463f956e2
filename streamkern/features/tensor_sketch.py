"""TensorSketch: random features of the polynomial kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import (
    FeatureMap,
    cached_slices,
    checked_n_components,
    checked_seed,
    kernel_and_options,
)
from streamkern.features.random_streams import stream
from streamkern.features.selected import Chosen
from streamkern.kernels import Polynomial
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array
    from streamkern.kernels import Kernel


class TensorSketch(FeatureMap):
    """Count sketches of the products of d inputs, for the kernel (c + x^T x')^d.

    The inputs and sqrt(c) are sketched d times: input j is added to entry h_ij of D, with the sign
    s_ij.  The circular convolution of the d sketches is the sketch of all products of d inputs,
    and sketches keep inner products in expectation.  It is made by Fourier transforms; those of the
    count sketches are linear in the inputs, so each is one matrix product.

    Parameters
    ----------
    kernel : Polynomial
    n_components : int
        D.
    random_state : int
        Seed.  A smaller map is another one, not a part of this.

    Raises
    ------
    ParameterError
        If the kernel is not polynomial, or D is not positive.

    References
    ----------
    Pham and Pagh (2013), "Fast and scalable polynomial kernels via explicit feature maps".
    """

    name: ClassVar[str] = "sketch"
    scale = 1.0

    places: Array
    signs: Array

    def __init__(self, kernel: Kernel, n_components: int = 2048, *, random_state: int = 0) -> None:
        if not isinstance(kernel, Polynomial):
            raise ParameterError(
                f"a sketch is of the polynomial kernel, not of {kernel!r}; take that kernel, or "
                f"another map."
            )
        self.kernel = kernel
        self.n_components = checked_n_components(n_components)
        self.random_state = checked_seed(random_state)

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        """Draw places and signs for rows of `n_features` inputs."""
        if n_features < 1:
            raise ParameterError(f"a map needs at least 1 input, not {n_features}; give some.")
        rng = stream(self.random_state)
        shape = (self.kernel.degree, n_features + 1)
        places = rng.integers(self.n_components, size=shape)
        return self._drawn(places, 2 * rng.integers(2, size=shape) - 1)

    def _drawn(self, places: Array, signs: Array) -> Self:
        self.places, self.signs = places, signs
        self.n_features = places.shape[1] - 1
        self._made: dict[Any, Array] = {}
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return vars(self) | {"_made": {}}

    def transforms(self, dtype: np.dtype[Any]) -> Array:
        """Return the Fourier transforms (d, p + 1, D / 2 + 1) of the sketches of unit inputs."""
        if dtype not in self._made:
            self._made[dtype] = self._transforms(dtype)
        return self._made[dtype]

    def _transforms(self, dtype: np.dtype[Any]) -> Array:
        D = self.n_components
        # Whole turns are taken out, so that angles keep their digits.
        turns = self.places[..., None] * np.arange(D // 2 + 1) % D
        waves = self.signs[..., None] * np.exp(-2j * math.pi / D * turns)
        waves[:, -1] *= math.sqrt(self.kernel.constant)
        found: Array = waves.astype(self._complex(dtype))
        return found

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the sketches, less `shift`, into `out`."""
        D, p, dtype = self.n_components, self.n_features, out.dtype
        scratch, shifted = scratch or Scratch(), np.any(shift)
        # Complex numbers as pairs, so that products with rows are real.
        waves = self.transforms(dtype).view(dtype)
        for rows in cached_slices(len(out), D):
            features = out[rows]
            shape = (len(features), D // 2 * 2 + 2)
            product = scratch.array("transforms", shape, dtype)
            factor = scratch.array("factor", shape, dtype)
            made = product
            for linear in waves:
                np.matmul(X[rows].astype(dtype, copy=False), linear[:p], out=made)
                made += linear[p]
                if made is factor:
                    complex_type = self._complex(dtype)
                    product.view(complex_type)[...] *= factor.view(complex_type)
                made = factor
            features[...] = np.fft.irfft(product.view(self._complex(dtype)), n=D, axis=1)
            if shifted:
                features -= shift
            yield rows

    @staticmethod
    def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
        return np.result_type(dtype, np.complex64)

    def first(self, n_components: int) -> TensorSketch:
        """Refuse: a part of a sketch is no sketch."""
        raise ParameterError(
            f"a sketch has no part of {n_components} features that stands for the kernel; draw one "
            f"of that size."
        )

    def subset(self, indices: Array) -> Chosen:
        """Return some of the entries, of which the transform makes all."""
        return Chosen(self, indices)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return {
            "kernel": self.kernel.name,
            "kernel_parameters": self.kernel.parameters(),
            "n_components": self.n_components,
            "random_state": self.random_state,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the places and signs, (d, p + 1) each."""
        return {"places": self.places, "signs": self.signs}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form: what was drawn, not a new draw."""
        kernel, options = kernel_and_options(parameters)
        restored = cls(kernel, **options)
        places, signs, D = arrays["places"], arrays["signs"], restored.n_components
        d = restored.kernel.degree
        if places.ndim != 2 or len(places) != d or signs.shape != places.shape or not places.size:
            raise ParameterError(
                f"expected places and signs of {d} sketches, found shapes {places.shape} and "
                f"{signs.shape}; the file is damaged."
            )
        inside = places.dtype.kind in "iu" and (places >= 0).all() and (places < D).all()
        if not inside or not np.isin(signs, (-1, 1)).all():
            raise ParameterError(
                f"places must be from 0 to {D - 1} and signs 1 or -1; the file is damaged."
            )
        return restored._drawn(places, signs)
