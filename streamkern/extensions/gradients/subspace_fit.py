"""The choice of the penalty without a D x D matrix, in a subspace that grows for it.

The subspace grows in preconditioned residuals of the ridge systems of all rows and without each
fold, from large penalties to small ones until the cross-validated error has risen.  What is left
are moments of W^T phi, from which all else follows as from those of phi.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.gradients.iterative_plan import most_vectors, vectors_at_once
from streamkern.extensions.gradients.subspace_passes import SubspacePasses
from streamkern.extensions.gradients.subspace_systems import SubspaceSystems, System
from streamkern.features import combined
from streamkern.models.report_rows import Row
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.threads import blas_threads
from streamkern.solvers.completion import Completion
from streamkern.statistics import FoldStatistics

# How far the exact solution may still move predictions of the rows.  For the model this is in
# standard deviations of the targets.  For models without a fold, and for rough ones that only show
# where the error stops falling, it is in units of the least error so far.
_SOLVED, _HELD_OUT, _ROUGH = 8e-6, 5e-4, 2e-2
# The share of the cross-validated error that one more step may still change: near the best penalty,
# and where it only has to show that the error stops falling.  Bounds on fitted rows say nothing of
# held-out rows that the fit interpolates.
_SETTLED, _CHANGING = 3e-5, 1e-3
# The search solves every third penalty of a grid with this step of the logarithm.  It ends where
# errors have risen by `_RISE`, or have not fallen by `_FALL` in `_STEPS` steps, and uses this share
# of all vectors that memory allows.
_STEP, _STRIDE, _RISE, _FALL, _STEPS, _OF_STEPS = 0.5, 3, 1.01, 0.999, 2, 0.6
# It goes on where the subspace so far shows an error below this share of the least one.
_BELOW = 0.99
# A bound that no longer falls, as in single precision, may stay this many times above its goal.
_NEAR = 10.0


class SubspaceSearch:
    """A subspace that grows by products until the penalty is chosen and its systems are solved."""

    def __init__(self, passes: SubspacePasses, penalty: PenaltyOptions) -> None:
        self.passes, self.subspace, self.penalty = passes, passes.subspace, penalty
        self.systems: SubspaceSystems
        self.bound, self.is_solved, self.is_cut = np.inf, False, False
        self.tried_from: float | None = None
        self.n_iterations = self.n_vectors = 0
        # The least errors on the way down: of every target, or of all together.
        self.least = np.full(1, np.inf)

    def run(self) -> tuple[FoldStatistics, Completion]:
        """Grow the subspace; return the moments in it, and how the penalty is chosen there."""
        self.passes.sketch()
        with blas_threads(1):
            crosses = [self.subspace.cross(left_out) for left_out in self.subspace.left_out]
        self._grow([*crosses, self.passes.preconditioner.vectors[:, :1]])
        chosen, penalty = [0], self.penalty
        if self.penalty.is_fixed:
            self.is_solved = self._solve([0], [0])
        else:
            last, chosen = self._chosen()
            self.tried_from = float(self.systems.alphas[last])
            grid = tuple(self.systems.alphas[last:].tolist())
            name = "alpha" if isinstance(penalty.alpha, tuple) else "alphas"
            penalty = replace(penalty, **{name: grid})  # type: ignore[arg-type]
        self.n_vectors = self.subspace.n_vectors
        # Below the floor eigenvalues are rounding, of which a solution takes none.
        rest = self.passes.rest(max(float(self.systems.alphas[min(chosen)]), self.systems.floor))
        feature_map = self.passes.feature_map
        with blas_threads(1):
            made = combined(feature_map, self.subspace.vectors.astype(float))
            folds = FoldStatistics.of(self.passes.rule, self.subspace.moments(made))
        return folds, Completion(feature_map.n_components, penalty, rest, self._note())

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the iterations."""
        products = self.passes.products
        return {
            "n_components": self.passes.feature_map.n_components,
            "vectors": self.n_vectors,
            "sketch": self.passes.preconditioner.n_vectors,
            "block": 0 if products.block is None else products.block.order,
            "bound": self.bound,
            "tried_from": self.tried_from,
            "by_sums": not products.passes,
            "seconds_a_pass": float(np.median(self.passes.seconds)),
            "note": self._note(),
        }

    def _note(self) -> str:
        notes = []
        if not self.is_solved:
            moved = (
                f"solutions may still move predictions by {self.bound:.1g} of the targets' "
                f"deviation, and "
            )
            D, n_targets = self.passes.feature_map.n_components, self.systems.total.n_targets
            precision = self.systems.bases[None].spectrum.precision
            finer = ", or double precision (--precision double)" if precision == "single" else ""
            if self.n_vectors >= most_vectors(D, n_targets):
                notes.append(
                    f"{moved}{self.n_vectors:,} vectors, the most there are, were multiplied; take "
                    f"larger penalties, or fewer features by the D x D system (--solver direct)."
                )
            else:
                notes.append(f"{moved}that hardly falls any more; take larger penalties{finer}.")
        if self.is_cut:
            notes.append(
                f"penalties below {self.tried_from:.2g} were not solved, and errors may be lower "
                f"there; take solver 'direct' (--solver direct), or larger penalties."
            )
        return " ".join(notes)

    def _chosen(self) -> tuple[int, list[int]]:
        """Solve down the grid, then at the best penalties; return the last, and the best."""
        last, is_cut = self._descend()
        chosen: list[int] = []
        while (best := self.systems.best(last)) != chosen:
            chosen, end = best, len(self.systems.alphas) - 1
            near = {min(max(i + step, last), end) for i in best for step in (-1, 0, 1)}
            self.is_solved = self._solve(sorted(near), chosen)
            if not self.is_solved:
                break
        self.is_cut = is_cut and last in chosen
        return last, chosen

    def _descend(self) -> tuple[int, bool]:
        """Solve from large penalties to small ones while errors fall.

        Return the last, and whether a smaller one was not solved with the vectors that there were.
        """
        alphas, largest = np.log(self.systems.alphas), self.systems.largest
        # Above the largest eigenvalue, and at steps that are finer than usual, errors hardly move.
        place = last = min(int(np.searchsorted(alphas, np.log(largest))), len(alphas) - 1)
        finer = max(_STEP * (len(alphas) - 1) / max(float(np.ptp(alphas)), _STEP), 1.0)
        stride, waited = round(_STRIDE * finer), 0
        while True:
            after = max(place - stride, 0)
            if not self._solve([place], beside=[after] * (after < place), share=_OF_STEPS):
                if stride == 1 or place == last:
                    return last, True
                place, stride = last - 1, 1
                continue
            errors, last = self.systems.errors([place])[0], place
            waited = 0 if (errors < _FALL * self.least).any() else waited + 1
            self.least = np.minimum(self.least, errors)
            if waited >= _STEPS or (errors > _RISE * self.least).all():
                # Errors may fall again far below a minimum, where there is little noise and the
                # kernel is too smooth for the targets; the subspace so far shows it.
                below = self.systems.errors(range(last)) if last else np.empty((0, 1))
                after = int(
                    np.flatnonzero((below < _BELOW * self.least).any(axis=1)).max(initial=-1)
                )
                if after < 0:
                    return last, False
            if not last:
                return last, False
            place = after

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
        every, patience = self.subspace.left_out, self.passes.products.patience
        systems = [System(k, i) for k in every for i in penalties]
        followers = [System(k, i) for k in every for i in beside]
        of_model = np.array([k is None and i in chosen for k, i in systems])
        usual = min(float(self.least.min()), 1.0) * (_HELD_OUT if chosen else _ROUGH)
        tolerances, still = np.where(of_model, _SOLVED, usual), _SETTLED if chosen else _CHANGING
        D, n_targets = self.passes.feature_map.n_components, self.systems.total.n_targets
        most, at_once = most_vectors(D, n_targets), vectors_at_once(len(every), n_targets)
        most = int(share * most) if most < D else most
        self.passes.sharpen(float(self.systems.alphas[min(penalties)]))
        errors, seen = np.full((len(penalties), len(self.least)), np.inf), list[float]()
        while True:
            found, directions = self.systems.residuals([*systems, *followers])
            bounds, change, before = found[: len(systems)], 0.0, errors
            self.bound = float(bounds[of_model].max() if chosen else bounds.max())
            is_open = bounds > tolerances
            if len(every) > 1:
                errors = self.systems.errors(penalties)
                if not chosen and self._are_lost(errors[0], before[0]):
                    return True
                change = float(np.abs(before / errors - 1.0).max())
                is_open |= (change > still) & ~of_model
            if not is_open.any() or self.subspace.n_vectors == D:
                return True
            worst = float((bounds / tolerances).max())
            seen.append(worst if np.isinf(change) else max(worst, change / still))
            room = most - self.subspace.n_vectors
            if room <= 0 or (
                len(seen) > patience and min(seen[-patience:]) > min(seen[:-patience]) / 2
            ):
                return bool(chosen) and seen[-1] < _NEAR
            # Those that are farthest from solved first, of which a pass may take so many.
            farthest = sorted(np.flatnonzero(is_open), key=lambda i: -bounds[i] / tolerances[i])
            wanted = [directions[i] for i in (*farthest, *range(len(systems), len(directions)))]
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


def gradient_rows(report: FitReport, number: Callable[[Any], str]) -> list[Row]:
    found = report["gradients"]
    n, seconds = report["iterations"], number(found["seconds_a_pass"])
    taken = f"{n} of {report['passes']} passes of {seconds} s"
    if found.get("by_sums"):
        taken = f"{n} by transforms of sums, {seconds} s each"
    beside = f"a sketch of {found['sketch']}"
    if found.get("block"):
        beside = f"a block of {found['block']:,}"
    taken += f", {found['vectors']} vectors beside {beside}"
    deviations = "of the directions that matter, in others the prior's"
    if found.get("block"):
        deviations = f"of {found['block']:,} leading features, of others the prior's"
    rows = [("iterations", taken), ("left to solve", number(found["bound"]))]
    rows.append(("deviations", deviations))
    if found["tried_from"] is not None:
        rows.append(("penalties tried from", number(found["tried_from"])))
    return rows
