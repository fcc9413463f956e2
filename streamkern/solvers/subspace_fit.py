"""The choice of the penalty without a D x D matrix, in a subspace that grows for it.

The subspace grows in preconditioned residuals of the ridge systems of all rows and without each
fold, from large penalties to small ones until the cross-validated error has risen.  What is left
are moments of W^T phi, from which all else follows as from those of phi.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Floats
from streamkern.features import combined
from streamkern.parameters.cost_estimate import most_vectors, vectors_at_once
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.threads import blas_threads
from streamkern.solve.posterior_samples import PosteriorSamples
from streamkern.solve.subspace import Remainder
from streamkern.solvers.completion import Completion
from streamkern.solvers.fold_solution import Solved
from streamkern.solvers.penalty_search import Size
from streamkern.solvers.subspace_passes import SubspacePasses
from streamkern.solvers.subspace_systems import SubspaceSystems, System
from streamkern.statistics import FoldStatistics

# How far the exact solution may still move predictions of the rows.  For the model this is in
# standard deviations of the targets.  For models without a fold, and for rough ones that only show
# where the error stops falling, it is in units of the least error so far.
_SOLVED, _HELD_OUT, _ROUGH = 8e-6, 5e-4, 2e-2
# The share of the cross-validated error that one more step may still change: near the best penalty,
# and where it only has to show that the error stops falling.  Bounds on fitted rows say nothing of
# held-out rows that the fit interpolates.
_SETTLED, _CHANGING = 3e-5, 1e-3
# The search goes down a grid of penalties with this step of the logarithm.  It solves every third
# one, or every sixth while errors fall steeply.  It ends where errors have risen by `_RISE`, or
# have not fallen by `_FALL` in `_STEPS` steps.
_STEP, _STRIDE, _LONG, _STEEP, _RISE, _FALL, _STEPS = 0.5, 3, 6, 0.9, 1.01, 0.999, 2
# It goes on where the subspace so far shows an error below this share of the least one.
_BELOW = 0.99
# The share of all vectors that memory allows which long steps down may use, and short ones.
_OF_LONG_STEPS, _OF_SHORT_STEPS = 0.5, 0.75
# A bound that no longer falls, as in single precision, may stay this many times above its goal.
_NEAR = 10.0
# Posterior samples may be off by this much without a note; variances are off by its square.
_SAMPLED = 0.3
# The noise is known if spare rows are this many times the error in the degrees of freedom.
_SPARE = 4.0


@dataclass(frozen=True)
class SubspaceChoice(Completion):
    """How the penalty is chosen from moments in a subspace of D features, and what that leaves out.

    Beside it is what `fewer` features came to.
    """

    penalty: PenaltyOptions
    rest: Remainder | PosteriorSamples
    n_components: int  # D
    fewer: tuple[Size, ...] = ()
    note: str = ""

    is_whole: ClassVar[bool] = False

    def penalty_of(self, given: PenaltyOptions) -> PenaltyOptions:  # noqa: ARG002  of which it is
        return self.penalty

    def completed(self, solved: Solved) -> Solved:
        """Return a solution with all degrees of freedom, and what numbers of features came to."""
        sizes = (replace(each, n_components=self.n_components) for each in solved.sizes)
        return replace(solved.with_rest(self.rest), sizes=(*self.fewer, *sizes))


class SubspaceSearch:
    """A subspace that grows by products until the penalty is chosen and its systems are solved."""

    def __init__(self, passes: SubspacePasses, penalty: PenaltyOptions) -> None:
        self.passes, self.subspace, self.penalty = passes, passes.subspace, penalty
        self.systems: SubspaceSystems
        self.bound, self.is_solved = np.inf, False
        self.tried_from: float | None = None
        # The last penalty that did not settle, with its errors as far as they were known, and
        # whether it, or a smaller one, may be the best.
        self.given_up: tuple[int, Floats] | None = None
        self.is_cut = self.is_noise_unsure = False
        self.n_iterations = self.n_vectors = self.n_samples = 0
        # The least errors on the way down: of every target, or of all together.
        self.least = np.full(1, np.inf)

    def run(self) -> tuple[FoldStatistics, SubspaceChoice]:
        """Grow the subspace; return the moments in it, and how the penalty is chosen there."""
        self.passes.sketch()
        with blas_threads(1):
            crosses = [self.subspace.cross(left_out) for left_out in self.subspace.left_out]
        self._grow([*crosses, self.passes.preconditioner.vectors[:, :1]])
        last, chosen, penalty = 0, [0], self.penalty
        if self.penalty.is_fixed:
            self.is_solved = self._solve([0], [0])
        else:
            last, chosen = self._chosen()
            self.tried_from = float(self.systems.alphas[last])
            grid = tuple(self.systems.alphas[last:].tolist())
            if isinstance(penalty.alpha, tuple):
                penalty = replace(penalty, alpha=grid)
            else:
                penalty = replace(penalty, alphas=grid)
        self.n_vectors = self.subspace.n_vectors
        # Below the floor eigenvalues are rounding, of which a solution takes none.
        alphas = np.maximum(self.systems.alphas[sorted(chosen)], self.systems.floor)
        rest = self.passes.completed(np.unique(alphas))
        if isinstance(rest, PosteriorSamples):
            self.n_samples = len(rest.means) // len(rest.alphas)
            off = np.sqrt(2.0 * rest.effective_dof / self.n_samples)
            n_rows = max(self.passes.shape[1], self.systems.total.weight)
            spare = n_rows - rest.effective_dof
            self.is_noise_unsure = bool((spare < _SPARE * off).any())
        with blas_threads(1):
            feature_map = combined(self.passes.feature_map, self.subspace.vectors.astype(float))
            folds = FoldStatistics.of(self.passes.rule, self.subspace.moments(feature_map))
        return folds, SubspaceChoice(penalty, rest, self.passes.feature_map.n_components)

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the iterations."""
        seconds = self.passes.seconds
        precision = self.systems.bases[None].spectrum.precision
        finer = ", or double precision (--precision double)" if precision == "single" else ""
        note = (
            f"after {len(seconds)} products solutions may still move predictions by "
            f"{self.bound:.1g} of the targets' deviation, and that hardly falls any more; take "
            f"larger penalties{finer}."
        )
        full = (
            f"solutions may still move predictions by {self.bound:.1g} of the targets' deviation, "
            f"and {self.n_vectors:,} vectors, the most there are, were multiplied; take larger "
            f"penalties, or fewer features by the D x D system (--solver direct)."
        )
        cut = (
            f"penalties below {self.tried_from or 0.0:.2g} were not solved, and errors may be "
            f"lower there; take solver 'direct' (--solver direct), or larger penalties."
        )
        off = max(self.passes.samples_off, default=0.0)
        unsure = (
            f"samples of the posterior may be off by {off:.0%} of their size, and deviations with "
            f"them; take larger penalties."
        )
        few = (
            "degrees of freedom, which samples tell, are nearly as many as rows, so that the noise "
            "and deviations may be off several times; take larger penalties, or solver 'direct' "
            "(--solver direct)."
        )
        D, n_targets = self.passes.feature_map.n_components, self.systems.total.n_targets
        is_full = self.n_vectors >= most_vectors(D, n_targets)
        notes = (
            [full if is_full else note] * (not self.is_solved)
            + [cut] * self.is_cut
            + [unsure] * (off > _SAMPLED)
            + [few] * self.is_noise_unsure
        )
        return {
            "n_components": D,
            "vectors": self.n_vectors,
            "sketch": self.passes.preconditioner.n_vectors,
            "block": 0 if self.passes.products.block is None else self.passes.products.block.order,
            "samples": self.n_samples,
            "bound": self.bound,
            "tried_from": self.tried_from,
            "by_sums": not self.passes.products.passes,
            "seconds_a_pass": float(np.median(seconds)),
            "note": " ".join(notes),
        }

    def _chosen(self) -> tuple[int, list[int]]:
        """Solve down the grid, then at the best penalties; return the last, and the best."""
        last = self._descend()
        chosen: list[int] = []
        while (best := self.systems.best(last)) != chosen:
            chosen, end = best, len(self.systems.alphas) - 1
            near = {min(max(i + step, last), end) for i in best for step in (-1, 0, 1)}
            self.is_solved = self._solve(sorted(near), chosen)
            if not self.is_solved:
                break
        if self.given_up is not None:
            place, errors = self.given_up
            is_between = last - place > 1 and bool((errors < self.least).any())
            self.is_cut = last in chosen or is_between
        return last, chosen

    def _descend(self) -> int:
        """Solve from large penalties to small ones while errors fall; return the last.

        What does not settle is not compared, and half of the way to it is tried.
        """
        alphas, largest = np.log(self.systems.alphas), self.systems.largest
        # Above the largest eigenvalue, and at steps that are finer than usual, errors hardly move.
        solved = last = min(int(np.searchsorted(alphas, np.log(largest))), len(alphas) - 1)
        finer = max(_STEP * (len(alphas) - 1) / max(float(np.ptp(alphas)), _STEP), 1.0)
        short, long = (round(n * finer) for n in (_STRIDE, _LONG))
        waited, stride = 0, long

        def after(place: int) -> int:
            half_way = (place + self.given_up[0] + 1) // 2 if self.given_up else 0
            return max(place - stride, half_way, 0)

        while True:
            share = _OF_SHORT_STEPS if self.given_up else _OF_LONG_STEPS
            beside = {after(last)} - {last}
            if not self._solve([last], beside=[*beside], share=share):
                self.given_up = last, self.systems.errors([last])[0]
                last = after(solved)
                if last == solved:
                    return solved
                continue
            errors, solved = self.systems.errors([last])[0], last
            has_fallen = (errors < _FALL * self.least).any()
            stride = long if (errors < _STEEP * self.least).any() else short
            self.least, waited = np.minimum(self.least, errors), 0 if has_fallen else waited + 1
            last = after(solved)
            if last != solved and (waited >= _STEPS or (errors > _RISE * self.least).all()):
                last = self._better_below(solved)
            if last == solved:
                return solved

    def _better_below(self, solved: int) -> int:
        """Return the next smaller penalty that looks better in the subspace, or the same.

        Errors may fall again far below a minimum, where there is little noise and the kernel is
        too smooth for the targets.
        """
        places = range(self.given_up[0] + 1 if self.given_up else 0, solved)
        errors = self.systems.errors(places) if places else np.empty((0, 1))
        better = np.flatnonzero((errors < _BELOW * self.least).any(axis=1))
        return places[better[-1]] if len(better) else solved

    def _solve(
        self,
        penalties: Sequence[int],
        chosen: Sequence[int] = (),
        *,
        beside: Sequence[int] = (),
        share: float = 1.0,
    ) -> bool:
        """Solve the systems at some penalties of the grid; say whether that succeeded.

        Products take along residuals at penalties `beside`.  Without `chosen` penalties it is
        enough to know the errors roughly, or that they are too large whatever is left, and vectors
        are a share of those that there is room for.
        """
        begun, least, best = len(self.passes.seconds), np.inf, min(float(self.least.min()), 1.0)
        usual = best * (_HELD_OUT if chosen else _ROUGH)
        systems = [System(k, i) for k in self.subspace.left_out for i in penalties]
        followers = [System(k, i) for k in self.subspace.left_out for i in beside]
        of_model = [k is None and i in chosen for k, i in systems]
        tolerances = np.where(of_model, _SOLVED, usual)
        still = _SETTLED if chosen else _CHANGING
        D = self.passes.feature_map.n_components
        most = most_vectors(D, self.systems.total.n_targets)
        if not chosen and most < D:
            most = int(share * most)
        at_once = vectors_at_once(len(self.subspace.left_out), self.systems.total.n_targets)
        self.passes.sharpen(float(self.systems.alphas[min(penalties)]))
        last_errors, seen = np.full((len(penalties), len(self.least)), np.inf), list[float]()
        while True:
            if len(seen) == self.passes.products.slow:
                if _iterations_left(seen) > self.passes.iterations_of_a_sketch:
                    self.passes.sketch()
                seen = []
            found, directions = self.systems.residuals([*systems, *followers])
            bounds = found[: len(systems)]
            seen.append(float((bounds / tolerances).max()))
            self.bound = float(bounds[of_model].max() if chosen else bounds.max())
            change, is_open = 0.0, bounds > tolerances
            if len(self.subspace.left_out) > 1:
                errors = self.systems.errors(penalties)
                if not chosen and self._are_lost(errors[0], last_errors[0]):
                    return True
                change, last_errors = float(np.abs(last_errors / errors - 1.0).max()), errors
                is_open |= (change > still) & ~np.array(of_model)
            if not is_open.any() or self.subspace.n_vectors == D:
                return True
            worst = max(seen[-1], change / still)
            if worst < least / 2:
                begun, least = len(self.passes.seconds), worst
            # Those that are farthest from solved first, of which a pass may take so many.
            farthest = sorted(np.flatnonzero(is_open), key=lambda i: -bounds[i] / tolerances[i])
            wanted = [directions[i] for i in (*farthest, *range(len(systems), len(directions)))]
            room = most - self.subspace.n_vectors
            is_slow = len(self.passes.seconds) - begun > self.passes.products.patience
            if is_slow or room <= 0:
                if np.isinf(worst):  # errors have not been seen to change
                    worst = seen[-1]
                return bool(chosen) and worst < _NEAR
            if not self._grow([np.column_stack(wanted)[:, : min(room, at_once)]]):
                return True  # what is left is rounding

    def _are_lost(self, errors: Floats, before: Floats) -> bool:
        """Say whether a penalty is not the best of any target, by its errors now and a pass before.

        Errors are too large, and rise already: on the way to the solution of too small a penalty
        they fall, and then rise.

        Hansen (1998), "Rank-deficient and discrete ill-posed problems", section 6.3.
        """
        return bool(((errors > _RISE * self.least) & (errors >= before)).all())

    def _grow(self, directions: Sequence[Floats]) -> bool:
        """Add directions to the subspace, and take the systems in it; say whether any were new."""
        has_grown = self.passes.grow(directions)
        if has_grown:
            self.n_iterations += 1
            self.systems = SubspaceSystems.of(self.passes, self.penalty)
        return has_grown


def _iterations_left(seen: Sequence[float]) -> float:
    """Return how many it takes from the last of these to 1, if they go on falling as they did.

    One iteration has been made since the last.
    """
    first, *_, last = np.log(np.maximum(seen, np.finfo(float).tiny)).tolist()
    fallen = (first - last) / (len(seen) - 1)
    return last / fallen - 1.0 if fallen > 0 else np.inf
