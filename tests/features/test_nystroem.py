"""The Nystroem map: exact at landmarks, nested, the same wherever it is drawn."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import (
    MAPS,
    FromRows,
    KernelColumns,
    Nystroem,
    RandomFourierFeatures,
    Standardized,
    Standardizer,
    gradients,
    gram_map,
    landmarks,
    nystroem,
    solve_map,
)
from streamkern.kernels import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sum,
)
from streamkern.runtime.threads import blas_threads

P, M = 3, 20
ROWS = np.random.default_rng(0).standard_normal((160, P))
JITTER = 1e-10

KERNELS = {
    "gaussian": Gaussian(1.5),
    "gaussian of three scales": Gaussian((1.0, 2.0, 3.0)),
    "matern12": Matern(2.0, nu=0.5),
    "matern32": Matern(2.0, nu=1.5),
    "matern52": Matern((1.0, 2.0, 3.0), nu=2.5),
    "matern of any smoothness": Matern(2.0, nu=1.2),
    "rough matern": Matern(2.0, nu=0.8),
    "rational quadratic": RationalQuadratic(2.0, shape=0.7),
    "inverse multiquadric": InverseMultiquadric((1.0, 2.0, 3.0)),
    "laplacian": Laplacian((1.0, 2.0, 3.0)),
    "sum": Sum(kernels=(Matern(2.0), Laplacian(1.5)), weights=(1.0, 0.5), columns=((0, 1), (1, 2))),
    "polynomial": Polynomial(2, 1.0),
}
every_kernel = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def drawn(kernel=KERNELS["gaussian"], m=M, rows=ROWS, **options) -> Nystroem:
    return Nystroem(kernel, m, **({"jitter": JITTER} | options)).draw(P, rows)


def landmarks_of(phi: Nystroem) -> np.ndarray:
    return phi.similarities.landmarks


# The kernel.


@every_kernel
@every_dtype
def test_features_are_the_whitened_kernel_of_the_formula(kernel, dtype):
    phi = drawn(kernel, 8, jitter=1e-4)
    Z, X = landmarks_of(phi), ROWS[50:70]
    K = kernel(Z, Z)
    K += 1e-4 * K.diagonal().max() * np.eye(8)
    k = kernel(X, Z)
    assert_close(
        phi.transform(X, dtype), naive.whitened(k, K), dtype=dtype, size=np.linalg.cond(K) ** 0.5
    )


# Weights.


def chosen(rows, weights=None, m=M):
    return Nystroem(KERNELS["gaussian"], m).chosen(rows, weights)


@pytest.mark.parametrize("highest", [2, 4])
def test_rows_of_weight_0_are_no_landmarks_and_attract_none(highest):
    weights = np.random.default_rng(0).integers(0, highest, len(ROWS)).astype(float)
    there = weights > 0
    found = chosen(ROWS, weights)
    assert_array_equal(found, chosen(ROWS[there], weights[there]))
    assert (highest > 2) != np.array_equal(found, chosen(ROWS[there]))


def test_centres_begin_at_rows_in_proportion_to_their_weights():
    rows, weights, found = np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 4.0]), []
    for seed in range(1000):
        order = np.random.default_rng(seed).permutation(4)
        found.append(int(landmarks._weighed(rows[order], weights[order], seed)[0][0].item()))
    assert np.abs(np.bincount(found) / 1000 - weights / 10).max() < 0.05


# Nested.


def test_the_first_features_are_those_of_the_map_of_the_first_landmarks():
    phi = drawn()
    part = phi.first(7)
    assert part.n_components == 7
    assert np.array_equal(landmarks_of(part), landmarks_of(phi)[:7])
    assert_close(part.transform(ROWS), phi.transform(ROWS)[:, :7], steps=1e4)


# What is summed, and what is solved for.


@every_kernel
def test_turned_sums_are_those_of_whitened_features(kernel):
    phi = drawn(kernel)
    psi = phi.gram_map()
    whole, turning = psi.solve_map()
    assert whole is not None
    assert whole.equals(phi)
    assert_close(psi.transform(ROWS) @ turning, phi.transform(ROWS), steps=1e7)
    part, few = psi.solve_map(9)
    assert part.equals(phi.first(9))
    assert_close(few, turning[:, :9])


def test_levelling_takes_the_range_out_of_the_leading_directions():
    phi = drawn(Gaussian(1.0), 100, jitter=1e-8)
    plain = phi.similarities.transform(ROWS)
    levelled = phi.gram_map().transform(ROWS)
    plain, levelled = (np.linalg.eigvalsh(k.T @ k)[::-1] for k in (plain, levelled))
    r = 50
    assert phi.n_components > 90
    assert plain[0] / plain[r] > 1e4
    assert levelled[0] / levelled[r] < 50


def test_other_maps_are_summed_and_solved_for_as_they_are():
    phi = RandomFourierFeatures(Gaussian(1.0), 8).draw(P)
    assert gram_map(phi) is phi
    assert solve_map(phi) == (phi, None)
    part, turning = solve_map(phi, 4)
    assert (part.n_components, turning) == (4, None)


# Gradients.


@pytest.mark.parametrize(
    "name", [n for n in KERNELS if n not in ("polynomial", "periodic and matern")]
)
@every_dtype
def test_gradients_are_differences(name, dtype):
    phi = drawn(KERNELS[name], 8)
    coef = np.random.default_rng(4).standard_normal(8)
    X = np.random.default_rng(5).standard_normal((30, P))
    expected = naive.differences(lambda rows: phi.transform(rows) @ coef, X, 1e-6)
    found = gradients(phi, X.astype(dtype), coef)
    assert found.dtype == dtype
    allowed = 1e-5 if dtype == np.float64 else 2e-3
    assert np.abs(found - expected).max() < allowed * np.abs(expected).max()


def test_at_a_landmark_the_gradient_of_a_kernel_with_a_kink_is_finite():
    phi = KernelColumns(Matern(1.0, nu=0.5), ROWS[:3])
    assert np.isfinite(gradients(phi, ROWS[:3], np.ones(3))).all()


# Landmarks.


def test_many_landmarks_are_centres_of_fewer_rows(monkeypatch):
    def found(n_rows, many):
        monkeypatch.setattr(landmarks, "_MANY", many)
        return landmarks.landmarks(Gaussian(1.0), ROWS[:n_rows], 10, seed=0)

    assert_array_equal(found(160, 9), found(40, 9))
    assert not np.array_equal(found(160, 10), found(40, 10))


def test_the_number_of_cores_changes_no_bit_of_kmeans():
    rows, found = np.random.default_rng(0).standard_normal((2000, 5)), []
    for n_threads in (2, 1):  # the first loads OpenMP
        with blas_threads(1), threadpool_limits(n_threads, user_api="openmp"):
            found.append(Nystroem(Gaussian(2.0), 100).draw(5, rows).similarities.landmarks)
    assert_array_equal(*found)


def test_equal_rows_make_fewer_landmarks():
    few = np.repeat(ROWS[:6], 30, axis=0)
    phi = drawn(rows=few)
    assert phi.n_components == len(landmarks_of(phi)) == 6
    features = phi.transform(few)
    assert_close(features @ features.T, phi.kernel(few, few), steps=1e7)


# Errors, and files.


def test_rows_are_needed():
    for rows in (None, np.empty((0, P))):
        with pytest.raises(ParameterError, match="made from rows, but there are none"):
            Nystroem(Gaussian(1.0), M).draw(P, rows)
    with pytest.raises(
        ParameterError, match="rows of 4 inputs are made from such rows, not from 3"
    ):
        Nystroem(Gaussian(1.0), M).draw(4, ROWS)


def test_landmarks_of_rows_in_order_are_spread_over_them():
    ordered = np.linspace(0.0, 1.0, 1000)[:, None]
    fitted = [Nystroem(Gaussian(0.1), M, random_state=seed).fit(ordered) for seed in (0, 0, 1)]
    first, same, other = (np.sort(each.similarities.landmarks.ravel()) for each in fitted)
    assert first[0] < 0.25
    assert first[-1] > 0.75
    assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("jitter", [0.0, 1.0, "small", True])
def test_a_jitter_that_cannot_be_is_refused(jitter):
    with pytest.raises(ParameterError, match="jitter must be a number between 0 and 1, not"):
        Nystroem(Gaussian(1.0), M, jitter=jitter)


def test_a_kernel_that_is_zero_at_all_landmarks_is_refused():
    with pytest.raises(ParameterError, match="is zero at all landmarks"):
        drawn(Polynomial(2, 0.0), rows=np.zeros((5, P)))


def test_a_damaged_factor_is_refused():
    for phi, name in ((drawn(), "factor"), (drawn().gram_map(), "levels")):
        with pytest.raises(ParameterError, match="the file is damaged"):
            MAPS[phi.name].restore(phi.parameters(), phi.arrays() | {name: -phi.arrays()[name]})


def test_chosen_rows_make_the_same_map_at_every_length_scale():
    def at(length_scale):
        return Nystroem(Gaussian(length_scale), M)

    few = at(1.5).chosen(ROWS)
    for length_scale in (1.5, 3.0):
        assert at(length_scale).draw(P, ROWS).equals(at(length_scale).draw(P, few))
    assert not isinstance(RandomFourierFeatures(Gaussian(1.5), M), FromRows)


@every_dtype
@pytest.mark.parametrize("p", [3, 64, 65, 100, 784])
@pytest.mark.parametrize("apart", [1e3, 1e5])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.0, nu=1.5), Matern(1.0, nu=0.5)])
def test_rows_of_clusters_far_apart_keep_their_distances(kernel, apart, p, dtype):
    """Centres lie so many length scales apart, and rows are near landmarks of their own."""
    rng = np.random.default_rng(0)
    centres = np.repeat([0.0, 0.6, 1.0], 6)[:, None] * np.full(p, apart / np.sqrt(p))
    landmarks = centres + rng.standard_normal((18, p)) / np.sqrt(p)
    rows = landmarks + rng.standard_normal((18, p)) / np.sqrt(2 * p)
    standardizer = Standardizer(np.arange(p), np.zeros(p), np.ones(p), p)
    features = Standardized(standardizer, KernelColumns(kernel, landmarks))
    values = kernel(rows, landmarks)
    np.testing.assert_allclose(features.transform(rows, dtype), values, atol=1e-5)
    coef = rng.standard_normal(18)
    sides = rows[:, None] - landmarks
    slopes = kernel.slope(np.sqrt(np.square(sides).sum(axis=2))) * coef
    found = gradients(features.inner, rows.astype(dtype), coef)
    digits = 1e-5 + 10 * apart * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, np.einsum("nm,nmp->np", slopes, sides), atol=digits)


def test_no_bit_of_the_factor_of_many_landmarks_depends_on_the_number_of_threads(monkeypatch):
    landmarks, found = np.random.default_rng(0).standard_normal((1300, 2)), []
    monkeypatch.setattr(nystroem, "_ALONE", 1000)
    for n_threads in (1, 3):
        monkeypatch.setattr(nystroem, "usable_cores", lambda n=n_threads: n)
        found.append(nystroem._factor(Gaussian(0.1), landmarks, 1e-8))
    assert np.array_equal(*found)
    matrix = Gaussian(0.1)(landmarks, landmarks) + 1e-8 * np.eye(1300)
    np.testing.assert_allclose(found[0] @ found[0].T, matrix, atol=1e-12)


def test_of_many_landmarks_those_that_others_leave_nothing_of_are_left_out(monkeypatch):
    monkeypatch.setattr(nystroem, "_PIVOTED", 4)
    monkeypatch.setattr(nystroem, "_PANEL", 8)
    monkeypatch.setattr(nystroem, "_STRIP", 6)
    landmarks = np.random.default_rng(0).standard_normal((30, 2))
    landmarks[[7, 20]] = landmarks[3]
    chosen, factor = nystroem._independent(Gaussian(1.0), landmarks, 1e-8)
    np.testing.assert_array_equal(chosen, np.delete(landmarks, [7, 20], axis=0))
    matrix = Gaussian(1.0)(chosen, chosen) + 1e-8 * np.eye(28)
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-12)
    assert (np.triu(factor, 1) == 0).all()


@pytest.mark.parametrize("fails", [False, True])
def test_landmarks_are_pivoted_only_where_they_cannot_be_told_apart(monkeypatch, fails):
    landmarks, made = np.random.default_rng(0).standard_normal((30, 2)), nystroem._factor
    calls, pivoted = [], nystroem._pivoted

    def factor(*given):
        calls.append("factor")
        if fails and len(calls) == 1:
            raise np.linalg.LinAlgError
        return made(*given)

    monkeypatch.setattr(nystroem, "_factor", factor)
    monkeypatch.setattr(nystroem, "_pivoted", lambda *a: calls.append("pivots") or pivoted(*a))
    chosen, _ = nystroem._independent(Gaussian(1.0), landmarks, 1e-8)
    np.testing.assert_array_equal(chosen, landmarks)
    assert calls == (["factor", "pivots", "factor"] if fails else ["factor"])
    monkeypatch.setattr(nystroem, "_PIVOTED", 4)
    calls.clear()
    if fails:
        with pytest.raises(ParameterError, match="30 landmarks indefinite at jitter 1e-08; give"):
            nystroem._independent(Gaussian(1.0), landmarks, 1e-8)
