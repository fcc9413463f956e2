"""The D x D system of features in single or double precision."""

from typing import Any

import numpy as np

from streamkern.features import FeatureMap, Standardized
from streamkern.parameters.fit_options import SAMPLE_ROWS
from streamkern.passes.fit_context import FitContext
from streamkern.solvers.base import Solver
from streamkern.statistics import FeatureSums, Moments, dtype_of_features


class Direct(Solver):
    """Products of features about a mean of the sample, in the precision of the fit."""

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:  # noqa: ARG003
        """Any fit will do."""
        return True

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        precision: Any = self.context.options.precision
        rows = self.summary.sample.X[:SAMPLE_ROWS]
        dtype = dtype_of_features(precision)
        features = np.empty((len(rows), feature_map.n_components), dtype=dtype)
        feature_map.evaluate(rows, features)
        # What is subtracted of every row, to the last digit.
        shift = features.mean(axis=0, dtype=float).astype(dtype).astype(float)
        units = self.summary.target_scale | {"feature_shift": shift}
        n_targets = self.context.source.n_targets
        return Moments(feature_map, n_targets, precision=precision, **units)
