"""Moments of rounded features, exact: sums of integers, which no order and no library rounds.

Features are integers q = rint(levels phi / (scale bounds)), targets Y = rint((y - shift) / unit),
weights S = rint(s / unit).  Integers enter the products in digits of one byte, and every pair of
digits is a product of its own; sums of digits come together as what they stand for.
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array, Block, Floats, Group
from streamkern.errors import OverflowedError, ParameterError
from streamkern.extensions.integers.integer_products import (
    MOST_ROWS,
    IntegerProducts,
    integer_products,
)
from streamkern.extensions.integers.integer_units import MOST_SUM, WEIGHT_BITS, are_lost
from streamkern.extensions.integers.wide_integers import add_shifted, as_floats, wide_total
from streamkern.features import bounds, round_into, solve_map
from streamkern.features.base import LEVELS, slices
from streamkern.runtime.compiled import compiled
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.threads import held_blas_threads
from streamkern.runtime.timing import timed
from streamkern.statistics.centred_moments import AnyPrecision, CentredMoments
from streamkern.statistics.feature_moments import Moments
from streamkern.statistics.feature_sums import FeatureSums, overflowed
from streamkern.statistics.triangle import PANEL, Triangle, rows_of
from streamkern.statistics.work import INTEGER, Work
from streamkern.storage.untrusted import finite_array, finite_arrays

# Of integers that these may be.
_MOST = {"target": 2.0**53, "weight": 2.0**40}
_TAKE_DOUBLE = "take precision 'double' (--precision double)"
_LOST = "weights are too small or too uneven"
# Targets that are multiplied with features at once.
_COLUMNS = 512
# What features may take as digits, a value of the block, which is twice that in single precision:
# else rows are added in parts, of so many rows at least.
_VALUE_BYTES, _FEWEST_ROWS = 8, 1024
# What else an update takes: for a product of features, one with targets, and a target.
_PRODUCT_BYTES, _CROSS_BYTES, _TARGET_BYTES = 12, 40, 40
_WEIGHT_BITS = 20  # of weights that are planned for: a thousand times the usual ones


class IntegerMoments(FeatureSums):
    """Moments whose features are rounded to one byte or two, and whose sums are exact.

    The same rows have the same sums, in any order and any cut, on any processor; rows that are
    taken away leave no trace.  Two merge if map, units and shifts are the same.

    Parameters
    ----------
    target_unit : ndarray of shape (q,)
        What targets are rounded to whole multiples of; there is no default.
    weight_unit : float
        What weights are whole multiples of, a power of two.

    Attributes
    ----------
    cross : ndarray of int64, of shape (D, q + 1, 3)
        As integers of three words to base 2^56, the lowest first.
    target, target_sum : ndarray of int64, of shape (q, 3)
        y^2 and y, as such integers.
    """

    precisions: ClassVar = LEVELS
    merges_plainly = True

    precision: AnyPrecision = "int8"
    weight_unit: float = 2.0**-WEIGHT_BITS
    cross: Array = wide_total("feature_map.n_components", "n_factors")
    target: Array = wide_total("n_targets")
    target_sum: Array = wide_total("n_targets")

    def __post_init__(self) -> None:
        unit = self.target_unit
        super().__post_init__()
        if bounds(self.feature_map) is None:
            raise ParameterError(
                f"precision {self.precision!r} is for features that have a bound, which those of "
                f"the map {self.feature_map.name!r} do not have; take Moments instead, or a map of "
                f"Fourier features."
            )
        if unit is None:
            raise ParameterError(
                "targets become integers in some unit, and there is none; give target_unit, which "
                "streamkern.extensions.integers.integer_units makes of their mean and deviation."
            )
        if np.any(self.feature_shift):
            raise ParameterError("rounded features have no shift; leave feature_shift out.")

    @property
    def levels(self) -> int:
        """The largest integer that a feature becomes."""
        return self.precisions[self.precision]

    @property
    def work(self) -> Work:
        """The products of features with each other, or a strip of them, and with targets."""
        n_pairs = _n_digits(self.levels) ** 2
        return Work(n_pairs * self.product_flops, self.feature_map.n_components, INTEGER)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows; raises OverflowedError where integers do not hold their numbers."""
        scratch = self.scratch or Scratch()
        if self.gram is None:
            self.gram = Triangle(self.feature_map.n_components, np.int64, self.first_row)
        for block in blocks:
            self._check(block)
            targets, weights, shift = self._integers(block)
            weight = self.weight + float(weights.sum() << shift) * self.weight_unit
            self._check_room(weight)
            most = self.levels * int(weights.max(initial=0))
            # All rows of the block, or equal parts of it.
            n_bytes = _value_bytes(self.levels, most)
            n_parts = max(-(-n_bytes // _VALUE_BYTES), -(-len(block) // MOST_ROWS))
            for rows in slices(len(block), max(-(-len(block) // n_parts), _FEWEST_ROWS)):
                some = block.X[rows], targets[rows], weights[rows]
                try:
                    self._add(*some, shift, scratch)
                except OverflowedError:
                    raise self._overflowed(block, "inputs are too large") from None
            self.weight = weight
            self.n_rows += len(block)

    def _integers(self, block: Block) -> tuple[Array, Array, int]:
        """Return targets and weights as integers, and by how many bits weights are shifted."""
        targets = np.rint((block.y - self.target_shift) / self.target_unit)
        given = block.each_weight()
        if are_lost(given, self.weight_unit):
            raise self._overflowed(block, _LOST)
        weights = np.rint(given / self.weight_unit)
        for (name, most), values in zip(_MOST.items(), (targets, weights), strict=True):
            if not np.abs(values).max(initial=0.0) <= most:
                raise self._overflowed(block, f"a {name} is too large beside the others")
        integers = weights.astype(np.int64)
        common = int(np.bitwise_or.reduce(integers))
        shift = (common & -common).bit_length() - 1 if common else 0
        return targets.astype(np.int64), integers >> shift, shift

    def _add(self, X: Any, targets: Array, weights: Array, shift: int, scratch: Scratch) -> None:
        products = integer_products(held_blas_threads())
        with timed("features"):
            left, right = self._digits(X, weights, products, scratch)
        with timed("products"):
            for i, mine in enumerate(left):
                for j, other in enumerate(right):
                    _add_products(self.gram, mine, other, shift + 8 * (i + j), products)
            for place, columns, byte in _target_digits(targets):
                for i, mine in enumerate(left):
                    made = products(mine, products.prepared(columns)).astype(np.int64)
                    add_shifted(self.cross[:, place], made, shift + 8 * (i + byte))
        self._add_targets(targets, weights, shift)

    def _digits(
        self, X: Any, weights: Array, products: IntegerProducts, scratch: Scratch
    ) -> tuple[list[Array], list[Array]]:
        """Return the digits of features times weights and of features, ready for products."""
        shape, levels = (self.feature_map.n_components, len(weights)), self.levels
        features = scratch.array("rounded", shape, np.int8 if levels <= 127 else np.int16)
        round_into(self.feature_map, X, levels, features, scratch)
        signed = features[None]
        if levels > 127:
            signed = _written(features, np.ones_like(weights), levels, scratch, "signed digits")
            signed = np.bitwise_xor(signed, 128, out=signed).view(np.int8)
        right = [products.prepared(digits) for digits in signed]
        if not (weights == 1).all():
            most = levels * int(weights.max(initial=0))
            unsigned = _written(features, weights, most, scratch, "weighted digits")
        elif products.takes_signed:
            return right, right
        else:
            unsigned = scratch.array("unsigned digits", signed.shape, np.uint8)
            np.bitwise_xor(signed.view(np.uint8), 128, out=unsigned)
        return [products.prepared(digits) for digits in unsigned], right

    def _add_targets(self, targets: Array, weights: Array, shift: int) -> None:
        """Add sums of targets and of their squares, in digits whose products int64 holds."""
        parts = list(_split(targets, 15))
        for k, w in enumerate(_split(weights, 15)):
            for i, a in enumerate(parts):
                weighted = a * w[:, None]
                add_shifted(self.target_sum, weighted.sum(axis=0), shift + 15 * (i + k))
                for j, b in enumerate(parts):
                    squares = np.einsum("nq,nq->q", weighted, b)
                    add_shifted(self.target, squares, shift + 15 * (i + j + k))

    def check_rows(self, weight: float, some: Floats) -> None:
        """Raise OverflowedError unless these sums hold rows of some weights.

        Parameters
        ----------
        weight : float
            Of all rows together.
        some : ndarray
            Of some of them, each.
        """
        self._check_room(weight)
        if are_lost(some, self.weight_unit):
            raise OverflowedError(f"{_LOST} for sums in {self.precision}; {_TAKE_DOUBLE}.")

    def _check_room(self, weight: float) -> None:
        if weight / self.weight_unit * self.levels**2 > MOST_SUM:
            raise OverflowedError(
                f"rows that weigh {weight:,.6g} are more than sums in {self.precision} hold; "
                f"{_TAKE_DOUBLE}."
            )

    def _overflowed(self, block: Block, why: str) -> OverflowedError:
        why = f"in {{rows}} {why} for sums in {self.precision}"
        return overflowed(block, f"{why}; {_TAKE_DOUBLE}, or leave such rows out.")

    def is_finite(self) -> bool:
        return True

    def compatible(self, other: Self) -> Self:
        names = "feature_shift", "target_shift", "target_unit", "weight_unit"
        if (
            (self.precision, self.n_targets) != (other.precision, other.n_targets)
            or not self.feature_map.equals(other.feature_map)
            or not all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
        ):
            raise ParameterError(
                "moments in integers go together only when map, precision, targets and units are "
                "the same; compute the second like the first (--like)."
            )
        return other

    def check_room_for(self, other: Self) -> None:
        self._check_room(self.weight + other.weight)

    def in_double(self) -> Moments:
        """Return the moments of the rounded features in double."""
        unit = bounds(self.feature_map) / self.levels
        moments = Moments(
            self.feature_map,
            self.n_targets,
            precision="double",
            target_shift=self.target_shift,
            target_unit=self.target_unit,
            first_row=self.first_row,
        )
        moments.n_rows, moments.weight = self.n_rows, self.weight
        moments.cross = as_floats(self.cross) * (self.weight_unit * unit[:, None])
        moments.target = as_floats(self.target) * self.weight_unit
        moments.target_sum = as_floats(self.target_sum) * self.weight_unit
        if self.gram is not None:
            moments.gram = self.gram.astype(np.float64)
            for panel in moments.gram.panels:
                start, stop = rows_of(panel)
                units = unit[start:stop, None] * unit[:stop] * self.weight_unit
                np.multiply(panel, units, out=panel)
        return moments

    def solvable(self, n_components: int | None = None) -> Self:
        feature_map, _ = solve_map(self.feature_map, n_components)
        return self.leading(feature_map.n_components)

    def centred(self, *, intercept: bool = True) -> CentredMoments:
        return self.in_double().centred(intercept=intercept)


def update_bytes(precision: str, D: int, q: int, n_rows: int, *, weighted: bool) -> int:
    """Return what an update with a block takes, besides the sums and rows in cache."""
    levels = LEVELS[precision]
    least = _value_bytes(levels, (levels << _WEIGHT_BITS) if weighted else levels)
    digits = max(_VALUE_BYTES * n_rows, least * min(n_rows, _FEWEST_ROWS))
    product = max(_PRODUCT_BYTES * min(D, PANEL), _CROSS_BYTES * min(q, _COLUMNS))
    return D * (digits + product) + _TARGET_BYTES * n_rows * (q + 1)


def _value_bytes(levels: int, most: int) -> int:
    """Return what a feature takes with its digits, times weights up to `most`, in float32 too."""
    signed = 5 if levels <= 127 else 2 + 5 * _n_digits(levels)
    return signed + 5 * _n_digits(most) * (most > levels)


def _n_digits(most: int) -> int:
    """Return how many digits from -128 to 127, to base 256, hold numbers up to this size."""
    n_digits, reach = 1, 127
    while reach < most:
        n_digits, reach = n_digits + 1, 256 * reach + 127
    return n_digits


def _written(features: Array, weights: Array, most: int, scratch: Scratch, name: str) -> Array:
    """Return the digits (digits, D, n) of features times weights, which are up to `most`, + 128."""
    digits = scratch.array(name, (_n_digits(most), *features.shape), np.uint8)
    _write_digits(features, weights, digits)
    return digits


@compiled
def _write_digits(features: Array, weights: Array, digits: Array) -> None:
    for k in range(features.shape[0]):
        for i in range(features.shape[1]):
            rest = np.int64(features[k, i]) * weights[i] + 128
            for digit in range(digits.shape[0]):
                digits[digit, k, i] = np.uint8(rest & 255)
                rest = (rest >> 8) + 128


def _add_products(
    gram: Any, left: Array, right: Array, shift: int, products: IntegerProducts
) -> None:
    """Add A B^T times 2^shift of digits (D, n) to the panels of a triangle, in place."""
    first = rows_of(gram.panels[0])[0] if gram.panels else 0
    for columns in slices(gram.order, PANEL):
        top = max(columns.start, first)
        made = products(left[top:], right[columns])
        for panel in gram.panels:
            begin, stop = rows_of(panel)
            if begin >= top:
                place, part = panel[:, columns], made[begin - top : stop - top]
                np.add(place, part.astype(np.int64) << shift if shift else part, out=place)


def _target_digits(targets: Array) -> Iterator[tuple[slice, Array, int]]:
    """Yield the columns of `cross`, digits of targets, or ones, (columns, n), and their byte."""
    n, q = targets.shape
    yield slice(q, q + 1), np.ones((1, n), np.int8), 0
    for byte, digits in enumerate(_split(targets.T, 8)):
        narrow = np.ascontiguousarray(digits, dtype=np.int8)
        for columns in slices(q, _COLUMNS):
            yield columns, narrow[columns], byte


def _split(values: Array, bits: int) -> Iterator[Array]:
    """Yield the digits of integers to base 2^bits, the lowest first, with a sign."""
    half, rest = 1 << (bits - 1), values
    while True:
        digits = ((rest + half) & ((1 << bits) - 1)) - half
        yield digits
        rest = (rest - digits) >> bits
        if not rest.any():
            return


def written(part: IntegerMoments) -> dict[str, Any]:
    """Return the products of a fold by name: their lower 32 bits, and the upper if there are."""
    triangle: Any = part.gram
    gram = triangle.packed()
    lower = gram.astype(np.int32)  # which keeps the lower bits
    upper = (gram - lower) >> 32
    if not upper.any():
        return {"gram": lower}
    narrow = np.int8 if np.abs(upper).max() < 128 else np.int32
    return {"gram": lower, "gram_upper": upper.astype(narrow)}


def read(group: Group, part: IntegerMoments) -> dict[str, Any]:
    """Return the sums of a fold by name, but for its weight and rows."""
    D = part.feature_map.n_components
    words = {name: getattr(part, name).shape for name in ("cross", "target", "target_sum")}
    gram = finite_array(group, "gram", (D * (D + 1) // 2,), "i").astype(np.int64)
    if "gram_upper" in group:
        gram += finite_array(group, "gram_upper", gram.shape, "i").astype(np.int64) << 32
    return {"gram": Triangle.unpacked(gram), **finite_arrays(group, words, "i")}
