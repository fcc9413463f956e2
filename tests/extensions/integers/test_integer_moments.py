"""Sums of rounded features against Python's integers, in every cut, and at the edges."""

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor import require_exact_products
from rows_read import python
from scipy import sparse

from streamkern.errors import OverflowedError, ParameterError
from streamkern.extensions.integers import integer_products as made
from streamkern.extensions.integers.integer_moments import IntegerMoments, update_bytes
from streamkern.extensions.integers.integer_products import BlasProducts, MklProducts, OnnxProducts
from streamkern.extensions.integers.integer_units import integer_units, unit_of_weights
from streamkern.extensions.integers.wide_integers import add_shifted, as_floats
from streamkern.features import (
    FAMILIES,
    LEVELS,
    FeatureMap,
    Identity,
    Nystroem,
    QuasiRandomFourierFeatures,
    RandomFourierFeatures,
    Standardized,
    Standardizer,
    StructuredFourierFeatures,
    bounds,
    round_into,
)
from streamkern.features.exact_products import coarse, factor_bits
from streamkern.kernels import Gaussian, Laplacian
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.sparse_rows import SparseRows
from streamkern.sources import Block
from streamkern.statistics import Moments

N, P, Q = 700, 3, 2
UNIT = 2.0**-20
every_precision = pytest.mark.parametrize("precision", list(LEVELS))
PRODUCTS = {kind.name: kind for kind in (BlasProducts, OnnxProducts, MklProducts)}
every_product = pytest.mark.parametrize("products", list(PRODUCTS))


def rows(n=N):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, P)), rng.standard_normal((n, Q)), rng.gamma(1.0, 1.0, n)


def turned() -> FeatureMap:
    linear = np.random.default_rng(1).standard_normal((2, P))
    standardizer = Standardizer(np.arange(P), np.full(P, 0.3), np.full(P, 1.7), P, linear)
    return Standardized(standardizer, RandomFourierFeatures(Gaussian(1.0), 6).draw(2))


MAPS = {
    "paired": lambda: RandomFourierFeatures(Gaussian(1.5), 530).draw(P),
    "odd": lambda: RandomFourierFeatures(Gaussian(1.5), 7).draw(P),
    "phases": lambda: RandomFourierFeatures(Laplacian(1.0), 5, paired=False).draw(P),
    "sobol": lambda: QuasiRandomFourierFeatures(Gaussian(1.0), 8).draw(P),
    "sorf": lambda: StructuredFourierFeatures(Gaussian(1.0), 80).draw(P),
    "metric": turned,
}
if "grid" in FAMILIES:
    MAPS["grid"] = lambda: FAMILIES["grid"].map_of(Gaussian(1.0), 9).draw(P, rows()[0])
    MAPS["some of a grid"] = lambda: MAPS["grid"]().subset(np.array([0, 3, 8]))
every_map = pytest.mark.parametrize("feature_map", [MAPS[name]() for name in MAPS], ids=list(MAPS))


def moments(feature_map, X, y, weights=None, cuts=(), **options) -> IntegerMoments:
    options = {"target_unit": np.full(y.shape[1], UNIT)} | options
    total = IntegerMoments(feature_map, y.shape[1], **options)
    ends = [0, *cuts, len(X)]
    blocks = [slice(*pair) for pair in pairwise(ends)]
    total.update(
        Block(X[k], y[k], k.start, None if weights is None else weights[k]) for k in blocks
    )
    return total


def integers(words):
    """Return wide integers as those of Python."""
    return sum(words[..., k].astype(object) << (56 * k) for k in range(3))


