"""Conjugate gradients, where the D x D system has no room or takes longer: it is never held.

    sums of features and targets, one pass
      |
    a sketch of the Gram matrix: the preconditioner
      |
    a subspace that grows by products with preconditioned residuals,
    down the penalties while errors fall, then near the best of them
      |
    moments in the subspace, and what these leave out

What follows is as of any other moments.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.gradients.feature_stores import FeatureStores
from streamkern.extensions.gradients.gram import ByPasses, ByTransforms, Gram
from streamkern.extensions.gradients.iterative_plan import most_vectors, vectors_at_once
from streamkern.extensions.gradients.preconditioner import (
    N_PROBES,
    NystroemPreconditioner,
    random_orthonormal,
    sketch_at_once,
    sketch_size,
)
from streamkern.extensions.gradients.remainder import Remainder, SubspaceCompletion
from streamkern.extensions.gradients.subspace import RidgeSystems, Subspace
from streamkern.features import FeatureMap, Standardized, combined, trended, unwhitened
from streamkern.features.base import slices
from streamkern.models.report_rows import Row
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.matrix_products import product
from streamkern.runtime.threads import blas_threads
from streamkern.solvers.base import FoldSums, Solver
from streamkern.solvers.direct import Direct
from streamkern.statistics import FeatureSums, FoldStatistics

# How far the exact solution may still move predictions of the rows: of the model, in standard
# deviations of the targets; of models without a fold, in units of the least error so far.
_MODEL, _WITHOUT_FOLD = 8e-6, 5e-4
# The share of a cross-validated error that one more step may still change.  Bounds on fitted rows
# say nothing of held-out rows that the fit interpolates.
_CHANGE = 3e-5
# On the way down, all that may be so many times as large.
_ROUGH = 30.0
# On the way down a penalty is so many times smaller than the one before.  The way ends where errors
# are so many times the least, or the least is two steps back, or this share of all vectors is used.
_STEP, _RISEN, _OF_WAY_DOWN = 10.0, 1.01, 0.6
# Eigenvectors are added in the end whose eigenvalue is more than this share of the penalty.
_SHARE = 0.25
# The vectors in which a bound must fall by half, beside the iterations.
_PATIENT_VECTORS = 64
# A bound that no longer falls, as in single precision, may stay this many times above its goal.
_NEAR = 10.0


class ConjugateGradients(Solver):
    """Sums of the combinations of features that the penalty's choice and the solution need."""

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:  # noqa: ARG003
        return context.plan.solves_by_passes

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        # Sums without products of features.
        empty = Direct(self.context, self.summary).empty(feature_map)
        return replace(empty, first_row=feature_map.n_components)

    def sums(self, drawn: Standardized) -> FoldSums:
        """Read the rows for sums without products of features, and as often as a solution takes."""
        own, intercept = self.context.options.own_solver, self.context.options.fit_intercept
        first = self if own is None else own(self.context, self.summary)
        with blas_threads(1):  # the shift of features is part of the result
            feature_map = unwhitened(drawn)
            empty = first.empty(feature_map)
        found = first.read(empty, feature_map, keep=False)
        penalty: Any = self.context.penalty
        sums = found.folds
        read = partial(self.context.read, group=self.context.merge_group_of)
        with FeatureStores(self.context.plan.stored_bytes) as stores:
            way: Any = ByPasses(read, sums, stores)
            if own is not None:
                way = ByTransforms(sums, intercept=intercept)
            with blas_threads(1):
                gram = Gram(way, sums, drawn, intercept=intercept)
            search = Search(gram, penalty)
            folds, completion = search.run()
        facts: FitReport = {"iterations": search.n_iterations, "gradients": search.facts()}
        passes = [*found.passes, *way.passes]
        return FoldSums(folds, folds.empty.feature_map, found.weights, passes, facts, completion)


