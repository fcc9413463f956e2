"""Errors on rows left out, against models that are fitted again without them."""

import tracemalloc
from collections import Counter
from typing import NamedTuple

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.features import Identity, LandmarkFolds, Nystroem
from streamkern.kernels import Laplacian
from streamkern.solve import Eigenbasis, cross_validation
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.preconditioned_solution import preconditioned_solution
from streamkern.statistics import CentredMoments, Moments, Split, Triangle

K = 3


class Case(NamedTuple):
    """Rows, the decay of their features, penalties, and how all folds are solved."""

    n: int
    D: int
    decay: float
    alphas: np.ndarray
    ways: set[str]


CASES = {
    "many rows": Case(300, 12, 1.0, np.logspace(-2, 3, 12), {"gradients"}),
    "one penalty": Case(300, 12, 1.0, np.array([0.5]), {"gradients"}),
    "fewer rows than features": Case(
        24, 48, 1.0, np.logspace(-2, 2, 6), {"low rank", "eigenvalues"}
    ),
    "few small penalties": Case(
        70, 60, 2.0, np.logspace(-4, -1, 5), {"gradients", "few Cholesky factors"}
    ),
    "many small penalties": Case(95, 60, 2.0, np.logspace(-4, 1, 24), {"gradients", "tridiagonal"}),
    "more penalties": Case(60, 4, 1.0, np.logspace(-3, 3, 30), {"gradients"}),
    "one feature": Case(60, 1, 1.0, np.logspace(-3, 3, 30), {"gradients"}),
    "hardly more rows": Case(70, 60, 2.0, np.logspace(-4, 1, 24), {"tridiagonal"}),
}
FIRST = ("low rank", "gradients", "tridiagonal")  # what is tried before anything else
every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


