"""Predictors: linear functions of features, which workers compute."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features import FeatureMap, Identity, Standardized
from streamkern.features.abilities import compress, innermost
from streamkern.features.base import slices
from streamkern.registry import extension
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from streamkern.sources import Block

# Features of so many rows are held at a time, of fewer where they take more bytes than this.
_ROWS_AT_ONCE = (128, 4096)
_BUFFER_BYTES = 8 << 20
# Features whose products are summed in single precision; such sums are added up in double.
_PANEL = 2048
# Targets of one product.  Up to the first number, features are multiplied while they are in cache.
_TARGETS_IN_CACHE, _TARGETS_AT_ONCE = 16, 1024
# Features that differ less between rows, as a part of their own squares, are taken less a shift.
_ALIKE = 1 / 8
# How much larger coefficients of a shorter form may be: they cancel, and digits are lost.
_MAGNIFIED = 10.0
# Numbers of a map up to which what predicts one row is kept for the next.
_MOST_KEPT = 1 << 24
# Sizes of coefficients that single precision holds in full, and whose products it holds.
_SMALLEST, _LARGEST = 1e-25, 1e25
# Of a logarithm that is predicted: exp of more has no number.
_LARGEST_EXPONENT = 709.0


def _ascending(values: Floats) -> Floats:
    """Return quantiles of one row in order: they are none the worse for it.

    Chernozhukov, Fernandez-Val and Galichon (2010), "Quantile and probability curves without
    crossing".
    """
    return np.sort(values, axis=1)


def _softmax(values: Any) -> Any:
    """Return shares of classes, which are in proportion to exp of values (n, q)."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# What makes means of linear functions (n, q), by the name of the link function.
MEANS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda values: values,
    "log": lambda values: np.exp(np.minimum(values, _LARGEST_EXPONENT)),
    "logit": lambda values: 1.0 / (1.0 + np.exp(np.minimum(-values, _LARGEST_EXPONENT))),
    "softmax": _softmax,
    "sorted": _ascending,
}


class Form(NamedTuple):
    """The function constant + (phi(x) / scale - shift)^T coef, of features in `dtype`."""

    feature_map: FeatureMap
    coef: Array
    constant: Floats
    shift: Array | float
    dtype: np.dtype[Any]


