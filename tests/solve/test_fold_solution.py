"""From the moments of folds to a solution: what is chosen, what it is worth, and where it runs."""

import tracemalloc
from types import SimpleNamespace

import dask
import naive
import numpy as np
import pytest
from tolerances import assert_close

import streamkern
from streamkern.engine.reduction import accumulate
from streamkern.errors import ParameterError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.solve import Eigenbasis, solve_ridge
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import default_grid
from streamkern.solvers import fold_solution
from streamkern.solvers.fold_solution import Solved, solve_folds
from streamkern.sources import Block, Shard
from streamkern.sources.arrays import ArraySource
from streamkern.statistics import FoldStatistics, Moments, RowFolds, block_folds, shard_folds

N, P, D, K, SHARD = 230, 3, 24, 4, 17
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
KINDS = ("rows", "shards", "blocks")


class InShards(ArraySource):
    def shards(self, n_rows, _fewest=None):
        starts = range(0, self.n_samples, n_rows)
        return tuple(Shard(i, a, min(a + n_rows, self.n_samples)) for i, a in enumerate(starts))


def rule_for(kind: str, source: InShards):
    shards = source.shards(SHARD)
    rules = {"rows": RowFolds(K, 3), "shards": shard_folds(shards, K, 3)}
    return (rules | {"blocks": block_folds(N, K)})[kind]


def folds_of_rows(kind: str) -> np.ndarray:
    if kind == "rows":
        return np.array([naive.fold_of_row(i, K, 3) for i in range(N)])
    if kind == "blocks":
        return np.array([naive.fold_of_block(i, N, K) for i in range(N)])
    lengths = [min(SHARD, N - start) for start in range(0, N, SHARD)]
    return np.repeat(naive.folds_of_shards(lengths, K, 3), lengths)


