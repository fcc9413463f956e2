"""Moments against naive loops of their formulas."""

import copy

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from streamkern.errors import ParameterError
from streamkern.features import Identity, RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian, Laplacian
from streamkern.statistics import Moments, maximum, total

N, P = 30, 3
FIELDS = ["gram", "cross", "target", "feature_mean", "target_mean"]
DTYPES = {"single": np.float32, "double": np.float64}


def standardized(mean: float = 0.5) -> Standardized:
    standardizer = Standardizer(np.array([0, 2]), np.full(2, mean), np.array([2.0, 0.5]), P)
    return Standardized(standardizer, RandomFourierFeatures(Gaussian(1.0), 4).draw(2))


MAPS = {
    "paired": lambda: RandomFourierFeatures(Gaussian(1.5), 6).draw(P),
    "phase": lambda: RandomFourierFeatures(Laplacian(1.0), 5, paired=False).draw(P),
    "identity": lambda: Identity().draw(P),
    "standardized": standardized,
}
every_map = pytest.mark.parametrize("feature_map", [MAPS[name]() for name in MAPS], ids=list(MAPS))
every_precision = pytest.mark.parametrize("precision", list(DTYPES))


def rows(q: int = 1, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, P)), 1 + rng.standard_normal((n, q)), rng.random(n) + 0.1


def shifts(feature_map, q: int) -> dict[str, np.ndarray]:
    return {
        "feature_shift": np.linspace(-0.5, 0.75, feature_map.n_components),
        "target_shift": np.linspace(1.0, 2.0, q),
        "target_unit": np.linspace(0.5, 3.0, q),
    }


def assert_alike(found, expected, **tolerance) -> None:
    """Centred moments say the same, to the bit where there is no tolerance."""
    for field in FIELDS:
        one, other = naive.array_of(found, field), naive.array_of(expected, field)
        if tolerance:
            assert_close(one, other, **tolerance)
        else:
            assert np.array_equal(one, other), field


def assert_centres(moments, X, y, s, *, steps=200.0) -> None:
    Phi = moments.feature_map.transform(X)
    dtype = DTYPES[moments.precision]
    # Sums are of about sum s numbers, each of the size of the largest value.
    size = float(s.sum() * max(1.0, np.abs(Phi).max(), np.abs(y).max()) ** 2)
    for intercept in (True, False):
        centred = moments.centred(intercept=intercept)
        expected = naive.moments(Phi, y, s, intercept=intercept)
        for field in FIELDS:
            assert_close(
                naive.array_of(centred, field), expected[field], dtype=dtype, steps=steps, size=size
            )
        assert_close(centred.weight, s.sum())
        assert (centred.intercept, centred.precision) == (intercept, moments.precision)
    assert moments.n_rows == len(X)


