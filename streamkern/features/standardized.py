"""Maps of standardised rows, which fitted models hold, and inputs as features."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.families import inner_arrays, restored_inner
from streamkern.features.standardizer import Standardizer
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.sparse_rows import SparseRows

# That a file may claim: no array in it has as many numbers as a row.
_MOST_FEATURES = 1 << 22


class Standardized(FeatureMap):
    """A drawn map, applied to standardised rows."""

    name = "standardized"

    def __init__(self, standardizer: Standardizer, inner: FeatureMap) -> None:
        self.standardizer, self.inner = standardizer, inner
        self.n_features, self.n_components = standardizer.n_features, inner.n_components
        self.scale = inner.scale
        self.nesting = inner.nesting
        # Where 0 stays a constant away from 0.
        self.takes_sparse = not standardizer.bends
        self._of_sparse_rows: dict[Any, Any] = {}  # by precision, made when sparse rows come

    def draw(self, n_features: int, rows: Array | None = None) -> Self:
        self.check((0, n_features))
        standardized = None if rows is None else self.standardizer(rows)
        self.inner.draw(self.standardizer.n_outputs, standardized)
        return self

    def evaluated(
        self, X: Any, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        scratch = scratch or Scratch()
        if isinstance(X, SparseRows) and self.inner.takes_sparse and self.takes_sparse:
            yield from self._of_sparse(out.dtype).evaluated(X, out, shift, scratch)
            return
        dtype = np.dtype(np.float64) if self.inner.exact_rows else out.dtype
        yield from self.inner.evaluated(self.standardised(X, dtype, scratch), out, shift, scratch)

    def _of_sparse(self, dtype: Any) -> Any:
        if dtype not in self._of_sparse_rows:
            inner: Any = self.inner  # which takes sparse rows
            self._of_sparse_rows[dtype] = inner.of_sparse_rows(self.standardizer, dtype)
        return self._of_sparse_rows[dtype]

    def __getstate__(self) -> dict[str, Any]:  # without what is made of the rest
        return {**vars(self), "_of_sparse_rows": {}}

    def standardised(self, X: Array, dtype: Any, scratch: Scratch, *, exact: bool = False) -> Array:
        """Return standardised rows in `scratch`, where the next call overwrites them."""
        shape = (len(X), self.standardizer.n_outputs)
        self.inner.check(shape)
        rows = scratch.array(f"inputs of {self.inner.name}", shape, dtype)
        self.standardizer.write(X, rows, scratch, exact=exact)
        return rows

    def first(self, n_components: int) -> "Standardized":
        return Standardized(self.standardizer, self.inner.first(n_components))

    def subset(self, indices: Array) -> "Standardized":
        """Return some features of the inner map; where those are inputs, only they are read."""
        inner = self.inner.subset(indices)
        if isinstance(inner, Standardized) and self.standardizer.linear is None:
            return Standardized(self.standardizer.then(inner.standardizer), inner.inner)
        return Standardized(self.standardizer, inner)

    def about(self, inner: FeatureMap) -> "Standardized":
        """Return a map of another inner one, of the same standardised inputs."""
        return self if inner is self.inner else Standardized(self.standardizer, inner)

    def parameters(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "inner": self.inner.name,
            "inner_parameters": self.inner.parameters(),
        }

    def arrays(self) -> dict[str, Array]:
        linear, bound = self.standardizer.linear, self.standardizer.bound
        knots = self.standardizer.knots
        return {
            "columns": self.standardizer.columns,
            "mean": self.standardizer.mean,
            "deviation": self.standardizer.deviation,
            **({} if linear is None else {"linear": linear}),
            **({} if bound is None else {"bound": np.array([bound])}),
            **({} if knots is None else {"knots": knots}),
            **inner_arrays(self.inner),
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Standardized":
        inner = restored_inner(parameters, arrays)
        columns, mean, deviation = arrays["columns"], arrays["mean"], arrays["deviation"]
        linear = arrays.get("linear")
        n_kept = inner.n_features if linear is None else (0, *linear.shape)[-1]
        if not columns.shape == mean.shape == deviation.shape == (n_kept,):
            raise ParameterError(
                f"expected {n_kept} columns, means and deviations, found shapes "
                f"{columns.shape}, {mean.shape} and {deviation.shape}; the file is damaged."
            )
        if linear is not None and (linear.ndim not in (1, 2) or len(linear) != inner.n_features):
            raise ParameterError(
                f"expected a linear map to {inner.n_features} numbers a row, found shape "
                f"{linear.shape}; the file is damaged."
            )
        p = int(parameters["n_features"])
        if columns.dtype.kind not in "iu" or (columns < 0).any() or (columns >= p).any():
            raise ParameterError(f"columns must be from 0 to {p - 1}; the file is damaged.")
        if p > _MOST_FEATURES:
            raise ParameterError(f"expected no {p:,} inputs; the file is damaged.")
        bound = float(arrays["bound"][0]) if "bound" in arrays else None
        if bound is not None and not bound > 0:
            raise ParameterError(f"a bound must be positive, not {bound}; the file is damaged.")
        knots = arrays.get("knots")
        if knots is not None and (
            knots.ndim != 3 or knots.shape[:2] != (2, n_kept) or not (np.diff(knots) > 0).all()
        ):
            raise ParameterError(
                f"expected rising knots of {n_kept} columns, found shape {knots.shape}; the file "
                f"is damaged."
            )
        return cls(Standardizer(columns, mean, deviation, p, linear, bound, knots), inner)


class Identity(FeatureMap):
    """The inputs as features, so that the model is linear ridge; its kernel is x^T x'."""

    name = "identity"
    families: ClassVar = {"identity": ("the inputs as features", {})}
    no_part = (
        "the identity map has no part of {} features that stands for the whole; select columns "
        "instead."
    )
    exact_rows = True

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        self.n_features = self.n_components = n_features
        return self

    def evaluated(
        self,
        X: Array,
        out: Array,
        shift: Array | float = 0.0,
        scratch: Scratch | None = None,  # noqa: ARG002
    ) -> Iterator[slice]:
        for rows in cached_slices(len(out), self.n_components):
            np.subtract(X[rows], shift, out=out[rows], casting="same_kind")
            yield rows

    def subset(self, indices: Array) -> Standardized:
        """Return some of the inputs, as they are: a mean of 0, a deviation of 1."""
        chosen = self.checked_subset(indices)
        K = len(chosen)
        columns = Standardizer(chosen, np.zeros(K), np.ones(K), self.n_features)
        return Standardized(columns, Identity().draw(K))

    def parameters(self) -> dict[str, Any]:
        return {"n_features": self.n_features}

    def arrays(self) -> dict[str, Array]:
        return {}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:  # noqa: ARG003
        return cls().draw(int(parameters["n_features"]))


class StandardisedExactly:
    """Rows that are made dense and standardised, exactly, as slices of them are asked for."""

    def __init__(self, feature_map: Standardized, X: Any, scratch: Scratch) -> None:
        self.feature_map, self.X, self.scratch = feature_map, X, scratch

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: slice) -> Array:
        dense = np.asarray(self.X[rows])
        return self.feature_map.standardised(dense, np.dtype(float), self.scratch, exact=True)
