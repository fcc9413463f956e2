"""Ridge regression on systems with prescribed spectra, singular ones included."""

import copy
import math
import tracemalloc
from dataclasses import replace
from typing import NamedTuple

import naive
import numpy as np
import pytest
from tolerances import assert_close

from streamkern.errors import InsufficientMemoryError, ParameterError
from streamkern.solve import Eigenbasis
from streamkern.solve.ridge import largest_eigenvalue, solve_ridge
from streamkern.solve.solution import precision_floor
from streamkern.statistics import CentredMoments, Triangle

N = 120

SPECTRA = {
    "one": np.array([3.0]),
    "flat": np.full(6, 2.0),
    "decaying": np.logspace(2, -2, 8),
    "steep": np.logspace(0, -7, 8),
    "large": np.logspace(1, -1, 80),
}
SINGULAR = {
    "rank one": np.array([5.0, 0.0, 0.0, 0.0]),
    "half": np.array([4.0, 2.0, 1.0, 0.0, 0.0, 0.0]),
    "large": np.concatenate([np.logspace(1, -1, 60), np.zeros(20)]),
}
# What has a unique solution.
SYSTEMS = [(spectrum, alpha) for spectrum in SPECTRA.values() for alpha in (0.0, 1e-3, 1.0, 1e4)]
SYSTEMS += [(spectrum, alpha) for spectrum in SINGULAR.values() for alpha in (1e-3, 1.0, 1e4)]
# A new way to solve is one row.
WAYS = {"cholesky": solve_ridge, "eigen": lambda m, alpha: Eigenbasis.of(m).solve(alpha)}
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


class Problem(NamedTuple):
    """Rows whose (centred) features have the given squared singular values, and their moments."""

    Phi: np.ndarray
    y: np.ndarray
    moments: CentredMoments

    @property
    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        return self.Phi - self.moments.feature_mean, self.y - self.moments.target_mean


def problem(spectrum, *, intercept: bool = True, precision: str = "double") -> Problem:
    rng = np.random.default_rng(len(spectrum))
    D, q = len(spectrum), 2
    left = np.linalg.qr(np.column_stack([np.ones(N), rng.standard_normal((N, D))]))[0][:, 1:]
    right = np.linalg.qr(rng.standard_normal((D, D)))[0]
    Phi = (left * np.sqrt(spectrum)) @ right.T + (rng.standard_normal(D) if intercept else 0.0)
    # Targets that a function of these features explains but for some noise.
    y = Phi @ rng.standard_normal((D, q)) + 0.1 * rng.standard_normal((N, q)) + [3.0, -1.0]
    phibar = Phi.mean(axis=0) if intercept else np.zeros(D)
    ybar = y.mean(axis=0) if intercept else np.zeros(q)
    A, B = Phi - phibar, y - ybar
    gram = right @ np.diag(spectrum) @ right.T
    moments = CentredMoments(
        Triangle.of((gram + gram.T) / 2),
        *(A.T @ B, (B**2).sum(axis=0), float(N), phibar, ybar, precision, intercept),
    )
    return Problem(Phi, y, moments)


def wide(D: int) -> CentredMoments:
    rng = np.random.default_rng(D)
    gram = Triangle(D)
    gram.add_diagonal(1.0)
    for scale in (30.0, 3.0):
        direction = rng.standard_normal(D)
        gram.add_outer(direction, direction, scale / D)
    cross = rng.standard_normal((D, 2))
    return CentredMoments(gram, cross, np.full(2, 100.0), 9.0 * D, np.zeros(D), np.zeros(2))


def condition(spectrum, alpha: float) -> float:
    return float((spectrum.max() + alpha) / (spectrum.min() + alpha))