class Uncached:
    """A dataclass of which the fields alone are sent, without what is cached."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class RowFunction(ABC):
    """What is sent to workers to predict with; flat predictions are (n,), of a single target."""

    flat: bool

    @property
    @abstractmethod
    def n_targets(self) -> int:
        """The number of values a row, q."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """How many features of a row are held at a time."""

    @abstractmethod
    def check(self, shape: tuple[int, ...]) -> None:
        """Raise DataError unless rows of that shape can be predicted."""

    @abstractmethod
    def predict(self, X: Array) -> Floats:
        """Return predictions (n, q) for rows (n, p), or (n,) where they are flat."""

    def predictions(self, block: "Block") -> Iterator[tuple["Block", Floats]]:
        """Yield rows with their predictions (n, q)."""
        yield block, self.predict(block.X).reshape(len(block), self.n_targets)

    @abstractmethod
    def buffered(self, n_rows: int, scratch: Scratch) -> Callable[[Array, Floats], None]:
        """Return what writes the predictions (n, q) of up to so many rows into an array."""


@dataclass(frozen=True)
class Predictor(Uncached, RowFunction):
    """The function intercept + phi(x)^T coef.

    Coefficients (D, q) and intercepts (q,) are in double.  The precision is that of the features,
    and of sums over a panel of them; these are summed in double.  Where coefficients of the kernel
    at landmarks are large and cancel, or features are the inputs, it is double all the same.

    Predictions are what the link makes of it, clipped to the `limits`, where there are some.
    """

    feature_map: FeatureMap
    coef: Floats
    intercept: Floats
    precision: str = "single"
    flat: bool = False
    limits: tuple[float, float] | None = None
    link: str = "identity"

    @property
    def n_targets(self) -> int:
        return int(self.coef.shape[1])

    @property
    def linear(self) -> "Predictor":
        """The linear function, which sums of squares and leverages are of."""
        is_plain = self.limits is None and self.link == "identity"
        return self if is_plain else replace(self, limits=None, link="identity")

    @property
    def n_components(self) -> int:
        return len(self.coef)

    def check(self, shape: tuple[int, ...]) -> None:
        self.feature_map.check(shape)

    def buffered(self, n_rows: int, scratch: Scratch) -> Callable[[Array, Floats], None]:
        write: Callable[[Array, Floats], None]
        if self._by_transforms is not None and self._by_transforms.take_less(n_rows):
            write = self._by_transforms.predict
        else:
            write = PredictionBuffers(self, n_rows, scratch).predict
        if self.linear is self:
            return write

        def linked(X: Array, out: Floats) -> None:
            write(X, out)
            out[:] = MEANS[self.link](out)
            if self.limits is not None:
                np.clip(out, *self.limits, out=out)  # NaN stays

        return linked

    def predict(self, X: Array) -> Floats:
        """Return predictions (n, q), or (n,) where flat; NaN for a row that is not finite."""
        predictions = np.empty((len(X), self.coef.shape[1]))
        is_alone = len(X) == 1
        try:
            write = (self._for_one_row if is_alone else []).pop()
        except IndexError:  # none yet, or all in other threads
            write = self.buffered(len(X), Scratch())
        write(X, predictions)
        if is_alone and self.n_components * self.feature_map.n_features <= _MOST_KEPT:
            self._for_one_row.append(write)
        return predictions[:, 0] if self.flat else predictions

    @cached_property
    def _for_one_row(self) -> list[Callable[[Array, Floats], None]]:
        """What predicts single rows, with memory and frequencies in the precision of features."""
        return []

    @cached_property
    def _by_transforms(self) -> Any:
        """What predicts rows of a field by transforms; None where there is no room for these."""
        if not innermost(self.feature_map).is_field:
            return None
        whole = self.coef * self.feature_map.scale
        shorter = compress(self.feature_map, whole, alike=True)
        made = extension("fields", "waves").nufft_predictions
        return made(*shorter, self.intercept, self.precision)

    @cached_property
    def form(self) -> Form:
        whole, feature_map = self.coef * self.feature_map.scale, self.feature_map
        alike = self.precision == "single" and _shift(feature_map) is not None
        feature_map, coef = compress(feature_map, whole, alike=alike)
        cancels = np.abs(coef).max() / _MAGNIFIED > np.abs(whole).max()
        # Inputs that are the features may have any mean, which no shift takes out.
        plain = getattr(feature_map, "inner", feature_map).name == Identity.name
        if self.precision == "double" or cancels or plain:
            return Form(feature_map, coef, self.intercept, 0.0, np.dtype(np.float64))
        # Where all is alike, single precision would lose what differs between rows.
        shift = _shift(feature_map) if alike else None
        constant = self.intercept if shift is None else self.intercept + shift @ coef
        largest = np.maximum(coef.max(axis=0), -coef.min(axis=0))
        if ((largest == 0) | ((largest > _SMALLEST) & (largest < _LARGEST))).all():
            coef = coef.astype(np.float32)
        known = 0.0 if shift is None else shift
        return Form(feature_map, coef, constant, known, np.dtype(np.float32))


def _shift(feature_map: FeatureMap) -> Array | None:
    """Return what the features of all rows have in common, or None where that is little."""
    # With a long length scale coefficients are large and cancel: single precision would lose what
    # differs between rows, unless the rest is taken out of the sums.
    rows = np.zeros((2, feature_map.n_features))
    if isinstance(feature_map, Standardized):
        standardizer = feature_map.standardizer
        rows[:, standardizer.columns] = standardizer.mean
        rows[1, standardizer.columns] += standardizer.deviation
    features = np.empty((2, feature_map.n_components), dtype=np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        feature_map.evaluate(rows, features)
        centre, beside = features
        alike = np.square(beside - centre).sum() < _ALIKE * np.square(centre).sum()
    # How far rows are apart that are not standardised is not known here.
    unknown = not isinstance(feature_map, Standardized)
    return centre if np.isfinite(centre).all() and (alike or unknown) else None


class PredictionBuffers:
    """A predictor with memory for so many rows at a time, at most, taken once."""

    def __init__(self, predictor: Predictor, n_rows: int, scratch: Scratch | None = None) -> None:
        self.predictor = predictor
        self.scratch = scratch or Scratch()
        dtype = predictor.form.dtype
        D, q = predictor.form.coef.shape
        n_targets = min(q, _TARGETS_AT_ONCE)
        fewest, most = _ROWS_AT_ONCE
        fitting = max(_BUFFER_BYTES // (dtype.itemsize * max(D, n_targets)), fewest)
        n_rows = max(min(fitting, most, n_rows), 1)
        self.features = self.scratch.array("features", (n_rows, D), dtype)
        self.products = self.scratch.array("products", (n_rows * n_targets,), np.float32)

    def predict(self, X: Array, out: Floats) -> None:
        """Write predictions (n, q) for rows (n, p) into `out`; the rest is as in `Predictor`."""
        form = self.predictor.form
        form.feature_map.check(X.shape)
        in_cache = out.shape[1] <= _TARGETS_IN_CACHE
        with np.errstate(invalid="ignore", over="ignore"):
            for start in range(0, len(X), len(self.features)):
                rows = X[start : start + len(self.features)]
                made, features = out[start : start + len(rows)], self.features[: len(rows)]
                for part in form.feature_map.evaluated(rows, features, form.shift, self.scratch):
                    if in_cache:
                        self._multiply(form, features[part], made[part])
                if not in_cache:
                    self._multiply(form, features, made)
                # Where all is finite the sum nearly always is, and it is quicker to look at.
                if not np.isfinite(made.sum()):
                    made[~np.isfinite(made)] = np.nan

    def _multiply(self, form: Form, features: Array, out: Floats) -> None:
        """Write constant + features coef into `out`, for some targets at a time."""
        for targets in slices(out.shape[1], _TARGETS_AT_ONCE):
            coef, total, sums = form.coef[:, targets], form.constant[targets], out[:, targets]
            if coef.dtype == np.float64:
                np.matmul(features, coef, out=sums)
                sums += total
                continue
            products = self.products[: sums.size].reshape(sums.shape)
            for panel in slices(len(coef), _PANEL):
                np.matmul(features[:, panel], coef[panel], out=products)
                total = np.add(total, products, out=sums)