def rows(case: Case, q: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(case.n + case.D)
    sizes = np.logspace(0.5, 0.5 - case.decay, case.D)
    mixed = np.linalg.qr(rng.standard_normal((case.D, case.D)))[0]
    Phi = rng.standard_normal((case.n, case.D)) * sizes @ mixed + rng.standard_normal(case.D)
    y = Phi @ rng.standard_normal((case.D, q)) + rng.standard_normal((case.n, q))
    return Phi, y + np.linspace(3.0, -2.0, q), rng.random(case.n) + 0.2


def folds_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice(K, n, p=[0.5, 0.3, 0.2])


def moments(Phi, y, s=None, *, precision="double", shift: float = 0.0) -> Moments:
    D, q = Phi.shape[1], y.shape[1]
    zero = Moments(
        Identity().draw(D),
        q,
        precision=precision,
        feature_shift=np.full(D, shift),
        target_shift=np.full(q, shift),
    )
    return naive.accumulated(zero, naive.blocks(Phi, y, [], s))


def errors(table, folds, alphas, *, intercept: bool = True, **options) -> list:
    Phi, y, s = table
    total = moments(Phi, y, s, **options)
    # As a fit does: with few rows the basis is that of the range alone.
    basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
    found = []
    for k in range(folds.max() + 1):
        part = moments(Phi[folds == k], y[folds == k], s[folds == k], **options)
        found.append(held_out_errors(basis, total, Split(part), alphas))
    return found


def assert_refitted(found, table, folds, alphas, *, intercept: bool = True) -> None:
    Phi, y, s = table
    for k, held in enumerate(found):
        assert_close(held.weight, s[folds == k].sum())
        expected = [
            naive.error_without(Phi, y, s, alpha, folds == k, intercept=intercept)
            for alpha in alphas
        ]
        assert held.sse == pytest.approx(np.array(expected), rel=1e-8)


@pytest.fixture(autouse=True)
def gradients_for_any_number_of_columns(monkeypatch):
    """So that the small systems here are solved as large ones are."""
    monkeypatch.setattr(cross_validation, "_FEW_COLUMNS", np.inf)


@pytest.fixture
def ways(monkeypatch) -> Counter[str]:
    """How often errors are found in which way, from now on."""
    counted: Counter[str] = Counter()

    def count(name, way, holder=cross_validation):
        function = getattr(holder, name)

        def counting(*arguments, **options):
            if taken := way((*arguments, *options.values())):
                counted[taken] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(holder, name, counting)

    count("preconditioned_solution", lambda _: "gradients")
    few = "few Cholesky factors"
    count("_by_factors", lambda given: few if len(given[1]) <= 5 else "tridiagonal")
    count("_by_eigenvectors", lambda _: "eigenvalues")
    count("turned", lambda _: "low rank", CentredMoments)
    return counted


@every_case
@with_and_without
@pytest.mark.parametrize(("weighted", "q"), [(True, 1), (False, 3)])
def test_an_error_is_that_of_fitting_again_without_the_fold(case, intercept, weighted, q, ways):
    Phi, y, s = rows(case, q)
    table = Phi, y, s if weighted else np.ones(case.n)
    folds = folds_of(case.n)
    # A shift of the sums changes no error.
    found = errors(table, folds, case.alphas, intercept=intercept, shift=0.0 if weighted else 1.5)
    assert set(ways) == case.ways
    assert_refitted(found, table, folds, case.alphas, intercept=intercept)
    if q == 1:
        assert ways[next(way for way in FIRST if way in case.ways)] == K
        for way in case.ways & {"tridiagonal", "few Cholesky factors"}:
            assert 1 <= ways[way] <= K


# Of 21 pairs of a penalty and a target, the errors of 8 features are made in the basis, too.
@pytest.mark.parametrize(
    ("few_columns", "D"),
    [(np.inf, 6), (1.0, 16), (1.0, 8)],
    ids=["gradients", "eigenvalues", "errors in the basis"],
)
def test_many_targets_are_solved_for_one_at_a_time_or_in_one_basis(
    few_columns, D, ways, monkeypatch
):
    monkeypatch.setattr(cross_validation, "_FEW_COLUMNS", few_columns)
    case = Case(60, D, 1.0, np.array([0.1, 1.0, 10.0]), set())
    table, folds = rows(case, 7), folds_of(case.n)
    found = errors(table, folds, case.alphas)
    # By gradients one at a time, since ten of everything that is held take no more than G does.
    assert ways == ({"gradients": 7 * K} if few_columns > 1 else {"eigenvalues": K})
    assert_refitted(found, table, folds, case.alphas)


def test_targets_that_every_model_predicts_have_no_negative_error():
    case = CASES["many rows"]
    Phi, _, s = rows(case)
    y = np.column_stack([np.full(case.n, 2.5), Phi @ np.ones(case.D)])
    for held in errors((Phi, y, s), folds_of(case.n), np.array([1e-9, 1e-8, 1.0])):
        assert (held.sse >= 0).all()
        assert_close(held.sse[:, 0], np.zeros(3), size=6.25 * case.n)
        assert_close(held.sse[:2, 1], np.zeros(2), steps=1e4, size=(y[:, 1] ** 2).sum())


@pytest.mark.parametrize("name", ["many rows", "few small penalties", "many small penalties"])
def test_gradients_on_single_sums_are_as_good_as_factors_of_them(name, monkeypatch):
    case = CASES[name]
    table, folds = rows(case, 2), folds_of(case.n)
    floor = Eigenbasis.of(moments(*table, precision="single").centred()).spectrum.floor
    # Nearer to the floor, the noise that is left in the sums decides.
    alphas = case.alphas[case.alphas > 100 * floor]
    assert len(alphas) > 1
    found = errors(table, folds, alphas, precision="single")

    def none_converged(gram, shifts, columns, *_, **__):
        return np.zeros_like(columns), np.arange(len(shifts))

    monkeypatch.setattr(cross_validation, "preconditioned_solution", none_converged)
    expected = errors(table, folds, alphas, precision="single")
    for one, other in zip(found, expected, strict=True):
        assert one.sse == pytest.approx(other.sse, rel=1e-4)


def test_penalties_below_the_precision_floor_are_solved_without_the_noise(ways):
    # Products of single numbers leave eigenvalues below zero, by more than these penalties.
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 40))
    y, s = rng.standard_normal((200, 1)), np.ones(200)
    alphas = np.array([1e-12, 1e-11])
    for held in errors((Phi, y, s), folds_of(200), alphas, precision="single"):
        # Three directions are all there is; noise taken for more of them would predict wildly.
        assert (held.sse < 2 * (y**2).sum()).all()
    assert set(ways) == {"eigenvalues"}


