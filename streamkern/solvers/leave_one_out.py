"""The pass for the errors of every row without itself, at every penalty.

    eigenbasis --> models at every penalty --+-- errors of shard 0 --.
                                             +-- errors of shard 1 ---+--> curve
                                             +-- ...               --'

The models stay on the workers; what comes back is a sum for every penalty and target.
"""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.reduction import PassResult, accumulate
from streamkern.engine.scheduler import delayed
from streamkern.errors import DataError
from streamkern.features import FeatureMap
from streamkern.parameters.chunking import chunk_sizes
from streamkern.parameters.fit_options import FitOptions
from streamkern.solve import Eigenbasis, Spectrum
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_errors import PenaltyErrors, PenaltyModels
from streamkern.sources import Source
from streamkern.statistics import dtype_of_features, precision_of_features


class LeaveOneOutPass:
    """Reads the rows for the errors of every row without itself; `passed` is what it took."""

    def __init__(
        self, source: Source, feature_map: FeatureMap, options: FitOptions, n_threads: int | None
    ) -> None:
        self.source, self.feature_map, self.options = source, feature_map, options
        self.n_threads = n_threads
        self.passed: PassResult[Any] | None = None

    def __call__(self, basis: Any, spectrum: Spectrum, alphas: Floats) -> PenaltyCurve:
        """Return the curve of leave-one-out over some penalties."""
        options, feature_map = self.options, self.feature_map
        precision, q = precision_of_features(options.precision), len(spectrum.target)
        itemsize = dtype_of_features(precision).itemsize
        shard_rows, block_rows = chunk_sizes(self.source, 2 * itemsize * feature_map.n_components)
        self.passed = accumulate(
            self.source,
            delayed(_empty, feature_map, basis, alphas, precision, name="leave-one-out"),
            shard_rows=shard_rows,
            block_rows=block_rows,
            skip_bad_rows=options.on_bad_rows == "skip",
            label="leave-one-out",
            n_threads=self.n_threads,
        )
        nowhere: Any = None  # models stay where the rows are
        found = PenaltyErrors(nowhere, len(alphas), q).attached(self.passed.statistic)
        variance = spectrum.target / spectrum.weight
        scores = found.scores(variance, precision)
        if not np.isfinite(scores).any():
            raise DataError(
                f"leave-one-out needs rows that others predict, but at every penalty up to "
                f"{alphas[-1]:.3g} some row has a leverage of 1 in {precision} precision; give "
                f"larger penalties, or take alpha 'cv'."
            )
        return PenaltyCurve.of_rows(alphas, scores, variance)


def _empty(
    feature_map: FeatureMap, basis: Eigenbasis, alphas: Floats, precision: str
) -> PenaltyErrors:
    models = PenaltyModels.of(feature_map, basis, alphas, precision)
    return PenaltyErrors(models, len(alphas), len(models.target_unit))