@every_map
@every_precision
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("shifted", [True, False], ids=["shifted", "unshifted"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
def test_centred_moments_are_those_of_the_formulas(feature_map, precision, q, shifted, weighted):
    X, y, s = rows(q)
    options = shifts(feature_map, q) if shifted else {}
    zero = Moments(feature_map, q, precision=precision, **options)
    cut = naive.blocks(X, y, [4, 19], s if weighted else None)
    assert_centres(naive.accumulated(zero, cut), X, y, s if weighted else np.ones(N), steps=20)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_shift_keeps_digits_where_means_are_large_beside_the_spread(precision):
    X, y, s = rows(2)
    far = 2.0**20
    options = {"feature_shift": np.full(P, far), "target_shift": np.full(2, far)}
    zero = Moments(Identity().draw(P), 2, precision=precision, **options)
    centred = naive.accumulated(zero, naive.blocks(X + far, y + far, [9], s)).centred()
    expected = naive.moments((X + far) - far, (y + far) - far, s, intercept=True)
    for field in ("gram", "cross", "target"):
        assert_close(
            naive.array_of(centred, field), expected[field], dtype=DTYPES[precision], size=N
        )


def test_targets_in_an_extreme_unit_keep_their_digits():
    X, y, s = rows(2)
    unit = np.array([1e30, 1e-30])
    zero = Moments(Identity().draw(P), 2, target_unit=unit)
    centred = naive.accumulated(zero, naive.blocks(X, y * unit, [9], s)).centred()
    expected = naive.moments(X, y, s, intercept=True)
    assert_close(centred.cross / unit, expected["cross"], dtype=np.float32, size=N)
    assert_close(centred.target / unit**2, expected["target"], size=N)


def test_sums_are_double_though_products_are_single():
    X, y = np.ones((1, 1)), np.zeros((1, 1))
    moments = Moments(Identity().draw(1))
    moments.update(naive.blocks(X * 4096, y) + naive.blocks(X, y) * 20)
    # 2^24 + 1 is not a single number, so a single sum would stay at 2^24; nor is 4097^2.
    assert moments.centred(intercept=False).gram.dense().tolist() == [[2.0**24 + 20]]
    products = naive.accumulated(moments, naive.blocks(X * 4097, y)).centred(intercept=False)
    assert products.gram.dense().tolist() == [[4097.0**2 - 1]]


def test_a_map_of_more_than_one_panel_gives_the_moments_of_the_products():
    X, y, s = rows(2)
    phi = RandomFourierFeatures(Gaussian(1.0), 600).draw(P)
    zero = Moments(phi, 2, precision="double", feature_shift=np.linspace(-1, 1, 600))
    moments = naive.accumulated(zero, naive.blocks(X, y, [9], s))
    features = phi.transform(X)
    for intercept in (True, False):
        mean = s @ features / s.sum() if intercept else np.zeros(600)
        expected = (features - mean).T @ (s[:, None] * (features - mean))
        gram = moments.centred(intercept=intercept).gram.dense()
        assert_close(gram, expected, size=s.sum())
        assert_close(gram, gram.T, steps=4)


OTHERS = {
    "seed": Moments(RandomFourierFeatures(Gaussian(1.5), 6, random_state=1).draw(P)),
    "length scale": Moments(RandomFourierFeatures(Gaussian(2.5), 6).draw(P)),
    "kernel": Moments(RandomFourierFeatures(Laplacian(1.5), 6).draw(P)),
    "form": Moments(RandomFourierFeatures(Gaussian(1.5), 6, paired=False).draw(P)),
    "number of features": Moments(RandomFourierFeatures(Gaussian(1.5), 8).draw(P)),
    "map": Moments(Identity().draw(6)),
    "precision": Moments(MAPS["paired"](), precision="double"),
    "number of targets": Moments(MAPS["paired"](), 2),
    "standardisation": Moments(standardized(0.6)),
}
TOGETHER = (
    "go together only when map, precision and targets are the same; compute both with the same"
)


@pytest.mark.parametrize("other", list(OTHERS.values()), ids=list(OTHERS))
@pytest.mark.parametrize("way", ["merge", "without"])
def test_moments_that_differ_in_an_option_do_not_go_together(other, way):
    mine = Moments(standardized(0.5) if other is OTHERS["standardisation"] else MAPS["paired"]())
    for left, right in ((mine, other), (other, mine)):
        with pytest.raises(ParameterError, match=TOGETHER):
            getattr(left, way)(right)


def other_shifts(feature_map, q: int) -> dict[str, np.ndarray]:
    return {
        "feature_shift": np.linspace(0.9, -0.4, feature_map.n_components),
        "target_shift": np.linspace(-3.0, 4.0, q),
        "target_unit": np.linspace(2.0, 0.25, q),
    }


@every_map
@naive.quick
@given(cuts=naive.cuts(N), seed=st.integers(0, 2**32))
def test_any_number_of_different_shifts_merge_to_those_of_all_rows(feature_map, cuts, seed):
    X, y, s = rows(2)
    rng = np.random.default_rng(seed)
    parts = []
    for block in naive.blocks(X, y, cuts, s):
        options = {
            "feature_shift": rng.standard_normal(feature_map.n_components),
            "target_shift": rng.standard_normal(2),
            "target_unit": 0.5 + rng.random(2),
        }
        zero = Moments(feature_map, 2, precision="double", **options)
        parts.append(naive.accumulated(zero, [block]))
    total = parts.pop(rng.integers(len(parts)))
    while parts:
        total = total.merge(parts.pop(rng.integers(len(parts))))
    assert_centres(total, X, y, s, steps=1000)


@every_map
@every_precision
def test_moments_about_another_shift_say_the_same(feature_map, precision):
    X, y, s = rows(2)
    zero = Moments(feature_map, 2, precision=precision, **shifts(feature_map, 2))
    moments = naive.accumulated(zero, naive.blocks(X, y, [9], s))
    before = copy.deepcopy(moments).centred()
    moved, of_none = (each.about(**other_shifts(feature_map, 2)) for each in (moments, zero))
    for name, shift in other_shifts(feature_map, 2).items():
        assert np.array_equal(getattr(moved, name), shift)
    assert_alike(moments.centred(), before)
    assert of_none.n_rows == 0
    of_none.update(naive.blocks(X, y, [9], s))
    for each in (moved, of_none):
        assert_centres(each, X, y, s)


@every_map
@every_precision
@pytest.mark.parametrize("shifted", [True, False], ids=["shifted", "alike"])
def test_what_is_left_without_some_rows_are_the_moments_of_the_others(
    feature_map, precision, shifted
):
    X, y, s = rows(2)
    options = shifts(feature_map, 2)
    zero = Moments(feature_map, 2, precision=precision, **options)
    others = other_shifts(feature_map, 2) if shifted else options
    other = Moments(feature_map, 2, precision=precision, **others)
    cut = naive.blocks(X, y, [11, 19], s)
    whole, part = naive.accumulated(zero, cut), naive.accumulated(other, cut[1:2])
    before = copy.deepcopy(whole), copy.deepcopy(part)
    kept = np.r_[:11, 19:N]
    assert_centres(whole.without(part), X[kept], y[kept], s[kept])
    for moments, as_before in zip((whole, part), before, strict=True):
        assert_alike(moments.centred(), as_before.centred())


class Counted(Moments):
    """Moments with sums of their own: those of every input, and the number of large targets."""

    n_large: int = total(dtype=int)
    inputs: np.ndarray = total(P)

    def update(self, blocks):
        for block in blocks:
            self.n_large += int((block.y > 1).sum())
            self.inputs += block.X.sum(axis=0)
            super().update([block])


@pytest.mark.parametrize("shifted", [True, False])
def test_sums_that_a_subclass_adds_are_merged_moved_and_removed_with_the_others(shifted):
    feature_map = MAPS["paired"]()
    options = shifts(feature_map, 1) if shifted else {}
    X, y, _ = rows()
    left, right = naive.blocks(X, y, [11])
    whole = naive.accumulated(Counted(feature_map), [left, right])
    part = naive.accumulated(Counted(feature_map, **options), [left])
    rest = naive.accumulated(Counted(feature_map), [right])
    for found, kept in (
        (whole.without(part), slice(11, N)),
        (rest.merge(part), slice(N)),
        (part.of_map(feature_map, np.zeros(3)), slice(11)),
    ):
        assert found.n_large == (y[kept] > 1).sum()
        assert_close(found.inputs, X[kept].sum(axis=0), size=100.0)
    assert_alike(whole.without(part).centred(), rest.centred(), dtype=np.float32, size=500.0)


def test_rows_are_not_removed_from_sums_that_cannot_be_subtracted():
    class Largest(Moments):
        largest: float = maximum()

    with pytest.raises(ParameterError, match="removed from largest of Largest; declare sums"):
        Largest(MAPS["paired"]()).without(Largest(MAPS["paired"]()))


def test_more_rows_than_there_are_cannot_be_taken_away():
    X, y, _ = rows()
    zero = Moments(MAPS["paired"]())
    few, many = (naive.accumulated(zero, naive.blocks(X[:n], y[:n])) for n in (9, 10))
    with pytest.raises(ParameterError, match="of 10 rows cannot be taken from those of 9; take"):
        few.without(many)


LEADING = {
    "paired": (RandomFourierFeatures(Gaussian(1.5), 12).draw(P), 6),
    "phase": (RandomFourierFeatures(Laplacian(1.0), 9, paired=False).draw(P), 5),
    "one pair": (RandomFourierFeatures(Gaussian(1.0), 12).draw(P), 2),
    "panels": (RandomFourierFeatures(Gaussian(1.0), 600).draw(P), 300),
    "one panel": (RandomFourierFeatures(Gaussian(1.0), 600).draw(P), 256),
    "standardised": (
        Standardized(standardized().standardizer, RandomFourierFeatures(Gaussian(1.0), 8).draw(2)),
        4,
    ),
}


@pytest.mark.parametrize(("feature_map", "D"), list(LEADING.values()), ids=list(LEADING))
@every_precision
@pytest.mark.parametrize("intercept", [True, False])
def test_leading_moments_are_those_of_the_smaller_map(feature_map, D, precision, intercept):
    X, y, s = rows(2)
    smaller, cut = feature_map.first(D), naive.blocks(X, y, [9], s)
    zero = Moments(feature_map, 2, precision=precision, **shifts(feature_map, 2))
    part = naive.accumulated(zero, cut).leading(D)
    expected = naive.accumulated(Moments(smaller, 2, precision=precision), cut)
    assert part.feature_map.equals(smaller)
    assert part.n_rows == N
    found, expected = (moments.centred(intercept=intercept) for moments in (part, expected))
    assert_alike(found, expected, dtype=DTYPES[precision], size=20.0 * N)


def test_all_leading_moments_are_the_moments_and_those_of_no_rows_have_none():
    moments = Moments(LEADING["paired"][0])
    assert moments.leading(12) is moments
    assert moments.leading(6).n_rows == 0
    with pytest.raises(ParameterError, match="moments of no rows"):
        moments.leading(6).centred()


@pytest.mark.parametrize(
    ("feature_map", "D", "match"),
    [
        (MAPS["identity"](), 2, "no part of 2 features"),
        (MAPS["paired"](), 8, "between 1 and 6 features, not 8"),
        (MAPS["paired"](), 3, "n_components must be even"),
    ],
)
def test_a_map_without_such_a_part_has_no_leading_moments(feature_map, D, match):
    with pytest.raises(ParameterError, match=match):
        Moments(feature_map).leading(D)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ParameterError, match="precision must be 'single' or 'double', not"):
        Moments(Identity().draw(P), precision="half")


def test_moments_of_no_rows_are_refused():
    X, y, _ = rows()
    zero = Moments(Identity().draw(P))
    cuts = [], naive.blocks(X, y, [], np.zeros(N)), naive.blocks(X[:0], y[:0])
    for moments in (naive.accumulated(zero, cut) for cut in cuts):
        with pytest.raises(ParameterError, match="moments of no rows cannot be centred"):
            moments.centred()