def test_a_matrix_that_noise_made_indefinite_is_solved_by_eigenvalues(ways):
    values, vectors = np.array([4.0, 1.0, -1e-3]), np.linalg.qr(np.vander([1.0, 2.0, 3.0]))[0]
    noisy = CentredMoments(
        Triangle.of((vectors * values) @ vectors.T),
        *(np.ones((3, 1)), np.ones(1), 9.0, np.zeros(3), np.zeros(1)),
    )
    expected = vectors @ ((vectors.T @ noisy.cross)[:, 0] / np.array([4.0001, 1.0001, 1e-4]))
    for n in (1, 6):  # a factor each, and a tridiagonal matrix
        found = cross_validation._by_factors(noisy, np.full(n, 1e-4), 1, noisy.cross)[:, -1, 0]
        assert_close(found, expected, steps=1e5)
    assert ways["eigenvalues"] == 2


def test_penalties_have_a_factor_each_where_no_routine_takes_the_matrix(monkeypatch):
    half = np.random.default_rng(0).standard_normal((20, 30))
    means = np.ones(1), 9.0, np.zeros(20), np.zeros(1)
    moments = CentredMoments(Triangle.of(half @ half.T), np.ones((20, 1)), *means)
    how = moments, np.logspace(-3, 1, 6), 1, moments.cross
    found = cross_validation._by_factors(*how)
    monkeypatch.setattr(cross_validation, "are_taken", lambda _: False)
    assert_close(cross_validation._by_factors(*how), found, size=1e4)


# The conjugate gradients alone.


def system(D: int, k: int, distance: float) -> tuple[np.ndarray, np.ndarray, Eigenbasis]:
    """G with right-hand sides, and the basis of a matrix about so far from it."""
    rng = np.random.default_rng(D)
    made = []
    for rank in (4 * D, D):
        part = rng.standard_normal((rank, D)) * np.logspace(0, -1, D)
        made.append(part.T @ part)
    gram = made[0] + distance * made[1]
    zeros = np.zeros((D, 1))
    near = CentredMoments(Triangle.of(made[0]), zeros, np.ones(1), 1.0, np.zeros(D), np.zeros(1))
    return gram, rng.standard_normal((D, k)), Eigenbasis.of(near)