class Search:
    """A subspace that grows until the penalty is chosen and its systems are solved."""

    def __init__(self, gram: Gram, penalty: PenaltyOptions) -> None:
        self.gram, self.penalty, self.subspace = gram, penalty, Subspace(gram)
        self.D, self.n_targets = gram.feature_map.n_components, gram.one.n_targets
        self.sketch = NystroemPreconditioner.none(self.D)
        self.n_iterations = self.n_vectors = 0
        self.systems: RidgeSystems
        # Places in the grid of penalties: the first that was solved, the first that can be, and the
        # best.
        self.tried_from, self.limit, self.chosen = 0, 0, [0]
        self.bound, self.is_solved = np.inf, False
        self.errors = self.before = np.empty(0)  # now, and a growth before

    def run(self) -> tuple[FoldStatistics, SubspaceCompletion]:
        """Grow the subspace; return the moments in it, and what these leave out."""
        self._enlarge_sketch()
        with blas_threads(1):
            crosses = [self.gram.cross(left_out) for left_out in self.gram.left_out]
        self._grow([*crosses, self.sketch.vectors[:, :1]])
        self._choose()
        penalty, alphas = self.penalty, self.systems.alphas[self.tried_from :]
        if not penalty.is_fixed:
            name = "alpha" if isinstance(penalty.alpha, tuple) else "alphas"
            penalty = replace(penalty, **{name: tuple(alphas.tolist())})  # type: ignore[arg-type]
        self.n_vectors = self.subspace.n_vectors
        # Below the floor eigenvalues are rounding, of which a solution takes none.
        least = max(float(self.systems.alphas[min(self.chosen)]), self.systems.floor)
        rest = self.gram.way.leading or self._remainder(least)
        with blas_threads(1):
            made = combined(self.gram.feature_map, self.subspace.vectors.astype(float))
            folds = FoldStatistics.of(self.gram.rule, self.subspace.moments(made))
        return folds, SubspaceCompletion(self.D, penalty, self._note(), rest)

    def _choose(self) -> None:
        """Solve the systems of penalties until those at the best are solved."""
        alphas, seen, asked = self.systems.alphas, list[tuple[int, float]](), list[int]()
        # Above the largest eigenvalue errors hardly move.
        self.tried_from = min(int(np.searchsorted(alphas, self.systems.largest)), len(alphas) - 1)
        while True:
            before, (asked, chosen) = asked, self._asked()
            self.chosen = chosen or self.chosen
            seen = seen if asked == before else []
            left, directions = self._left(asked, chosen)
            seen.append((self.subspace.n_vectors, float(left.max())))
            room = self._room(chosen)
            if seen[-1][1] <= 1.0 or self.subspace.n_vectors == self.D:
                is_solved = True
            elif room > 0 and not self._stands_still(seen):
                farthest = sorted(np.flatnonzero(left > 1.0), key=lambda i: -left[i])
                several = *farthest, *range(len(left), len(directions))
                wanted = np.column_stack([directions[i] for i in several])
                is_solved = not self._grow([wanted[:, :room]])  # what is left is rounding
            elif asked[0] < self.tried_from:
                self.limit = asked[0] + 1 if room > 0 else self.tried_from
                continue
            else:
                self.is_solved = seen[-1][1] < _NEAR
                return
            if is_solved:
                self.tried_from = min(self.tried_from, asked[0])
                if chosen and self._asked() == (asked, chosen):
                    self.is_solved = True
                    return

    def _asked(self) -> tuple[list[int], list[int]]:
        """Return the places of penalties to solve at, and which of them are the best, if any is.

        Errors may fall again far below a minimum, where there is little noise and the kernel is too
        smooth for the targets; the subspace so far shows it.
        """
        if self.penalty.is_fixed:
            return [0], [0]
        first, alphas = self.tried_from, self.systems.alphas
        below, solved = self.errors[self.limit : first], self.errors[first:]
        least, places = solved.min(axis=0), solved.argmin(axis=0) + first
        falls = (solved[0] <= _RISEN * least) & (alphas[places] < _STEP**2 * alphas[first])
        if len(below) and (falls.any() or (_RISEN * below < solved[0]).any()):
            return [self._step_below(first)], []
        best = self.systems.best(first)
        near = {i + step for i in best for step in (-1, 0, 1)}
        return sorted(i for i in near if self.limit <= i < len(alphas)), best

    def _step_below(self, place: int) -> int:
        alphas = self.systems.alphas
        lower = int(np.searchsorted(alphas, alphas[place] / _STEP))
        return max(min(lower, place - 1), self.limit)

    def _left(self, places: list[int], chosen: list[int]) -> tuple[Floats, list[Floats]]:
        """Return how far systems are from solved, 1 where they just are, and where solutions go.

        On the way down, where those of the next step go comes after.
        """
        while (
            self.sketch.least_eigenvalue > (self.gram.way.far * self.systems.alphas[places[0]])
            and self._enlarge_sketch()
        ):
            pass
        after = self._step_below(places[0])
        beside = [] if chosen or after == places[0] else [after]
        found = [self.systems.residuals(i, self.sketch) for i in (*places, *beside)]
        directions = [direction for _, several in found for direction in several]
        bounds = np.array([own for own, _ in found[: len(places)]])  # (places, systems)
        of_model = np.zeros(bounds.shape, bool)
        of_model[:, 0] = [i in chosen for i in places]
        self.bound = float(bounds[of_model].max() if chosen else bounds.max())
        if self.penalty.is_fixed:
            return np.ravel(bounds / _MODEL), directions
        rough, errors, before = 1.0 if chosen else _ROUGH, self.errors[places], self.before[places]
        least = self.errors[self.tried_from :].min(axis=0)
        # Of too small a penalty errors fall on the way to the solution, and then rise.
        # Hansen (1998), "Rank-deficient and discrete ill-posed problems", section 6.3.
        if not chosen and ((errors > _RISEN * least) & (errors >= before)).all():
            return np.zeros(bounds.size), directions
        goal = rough * _WITHOUT_FOLD * min(float(least.min()), 1.0)
        changes, tiny = np.abs(before - errors), np.finfo(float).tiny
        change = float((changes / np.maximum(rough * _CHANGE * errors, tiny)).max())
        others = np.maximum(bounds / max(goal, tiny), change)
        return np.where(of_model, bounds / _MODEL, others).ravel(), directions

    def _room(self, chosen: list[int]) -> int:
        """Return how many vectors the next pass may multiply."""
        most = most_vectors(self.D, self.n_targets)
        if not chosen and most < self.D:
            most = int(_OF_WAY_DOWN * most)
        at_once = vectors_at_once(len(self.gram.left_out), self.n_targets)
        return min(most - self.subspace.n_vectors, at_once)

    def _stands_still(self, seen: list[tuple[int, float]]) -> bool:
        """Say whether what is left fell by less than half in the last iterations.

        They are so many at least, and of so many vectors: one system has one in an iteration.
        """
        few = self.subspace.n_vectors - _PATIENT_VECTORS
        recent = max(self.gram.way.patience, sum(size > few for size, _ in seen))
        left = [each for _, each in seen]
        return len(seen) > recent and min(left[-recent:]) > min(left[:-recent]) / 2

    def _grow(self, directions: list[Floats]) -> bool:
        """Add directions to the subspace, and take the systems in it; say whether any were new."""
        if not self.subspace.grow(directions):
            return False
        # The sketch knows the largest eigenvalue, by which penalties go, sooner than the subspace.
        known = 0.0 if trended(self.gram.feature_map) else self.sketch.largest_eigenvalue
        self.systems = RidgeSystems(self.subspace, self.penalty, known)
        self.n_iterations += 1
        if not self.penalty.is_fixed:
            errors = self.systems.errors()
            self.before = self.errors if self.errors.shape == errors.shape else np.inf + errors
            self.errors = errors
        return True

    def _enlarge_sketch(self) -> bool:
        """Multiply more random vectors, for a better preconditioner; say whether it could."""
        known, gram = self.sketch, self.gram
        n_more = sketch_size(*gram.shape, known.n_vectors)
        if not n_more:
            return False
        with blas_threads(1):
            more = random_orthonormal(n_more, known.tests)
        images = gram.products(more, f"sketch-{known.n_vectors + n_more}", by_fold=False)[0]
        with blas_threads(1):
            self.sketch = known.extended(more, gram.about_means(images, more))
        return True

    def _remainder(self, alpha: float) -> Remainder:
        """Add all directions that matter at a penalty, and return what is left of the matrix."""
        gram, subspace = self.gram, self.subspace
        step = max(sketch_at_once(*gram.shape) // len(gram.sums), N_PROBES)
        # With the mean, so that what is left out of a row is that of the row less the mean.
        with blas_threads(1):
            wanted = [gram.feature_mean, self.sketch.leading(_SHARE * alpha)]
        new = subspace.independent(wanted)
        for some in slices(new.shape[1], step):
            subspace.extend(new[:, some], "leading", keep=False)
        n_left = self.D - subspace.n_vectors
        n_probes = min(N_PROBES, n_left)
        if not n_probes:
            return Remainder()
        with blas_threads(1):
            probes = random_orthonormal(n_probes, subspace.vectors)
        products = gram.products(probes, f"probes-{self.D - n_left + n_probes}")
        with blas_threads(1):
            images = gram.about_means(np.sum(list(products.values()), axis=0), probes)
            rest = images - product(subspace.vectors, product(subspace.vectors.T, images))
            sums = np.einsum("dk,dk->", probes, rest), np.einsum("dk,dk->", rest, rest)
            return Remainder(*(n_left / n_probes * float(each) for each in sums))

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the iterations."""
        way, alphas = self.gram.way, self.systems.alphas
        return {
            "n_components": self.D,
            "vectors": self.n_vectors,
            "sketch": self.sketch.n_vectors,
            "block": 0 if way.leading is None else way.leading.equations.gram.order,
            "bound": self.bound,
            "tried_from": None if self.penalty.is_fixed else float(alphas[self.tried_from]),
            "by_sums": not way.passes,
            "seconds_a_pass": float(np.median(self.gram.seconds)),
        }

    def _note(self) -> str:
        notes = []
        if not self.is_solved:
            finer = ", or double precision (--precision double)"
            finer = finer if self.systems.spectrum.precision == "single" else ""
            why = f"that hardly falls any more; take larger penalties{finer}."
            if self.n_vectors >= most_vectors(self.D, self.n_targets):
                why = (
                    f"{self.n_vectors:,} vectors, the most there are, were multiplied; take "
                    f"larger penalties, or fewer features by the D x D system (--solver direct)."
                )
            notes.append(
                f"solutions may still move predictions by {self.bound:.1g} of the targets' "
                f"deviation, and {why}"
            )
        if self.limit and self.limit in self.chosen:
            notes.append(
                f"penalties below {self.systems.alphas[self.limit]:.2g} were not solved, and "
                f"errors may be lower there; take solver 'direct' (--solver direct), or larger "
                f"penalties."
            )
        return " ".join(notes)


def gradient_rows(report: FitReport, number: Callable[[Any], str]) -> list[Row]:
    found = report["gradients"]
    n, seconds = report["iterations"], number(found["seconds_a_pass"])
    taken = f"{n} of {report['passes']} passes of {seconds} s"
    if found.get("by_sums"):
        taken = f"{n} by transforms of sums, {seconds} s each"
    block = found.get("block")
    beside = f"a block of {block:,}" if block else f"a sketch of {found['sketch']}"
    deviations = f"of {block:,} leading features" if block else "of the directions that matter"
    of_others = "of others the prior's" if block else "in others the prior's"
    rows = [
        ("iterations", f"{taken}, {found['vectors']} vectors beside {beside}"),
        ("left to solve", number(found["bound"])),
        ("deviations", f"{deviations}, {of_others}"),
    ]
    first = found["tried_from"]
    return rows if first is None else [*rows, ("penalties tried from", number(first))]
