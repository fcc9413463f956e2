"""The D x D system of features that are rounded to integers, whose sums are exact."""

from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Array
from streamkern.engine.scheduler import compute, delayed
from streamkern.extensions.integers.integer_moments import IntegerMoments, update_bytes
from streamkern.extensions.integers.integer_products import integer_products
from streamkern.extensions.integers.integer_units import integer_units, unit_of_weights
from streamkern.features import LEVELS, FeatureMap, Standardized, bounds, round_into
from streamkern.features.base import cached_slices
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.footprint import Footprint
from streamkern.passes.column_scaling import constant_columns
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.scratch import Scratch
from streamkern.solvers.base import FoldSums, Solver
from streamkern.statistics import FeatureSums


class IntegerFootprint(Footprint):
    """The bytes of such a fit, whose digits are multiplied."""

    cross_bytes: ClassVar[int] = 24
    library_bytes: ClassVar[int] = 128 << 20  # ONNX Runtime, as measured with some room

    @property
    def features(self) -> int:
        D, q = self.n_components, self.source.n_targets
        uneven = self.source.weighted_by is not None or self.n_maps > 1
        return update_bytes(self.precision, D, q, self.block_rows, weighted=uneven)


# Rows at which the rounding of features is measured.
_MEASURED_ROWS = 256


class Integers(Solver):
    """Products of integers; targets and weights are rounded to units of their own."""

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:  # noqa: ARG003
        return context.options.precision in LEVELS

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        source, columns = self.context.source, self.summary.columns
        precision: Any = self.context.options.precision
        p = source.n_features
        varies = ~constant_columns(source, columns)[p:]
        units: Any = integer_units(columns.mean[p:], varies * np.sqrt(columns.variance[p:]))
        units["weight_unit"] = 1.0
        reweighted = self.weighting is not None
        if reweighted or source.weighted_by is not None:
            whole = not (reweighted or np.any(self.summary.sample.weights % 1.0))
            weight, n = float(columns.weight.max()), self.summary.passed.n_rows
            units["weight_unit"] = unit_of_weights(weight, n, precision, whole=whole)
        return IntegerMoments(feature_map, source.n_targets, precision=precision, **units)

    def read(self, empty: Any, feature_map: FeatureMap, *, keep: bool = True) -> FoldSums:
        empty.check_rows(float(self.summary.columns.weight.max()), self.summary.sample.weights)
        return super().read(empty, feature_map, keep=keep)

    def facts(self, sums: FoldSums) -> FitReport:
        few, precision = self.summary.sample.X[:_MEASURED_ROWS], self.context.options.precision
        last = sums.passes[-1].statistic
        how = sums.feature_map, few, precision, last
        return super().facts(sums) | compute(delayed(_rounding_of, *how, name="rounding"))


def _rounding_of(feature_map: FeatureMap, X: Array, precision: str, folds: Any) -> FitReport:
    """Return the root mean square error of rounded features at some rows, and what multiplied.

    The error is in units of a level.  With it comes the unit of the weights of the moments.
    """
    D, levels = feature_map.n_components, LEVELS[precision]
    some = X[next(cached_slices(len(X), D))]
    rounded, exact = np.empty((D, len(some)), np.int16), np.empty((len(some), D))
    round_into(feature_map, some, levels, rounded, Scratch())
    feature_map.evaluate(some, exact)
    rounding = float(np.sqrt(np.mean((rounded.T - exact * (levels / bounds(feature_map))) ** 2)))
    unit = next(iter(folds.parts.values())).weight_unit
    return {"products": integer_products().name, "feature_rounding": rounding, "weight_unit": unit}
