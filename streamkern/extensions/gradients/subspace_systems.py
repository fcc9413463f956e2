"""The ridge systems of all rows and without each fold, solved in a subspace as it stands.

A value for each step of the subspace's growth: the moments in it, their eigenbases, the grid of
penalties, and what follows: cross-validated errors, and how far solutions are from those of all
features.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.gradients.subspace_passes import SubspacePasses
from streamkern.features import innermost, trended
from streamkern.features.kernel_map import Combinations
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solve import Eigenbasis
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.eigendecomposition import SMALL
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import even_grid
from streamkern.solve.solution import relative_floor
from streamkern.statistics import FeatureSums, Split

# Of the residuals that are made at once, of which some five copies are in memory.
_COLUMN_BYTES = 64 << 20
# Of the squares of targets, what is rounding about their means.
_ROUNDING = 1e-12


class System(NamedTuple):
    """The ridge system of all rows or without a fold, at a penalty's place in the grid."""

    left_out: int | None
    place: int


@dataclass(frozen=True)
class SubspaceSystems:
    """Ridge systems in a subspace, of all rows (None) and without each fold."""

    passes: SubspacePasses
    penalty: PenaltyOptions
    parts: Mapping[int, Any]  # moments of W^T phi, by fold
    total: Any
    bases: Mapping[int | None, Eigenbasis]
    alphas: Floats
    floor: float  # below which eigenvalues are rounding
    largest: float  # eigenvalue that is known

    @classmethod
    @blas_threads(1)
    def of(cls, passes: SubspacePasses, penalty: PenaltyOptions) -> Self:
        """Decompose the moments in the subspace of these passes, and lay out the penalties."""
        subspace, feature_map = passes.subspace, passes.feature_map
        parts = subspace.moments(Combinations(feature_map, subspace.vectors))
        total: Any = reduce(FeatureSums.merge, parts.values())

        def basis(k: int | None) -> Eigenbasis:
            rest = total if k is None else total.without(parts[k])
            return Eigenbasis.of(rest.centred(intercept=subspace.intercept))

        # Of many vectors each decomposition has all cores, and memory for itself.
        n_threads = usable_cores() if subspace.n_vectors <= SMALL else 1
        with ThreadPoolExecutor(n_threads) as pool:
            made = pool.map(basis, subspace.left_out)
            bases = dict(zip(subspace.left_out, made, strict=True))
        spectrum = bases[None].spectrum
        largest = spectrum.largest
        if not trended(feature_map):
            # The sketch knows it, by which penalties go, sooner than the subspace.
            largest = max(largest, float(passes.preconditioner.values.max(initial=0.0)))
        floor = relative_floor(spectrum.precision, feature_map.n_components) * largest
        grid = (penalty.alpha,) if penalty.is_fixed else penalty.grid
        noise = innermost(feature_map).left_out * total.weight / total.n_rows
        alphas = even_grid(floor, largest, left_out=noise) if grid is None else np.array(grid)
        return cls(passes, penalty, parts, total, bases, alphas, floor, largest)

    def errors(self, places: Iterable[int]) -> Floats:
        """Return cross-validated errors (penalties, targets or 1), over the targets' deviations.

        Of all targets together where they share a penalty; one that is constant has none.
        """
        curve = self._curve(self.alphas[list(places)])
        relative, varies = curve.scores / curve.scale, self.bases[None].spectrum.target > 0
        is_each = self.penalty.per_target and varies.any()
        return np.sqrt(relative[:, varies] if is_each else relative.mean(axis=1, keepdims=True))

    def best(self, last: int) -> list[int]:
        """Return the places of the penalties that are chosen, from the last that was solved."""
        chosen = self.penalty.chosen(self._curve(self.alphas[last:]))
        return sorted({last + int(i) for i in chosen})

    @blas_threads(1)
    def residuals(self, systems: Sequence[System]) -> tuple[Floats, Sequence[Floats]]:
        """Return bounds on what is left to move predictions by, and the directions of that."""
        n_columns = self.passes.feature_map.n_components * self.total.n_targets
        step = max(_COLUMN_BYTES // (8 * n_columns), 1)
        several = [systems[start : start + step] for start in range(0, len(systems), step)]
        found = [self._residuals_at_once(each) for each in several]
        directions = [one for _, some in found for one in some]
        return np.concatenate([bounds for bounds, _ in found]), directions

    def _residuals_at_once(self, systems: Sequence[System]) -> tuple[Floats, Sequence[Floats]]:
        spectra = [self.bases[left_out].spectrum for left_out, _ in systems]
        alphas, n_targets = self.alphas[[place for _, place in systems]], self.total.n_targets
        coefs = [
            self.bases[left_out].vectors @ (own.projections / (own.values + alpha)[:, None])
            for (left_out, _), own, alpha in zip(systems, spectra, alphas, strict=True)
        ]
        left_out = [each.left_out for each in systems]
        every = np.column_stack(self.passes.subspace.residuals(left_out, alphas, coefs))
        penalties = np.repeat(alphas, n_targets)
        # Of all rows it is at least the inverse in all directions, and without a fold near it;
        # other preconditioners are only near it.
        above = self.passes.preconditioner.solve(every, penalties)
        squares = np.einsum("dq,dq->q", every, above).reshape(len(systems), n_targets)
        near = self.passes.products.block or self.passes.preconditioner
        directions = near.solve(every, penalties)
        about_zero = np.array([own.target for own in spectra])
        units = np.array([self._variation(each) for each in left_out])
        # Without an intercept a constant target is solved for, too.
        units = np.where(units > _ROUNDING * about_zero, units, about_zero)
        bounds = np.maximum(squares, 0.0) / np.where(units > 0, units, np.inf)
        return np.sqrt(bounds.max(axis=1)), np.split(directions, len(systems), axis=1)

    def _variation(self, left_out: int | None) -> Floats:
        """Return the sums of squares of targets about their means (q,), intercept or not."""
        parts = [part for k, part in self.parts.items() if k != left_out]
        weight, total, squares = (
            np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("weight", "target_sum", "target")
        )
        return np.asarray((squares - total**2 / weight) * parts[0].target_unit ** 2)

    @blas_threads(1)
    def _curve(self, alphas: Floats) -> PenaltyCurve:
        basis = self.bases[None]
        errors = [
            held_out_errors(basis, self.total, Split(part), alphas) for part in self.parts.values()
        ]
        return PenaltyCurve.of_folds(alphas, errors, basis.spectrum.target / basis.spectrum.weight)