def assert_solves(found, gram, shifts, columns) -> None:
    for x, shift, b in zip(found.T, shifts, columns.T, strict=True):
        expected = np.linalg.solve(gram + shift * np.eye(len(gram)), b)
        assert np.abs(x - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(("D", "share"), [(1, 1.0), (5, 1.0), (40, 1.0), (40, 0.25)])
@pytest.mark.parametrize("distance", [0.0, 0.3])
def test_a_system_near_the_share_of_the_basis_converges(D, share, distance, monkeypatch):
    # That of the basis itself does after one iteration.
    limit = "streamkern.solve.preconditioned_solution._MOST_ITERATIONS"
    monkeypatch.setattr(limit, 60 if distance else 2)
    gram, columns, basis = system(D, 4, distance)
    gram, shifts = share * gram, np.array([0.1, 1.0, 10.0, 1000.0])
    columns[:, 3] = 0.0 if D == 5 else columns[:, 3]  # which zeros solve
    found, left = preconditioned_solution(Triangle.of(gram), shifts, columns, basis, share=share)
    assert left.tolist() == []
    assert_solves(found, gram, shifts, columns)


def test_columns_that_converge_are_right_though_others_do_not():
    gram, columns, basis = system(60, 4, 1e6)
    shifts = np.array([1e9, 1e-3, 1e8, 1e-4])
    found, left = preconditioned_solution(Triangle.of(gram), shifts, columns, basis)
    assert left.tolist() == [1, 3]
    assert_solves(found[:, ::2], gram, shifts[::2], columns[:, ::2])


@pytest.mark.parametrize("few_columns", [np.inf, 0.0], ids=["gradients", "eigenvalues"])
def test_scoring_a_fold_takes_no_more_than_three_squares_and_two_triangles(
    few_columns, monkeypatch, ways
):
    monkeypatch.setattr(cross_validation, "_FEW_COLUMNS", few_columns)
    case = Case(4000, 1100, 0.5, np.logspace(-1, 3, 12), {"any"})
    Phi, y, s = rows(case)
    total, part = moments(Phi, y, s), moments(Phi[:800], y[:800], s[:800])
    basis = Eigenbasis.of(total.centred())
    tracemalloc.start()
    held_out_errors(basis, total, Split(part), case.alphas)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    triangle = sum(panel.nbytes for panel in total.gram.panels)
    squares = 3 if not few_columns else 1
    assert peak < 2 * triangle + squares * 8 * case.D**2 + 0.15 * 8 * case.D**2
    assert set(ways) == {"eigenvalues" if not few_columns else "gradients"}


@pytest.mark.parametrize(
    ("few_columns", "way"), [(np.inf, "tridiagonal"), (0.0, "eigenvalues")], ids=lambda each: each
)
def test_folds_without_their_landmarks_have_the_errors_of_the_kernel_at_the_others(
    few_columns, way, ways, monkeypatch
):
    monkeypatch.setattr(cross_validation, "_FEW_COLUMNS", few_columns)
    rng, alphas = np.random.default_rng(3), np.array([1e-3, 0.1, 10.0, 20.0, 30.0, 40.0, 50.0])
    X = np.sort(rng.uniform(0.0, 6.0, (120, 1)), axis=0)
    y, folds = np.sin(3.0 * X) + 0.1 * rng.standard_normal(X.shape), np.repeat(np.arange(3), 40)
    drawn = Nystroem(Laplacian(1.0), 24).fit(X)
    Phi, Z = drawn.transform(X), drawn.similarities.landmarks
    landmarks = LandmarkFolds.of(drawn, X, folds)
    assert landmarks.folds.tolist() == folds[np.abs(X - Z.T).argmin(axis=0)].tolist()
    total = moments(Phi, y)
    basis = Eigenbasis.of(total.centred(), total.n_rows - 1)
    for k in range(3):
        out, mine = folds == k, Z[landmarks.folds != k]
        split = Split(moments(Phi[out], y[out]), span=landmarks.span_without(k, 24))
        found = held_out_errors(basis, total, split, alphas, keep_models=True)
        shift = y[~out].mean()
        assert_close(found.sse_of_mean, np.square(y[out] - shift).sum(axis=0))
        K, inner = drawn.kernel(X, mine), drawn.kernel(mine, mine)
        K = K - K[~out].mean(axis=0)
        for a, alpha in enumerate(alphas):
            system = K[~out].T @ K[~out] + alpha * inner
            wanted = shift + K[out] @ np.linalg.solve(system, K[~out].T @ (y[~out] - shift))
            assert_close(found.sse[a], np.square(y[out] - wanted).sum(axis=0), steps=1e6)
            model = found.model_at(np.array([a]))
            assert_close(Phi[out] @ model["coef"] + model["intercept"], wanted, steps=1e6)
    assert ways == {"low rank": 3, way: 3}
    assert LandmarkFolds.of(Identity().draw(1), X, folds) is None
    assert LandmarkFolds(drawn, np.zeros(24, int)).span_without(0, 24) is None