def assert_same(found, expected):
    for name in ("cross", "target", "target_sum"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for mine, theirs in zip(found.gram.panels, expected.gram.panels, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (found.weight, found.n_rows) == (expected.weight, expected.n_rows)


@every_map
@every_precision
def test_features_are_the_exact_ones_rounded(feature_map, precision):
    X, levels = rows()[0], LEVELS[precision]
    rounded = np.empty((feature_map.n_components, N), np.int16)
    round_into(feature_map, X, levels, rounded, Scratch())
    exact = feature_map.transform(X).T / feature_map.scale
    exact = exact / bounds(feature_map)[:, None]
    assert np.abs(rounded - levels * exact).max() < (0.51 if precision == "int8" else 0.55)
    assert np.abs(rounded).max() <= levels


@every_precision
@pytest.mark.parametrize("kind", ["none", "real", "whole"])
@every_product
def test_sums_are_those_of_integers(precision, kind, products, monkeypatch):
    require_exact_products(products)
    monkeypatch.setenv("STREAMKERN_INTEGER_PRODUCTS", products)
    X, y, real = rows()
    weights = {"none": None, "real": real, "whole": np.arange(N) % 4.0}[kind]
    feature_map = MAPS["paired"]()
    found = moments(feature_map, X, y, weights, precision=precision)
    q = np.empty((feature_map.n_components, N), np.int16)
    round_into(feature_map, X, found.levels, q, Scratch())
    q, Y = q.astype(np.int64), np.rint(y / UNIT).astype(np.int64)
    s = np.rint((np.ones(N) if weights is None else weights) * 2**10).astype(np.int64)
    some = slice(500, None)  # of both panels
    expected = (q[some] * s) @ q.T
    np.testing.assert_array_equal(found.gram.dense()[some], expected.astype(float))
    np.testing.assert_array_equal(integers(found.cross)[:, :Q], (q * s) @ Y)
    np.testing.assert_array_equal(integers(found.cross)[:, Q], q @ s)
    np.testing.assert_array_equal(
        integers(found.target), (s[:, None].astype(object) * Y * Y).sum(axis=0)
    )
    np.testing.assert_array_equal(integers(found.target_sum), s @ Y)
    assert found.weight == sum(s) / 2**10


@every_precision
@pytest.mark.parametrize("name", [name for name in ("paired", "grid") if name in MAPS])
def test_they_are_the_moments_of_rounded_features(precision, name):
    (X, y, weights), feature_map = rows(), MAPS[name]()
    exact = Moments(feature_map, Q, precision="double")
    exact.update([Block(X, y, 0, weights)])
    found, expected = moments(feature_map, X, y, weights, precision=precision), exact.centred()
    size, centred = feature_map.scale * np.max(bounds(feature_map)), found.centred()
    close = size * N / LEVELS[precision]
    assert np.abs(centred.gram.dense() - expected.gram.dense()).max() < 3.0 * size * close
    assert np.abs(centred.cross - expected.cross).max() < close / 2
    np.testing.assert_allclose(centred.target, expected.target, rtol=1e-3)


def test_a_wild_row_leaves_no_trace():
    X, y, _ = rows()
    wild = np.full((1, Q), 1e9)
    tame = moments(MAPS["paired"](), X, y)
    both = tame.merge(moments(MAPS["paired"](), X[:1], wild))
    assert as_floats(both.target)[0] > 1e18 / UNIT**2
    assert_same(both.without(moments(MAPS["paired"](), X[:1], wild)), tame)


@every_precision
@every_product
def test_the_largest_sums_of_many_rows_are_exact(precision, products, monkeypatch):
    require_exact_products(products)
    monkeypatch.setenv("STREAMKERN_INTEGER_PRODUCTS", products)
    n = 133_000
    feature_map = RandomFourierFeatures(Gaussian(1.0), 4).draw(1)
    y = np.where(np.arange(n) % 2, -1.0, 1.0)[:, None] * 8.0
    y[0] = 2.0**29
    weights = np.ones(n)
    weights[1:4] = 0.0, 1e-9, 2.0**24
    found = moments(feature_map, np.zeros((n, 1)), y, weights, precision=precision)
    s = np.rint(weights * 2**10).astype(int).astype(object)
    Y = np.rint(y[:, 0] / UNIT).astype(int).astype(object)
    levels = LEVELS[precision]
    assert found.gram.dense()[:2, :2].tolist() == [[sum(s) * levels**2, 0.0], [0.0, 0.0]]
    assert integers(found.cross)[0].tolist() == [levels * (s @ Y), levels * sum(s)]
    assert integers(found.target).tolist() == [s @ (Y * Y)]


@pytest.mark.parametrize(
    ("y", "weight", "why"),
    [(1e30, 1.0, "a target is too large"), (0.0, 1e15, "a weight is too large")],
)
def test_what_no_integer_holds_is_refused_by_name(y, weight, why):
    X = np.zeros((3, P))
    with pytest.raises(OverflowedError, match=f"^in rows 0 to 3 {why}"):
        moments(MAPS["paired"](), X, np.full((3, 1), y), np.full(3, weight))


def test_rows_that_no_sum_holds_are_refused_before_it_overflows():
    X, y = np.zeros((40, P)), np.zeros((40, 1))
    with pytest.raises(OverflowedError, match=r"weigh 4e\+07 are more than sums in int16 hold"):
        moments(MAPS["paired"](), X, y, np.full(40, 1e6), precision="int16")


def test_sums_that_overflow_when_they_merge_are_refused():
    X, y = np.zeros((12, P)), np.zeros((12, 1))
    half = moments(MAPS["paired"](), X, y, np.full(12, 6e5), precision="int16")
    whole = half.merge(half)
    assert whole.without(half).weight == half.weight
    with pytest.raises(OverflowedError, match=r"weigh 2\.88e\+07 are more than sums in int16 hold"):
        whole.merge(whole)


@every_map
def test_inputs_that_are_no_numbers_are_refused(feature_map):
    X, y, _ = rows()
    X[5] = np.nan
    with pytest.raises(OverflowedError, match="inputs are too large"):
        moments(feature_map, X, y)


@pytest.mark.parametrize(
    "feature_map",
    [Identity().draw(P), Nystroem(Gaussian(1.0), 8).draw(P, rows()[0])],
    ids=["identity", "landmarks"],
)
def test_features_without_bounds_are_refused_with_the_remedy(feature_map):
    with pytest.raises(ParameterError, match="take Moments instead"):
        IntegerMoments(feature_map)
    with pytest.raises(ParameterError, match=r"have no bound"):
        round_into(feature_map, rows()[0], 127, np.empty((8, N), np.int8), Scratch())


def updated(found, *block):
    """Update moments, and return what that took at most."""
    tracemalloc.start()
    found.update([Block(*block)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@every_precision
@pytest.mark.parametrize("weighted", [False, True])
def test_an_update_takes_what_is_projected(precision, weighted, monkeypatch):
    monkeypatch.delenv("STREAMKERN_INTEGER_PRODUCTS", raising=False)
    monkeypatch.setattr(made, "_measured", lambda _: [(1.0, BlasProducts())])
    n, D, in_cache = 8192, 512, 5 << 20
    X, y, weights = rows(n)
    feature_map = RandomFourierFeatures(Gaussian(1.0), D).draw(P)
    found = moments(feature_map, X[:5], y[:5], precision=precision)  # which compiles
    peak = updated(found, X, y, 0, weights if weighted else None)
    assert peak < update_bytes(precision, D, Q, n, weighted=weighted) + in_cache < 2 * peak


LIBRARIES = """
from pathlib import Path
import streamkern.fit
from streamkern.extensions.integers import integer_products, integer_system
def resident():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])
before = resident()
integer_products.integer_products()
print(resident() - before, integer_system.IntegerFootprint.library_bytes)
"""


@pytest.mark.slow
def test_libraries_of_products_take_no_more_than_planned():
    pytest.importorskip("onnxruntime")
    taken, planned = map(int, python(LIBRARIES).stdout.split())
    assert taken < planned


def test_sparse_rows_are_made_dense_a_slice_at_a_time():
    n, p = 4000, 3000
    X, y = sparse.random(n, p, 0.01, "csr", random_state=0), np.zeros((n, 1))
    standardizer = Standardizer(np.arange(1, p), np.full(p - 1, 0.01), np.full(p - 1, 2.0), p)
    inner = RandomFourierFeatures(Gaussian(9.0), 16).draw(p - 1)
    feature_map = Standardized(standardizer, inner)
    expected = moments(feature_map, X.toarray(), y)
    found = expected.zero()
    assert updated(found, SparseRows.of(X), y, 0) < n * p * 4  # a half of all rows in double
    assert_same(found, expected)


def test_targets_have_units_and_features_no_shift():
    with pytest.raises(ParameterError, match=r"give target_unit, which .*integer_units makes"):
        IntegerMoments(MAPS["odd"]())
    with pytest.raises(ParameterError, match="leave feature_shift out"):
        IntegerMoments(MAPS["odd"](), target_unit=np.ones(1), feature_shift=np.ones(7))


@pytest.mark.parametrize(
    ("weights", "unit", "lost"),
    [
        (np.full(N, 0.4), 1.0, True),
        (np.full(8, 0.4), 1.0, False),  # too few to judge by, as are rows that are forgotten
        (None, 4.0, True),
        (np.random.default_rng(0).gamma(0.5, 1.0, N), 2.0**-11, False),
        (np.where(np.arange(N) < 3, 1e9, 1.0), 2.0**11, True),
    ],
)
def test_weights_are_not_lost_without_a_word(weights, unit, lost):
    n = N if weights is None else len(weights)
    why = "weights are too small or too uneven for sums in int8; take precision 'double'"
    with pytest.raises(OverflowedError, match=why) if lost else nullcontext():
        moments(MAPS["odd"](), np.zeros((n, P)), np.zeros((n, Q)), weights, weight_unit=unit)


def test_units_are_those_of_any_order_and_leave_room():
    y = np.random.default_rng(0).standard_normal(5000)
    y, weights = (y - y.mean()) / y.std(), np.exp(y)
    weights /= weights.mean()
    found = set()
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(len(y))
        mean, square, weight = (part[order].sum() / len(y) for part in (y, y * y, weights))
        # The mean of the first target is between two units.
        units = integer_units(np.array([mean + 0.5, 1.0]) * square, np.sqrt([square, square]))
        unit = unit_of_weights(weight * len(y), len(y), "int8", whole=False)
        found.add((*units["target_shift"], *units["target_unit"], unit))
    assert found == {(0.0, 1.0, 2.0**-20, 2.0**-20, 2.0**-10)}
    assert unit_of_weights(2.0**40, 10**8, "int8", whole=False) == 8.0
    assert unit_of_weights(2.0**40, 10**8, "int8", whole=True) == 1.0
    unit = unit_of_weights(2.0**40, 10**8, "int16", whole=False)
    assert 2.0**60 < 2.0**40 / unit * LEVELS["int16"] ** 2 <= 2.0**61


def test_moments_in_other_units_do_not_merge():
    X, y, _ = rows()
    one = moments(MAPS["paired"](), X, y)
    for other in ({"target_unit": np.full(Q, 2 * UNIT)}, {"precision": "int16"}):
        with pytest.raises(ParameterError, match="in integers go together only"):
            one.merge(moments(MAPS["paired"](), X, y, **other))


def test_products_that_saturate_are_left_out():
    class Saturating(BlasProducts):
        def __call__(self, left, right):
            return np.clip(super().__call__(left, right), -(2**24), 2**24)

    assert made._is_exact(BlasProducts())
    assert not made._is_exact(Saturating())


@every_product
def test_what_is_taken_is_exact_here_and_what_is_refused_is_not(products):
    try:
        candidate = PRODUCTS[products](*([1] if products == OnnxProducts.name else []))
    except (ImportError, OSError) as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(3)
    extremes = [np.full(300, low, np.uint8) for low in (0, 255)], [[-128] * 300, [127] * 300]
    random = rng.integers(0, 256, (40, 300)), rng.integers(-128, 128, (30, 300))
    A, B = (np.vstack(pair) for pair in zip(extremes, random, strict=True))
    A, B = A.astype(np.uint8), B.astype(np.int8)
    expected = (A.astype(np.int64) - 128) @ B.T.astype(np.int64)
    found = candidate(candidate.prepared(A), candidate.prepared(B))
    assert np.array_equal(found, expected) == (products in made.exact_products())


def test_products_are_measured_by_one_thread(monkeypatch):
    def slow(_):
        time.sleep(0.05)
        return [(1.0, BlasProducts())]

    monkeypatch.delenv("STREAMKERN_INTEGER_PRODUCTS", raising=False)
    monkeypatch.setattr(made, "_measured", cache(slow))
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: made.integer_products(), range(4)))) == 1


def test_products_of_a_name_are_taken(monkeypatch):
    exact = made.exact_products()
    for name in (*PRODUCTS, "abacus"):
        monkeypatch.setenv("STREAMKERN_INTEGER_PRODUCTS", name)
        if name in exact:
            assert type(made.integer_products()) is PRODUCTS[name]
            assert made.product_rate() > 0
        else:
            with pytest.raises(ParameterError, match=f"not by '{name}'; choose one"):
                made.integer_products()


def test_the_graph_is_what_onnx_writes():
    helper = pytest.importorskip("onnx.helper")
    types = pytest.importorskip("onnx").TensorProto

    def matrix(name, kind):
        return helper.make_tensor_value_info(name, kind, [None, None])

    nodes = [
        helper.make_node("Transpose", ["B"], ["Bt"], perm=[1, 0]),
        helper.make_node("MatMulInteger", ["A", "Bt", "z"], ["C"]),
    ]
    zero = helper.make_tensor("z", types.UINT8, [], [128])
    graph = helper.make_graph(
        nodes, "g", [matrix("A", types.UINT8), matrix("B", types.INT8)], [matrix("C", types.INT32)]
    )
    graph.initializer.append(zero)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert model.SerializeToString() == made._GRAPH


def test_products_of_coarse_rows_are_exact():
    rng = np.random.default_rng(0)
    bits = factor_bits(90)
    left, right = (
        coarse(rng.standard_normal((5, 90)) * 10.0 ** rng.integers(-9, 9), bits) for _ in range(2)
    )
    for i, j in np.ndindex(5, 5):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(left[i], right[j], strict=True))
        assert Fraction(float(left[i] @ right[j])) == exact


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 80)), min_size=1))
def test_wide_integers_add_like_those_of_python(terms):
    words, expected = np.zeros((1, 3), np.int64), 0
    for value, shift in terms:
        add_shifted(words, np.array([value]), shift)
        expected += value << shift
    assert integers(words)[0] == expected
    assert as_floats(words)[0] == pytest.approx(float(expected), rel=1e-15)
