"""A map applied to standardised inputs, which is what a fitted model holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array, Floats

# Rows are cast to double and back, which takes more of the cache than features do.
_DOUBLES = 4


@dataclass(frozen=True)
class Standardizer:
    """Columns that are kept, less their mean, over their standard deviation.

    Parameters
    ----------
    columns : ndarray of shape (p',), int
        The inputs that are kept; constant ones are left out.
    mean, deviation : ndarray of shape (p',), float64
    n_features : int
        p, before columns are left out.
    """

    columns: Array
    mean: Floats
    deviation: Floats
    n_features: int

    def __call__(self, X: Array, dtype: Any = np.float64) -> Array:
        """Return standardised rows (n, p')."""
        rows = np.empty((len(X), len(self.columns)), dtype=dtype)
        self.write(X, rows, Scratch())
        return rows

    def write(self, X: Array, out: Array, scratch: Scratch) -> None:
        """Write standardised rows (n, p'), computed in double since a mean can be large."""
        for part in cached_slices(len(X), _DOUBLES * len(self.columns)):
            kept = X[part] if len(self.columns) == self.n_features else X[part][:, self.columns]
            centred = scratch.array("centred", kept.shape, np.float64)
            np.subtract(kept, self.mean, out=centred)
            np.divide(centred, self.deviation, out=out[part], casting="same_kind")

    def then(self, other: Standardizer) -> Standardizer:
        """Return the standardizer that does what this one and then another one do."""
        mean, deviation = self.mean[other.columns], self.deviation[other.columns]
        return Standardizer(
            self.columns[other.columns],
            mean + deviation * other.mean,
            deviation * other.deviation,
            self.n_features,
        )


class Standardized(FeatureMap):
    """A drawn map, applied to standardised rows.

    Parameters
    ----------
    standardizer : Standardizer
    inner : FeatureMap
        Drawn for the columns that the standardizer keeps.
    """

    name: ClassVar[str] = "standardized"

    def __init__(self, standardizer: Standardizer, inner: FeatureMap) -> None:
        self.standardizer = standardizer
        self.inner = inner
        self.n_features = standardizer.n_features
        self.n_components = inner.n_components
        self.scale = inner.scale
        self.nesting = inner.nesting

    def draw(self, n_features: int, rows: Array | None = None) -> Self:
        """Draw the inner map for the columns that are kept."""
        self.check((0, n_features))
        standardized = None if rows is None else self.standardizer(rows)
        self.inner.draw(len(self.standardizer.columns), standardized)
        return self

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the inner map's features of the standardised rows, less `shift`, into `out`."""
        self.inner.check((len(X), len(self.standardizer.columns)))
        scratch = scratch or Scratch()
        name, shape = f"inputs of {self.inner.name}", (len(X), len(self.standardizer.columns))
        rows = scratch.array(name, shape, out.dtype)
        self.standardizer.write(X, rows, scratch)
        yield from self.inner.evaluated(rows, out, shift, scratch)

    def first(self, n_components: int) -> Standardized:
        """Return the first features of the inner map, on the same standardised rows."""
        return Standardized(self.standardizer, self.inner.first(n_components))

    def subset(self, indices: Array) -> Standardized:
        """Return some features of the inner map; where those are inputs, only they are read."""
        inner = self.inner.subset(indices)
        if isinstance(inner, Standardized):
            return Standardized(self.standardizer.then(inner.standardizer), inner.inner)
        return Standardized(self.standardizer, inner)

    def summed(self) -> Standardized:
        """Return what is summed of the inner map, on the same standardised rows."""
        return Standardized(self.standardizer, self.inner.summed())

    def solved(self, n_components: int | None = None) -> tuple[FeatureMap, Floats | None]:
        """Return what is solved for of the inner map, on the same standardised rows."""
        inner, turning = self.inner.solved(n_components)
        return Standardized(self.standardizer, inner), turning

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
        """Return the short form of the inner map, on the same standardised rows."""
        inner, coef = self.inner.condensed(coef, alike=alike)
        return Standardized(self.standardizer, inner), coef

    def parameters(self) -> dict[str, Any]:
        """Return the inner map's name and parameters, and p."""
        return {
            "n_features": self.n_features,
            "inner": self.inner.name,
            "inner_parameters": self.inner.parameters(),
        }

    def arrays(self) -> dict[str, Array]:
        """Return the inner map's arrays, and the columns with their means and deviations."""
        return {
            "columns": self.standardizer.columns,
            "mean": self.standardizer.mean,
            "deviation": self.standardizer.deviation,
            **{f"inner_{name}": array for name, array in self.inner.arrays().items()},
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Standardized:
        """Rebuild the map from its file form."""
        from streamkern.features import MAPS  # noqa: PLC0415  the table lists this class too

        inner_arrays = {k.removeprefix("inner_"): v for k, v in arrays.items() if "inner_" in k}
        inner = MAPS[parameters["inner"]].restore(parameters["inner_parameters"], inner_arrays)
        columns, mean, deviation = arrays["columns"], arrays["mean"], arrays["deviation"]
        if not columns.shape == mean.shape == deviation.shape == (inner.n_features,):
            raise ParameterError(
                f"expected {inner.n_features} columns, means and deviations, found shapes "
                f"{columns.shape}, {mean.shape} and {deviation.shape}; the file is damaged."
            )
        p = int(parameters["n_features"])
        if columns.dtype.kind not in "iu" or (columns < 0).any() or (columns >= p).any():
            raise ParameterError(f"columns must be from 0 to {p - 1}; the file is damaged.")
        standardizer = Standardizer(columns, mean, deviation, p)
        return cls(standardizer, inner)