def rows(q: int = 1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    smooth = np.stack([np.sin(X[:, 0]) + X[:, 1], 20 + 5 * X[:, 1] * X[:, 2]], axis=1)
    y = smooth + [0.1, 15.0] * rng.standard_normal((N, 2))
    return X, y[:, :q], rng.random(N) + 0.2


def feature_map():
    return RandomFourierFeatures(Gaussian(1.5), D).draw(P)


def passed(kind="rows", q=1, *, weighted=False):
    """The moments of folds, as one pass leaves them where they were merged."""
    X, y, s = rows(q)
    source = InShards(X, y, s if weighted else None)
    empty = Moments(
        feature_map(), q, precision="double", feature_shift=np.full(D, 0.3), target_shift=np.ones(q)
    )
    rule = rule_for(kind, source)
    return accumulate(
        source,
        FoldStatistics(rule, empty),
        shard_rows=SHARD,
        block_rows=10,
        keep=True,
        group=lambda shard: int(rule.at(np.array([shard.start]))[0]),
    ).statistic


def total_of(q=1, *, weighted=False) -> Moments:
    X, y, s = rows(q)
    zero = Moments(feature_map(), q, precision="double")
    return naive.accumulated(zero, naive.blocks(X, y, [], s if weighted else None))


def refitted(kind, q, *, intercept, weighted=False, alphas=ALPHAS, size=D):
    """The mean squared errors of K fits to what is left, (A, q), and of every fold, (K, A, q)."""
    X, y, s = rows(q)
    s = s if weighted else np.ones(N)
    Phi, folds = feature_map().first(size).transform(X), folds_of_rows(kind)
    sse = np.array(
        [
            [naive.error_without(Phi, y, s, a, folds == k, intercept=intercept) for a in alphas]
            for k in range(K)
        ]
    )
    weights = np.array([s[folds == k].sum() for k in range(K)])
    return sse.sum(axis=0) / weights.sum(), sse / weights[:, None, None]


@pytest.mark.parametrize("per_target", [True, False])
def test_one_standard_error_takes_the_largest_penalty_that_is_as_good(per_target):
    options = PenaltyOptions(ALPHAS, per_target=per_target, one_standard_error=True)
    solved = solve_folds(passed("rows", 1), options, intercept=True, sizes=[D])
    scores, of_folds = refitted("rows", 1, intercept=True)
    best = int(scores[:, 0].argmin())
    error = of_folds[:, best, 0].std(ddof=1) / np.sqrt(K)
    enough = max(a for a in range(len(ALPHAS)) if scores[a, 0] <= scores[best, 0] + error)
    assert np.ravel(solved.solution.alpha).tolist() == [ALPHAS[enough]]
    assert solved.cv_rmse == pytest.approx(np.sqrt(scores[enough]), rel=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_by_default_thirty_penalties_are_tried(intercept):
    solved = solve_folds(passed("rows"), PenaltyOptions("cv"), intercept=intercept, sizes=[D])
    spectrum = Eigenbasis.of(total_of().centred(intercept=intercept)).spectrum
    assert_close(solved.size.curve.alphas / default_grid(spectrum), np.ones(30), steps=1e4)
    above = spectrum.values[-1] * np.array([1e-6, 1e-3, 1.0])
    tried = solved.size.curve.alphas
    nearest = [int(np.abs(np.log(tried / alpha)).argmin()) for alpha in above]
    scores, _ = refitted("rows", 1, intercept=intercept, alphas=tried[nearest])
    assert solved.size.curve.scores[nearest] == pytest.approx(scores, rel=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 1e-20])
def test_a_penalty_that_is_given_is_taken_and_nothing_is_chosen(alpha):
    solved = solve_folds(passed("shards", 2), PenaltyOptions(alpha), intercept=True, sizes=[D])
    expected = solve_ridge(total_of(2).centred(), alpha)
    assert solved.solution.alpha == alpha
    assert solved.solution.solver == expected.solver
    size = np.abs(expected.coef).max()
    assert np.abs(solved.solution.coef - expected.coef).max() < 1e-6 * size
    assert (solved.size, solved.sizes, solved.cv_rmse) == (None, (), None)
    assert solved.penalty_notes("single") == ("", "")


@pytest.mark.parametrize(
    ("second", "precision", "begins"),
    [
        (9.0, "single", ("the error still falls", "")),
        (1.0, "single", ("", "the best alpha is at the precision floor")),
        (9.0, "double", ("", "")),
    ],
)
def test_of_the_notes_on_a_penalty_at_the_floor_the_first_stands_for_both(
    second, precision, begins
):
    curve = PenaltyCurve("gcv", np.array([1.0, 10.0]), np.array([[1.0], [second]]), np.ones(1))
    size = SimpleNamespace(curve=curve, chosen=np.array([0]))
    notes = Solved(SimpleNamespace(floor=1.0), None, size).penalty_notes(precision)
    for note, begun in zip(notes, begins, strict=True):
        assert note.startswith(begun)
        assert bool(note) == bool(begun)


@pytest.mark.parametrize("alpha", [0.5, "gcv"])
def test_sizes_are_chosen_by_cross_validation_only(alpha):
    with pytest.raises(ParameterError, match="chosen by cross-validation; take alpha 'cv' or a"):
        solve_folds(passed("rows"), PenaltyOptions(alpha), intercept=True, sizes=[12, D])


# Where it runs.

OPTIONS = {
    "given": PenaltyOptions(0.5),
    "grid": PenaltyOptions(ALPHAS),
    "cv": PenaltyOptions("cv"),
    "evidence": PenaltyOptions("evidence"),
    "per target": PenaltyOptions("cv", per_target=True, one_standard_error=True),
}


def bits(solved) -> list[bytes]:
    """Every number that a solution has, to the bit."""
    solution, equations = solved.solution, solved.equations
    numbers = [*vars(solution).values(), equations.gram.dense(), equations.feature_mean]
    if solved.size is not None:
        numbers += [*vars(solved.size.curve).values(), solved.size.chosen]
    return [x.encode() if isinstance(x, str) else np.array(x).tobytes() for x in numbers]


def solved_everywhere(kind) -> dict[str, list[bytes]]:
    return {
        name: bits(solve_folds(passed(kind, 2), options, intercept=True, sizes=[D]))
        for name, options in OPTIONS.items()
    }


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return {kind: solved_everywhere(kind) for kind in KINDS}


@pytest.mark.parametrize(("kind", "threads"), [("rows", 2), ("shards", 5), ("blocks", 1)])
def test_threads_give_the_same_bits(kind, threads, expected):
    with dask.config.set(scheduler="threads", num_workers=threads):
        assert solved_everywhere(kind) == expected[kind]


@pytest.mark.cluster
def test_moments_stay_with_the_workers(external_scheduler):
    with streamkern.connect(scheduler=external_scheduler) as client:
        folds = passed("rows", 2)
        solved = solve_folds(folds, OPTIONS["cv"], intercept=True, sizes=[D])
        assert dask.is_dask_collection(folds)
        assert dask.is_dask_collection(solved.size.total)
        assert dask.is_dask_collection(solved.size.basis)
        assert any(client.has_what().values())


def test_a_given_penalty_takes_one_copy_of_the_sums_and_what_the_model_keeps(monkeypatch):
    monkeypatch.setattr("streamkern.solve.cholesky.usable_cores", lambda: 2)
    D, n = 1536, 1600
    rng = np.random.default_rng(0)
    total = Moments(Identity().draw(D), 1)
    total.update([Block(rng.standard_normal((n, D)).astype(np.float32), np.ones((n, 1)), 0)])
    held = sum(panel.nbytes for panel in total.gram.panels)
    tracemalloc.start()
    solution, equations = fold_solution._solved(total, 10.0, True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.solver == "cholesky"
    assert {panel.dtype for panel in equations.gram.panels} == {np.dtype(np.float32)}
    # The blocks of the diagonal and their inverses, and what each of two threads works with.
    beside = 2 * 8 * 512 * D + 2 * 8 * (128 * D + 2 * 512**2)
    assert peak < 1.5 * held + beside
    assert peak < 8 * 2 * D**2
