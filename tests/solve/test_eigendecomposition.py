"""Eigenvectors found side by side, against LAPACK's."""

import threading
import tracemalloc

import numpy as np
import pytest
from tolerances import assert_close

from streamkern.solve import decomposed, eigendecomposition
from streamkern.solve.eigendecomposition import (
    decomposed_in_range,
    decomposition_bytes,
    shifted_solutions,
)
from streamkern.statistics import Triangle

SPECTRA = {
    "decaying": lambda D: np.logspace(0, -12, D),
    "alike": lambda D: np.repeat([1.0, 2.0], [D // 2, D - D // 2]),
    "of low rank": lambda D: np.where(np.arange(D) < D // 8, 1.0, 0.0),
    "of both signs": lambda D: np.linspace(-1.0, 1.0, D),
    "zero": np.zeros,
    "tiny": lambda D: 1e-150 * np.linspace(0.0, 1.0, D),
    "huge": lambda D: 1e150 * np.linspace(0.0, 1.0, D),
}
every_spectrum = pytest.mark.parametrize("spectrum", list(SPECTRA.values()), ids=list(SPECTRA))


@pytest.fixture
def in_pieces(monkeypatch):
    """Small matrices are decomposed as large ones are."""
    monkeypatch.setattr(eigendecomposition, "SMALL", 0)


def with_values(values: np.ndarray) -> np.ndarray:
    D = len(values)
    vectors = np.linalg.qr(np.random.default_rng(D).standard_normal((D, D)))[0]
    matrix = (vectors * values) @ vectors.T
    return (matrix + matrix.T) / 2


def assert_decomposes(matrix, values, vectors) -> None:
    D, largest = len(matrix), max(np.abs(values).max(), 1e-300)
    assert (np.diff(values) >= 0).all()
    assert_close(vectors.T @ vectors, np.eye(D), steps=10 * D)
    assert_close((vectors * values) @ vectors.T, matrix, steps=10 * D, size=largest)


@every_spectrum
@pytest.mark.parametrize("D", [1, 2, 64, 65, 97, 513])
def test_in_pieces_it_decomposes(spectrum, D, in_pieces):
    matrix = with_values(spectrum(D))
    values, vectors = decomposed(matrix.copy(), 2)
    assert_decomposes(matrix, values, vectors)
    expected = np.linalg.eigvalsh(matrix)
    assert_close(values, expected, steps=10 * D, size=max(np.abs(expected).max(), 1e-300))


@pytest.mark.parametrize("D", [1, 2, 100, 1024, 1025])
def test_matrices_on_both_sides_of_the_border_are_decomposed(D):
    matrix = with_values(np.logspace(0, -9, D))
    assert_decomposes(matrix, *decomposed(matrix.copy()))


RANKS = {"decaying": lambda r: np.logspace(-9, 0, r), "alike": np.ones, "none": np.zeros}


@pytest.mark.parametrize("spectrum", list(RANKS.values()), ids=list(RANKS))
@pytest.mark.parametrize(("D", "rank"), [(1, 0), (12, 3), (300, 40), (600, 1)])
def test_a_matrix_of_low_rank_is_decomposed_in_its_range(spectrum, D, rank):
    nonzero = spectrum(rank)
    matrix = with_values(np.concatenate([np.zeros(D - rank), nonzero]))
    values, vectors = decomposed_in_range(Triangle.of(matrix), rank)
    largest = max(nonzero.max(initial=0.0), 1e-300)
    assert (np.diff(values) >= 0).all()
    assert_close(values[D - rank :], nonzero, steps=10 * D, size=largest)
    assert_close((vectors * values) @ vectors.T, matrix, steps=10 * D, size=largest)
    assert not vectors[:, : max(D - rank - eigendecomposition._OVERSAMPLED, 0)].any()
    inside = vectors[:, D - rank :]
    assert_close(inside.T @ inside, np.eye(rank), steps=10 * D)


@pytest.mark.parametrize("rank", [40, 100])
def test_noise_of_single_precision_costs_the_range_little(rank):
    D = 300
    rng = np.random.default_rng(rank)
    exact = with_values(np.concatenate([np.zeros(D - rank), np.logspace(-6, 0, rank)]))
    noise = rng.standard_normal((D, D)) * 3e-8
    noisy = exact + (noise + noise.T) / 2
    whole_values, whole = decomposed(noisy.copy())
    values, vectors = decomposed_in_range(Triangle.of(noisy), rank)

    def off(values, vectors):
        part = slice(D - rank, D)
        return np.linalg.norm((vectors[:, part] * values[part]) @ vectors[:, part].T - exact, 2)

    assert off(values, vectors) < 1.5 * off(whole_values, whole)
    assert values[D - rank :] == pytest.approx(whole_values[D - rank :], rel=0.05, abs=5e-7)


@pytest.mark.parametrize("in_range", [True, False], ids=["range", "whole"])
def test_no_bit_depends_on_the_number_of_threads(monkeypatch, in_pieces, in_range):
    matrix = with_values(np.concatenate([np.zeros(400 * in_range), np.logspace(-6, 0, 300)]))

    def found(n_threads):
        if in_range:
            monkeypatch.setattr(eigendecomposition, "usable_cores", lambda: n_threads)
            return decomposed_in_range(Triangle.of(matrix), 300)
        return decomposed(matrix.copy(), n_threads)

    alone = found(1)
    for n_threads in (2, 4):
        assert all(np.array_equal(a, b) for a, b in zip(alone, found(n_threads), strict=True))


def test_it_works_on_several_threads(in_pieces, threads_in):
    seen = threads_in(eigendecomposition, "_subtract")
    decomposed(with_values(np.linspace(0.0, 1.0, 1200)), 2)
    assert len(seen) == 2


@pytest.mark.parametrize("D", [1, 2, 64, 65, 97, 513])
@pytest.mark.parametrize("k", [1, 3])
def test_shifted_systems_are_solved_and_no_bit_depends_on_the_number_of_threads(D, k):
    matrix, shifts = with_values(np.linspace(0.0, 1.0, D)), np.array([1e-3, 0.1, 10.0])
    columns = np.random.default_rng(0).standard_normal((D, k))
    kept = columns.copy()
    found = shifted_solutions(matrix.copy(), shifts, columns, 1)
    assert found.shape == (D, 3, k)
    np.testing.assert_array_equal(columns, kept)
    np.testing.assert_array_equal(shifted_solutions(matrix.copy(), shifts, columns, 2), found)
    for shift, solution in zip(shifts, found.transpose(1, 0, 2), strict=True):
        assert_close(matrix @ solution + shift * solution, columns, size=1e3)
    with pytest.raises(np.linalg.LinAlgError):
        shifted_solutions(matrix - 2.0 * np.eye(D), shifts, columns)


@pytest.mark.parametrize("why", ["large", "integers"])
def test_what_the_routines_cannot_take_numpy_decomposes(why, monkeypatch):
    monkeypatch.setattr(eigendecomposition, "_LARGE", 50 if why == "large" else 100)
    monkeypatch.setattr(eigendecomposition, "has_c_integers", lambda: why == "large")
    matrix = with_values(np.linspace(0.0, 1.0, 60))
    expected = np.linalg.eigh(matrix)
    for found, wanted in zip(decomposed(matrix.copy()), expected, strict=True):
        assert np.array_equal(found, wanted)


def test_it_takes_three_matrices(in_pieces):
    D = 800
    matrix = with_values(np.linspace(0.0, 1.0, D))
    tracemalloc.start()
    decomposed(matrix, 2)
    beside, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < decomposition_bytes(D) - matrix.nbytes + 2 * 8 * 300 * D
    assert beside < 1.1 * matrix.nbytes


def test_a_routine_lets_other_threads_run():
    D = 700
    matrix, ticks, done = with_values(np.linspace(0.0, 1.0, D)), [], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(1)
            done.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    decomposed(matrix)  # in one call
    during = len(ticks)
    done.set()
    thread.join()
    assert during > 10
