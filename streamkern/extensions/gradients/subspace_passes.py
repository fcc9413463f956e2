"""A preconditioner and a subspace, of products of a Gram matrix with vectors.

Products with random vectors sketch the matrix, and make the preconditioner.  Products by fold with
residuals, and in the end with its leading eigenvectors, make the subspace.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.gradients.gram_passes import GramPasses, GramTransforms
from streamkern.extensions.gradients.preconditioner import (
    N_PROBES,
    NystroemPreconditioner,
    most_leading,
    sketch_at_once,
    sketch_size,
)
from streamkern.extensions.gradients.remainder import LeadingPart, Remainder
from streamkern.extensions.gradients.subspace import Subspace, orthonormal
from streamkern.features import FeatureMap, apply_r, trended
from streamkern.features.base import slices, stream
from streamkern.runtime.matrix_products import product
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import FoldStatistics, dtype_of_features, precision_of_features

# Eigenvectors are added whose eigenvalue is more than this share of the penalty.
_SHARE = 0.25
_STREAM = 5


class SubspacePasses:
    """A subspace of the features that grows by products, and a preconditioner."""

    @blas_threads(1)  # as all that is computed here, so that the number of cores does not matter
    def __init__(
        self,
        products: GramPasses | GramTransforms,
        sums: FoldStatistics,
        feature_map: FeatureMap,
        *,
        intercept: bool,
    ) -> None:
        self.products, self.rule, self.feature_map = products, sums.rule, feature_map
        # Beside a trend, a sketch in single precision would tell little of the field.
        self.precision = "double" if trended(feature_map) else sums.empty.precision
        self.seconds = list[float]()
        turned: dict[int, Any] = {}
        for fold, part in sorted(sums.parts.items()):
            shift = apply_r(feature_map, part.feature_shift, back=True)
            cross = apply_r(feature_map, part.cross, back=True)
            turned[fold] = part.without_gram(feature_map, shift, cross)
        self.subspace = Subspace(turned, intercept=intercept)
        self.preconditioner = NystroemPreconditioner.none(feature_map.n_components)
        self.shape = feature_map.n_components, sum(part.n_rows for part in turned.values())

    def sharpen(self, alpha: float) -> None:
        """Enlarge the sketch until it tells directions apart that matter at a penalty."""
        while self.preconditioner.least_eigenvalue > self.products.far * alpha and self.sketch():
            pass

    def grow(self, directions: Iterable[Floats]) -> bool:
        """Add directions to the subspace; say whether there were any."""
        with blas_threads(1):
            vectors = self.subspace.independent(directions)
        if vectors.shape[1]:
            # In double, so that residuals fall below what rounding makes of products in single.
            products = self._products(vectors, np.float64, "vectors")
            with blas_threads(1):
                self.subspace.extend(vectors, products)
        return bool(vectors.shape[1])

    def rest(self, alpha: float) -> Remainder | LeadingPart:
        """Return what degrees of freedom and deviations need besides the solution, at a penalty."""
        if isinstance(self.products, GramTransforms):
            return self.products.leading
        return self._remainder(alpha)

    def _remainder(self, alpha: float) -> Remainder:
        """Add all directions that matter at a penalty, and return what is left of the matrix."""
        D, n_folds = self.feature_map.n_components, max(len(self.subspace.sums), 1)
        step = max(sketch_at_once(*self.shape) // n_folds, N_PROBES)
        with blas_threads(1):
            kept = self.preconditioner.leading(_SHARE * alpha, most_leading(D))
            # With the mean, so that what is left out of a row is that of the row less the mean.
            new = self.subspace.independent([self.subspace.feature_mean, kept])
        for start in range(0, new.shape[1], step):
            vectors = np.ascontiguousarray(new[:, start : start + step])
            products = self._products(vectors, vectors.dtype, "leading")
            with blas_threads(1):
                self.subspace.extend(vectors, products, keep=False)
        n_probes = min(N_PROBES, D - self.subspace.n_vectors)
        if n_probes <= 0:
            return Remainder()
        with blas_threads(1):
            probes = self._random(n_probes, self.subspace.vectors)
            images = np.sum(list(self._products(probes, np.float64, "probes").values()), axis=0)
            images = self.subspace.about_means(images, probes, None)
            vectors = self.subspace.vectors
            rest = images - product(vectors, product(vectors.T, images))
            share = (D - self.subspace.n_vectors) / n_probes
            sums = np.einsum("dk,dk->", probes, rest), np.einsum("dk,dk->", rest, rest)
            return Remainder(*(share * float(each) for each in sums))

    def _products(self, vectors: Array, dtype: Any, what: str) -> dict[int, Floats]:
        label = f"{what}-{self.subspace.n_vectors + vectors.shape[1]}"
        parts = self._timed(self.products.of_folds, vectors.astype(dtype), label)
        with blas_threads(1):
            every = apply_r(self.feature_map, np.column_stack(list(parts.values())), back=True)
        return dict(zip(parts, np.split(every, len(parts), axis=1), strict=True))

    def _timed(self, multiply: Callable[..., Any], vectors: Array, label: str) -> Any:
        with blas_threads(1):
            turned = apply_r(self.feature_map, vectors).astype(vectors.dtype)
        begun = perf_counter()
        found = multiply(turned, label)
        self.seconds.append(perf_counter() - begun)
        return found

    def sketch(self) -> bool:
        """Multiply more random vectors, for a better preconditioner; say whether it could."""
        known = self.preconditioner
        n_more = sketch_size(*self.shape, known.n_vectors)
        if not n_more:
            return False
        with blas_threads(1):
            more = self._random(n_more, known.tests).astype(dtype_of_features(self.precision))
        images = np.empty_like(more)
        for some in slices(n_more, sketch_at_once(*self.shape)):
            label = f"sketch-{known.n_vectors + some.stop}"
            found = self._timed(self.products.of_all, more[:, some], label)
            with blas_threads(1):
                found = apply_r(self.feature_map, found, back=True)
                images[:, some] = self.subspace.about_means(found, more[:, some], None)
        with blas_threads(1):
            precision = precision_of_features(self.precision)
            self.preconditioner = known.extended(more, images, precision)
        return True

    def _random(self, n_vectors: int, others: Floats) -> Floats:
        """Return random orthonormal vectors (D, n), orthogonal to others, which are that too."""
        made = stream(others.shape[1], _STREAM).standard_normal((len(others), n_vectors))
        for _ in range(2):
            made -= product(others, product(others.T, made))
        return orthonormal(made)
