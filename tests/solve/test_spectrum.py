"""What the eigendecomposition says of every penalty, against matrices of rows by rows."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import OverflowedError, SingularSystemError
from streamkern.solve import Eigenbasis, Spectrum, solve_ridge
from streamkern.statistics import CentredMoments, Triangle

N = 30
ALPHAS = np.array([0.1, 1.0, 20.0, 1e4])
SIZES = {"fewer features than rows": 12, "as many": N, "more features than rows": 70}
every_size = pytest.mark.parametrize("D", list(SIZES.values()), ids=list(SIZES))
with_and_without = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])


def rows(D: int, q: int = 2, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Features of different sizes, and targets that they explain in part."""
    rng = np.random.default_rng(D)
    Phi = rng.standard_normal((n, D)) * np.logspace(0.5, -1, D) + rng.standard_normal(D)
    y = Phi @ rng.standard_normal((D, q)) + rng.standard_normal((n, q)) + [3.0, -1.0][:q]
    return Phi, y


def moments_of(Phi, y, s=None, *, intercept: bool = True, precision="double") -> CentredMoments:
    s = np.ones(len(Phi)) if s is None else s
    made = naive.moments(Phi, y, s, intercept=intercept)
    made["gram"] = Triangle.of(made["gram"])
    return CentredMoments(**made, weight=float(s.sum()), precision=precision, intercept=intercept)


def spectrum_of(Phi, y, s=None, *, intercept: bool = True) -> Spectrum:
    return Eigenbasis.of(moments_of(Phi, y, s, intercept=intercept)).spectrum


@with_and_without
def test_few_rows_give_the_same_solutions_from_the_range_alone(intercept):
    Phi, y = rows(200)
    moments = moments_of(Phi, y, intercept=intercept)
    whole, ranged = Eigenbasis.of(moments), Eigenbasis.of(moments, N - intercept)
    assert not ranged.vectors[:, 0].any()
    for alpha in ALPHAS:
        expected, found = whole.solve(alpha), ranged.solve(alpha)
        size = np.abs(expected.coef).max()
        assert_close(found.coef, expected.coef, steps=1e6, size=size)
        assert found.effective_dof == pytest.approx(expected.effective_dof, rel=1e-9)
        assert found.train_rss == pytest.approx(expected.train_rss, rel=1e-6, abs=1e-9)
    with pytest.raises(SingularSystemError):
        ranged.solve(0.0)


@every_size
@with_and_without
def test_every_criterion_is_that_of_the_hat_matrix_of_all_rows(D, intercept):
    Phi, y = rows(D)
    spectrum = spectrum_of(Phi, y, intercept=intercept)
    criteria = spectrum.gcv(ALPHAS), spectrum.effective_dof(ALPHAS), spectrum.log_evidence(ALPHAS)
    for alpha, gcv, dof, evidence in zip(ALPHAS, *criteria, strict=True):
        expected = naive.generalised_cross_validation(Phi, y, alpha, intercept=intercept)
        assert gcv == pytest.approx(np.array(expected), rel=1e-8)
        hat = naive.hat_matrix(Phi, alpha, intercept=intercept)
        assert dof == pytest.approx(np.trace(hat), rel=1e-9)
        for j in range(2):
            noise = naive.noise_variance(Phi, y[:, j], alpha, intercept=intercept)

            def likelihood(factor, j=j, alpha=alpha, noise=noise):
                return naive.marginal_likelihood(
                    Phi, y[:, j], alpha, factor * noise, intercept=intercept
                )

            assert evidence[j] == pytest.approx(likelihood(1.0), rel=1e-8)
            assert all(likelihood(factor) < evidence[j] for factor in (0.5, 0.9, 1.1, 2.0))


@every_size
@with_and_without
def test_the_residual_sum_is_that_of_the_weighted_rows(D, intercept):
    Phi, y = rows(D)
    s = np.random.default_rng(1).random(N) + 0.1
    found = spectrum_of(Phi, y, s, intercept=intercept).rss(ALPHAS)
    for alpha, rss in zip(ALPHAS, found, strict=True):
        w, mu = naive.weighted_ridge(Phi, y, s, alpha, intercept=intercept)
        expected = (s[:, None] * (y - mu - Phi @ w) ** 2).sum(axis=0)
        assert rss == pytest.approx(expected, rel=1e-8)


@with_and_without
@naive.quick
@given(
    some=st.lists(st.integers(1, 3), min_size=20, max_size=20),
    others=st.lists(st.integers(0, 3), min_size=N - 20, max_size=N - 20),
)
def test_a_weight_is_a_row_that_occurs_so_often(intercept, some, others):
    Phi, y = rows(12)
    repeats = some + others
    weighted = spectrum_of(Phi, y, np.array(repeats, dtype=float), intercept=intercept)
    repeated = spectrum_of(
        np.repeat(Phi, repeats, axis=0), np.repeat(y, repeats, axis=0), intercept=intercept
    )
    for name in ("rss", "effective_dof", "gcv", "log_evidence"):
        expected = getattr(repeated, name)(ALPHAS)
        assert_close(getattr(weighted, name)(ALPHAS), expected, steps=1e5)


