"""Sums over rows of features and targets: what all of them hold, however they are made.

Where memory does not hold the whole, they come in strips of the triangle, a pass each.
"""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from copy import copy, deepcopy
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._docstrings import entries, joined, listed, sections
from streamkern._typing import Array, Block, Floats
from streamkern.errors import OverflowedError, ParameterError
from streamkern.features import FeatureMap
from streamkern.statistics.base import Statistic
from streamkern.statistics.centred_moments import AnyPrecision, CentredMoments
from streamkern.statistics.declared_sums import merged_by, total
from streamkern.statistics.triangle import Triangle

_SECTIONS = {
    "Parameters": """
feature_map : FeatureMap
    Drawn, of D features.
n_targets : int
    q, how many.
precision : str
    Of features and their products.
feature_shift : ndarray of shape (D,)
    What is subtracted from features, in the units of `FeatureMap.evaluate`; 0 by default.
target_shift : ndarray of shape (q,)
    Targets enter the products as (y - shift) / unit, so that neither a large mean nor an extreme
    unit costs digits; 0 by default.
target_unit : ndarray of shape (q,)
    What they are divided by then; 1 by default.
first_row : int
    Products of features with each other only from this row on, in a strip of the triangle.
""",
    "Attributes": """
n_rows, weight : int and float
    How many rows there are, and N, the sum of their weights.
gram : Triangle or None
    phi phi^T (D, D); None for no rows.
cross : ndarray of shape (D, q + 1)
    phi times targets, as they enter the products, and a last column of ones.
target, target_sum : ndarray of shape (q,)
    y^2 and y of the same targets.
""",
}


class FeatureSums(Statistic):
    """Weighted sums of phi phi^T, phi y^T, y^2, phi, y and 1 over rows."""

    precisions: ClassVar[Collection[str]]

    feature_map: FeatureMap
    n_targets: int = 1
    _: KW_ONLY
    precision: AnyPrecision = "single"
    feature_shift: Floats = None  # type: ignore[assignment]
    target_shift: Floats = None  # type: ignore[assignment]
    target_unit: Floats = None  # type: ignore[assignment]
    first_row: int = 0
    n_rows: int = total(dtype=int)
    weight: float = total()
    gram: Triangle | None = merged_by(
        lambda mine, theirs: mine + theirs if mine and theirs else deepcopy(mine or theirs),
        lambda mine, theirs: mine - theirs if mine and theirs else deepcopy(mine),
    )

    cross: Any = total()
    target: Any = total()
    target_sum: Any = total()

    def __init_subclass__(cls) -> None:
        has_docstring = bool(cls.__doc__)  # before it is a dataclass
        super().__init_subclass__()
        if has_docstring:
            title, own = sections(cls.__doc__ or "")
            said = {n: entries(text) | entries(own.get(n, "")) for n, text in _SECTIONS.items()}
            full = {n: listed(each, each) for n, each in said.items()}
            cls.__doc__ = joined(title, full | own | full)

    def __post_init__(self) -> None:
        if self.precision not in self.precisions:
            raise ParameterError(
                f"precision must be {' or '.join(map(repr, self.precisions))}, not "
                f"{self.precision!r}."
            )
        self.feature_map.check_drawn()
        D, q = self.feature_map.n_components, self.n_targets
        defaults = {"feature_shift": np.zeros(D), "target_shift": np.zeros(q)}
        for name, default in {**defaults, "target_unit": np.ones(q)}.items():
            if getattr(self, name) is None:
                setattr(self, name, default)
        super().__post_init__()

    @property
    def n_factors(self) -> int:
        """What features are multiplied with: targets, and ones."""
        return self.n_targets + 1

    @property
    def product_flops(self) -> int:
        """The operations of a row's products with each other, or of a strip, and with factors."""
        D, first = self.feature_map.n_components, self.first_row
        return D * (D + 1) - first * (first + 1) + 2 * D * self.n_factors

    def _check(self, block: Block) -> None:
        self.feature_map.check(block.X.shape)
        if block.y.shape != (len(block), self.n_targets):
            raise ParameterError(
                f"these moments have {self.n_targets} targets, but the rows have targets of shape "
                f"{block.y.shape}; make moments with that many."
            )

    def without(self, other: Self) -> Self:
        """Return the moments of the rows that are not among those of `other`."""
        if other.n_rows > self.n_rows:
            raise ParameterError(
                f"moments of {other.n_rows:,} rows cannot be taken from those of {self.n_rows:,}; "
                f"take away rows that are in."
            )
        return self._with(self.subtracted(other))

    def leading(self, n_components: int) -> Self:
        """Return the moments of the map of the first D' features, from the leading block.

        Raises
        ------
        ParameterError
            If the map has no such part.
        """
        if n_components == self.feature_map.n_components:
            return self
        feature_map, first = self.feature_map.first(n_components), slice(n_components)
        part = self.of_features(feature_map, self.feature_shift[first], self.cross[first])
        part.gram = None if self.gram is None else self.gram.leading(n_components)
        return part

    def of_features(self, feature_map: FeatureMap, shift: Floats, cross: Array) -> Self:
        """Return these moments with another map, shift and cross; the Gram matrix is the same."""
        other = copy(self)
        other.feature_map, other.feature_shift, other.cross = feature_map, shift, cross
        other.first_row = 0
        return other

    def without_gram(self, feature_map: FeatureMap, shift: Floats, cross: Array) -> Any:
        """Return these moments with another map, shift and cross, and without a Gram matrix."""
        other = self.of_features(feature_map, shift, cross)
        other.gram = None
        return other

    def with_gram(self) -> Any:
        """Return these moments with the Gram matrix, where that is not held otherwise."""
        return self

    @abstractmethod
    def is_finite(self) -> bool:
        """Say whether no sum has overflowed."""

    @abstractmethod
    def solvable(self, n_components: int | None = None) -> "FeatureSums":
        """Return the moments of the map whose features are solved for, or of its first D'."""

    @abstractmethod
    def centred(self, *, intercept: bool = True) -> CentredMoments:
        """Return the moments about the means, or about zero where there is no intercept."""


