"""Moments without a D x D matrix: of the few combinations of features that a solution needs.

    sums --> sketch --> preconditioner --.
                                         +--> vectors --> pass --> subspace --.
                        residuals <------+------------------------------------'

Every pass multiplies the Gram matrices of all folds with some vectors.  These are preconditioned
residuals of the ridge systems of all rows and without each fold, from large penalties to small ones
until the cross-validated error no longer falls.  What is left are moments of W^T phi, from which
all else follows as from those of phi.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.features.base import stream
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads
from streamkern.solve import Eigenbasis
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import N_ALPHAS, even_grid
from streamkern.solve.preconditioner import NystroemPreconditioner, sketch_size
from streamkern.solve.solution import relative_floor
from streamkern.solve.subspace import Subspace
from streamkern.statistics import (
    ByFold,
    FeatureSums,
    GramProducts,
    dtype_of_features,
    precision_of_features,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.engine.reduction import PassResult
    from streamkern.features import FeatureMap
    from streamkern.parameters.penalty_options import PenaltyOptions

# Bounds on what is left to move predictions of the rows by: of the model, in deviations of the
# targets; of models without a fold, and of those that only tell where the error stops falling, over
# the least error so far.
_SOLVED, _HELD_OUT, _ROUGH = 8e-6, 5e-4, 5e-3
# Penalties of the grid from one that is solved on the way down to the next, and the rise of the
# root mean squared error that ends the way.
_STRIDE, _RISE = 3, 1.0015
# The sketch is made larger while its least eigenvalue is more than so many times the penalty.
_FAR = 4.0
# Passes over which a bound must fall by half.
_PATIENCE = 8
_STREAM = 5


class System(NamedTuple):
    """The ridge system of all rows or without a fold, at a penalty of the grid."""

    left_out: int | None
    penalty: int


class SubspaceSearch:
    """A subspace that grows by passes until the penalty is chosen and its systems are solved."""

    @blas_threads(1)  # as all that is computed here, so that the number of cores does not matter
    def __init__(
        self,
        read: Callable[[Any, str], PassResult[Any]],
        sums: ByFold,
        feature_map: FeatureMap,
        penalty: PenaltyOptions,
        *,
        intercept: bool,
    ) -> None:
        empty: Any = sums.empty
        self.read, self.rule, self.penalty, self.intercept = read, sums.rule, penalty, intercept
        self.feature_map, self.empty = feature_map, empty
        turned: dict[int, Any] = {}
        for fold, part in sorted(sums.parts.items()):
            of: Any = part
            shift = feature_map.turned(of.feature_shift, back=True)
            cross = feature_map.turned(of.cross, back=True)
            turned[fold] = of.of_features(feature_map, shift, cross)
        self.subspace = Subspace(turned, intercept=intercept)
        D = feature_map.n_components
        self.near = NystroemPreconditioner.of(np.zeros((D, 0)), np.zeros((D, 0)))
        self.left_out = [None, *turned] if len(turned) > 1 else [None]
        self.passes: list[PassResult[Any]] = []
        self.bound, self.is_solved = np.inf, False
        self.least = np.inf  # of the errors on the way down

    def run(self) -> PenaltyOptions:
        """Grow the subspace, and return how the penalty is chosen in it."""
        self._sketch(sketch_size(self.feature_map.n_components, 0))
        with blas_threads(1):
            crosses = [self.subspace.cross(left_out) for left_out in self.left_out]
        self._grow([*crosses, self.near.vectors[:, :1]])
        if self.penalty.is_fixed:
            self.is_solved = self._settle([0], [0])
            return self.penalty
        last = self._descend()
        chosen: list[int] = []
        while (best := self._best(last)) != chosen:
            chosen, end = best, len(self.alphas) - 1
            near = {min(max(i + step, last), end) for i in best for step in (-1, 0, 1)}
            self.is_solved = self._settle(sorted(near), chosen)
            if not self.is_solved:
                break
        grid = tuple(self.alphas[last:].tolist())
        if isinstance(self.penalty.alpha, tuple):
            return replace(self.penalty, alpha=grid)
        return replace(self.penalty, alphas=grid)

    def folds(self) -> ByFold:
        """Return the moments of the combinations of features, by fold."""
        whole = ByFold(self.rule, self.total.zero())
        whole.parts = dict(self.parts)
        return whole

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the iterations."""
        seconds, spectrum = [passed.seconds for passed in self.passes], self.basis.spectrum
        note = (
            f"after {len(self.passes)} passes solutions may still move predictions by "
            f"{self.bound:.1g} of the targets' deviation, and that hardly falls any more; take "
            f"larger penalties, or double precision (--precision double)."
        )
        return {
            "n_components": self.feature_map.n_components,
            "passes": len(self.passes),
            "vectors": len(spectrum.values),
            "sketch": self.near.n_vectors,
            "bound": self.bound,
            "seconds_a_pass": float(np.median(seconds)),
            "note": "" if self.is_solved else note,
        }

    def _descend(self) -> int:
        """Solve from large penalties to small ones while the error falls; return the last."""
        last = len(self.alphas) - 1
        while True:
            following = max(last - _STRIDE, 0)

            self._settle([last], beside=[following] * (last > 0))
            error = self._error(last)
            if last == 0 or error > _RISE * self.least:
                return last
            self.least, last = min(self.least, error), following

    def _settle(
        self,
        penalties: Sequence[int],
        chosen: Sequence[int] = (),
        *,
        beside: Sequence[int] = (),
    ) -> bool:
        """Solve the systems at some penalties of the grid; say whether that succeeded.

        Passes take along residuals at penalties `beside`.  Without `chosen` penalties it is enough
        to know the errors roughly, or that they are too large whatever is left.
        """
        begun, least, best = len(self.passes), np.inf, min(self.least, 1.0)
        usual = best * (_HELD_OUT if chosen else _ROUGH)
        tolerances = [
            _SOLVED if k is None and i in chosen else usual
            for k in self.left_out
            for i in penalties
        ]
        while True:
            self._sharpen(float(self.alphas[min(penalties)]))
            systems = [System(k, i) for k in self.left_out for i in penalties]
            found = [self._residual(system) for system in systems]
            open_ = [goal < bound for goal, (bound, _) in zip(tolerances, found, strict=True)]
            worst = max(bound / goal for goal, (bound, _) in zip(tolerances, found, strict=True))
            self.bound = max(bound for bound, _ in found)
            tell_of_job("iteration", passes=len(self.passes), bound=self.bound)
            if not any(open_):
                return True
            if not chosen and self.bound < best and self._error(penalties[0]) - self.bound > best:
                return True
            if worst < least / 2:
                begun, least = len(self.passes), worst
            directions = [found[i][1] for i in np.flatnonzero(open_)]
            directions += [self._residual(System(k, i))[1] for k in self.left_out for i in beside]
            if len(self.passes) - begun > _PATIENCE or not self._grow(directions):
                return False

    def _sharpen(self, alpha: float) -> None:
        """Enlarge the sketch until it tells directions apart that matter at a penalty."""
        D = self.feature_map.n_components
        while more := sketch_size(D, self.near.n_vectors):
            if self.near.least_eigenvalue <= _FAR * alpha:
                return
            self._sketch(more)

    def _sketch(self, n_more: int) -> None:
        """Multiply more random vectors, for a better preconditioner."""
        known = self.near.tests
        with blas_threads(1):
            more = self._tests(n_more)
        dtype = dtype_of_features(self.empty.precision)
        label = f"sketch-{known.shape[1] + n_more}"
        images = self._multiplied(more.astype(dtype), label).products
        with blas_threads(1):
            images = self.feature_map.turned(images, back=True)
            images = self.subspace.about_means(images, more, None)
            precision = precision_of_features(self.empty.precision)
            self.near = self.near.extended(more, images, precision)

    def _tests(self, n_more: int) -> Floats:
        """Return random orthonormal vectors (D, n), orthogonal to those that are in the sketch."""
        known = self.near.tests
        more = stream(known.shape[1], _STREAM).standard_normal((len(known), n_more))
        more -= known @ (known.T @ more)
        made: Floats = np.linalg.qr(more)[0]
        return made

    def _grow(self, directions: Iterable[Floats]) -> bool:
        """Add vectors to the subspace by a pass; say whether there were any."""
        with blas_threads(1):
            vectors = self.subspace.independent(directions)
        n_vectors = self.subspace.n_vectors + vectors.shape[1]
        if not vectors.shape[1]:
            return False
        # In double, so that residuals fall below what rounding makes of products in single.
        exact = vectors.astype(np.float64)
        parts = self._multiplied(exact, f"vectors-{n_vectors}", by_fold=True).parts
        with blas_threads(1):
            every = np.column_stack([each.products for each in parts.values()])
            turned = np.split(self.feature_map.turned(every, back=True), len(parts), axis=1)
            self.subspace.extend(vectors, dict(zip(parts, turned, strict=True)))
        self._look()
        return True

    def _multiplied(self, vectors: Array, label: str, *, by_fold: bool = False) -> Any:
        with blas_threads(1):
            turned = self.feature_map.turned(vectors).astype(vectors.dtype)
        shift, precision = self.empty.feature_shift, self.empty.precision
        empty = GramProducts(self.empty.feature_map, turned, shift, precision)
        self.passes.append(self.read(ByFold(self.rule, empty) if by_fold else empty, label))
        return self.passes[-1].statistic

    @blas_threads(1)
    def _look(self) -> None:
        """Take the systems in the subspace as it is now."""
        self.parts: dict[int, Any] = self.subspace.moments()
        self.total: Any = reduce(FeatureSums.merge, self.parts.values())
        without = {
            k: self.total if k is None else self.total.without(self.parts[k]) for k in self.left_out
        }
        self.bases = {
            k: Eigenbasis.of(rest.centred(intercept=self.intercept)) for k, rest in without.items()
        }
        self.basis = self.bases[None]
        largest, grid = float(self.basis.spectrum.values[-1]), self.penalty.grid
        if self.penalty.is_fixed:
            grid = (self.penalty.alpha,)
        floor = relative_floor(self.basis.spectrum.precision, self.feature_map.n_components)
        self.alphas = (
            even_grid(floor * largest, largest, N_ALPHAS) if grid is None else np.array(grid)
        )

    @blas_threads(1)
    def _residual(self, system: System) -> tuple[float, Floats]:
        """Return a bound on what is left to move predictions by, and the directions of that."""
        alpha, basis = float(self.alphas[system.penalty]), self.bases[system.left_out]
        spectrum = basis.spectrum
        coef = basis.vectors @ (spectrum.projections / (spectrum.values + alpha)[:, None])
        left = self.subspace.residuals(coef, alpha, system.left_out)
        directions = self.near.solve(left, alpha)
        squares = np.einsum("dq,dq->q", left, directions)
        unit = np.where(spectrum.target > 0, spectrum.target, np.inf)
        return float(np.sqrt(np.max(np.maximum(squares, 0.0) / unit))), directions

    @blas_threads(1)
    def _curve(self) -> PenaltyCurve:
        spectrum, parts = self.basis.spectrum, self.parts.values()
        errors = [held_out_errors(self.basis, self.total, part, self.alphas) for part in parts]
        return PenaltyCurve.of_folds(self.alphas, errors, spectrum.target / spectrum.weight)

    def _error(self, penalty: int) -> float:
        """Return the cross-validated error at a penalty, over the deviation of the targets."""
        return float(np.sqrt(self._curve().combined(np.array([penalty]))[0]))

    def _best(self, last: int) -> list[int]:
        """Return the penalties that are chosen of those from the last that was solved."""
        chosen = (
            self._curve()
            .since(last)
            .choose(
                per_target=self.penalty.per_target,
                one_standard_error=self.penalty.one_standard_error,
            )
        )
        return sorted({last + int(i) for i in chosen})