def test_targets_that_are_fitted_exactly_have_a_residual_of_nought_and_no_warning():
    Phi, _ = rows(12)
    spectrum = spectrum_of(Phi, Phi[:, :2] @ np.array([[1.0, 0.0], [2.0, 1.0]]))
    rss = spectrum.rss(np.array([1e-12]))
    assert (rss >= 0).all()
    assert_close(rss, np.zeros((1, 2)), steps=1000, size=spectrum.target.max())
    assert not np.isnan(spectrum.gcv(np.array([1e-12]))).any()
    assert (spectrum.log_evidence(np.array([1e-12])) > 100).all()


@pytest.mark.parametrize("weight", [4.0, 3.0], ids=["as many", "fewer"])
@pytest.mark.parametrize("target", [5.0, 4.0], ids=["noisy", "fitted exactly"])
def test_no_more_rows_than_degrees_of_freedom_are_the_worst_gcv(weight, target):
    # Rounding can make eigenvalues of features that no row spans, which count as well.
    ones = np.ones((4, 1))
    spectrum = Spectrum(ones[:, 0], ones, np.full(1, target), weight, 1e-15, intercept=False)
    assert spectrum.gcv(np.array([1e-300])).tolist() == [[math.inf]]


@every_size
@with_and_without
def test_one_penalty_for_every_target_is_one_solution_for_every_target(D, intercept):
    Phi, y = rows(D)
    moments = moments_of(Phi, y, intercept=intercept)
    basis = Eigenbasis.of(moments)
    alphas = np.array([0.1, 20.0])
    together = basis.solve(alphas)
    assert together.alpha is alphas
    for j, alpha in enumerate(alphas.tolist()):
        alone = basis.solve(alpha)
        assert isinstance(alone.effective_dof, float)
        for name in ("coef", "intercept", "train_rss"):
            assert_close(getattr(together, name)[..., j], getattr(alone, name)[..., j])
        assert_close(together.effective_dof[j], alone.effective_dof)
        assert together.condition >= alone.condition
        at = np.array([alpha])
        assert_close(alone.train_rss, basis.spectrum.rss(at)[0], size=moments.target.max())
        assert_close(alone.effective_dof, basis.spectrum.effective_dof(at)[0])


SINGULAR = np.array([4.0, 2.0, 1.0, 0.0, 0.0, 0.0])


def singular(precision: str = "double") -> CentredMoments:
    rng = np.random.default_rng(0)
    right = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    A = np.linalg.qr(rng.standard_normal((N, 6)))[0] * np.sqrt(SINGULAR) @ right.T
    B = A @ rng.standard_normal((6, 2)) + 0.1 * rng.standard_normal((N, 2))
    return moments_of(A, B, intercept=False, precision=precision)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("first", [True, False])
def test_only_targets_with_a_penalty_below_the_floor_lose_eigenvalues(precision, first):
    basis = Eigenbasis.of(singular(precision))
    below = 0.5 * basis.spectrum.floor
    alphas = np.array([below, 1.0] if first else [1.0, below])
    solution = basis.solve(alphas)
    assert solution.n_clipped == 3
    assert f"3 of 6 eigenvalues lie below the precision floor {basis.spectrum.floor:.3g}" in (
        solution.note
    )
    assert f"noise beside alpha {below:.3g}, and were left out" in solution.note
    for j, alpha in enumerate(alphas.tolist()):
        alone = basis.solve(alpha)
        assert alone.n_clipped == (3 if alpha == below else 0)
        assert_close(solution.coef[:, j], alone.coef[:, j])
        assert_close(solution.effective_dof[j], alone.effective_dof)


@pytest.mark.parametrize(("share", "n_clipped"), [(1.001, 0), (0.999, 0), (0.9, 3)])
def test_a_penalty_about_the_floor_is_not_below_it(share, n_clipped):
    # Floors are estimated, and penalties are copied from reports with few digits.
    moments = singular("single")
    basis = Eigenbasis.of(moments)
    alpha = share * basis.spectrum.floor
    assert basis.solve(alpha).n_clipped == solve_ridge(moments, alpha).n_clipped == n_clipped


@pytest.mark.parametrize("alpha", [0.0, np.array([1.0, 0.0])], ids=["one", "one for each"])
def test_a_singular_system_without_penalty_is_refused(alpha):
    with pytest.raises(SingularSystemError, match=r"alpha 0 needs .* 3 of 6 eigenvalues lie below"):
        Eigenbasis.of(singular()).solve(alpha)


@pytest.mark.parametrize("part", ["gram", "cross", "target"])
def test_sums_that_overflowed_are_refused(part):
    moments = singular("single")
    numbers = moments.gram.panels[0] if part == "gram" else getattr(moments, part)
    numbers.flat[0] = np.inf
    with pytest.raises(OverflowedError, match="overflowed in single precision; standardise or"):
        Eigenbasis.of(moments)