def overflowed(block: Block, sentence: str) -> OverflowedError:
    """Return the error of rows whose sums overflow: a sentence in which `{rows}` says which."""
    first, last = int(block.places()[0]), int(block.places()[-1])
    error = OverflowedError(sentence.format(rows=f"rows {first:,} to {last + 1:,}"))
    error.rows = first, last + 1
    return error


def moment_strips(empty: FeatureSums, n_strips: int) -> list[Any]:
    """Return empty moments that together hold what these do, each a strip of the triangle.

    A strip needs the features up to its last row, and no more.  Raises ParameterError if the map
    has no leading part, and there is more than one strip.
    """
    D = empty.feature_map.n_components
    cuts = Triangle.strips(D, n_strips)
    if len(cuts) == 1:
        return [empty.zero()]
    return [
        replace(
            empty,
            feature_map=empty.feature_map if stop == D else empty.feature_map.first(stop),
            feature_shift=empty.feature_shift[:stop],
            first_row=first,
        )
        for first, stop in cuts
    ]


def joined_moments(strips: Sequence[Any]) -> Any:
    """Return the moments of which these are all strips, sharing their memory."""
    last = strips[-1]
    if any(strip.n_rows != last.n_rows for strip in strips):
        counts = ", ".join(f"{strip.n_rows:,}" for strip in strips)
        raise ParameterError(
            f"strips of one triangle must be sums over the same rows, but these are over {counts} "
            f"rows; compute them again."
        )
    whole = copy(last)
    whole.first_row = 0
    if last.gram is not None:
        panels = [panel for strip in strips if strip.gram for panel in strip.gram.panels]
        whole.gram = Triangle.of_panels(panels)
    return whole
