"""Hashed features: cells of random grids."""

import math

import numpy as np
import pytest

from streamkern.errors import ParameterError
from streamkern.features import RandomBinning
from streamkern.kernels import Gaussian, Laplacian

P, D = 3, 32
KERNEL = Laplacian((1.0, 2.0, 3.0))
ROWS = np.random.default_rng(0).standard_normal((40, P))


def drawn(n_components=D, kernel=KERNEL, **options) -> RandomBinning:
    return RandomBinning(kernel, n_components, **options).draw(P)


def products(maps, X, Z) -> np.ndarray:
    """phi(x)^T phi(z) of every map and pair of rows."""
    return np.array([(phi.transform(X) * phi.transform(Z)).sum(axis=1) for phi in maps])


def test_rows_share_an_entry_where_they_share_a_cell():
    phi = drawn()
    features = phi.transform(ROWS).reshape(len(ROWS), phi.n_grids, -1)
    cells = [
        [tuple(math.floor((x[j] - u[j]) / w[j]) for j in range(P)) for x in ROWS.tolist()]
        for u, w in zip(phi.offsets, phi.widths, strict=True)
    ]
    shared = 0
    for g, of_rows in enumerate(cells):
        for i in range(len(ROWS)):
            for k in range(i):
                if of_rows[i] == of_rows[k]:
                    shared += 1
                    assert np.array_equal(features[i, g], features[k, g])
    assert shared > 100


@pytest.mark.parametrize("n_entries", [1, 2, 8])
def test_every_grid_has_one_signed_entry(n_entries):
    phi = drawn(n_entries=n_entries)
    features = phi.transform(ROWS).reshape(len(ROWS), D // n_entries, n_entries)
    assert (np.count_nonzero(features, axis=2) == 1).all()
    assert set(np.unique(np.abs(features))) <= {0.0, phi.scale}
    assert {-1.0, 1.0} == set(np.unique(np.sign(features[features != 0])))


@pytest.mark.parametrize("n_entries", [1, 2, 8])
def test_features_have_no_bias_and_the_variance_of_the_formula(n_entries):
    X, Z = ROWS[:20], ROWS[:20] + np.linspace(0, 1.5, 20)[:, None]
    k = np.diagonal(KERNEL(X, Z))
    found = products((drawn(random_state=s, n_entries=n_entries) for s in range(1500)), X, Z)
    variance = (k + (1 - k) / n_entries - k**2) / (D / n_entries)
    assert (np.abs(found.mean(axis=0) - k) <= 4 * np.sqrt(variance / len(found)) + 1e-12).all()
    assert found.var(axis=0)[1:] == pytest.approx(variance[1:], rel=0.2)


@pytest.mark.parametrize(("D", "B"), [(32, 8), (12, 4), (7, 1), (2, 2)])
def test_by_default_grids_have_eight_entries_or_what_divides_the_features(D, B):
    assert drawn(D).n_entries == drawn(D).nesting == B


def test_the_first_grids_are_a_smaller_map():
    phi = drawn()
    part = phi.first(16)
    assert part.equals(drawn(16))
    assert np.allclose(
        part.transform(ROWS) * part.scale, phi.transform(ROWS)[:, :16] / phi.scale * part.scale**2
    )
    for k in (0, 12, 40):
        with pytest.raises(ParameterError, match=f"multiple of 8 features, up to 32, not {k}"):
            phi.first(k)


def test_rows_that_are_not_finite_or_far_away_have_features_of_their_own_kind():
    X = np.array([[0.0, np.nan, 0.0], [0.0, np.inf, 0.0], [1e300, 0.0, 0.0], [0.0, 0.0, 0.0]])
    features = drawn().transform(X)
    assert np.isnan(features[:2]).all()
    assert np.isfinite(features[2:]).all()


# Refusals.


@pytest.mark.parametrize(
    ("make", "name", "damage"),
    [
        (drawn, "widths", lambda held: held[:2]),
        (drawn, "widths", lambda held: -held),
        (drawn, "offsets", lambda held: held[:, :2]),
        (drawn, "multipliers", lambda held: held.astype(float)),
        (drawn, None, lambda held: held[:, :0]),
    ],
)
def test_a_damaged_map_is_refused(make, name, damage):
    phi = make()
    changed = {each: damage(a) for each, a in phi.arrays().items() if name in (each, None)}
    with pytest.raises(ParameterError, match="the file is damaged"):
        type(phi).restore(phi.parameters(), phi.arrays() | changed)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RandomBinning(Gaussian(1.0), D), "for the Laplacian kernel, not for Gauss"),
        (lambda: drawn(n_entries=5), "a multiple of the 5 entries of a grid, not 32"),
        (lambda: RandomBinning(KERNEL, D).first(8), "not drawn yet"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()