@pytest.mark.parametrize(("spectrum", "alpha"), SYSTEMS)
@with_and_without
def test_solution_and_diagnostics_are_those_of_least_squares_on_the_rows(
    spectrum, intercept, alpha
):
    made = problem(spectrum, intercept=intercept)
    Phi, y, moments = made
    expected = naive.ridge(*made.centred, alpha)
    digits, D = condition(spectrum, alpha), len(spectrum)
    size = max(1.0, np.abs(expected).max()) * digits * (1 if alpha else 10)
    dof = math.fsum(d / (d + alpha) for d in spectrum.tolist()) + intercept
    for solver, solve in WAYS.items():
        solution = solve(moments, alpha)
        assert solution.solver == ("eigen" if not alpha and solver == "cholesky" else solver)
        assert (solution.n_clipped, solution.note, solution.alpha) == (0, "", alpha)
        assert_close(solution.coef, expected, size=10 * size if solver == "eigen" else size)
        mu = moments.target_mean - moments.feature_mean @ expected
        assert_close(solution.intercept, mu, size=100 * size)
        assert intercept or not solution.intercept.any()
        assert_close(solution.effective_dof, dof, size=10 * digits + D)
        residuals = y - solution.intercept - Phi @ solution.coef
        rss = (residuals**2).sum(axis=0)
        assert_close(solution.train_rss, rss, size=moments.target.max() * (1 if alpha else digits))
        # In the 1-norm, estimated, a condition lies within a factor D of that in the 2-norm.
        assert digits / (3 * D) <= solution.condition * 1.001
        if spectrum.all():
            assert solution.condition <= digits * D * 1.001


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("spectrum", [np.logspace(1, -30, 12), np.logspace(1, -30, 80)], ids=len)
def test_below_the_floor_noise_is_left_out_and_said(spectrum, precision):
    made = problem(spectrum, precision=precision)
    alpha = 1e-20
    solution = solve_ridge(made.moments, alpha)
    relative = 1e-7 if precision == "single" else 4 * len(spectrum) * np.finfo(float).eps
    # The largest eigenvalue is found to three digits.
    assert solution.floor == pytest.approx(relative * spectrum.max(), rel=2e-3)
    kept = spectrum[spectrum > solution.floor]
    assert solution.solver == "eigen"
    assert solution.n_clipped == len(spectrum) - len(kept)
    assert (
        f"{solution.n_clipped} of {len(spectrum)} eigenvalues lie below the precision floor"
        in solution.note
    )
    assert "noise beside alpha 1e-20" in solution.note
    assert np.isfinite(solution.coef).all()
    assert_close(solution.effective_dof, len(kept) + 1, size=1e6)
    # The projection of the targets on the directions that were kept.
    A, B = made.centred
    kept_U = np.linalg.svd(A, full_matrices=False)[0][:, : len(kept)]
    expected = ((B - kept_U @ (kept_U.T @ B)) ** 2).sum(axis=0)
    # An eigenvector is as good as the gap to the eigenvalues that were left out.
    digits = 10 * math.sqrt(spectrum.max() / kept.min())
    assert_close(solution.train_rss, expected, size=digits * made.moments.target.max())


@pytest.mark.parametrize("precision", ["single", "double"])
def test_below_the_floor_a_well_conditioned_system_is_solved_without_a_note(precision):
    made = problem(SPECTRA["decaying"], precision=precision)
    solution = solve_ridge(made.moments, 1e-15)
    assert (solution.solver, solution.n_clipped, solution.note) == ("eigen", 0, "")
    assert_close(solution.coef, naive.ridge(*made.centred, 0.0), size=1e5)


def test_a_matrix_that_noise_made_indefinite_is_solved_by_eigenvalues():
    made = problem(SINGULAR["half"], precision="single")
    floor = precision_floor(made.moments, largest_eigenvalue(made.moments.gram))
    noise = -0.9 * floor
    values, vectors = np.linalg.eigh(made.moments.gram.dense())
    values[:3] = noise
    gram = vectors @ np.diag(values) @ vectors.T
    noisy = replace(made.moments, gram=Triangle.of((gram + gram.T) / 2))
    alpha = 0.5 * floor
    solution = solve_ridge(noisy, alpha)
    assert (solution.solver, solution.n_clipped) == ("eigen", 3)
    # Ridge on the three directions that are left.
    A, B = made.centred
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    shrunk = (sigma / (sigma**2 + alpha))[:3, None]
    assert_close(solution.coef, Vt[:3].T @ (shrunk * (U[:, :3].T @ B)), size=10.0)


