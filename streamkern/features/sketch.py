"""TensorSketch: products of inputs, hashed."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array
from streamkern.errors import ParameterError
from streamkern.features.base import stream
from streamkern.features.kernel_map import KernelMap
from streamkern.kernels import Kernel, Polynomial
from streamkern.runtime.scratch import Scratch


class TensorSketch(KernelMap):
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

    References
    ----------
    Pham and Pagh (2013), "Fast and scalable polynomial kernels via explicit feature maps".
    """

    name = "sketch"
    families: ClassVar = {"sketch": ("products of inputs, hashed, for the polynomial kernel", {})}
    usual_kernel = Polynomial()
    no_part = (
        "a sketch has no part of {} features that stands for the kernel; draw one of that size."
    )
    scale = 1.0

    places: Array  # (d, p + 1)
    signs: Array

    def __init__(self, kernel: Kernel, n_components: int = 2048, *, random_state: int = 0) -> None:
        super().__init__(kernel, n_components, random_state)

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, Polynomial):
            raise ParameterError(
                f"a sketch is of the polynomial kernel, not of {kernel!r}; take that kernel, or "
                f"another map."
            )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        self.check_some_inputs(n_features)
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
        D = self.n_components
        if dtype not in self._made:
            # Whole turns are taken out, so that angles keep their digits.
            turns = self.places[..., None] * np.arange(D // 2 + 1) % D
            waves = self.signs[..., None] * np.exp(-2j * math.pi / D * turns)
            waves[:, -1] *= math.sqrt(self.kernel.constant)
            self._made[dtype] = waves.astype(np.result_type(dtype, np.complex64))
        return self._made[dtype]

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        D, p = self.n_components, self.n_features
        # Complex numbers as pairs, so that products with rows are real.
        complex_type = np.result_type(dtype, np.complex64)
        waves = self.transforms(dtype).view(dtype)

        def write(X: Array, features: Array) -> None:
            shape = (len(X), D // 2 * 2 + 2)
            product = scratch.array("transforms", shape, dtype)
            factor = scratch.array("factor", shape, dtype)
            made = product
            for linear in waves:
                np.matmul(X.astype(dtype, copy=False), linear[:p], out=made)
                made += linear[p]
                if made is factor:
                    product.view(complex_type)[...] *= factor.view(complex_type)
                made = factor
            features[...] = np.fft.irfft(product.view(complex_type), n=D, axis=1)

        return write

    def arrays(self) -> dict[str, Array]:
        return {"places": self.places, "signs": self.signs}

    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        places, signs = arrays["places"], arrays["signs"]
        D, d = self.n_components, self.kernel.degree
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
        self._drawn(places, signs)
