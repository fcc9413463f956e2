"""Choosing kernel, map and length scale on a sample of the rows, before the pass that fits.

The column pass brings a spread sample along.  On it, many length scales of every kernel and family
of maps are tried at a reduced number of features, by cross-validation over the whole grid of
penalties; the best of them, and what is near, go on to twice as many features, and so on.  Trials
of one kernel share their projections where its features are functions of some.  The winner gets the
one full pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import run_all, shared, task
from streamkern.runtime.resources import current_resources
from streamkern.runtime.threads import blas_threads
from streamkern.tune.budget import Ledger, Search, configurations
from streamkern.tune.candidates import Arm, Candidate, beyond, near, octaves, sober, tiers
from streamkern.tune.trials import N_FOLDS, Trial, trial_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array
    from streamkern.kernels import ShiftInvariantKernel
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.tune.budget import Budget, Spent
    from streamkern.tune.candidates import Contender
    from streamkern.tune.trials import Attempt

# Length scales are tried at these powers of 2 times the kernel's own.
_OCTAVES = (np.arange(-6, 7) / 2).tolist()
# With a budget in this order, so that a small one has the widest choice.
_LEVELS = [0, 1, -1, 2, -2, 3, -3], [0.5, -0.5, 1.5, -1.5, 2.5, -2.5], np.arange(-11, 12, 2) / 4


class Rung(NamedTuple):
    """One round of trials: its share of D, and what goes on from it."""

    share: float
    # Half octaves about the best that are tried next: more features resolve smaller scales.
    steps: tuple[int, ...]
    kernels_left: int  # of every map


_RUNGS = (Rung(1 / 8, (-2, -1, 0, 1), 3), Rung(1 / 4, (-1, 0), 2), Rung(1 / 2, (0,), 1))
# Maps that go on to the last rung, where there are several.
_FINALISTS = 3
# Rows for every feature of that rung, unless the sample is all there is; half octaves there that
# are left to a budget.
_ROWS_A_COMPONENT = 4
_REFINED = (-0.5, 0.5)
_FEWEST_COMPONENTS = 128


def search(
    contenders: Sequence[Contender],
    options: FitOptions,
    *,
    plan: Plan,
    n_rows: int,
    budget: Budget | None = None,
    spent: Spent | None = None,
    feature_map: str | None = None,
    folds: Array | None = None,
) -> Search:
    """Choose among metrics, kernels, maps and length scales on the sample of a column pass.

    The folds are of the rows, on the last rung; the map is that of a plain fit, compared there.
    Jamieson and Talwalkar (2016), "Non-stochastic best arm identification and hyperparameter
    optimization", for successive halving.
    """
    trials = _Trials(contenders, n_rows, options, Ledger(budget, plan, spent), folds)
    arms = trials.arms
    plain = [arm for arm in range(len(arms)) if arms[arm].feature_map == feature_map]
    default = Candidate(plain[0] if plain else 0, 1.0)
    D = options.n_components
    sizes = [
        _even(int(max(rung.share * D, min(_FEWEST_COMPONENTS, D))), options) for rung in _RUNGS
    ]
    # The largest number of features that the sample says something of.
    enough = D if trials.n_rows >= plan.n_rows else min(D, trials.n_rows // _ROWS_A_COMPONENT)
    if _even(enough, options) > sizes[-1]:
        sizes.append(_even(enough, options))
    candidates, finer = octaves(arms, _OCTAVES), []
    if budget is not None:
        sizes = trials.ledger.payable(sorted(set(sizes)), trials.n_rows, trials.n_folds)
        candidates, *rest = [
            [one for octave in level for one in octaves(arms, [octave])] for level in _LEVELS
        ]
        finer = [one for level in rest for one in level]
    for i, size in enumerate(sizes):
        share = (i + 1) / len(sizes)
        if not i:
            best = trials.of_first_rung(candidates, finer, size, share)
        elif i + 1 < len(sizes):
            best = trials.ranked(candidates, trials.try_some(candidates, size, share))
        else:
            trials.of_last_rung(candidates, default, size)
            break
        if not best:
            continue
        rung = _RUNGS[min(i, len(_RUNGS) - 1)]
        if budget is None:
            chosen = [one for tier in best[: rung.kernels_left] for one in tier]
            candidates = near(chosen[:_FINALISTS] if i >= 2 else chosen, rung.steps)
        else:
            ranked = [one for tier in best for one in tier]
            last = i + 2 >= len(sizes)
            candidates = near(ranked, (0,) if last else rung.steps)
            candidates += near(ranked, _REFINED) if last else []
    return trials.found()


def _even(n_components: int, options: FitOptions) -> int:
    return n_components - (n_components % 2 if options.paired and n_components > 1 else 0)


class _Trials:
    """The trials of a search: those that were made, and how more are."""

    def __init__(
        self,
        contenders: Sequence[Contender],
        n_rows: int,
        options: FitOptions,
        ledger: Ledger,
        folds: Array | None,
    ) -> None:
        self.arms: list[Arm] = []
        self.kernels: list[ShiftInvariantKernel] = []
        # Trials have rows in the metric already.
        self.options = replace(options, metric=None)
        self.ledger = ledger
        self.attempts: list[Attempt] = []
        # Of every arm, the place of its contender, and the rows.
        self._places: list[int] = []
        self._rows: list[Any] = []
        weights = contenders[0].column_pass.weights
        weights = weights if weights is None else weights[:n_rows]
        for place, (metric, seen, pairs) in enumerate(contenders):
            columns = seen.standardizer.columns
            with blas_threads(1):  # the turned rows are part of the result
                rows = seen.standardizer(seen.sample.X[:n_rows])
            X = shared(rows.astype(np.float32 if options.precision == "single" else np.float64))
            for kernel, feature_map in pairs:
                resolved = kernel.resolved(rows, columns, weights)
                self.arms.append(Arm(resolved, feature_map, metric))
                self.kernels.append(resolved.restricted(columns))
                self._places.append(place)
                self._rows.append(X)
        targets = contenders[0].column_pass.targets[:n_rows]
        self.n_rows = len(targets)
        self._targets, self._folds = shared(targets), folds
        self._weights = weights if weights is None else shared(weights)
        self._winner: tuple[Candidate, Attempt] | None = None

    @property
    def n_folds(self) -> int:
        return N_FOLDS if self._folds is None else len(np.unique(self._folds))

    def of_first_rung(
        self,
        candidates: Sequence[Candidate],
        finer: Sequence[Candidate],
        n_components: int,
        share: float,
    ) -> list[list[Candidate]]:
        """Try candidates, those beyond them while the last do as well as any, and finer ones."""
        done, tried = list(candidates), self.try_some(candidates, n_components, share)
        more = done if len(tried) == len(done) else []
        while more:
            more = beyond(done, tried)
            tried += self.try_some(more, n_components, share)
            done += more
            if len(tried) < len(done):
                return self.ranked(done, tried, first=True)
        tried += self.try_some(finer, n_components, share)
        return self.ranked([*done, *finer], tried, first=True)

    def of_last_rung(
        self, candidates: Sequence[Candidate], default: Candidate, n_components: int
    ) -> None:
        """Compare candidates and a default, if there are several, on the folds of the fit."""
        others = [
            one for one in candidates if one.arm != default.arm or not np.isclose(one.factor, 1.0)
        ]
        if others:
            several = [others[0], default, *others[1:]]
            self.ranked(several, self.try_some(several, n_components, 1.0, last=True))

    def ranked(
        self, candidates: Sequence[Candidate], tried: Sequence[Attempt], *, first: bool = False
    ) -> list[list[Candidate]]:
        """Note attempts at the first of some candidates, and return the tiers of these."""
        if not tried:
            return []
        self.attempts += tried
        scores = [attempt.relative_mse for attempt in tried]
        if first:
            scores = sober(candidates[: len(tried)], tried)
        best = int(np.argmin(scores))
        self._winner = candidates[best], tried[best]
        return tiers(self.arms, candidates[: len(tried)], scores)

    def try_some(
        self,
        candidates: Sequence[Candidate],
        n_components: int,
        share: float,
        *,
        last: bool = False,
    ) -> list[Attempt]:
        """Try candidates, as many as the share of the budget pays for; none alone on the last."""
        tried: list[Attempt] = []
        folds, n_folds = (self._folds, self.n_folds) if last else (None, N_FOLDS)
        while left := candidates[len(tried) :]:
            n = self.ledger.affordable(len(left), self.n_rows, n_components, share, n_folds)
            if n < 1 + (last and not tried):
                break
            made = self._tried(left[:n], n_components, folds)
            self.ledger.pay(made)
            tried += made
        return tried

    def _tried(
        self, candidates: Sequence[Candidate], n_components: int, folds: Array | None
    ) -> list[Attempt]:
        plan, options = self.ledger.plan, self.options
        tasks, places, sent = [], [], None if folds is None else shared(folds)
        for arm, mine in _shared_projections(candidates):
            kernel, (_, family, metric) = self.kernels[arm], self.arms[arm]
            own = replace(options, kernel=kernel, feature_map=family)
            trial, factors = Trial(own, n_components, metric), [candidates[i].factor for i in mine]
            name = f"try-{family}-{kernel.name}-{n_components}"
            sample = self._rows[arm], self._targets, factors, self._weights, sent
            tasks.append(task(trial, *sample, name=name))
            places += mine
        itemsize = 4 if options.precision == "single" else 8
        n_folds = N_FOLDS if folds is None else self.n_folds
        a_trial = trial_bytes(self.n_rows, plan.n_features, n_components, itemsize, n_folds)
        at_once = max(min(plan.allowed_bytes // a_trial, plan.n_threads), 1)
        attempts = [attempt for some in run_all(tasks, at_once) for attempt in some]
        return [attempts[places.index(i)] for i in range(len(candidates))]

    def found(self) -> Search:
        assert self._winner is not None  # noqa: S101  a trial is always paid
        (arm, factor), chosen = self._winner
        _, feature_map, metric = self.arms[arm]
        return Search(
            self.arms[arm].kernel.stretched(factor),
            self.kernels[arm].stretched(factor),
            feature_map,
            metric,
            self._places[arm],
            self.attempts,
            configurations(self.attempts, chosen, self.ledger.plan, self.options.n_folds),
            self.ledger.passes,
            self.ledger.seconds,
        )


def _shared_projections(candidates: Sequence[Candidate]) -> Iterator[tuple[int, list[int]]]:
    """Deal candidates to tasks: some of one arm each, by their places."""
    resources = current_resources()
    slots = max(resources.n_workers, 1) * resources.n_threads
    size = max(-(-len(candidates) // slots), 1)
    places = sorted(range(len(candidates)), key=lambda i: candidates[i].arm)
    while places:
        arm = candidates[places[0]].arm
        mine = [i for i in places[:size] if candidates[i].arm == arm]
        yield arm, mine
        places = places[len(mine) :]