@pytest.mark.parametrize("D", [3, 63, 64, 200])
def test_features_that_never_vary_get_no_coefficient(D):
    cross = np.zeros((D, 1))
    moments = CentredMoments(Triangle(D), cross, np.ones(1), 5.0, np.ones(D), np.full(1, 2.0))
    solution = solve_ridge(moments, 1.0)
    assert not solution.coef.any()
    assert solution.intercept.tolist() == [2.0]
    assert_close(solution.effective_dof, 1.0, size=float(D))
    assert solution.train_rss.tolist() == [1.0]
    assert (solution.floor, solution.note) == (0.0, "")


def test_solving_leaves_the_moments_as_they_are():
    made = problem(SPECTRA["decaying"])
    before = copy.deepcopy(made.moments)
    for alpha in (0.0, 1e-20, 1.0):
        solve_ridge(made.moments, alpha)
    for name in vars(before):
        assert np.array_equal(*(naive.array_of(each, name) for each in (made.moments, before)))


@pytest.mark.parametrize("alpha", [-1.0, -1e-300, math.nan, math.inf, "one", None, (1.0, 2.0)])
def test_a_penalty_that_is_negative_or_no_number_is_refused(alpha):
    with pytest.raises(ParameterError, match="alpha must be a finite number of at least 0, not"):
        solve_ridge(problem(SPECTRA["flat"]).moments, alpha)


def test_moments_that_can_be_made_again_are_overwritten_and_give_the_same_bits():
    made, expected = problem(SPECTRA["large"]), problem(SPECTRA["large"]).moments
    solution = solve_ridge(made.moments, 0.5, again=pytest.fail)
    assert np.array_equal(solution.coef, solve_ridge(expected, 0.5).coef)
    assert not np.array_equal(made.moments.gram.dense(), expected.gram.dense())


def test_moments_are_made_again_where_they_have_no_factor():
    made = problem(SINGULAR["half"], precision="single")
    gram = made.moments.gram.astype(np.float64)
    gram.add_diagonal(-0.6)
    noisy = replace(made.moments, gram=gram)
    expected = solve_ridge(noisy, 0.5)
    solution = solve_ridge(copy.deepcopy(noisy), 0.5, again=lambda: noisy)
    assert solution.solver == expected.solver == "eigen"
    assert np.array_equal(solution.coef, expected.coef)


def test_eigenvalues_for_which_there_is_no_memory_are_refused(monkeypatch):
    monkeypatch.setattr("streamkern.runtime.memory.available_bytes", lambda: 800)
    moments = problem(SPECTRA["flat"]).moments
    solve_ridge(moments, 1.0)
    message = "decomposing G, as alpha 1e-20 is near its precision floor .* or below, needs 864 by"
    with pytest.raises(InsufficientMemoryError, match=message):
        solve_ridge(moments, 1e-20)


@pytest.mark.parametrize("D", [1, 600])
def test_no_bit_of_a_solution_depends_on_the_cores(D, monkeypatch):
    moments, found = wide(D), []
    for n_cores in (1, 2, 4):
        for module in ("cholesky", "eigendecomposition"):
            monkeypatch.setattr(f"streamkern.solve.{module}.usable_cores", lambda n=n_cores: n)
        found.append([solve_ridge(moments, alpha) for alpha in (1.0, 1e-20)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert vars(one).keys() == vars(two).keys()
            for name, value in vars(one).items():
                assert np.array_equal(value, getattr(two, name))


def test_a_penalty_is_solved_for_without_a_square_matrix(monkeypatch):
    D = 2048
    moments = wide(D)
    triangle = sum(panel.nbytes for panel in moments.gram.panels)
    for module in ("cholesky", "eigendecomposition"):
        monkeypatch.setattr(f"streamkern.solve.{module}.usable_cores", lambda: 2)
    tracemalloc.start()
    solve_ridge(moments, 1.0)
    copied = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    solve_ridge(moments, 1.0, again=pytest.fail)
    overwritten = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The blocks of the diagonal and their inverses, and what each of two threads works with.
    beside = 2 * 8 * 512 * D + 2 * 8 * (128 * D + 512**2)
    assert overwritten < beside
    assert copied < triangle + beside
