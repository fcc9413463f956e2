"""Choosing the penalty by leaving out every row in turn: one more pass, after the moments.

    eigenbasis --> models at every penalty --+-- errors of shard 0 --.
                                             +-- errors of shard 1 ---+--> curve
                                             +-- ...               --'

The models stay on the workers, beside the eigenbasis; what comes back is a sum for every penalty
and target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.reduction import accumulate
from streamkern.engine.scheduler import task
from streamkern.errors import DataError
from streamkern.parameters.plan import cut
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_errors import PenaltyErrors, PenaltyModels

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.engine.reduction import PassResult
    from streamkern.features import FeatureMap
    from streamkern.models.data_moments import DataMoments
    from streamkern.solve import Eigenbasis, Spectrum
    from streamkern.sources import Source

# Below this 1 - h, an error without the row itself is rounding, in the precision of the features.
_RESOLVED = {"single": 1e-4, "double": 1e-10}


class LeavingOut:
    """The pass that reads the rows of a fit once more, for the errors without each of them.

    Parameters
    ----------
    source : Source
        The rows that the moments are of.
    moments : DataMoments
        Of the features that are solved for.

    Attributes
    ----------
    passed : PassResult or None
        What the pass took, once it is over.
    """

    def __init__(self, source: Source, moments: DataMoments) -> None:
        self.source = source
        self.moments = moments
        self.passed: PassResult[Any] | None = None

    def __call__(self, basis: Any, spectrum: Spectrum, alphas: Floats) -> PenaltyCurve:
        """Return the curve of leave-one-out over some penalties."""
        options, feature_map = self.moments.options, self.moments.feature_map
        precision, q = options.precision, len(spectrum.target)
        itemsize = 4 if precision == "single" else 8
        shard_rows, block_rows = cut(self.source, 2 * itemsize * feature_map.n_components)
        empty = task(_empty, feature_map, basis, alphas, precision, name="leave-one-out")
        self.passed = accumulate(
            self.source,
            empty,
            shard_rows=shard_rows,
            block_rows=block_rows,
            skip_bad_rows=options.on_bad_rows == "skip",
            label="leave-one-out",
            n_threads=self.moments.n_threads,
        )
        nowhere: Any = None  # models stay where the rows are
        found = PenaltyErrors(nowhere, len(alphas), q).attached(self.passed.statistic)
        variance = spectrum.target / spectrum.weight
        scores = found.squared / found.weight * np.where(variance > 0, variance, 1.0)
        scores[found.spare < _RESOLVED[precision]] = np.inf
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
