"""A trend beside a field: lines in covariates, and a polynomial of the coordinates.

Cressie (1993), "Statistics for spatial data", section 3.4, for universal kriging.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.extensions.fields.lattice import Lattice
from streamkern.features.base import NO_CHOICE_BESIDE_TREND, FeatureMap
from streamkern.features.families import inner_arrays, restored_inner
from streamkern.features.kernel_map import OfInner
from streamkern.runtime.scratch import Scratch

# Polynomials of the coordinates, by their degrees.
DEGREES = {"linear": 1, "quadratic": 2}
# The prior deviation of a term with deviation 1, in those of the field: the penalty hardly counts.
_PRIOR = 100.0


class Trend(NamedTuple):
    """Which inputs are coordinates of a field, and which products of inputs are its trend."""

    along: Array  # (m,)
    terms: tuple[tuple[int, ...], ...]  # k, of one or two inputs each

    @classmethod
    def of(cls, asked: Sequence[int | str] | None, kept: Array) -> "Trend":
        """Return the trend of columns and words, or none, among the columns that are kept."""
        asked = asked or ()
        is_covariate = np.isin(kept, [each for each in asked if each not in DEGREES])
        along = np.flatnonzero(~is_covariate)
        terms: list[tuple[int, ...]] = [(j,) for j in np.flatnonzero(is_covariate).tolist()]
        for degree in range(1, 1 + max((DEGREES.get(str(each), 0) for each in asked), default=0)):
            terms += combinations_with_replacement(along.tolist(), degree)
        return cls(along, tuple(terms))

    def values(self, rows: Array) -> Floats:
        """Return the terms (n, k) of standardised rows (n, p)."""
        found = np.empty((len(rows), len(self.terms)))
        for j, term in enumerate(self.terms):
            np.prod(rows[:, list(term)], axis=1, out=found[:, j])
        return found


class Trended(OfInner):
    """Terms of a trend, times the deviation of their coefficients, and features of coordinates.

    The covariance is that of the field plus that of the trend, whose prior is nearly flat.
    """

    name = "trend"
    has_gradients = True  # waves have them
    is_field = True
    no_choice = NO_CHOICE_BESIDE_TREND
    inner: Any

    def __init__(self, inner: FeatureMap, trend: Trend, centre: Floats, unit: Floats) -> None:
        """Take a drawn map of the coordinates; terms are less a centre (k,), over a unit (k,)."""
        k, inputs = len(trend.terms), {*trend.along.tolist(), *sum(trend.terms, ())}
        shapes = centre.shape, unit.shape, trend.along.shape
        alike = shapes == ((k,), (k,), (inner.n_features,)) and inputs == {*range(len(inputs))}
        if not alike or not (unit > 0).all():
            raise ParameterError("the terms of a trend do not go together; the file is damaged.")
        self.inner, self.trend, self.centre, self.unit = inner, trend, centre, unit
        self.n_features, self.n_components = len(inputs), k + inner.n_components
        self.n_terms, self.along, self.left_out = k, trend.along, inner.left_out

    @classmethod
    def beside(cls, inner: FeatureMap, trend: Trend, rows: Floats) -> "Trended":
        """Return the map whose terms have mean 0 and a deviation of 100 over some rows."""
        terms = trend.values(rows)
        centre, unit = terms.mean(axis=0), terms.std(axis=0)
        known = unit > 1e-6 * np.abs(terms).max(axis=0, initial=0.0)
        return cls(inner, trend, centre, np.where(known, unit, 1.0) / _PRIOR)

    @property
    def lattice(self) -> Lattice | None:
        found: Lattice | None = self.inner.lattice
        return None if found is None else found._replace(n_before=self.n_terms)

    def trend_and_rest(self, X: Array) -> tuple[Floats, Array]:
        return (self.trend.values(X) - self.centre) / self.unit, X[:, self.trend.along]

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        k, write_rest = len(self.unit), self.inner.prepared(dtype, scratch)

        def write(X: Array, features: Array) -> None:
            features[:, :k], rest = self.trend_and_rest(X)
            write_rest(np.ascontiguousarray(rest), features[:, k:])

        return write

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        scratch, k = scratch or Scratch(), len(self.unit)
        made = scratch.array("gradients beside a trend", X.shape, X.dtype)
        made[...] = 0.0
        rest = np.ascontiguousarray(X[:, self.trend.along])
        made[:, self.trend.along] = self.inner.gradients(rest, coef[k:], scratch)
        for term, slope in zip(self.trend.terms, coef[:k] / self.unit, strict=True):
            for i, j in enumerate(term):
                others = [*term[:i], *term[i + 1 :]]
                made[:, j] += (slope * X[:, others].prod(axis=1)).astype(X.dtype)
        return made

    def first(self, n_components: int) -> "Trended":
        inner = self.inner.first(self.checked_part(n_components) - len(self.unit))
        return Trended(inner, self.trend, self.centre, self.unit)

    def subset(self, indices: Array) -> FeatureMap:  # noqa: ARG002  none are
        raise ParameterError(NO_CHOICE_BESIDE_TREND)

    def arrays(self) -> dict[str, Array]:
        pairs = [(*term, -1)[:2] for term in self.trend.terms]
        return {
            "along": self.trend.along,
            "terms": np.array(pairs, dtype=int).reshape(-1, 2),
            "centre": self.centre,
            "unit": self.unit,
            **inner_arrays(self.inner),
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Trended":
        terms = tuple(tuple(j for j in pair if j >= 0) for pair in arrays["terms"].tolist())
        trend, inner = Trend(arrays["along"].astype(int), terms), restored_inner(parameters, arrays)
        return cls(inner, trend, arrays["centre"], arrays["unit"])
