"""Which fold every landmark belongs to."""

from typing import Any, NamedTuple, Self

from streamkern._typing import Array, Floats
from streamkern.features.abilities import innermost, solve_map
from streamkern.features.nystroem import Nystroem


class LandmarkFolds(NamedTuple):
    """Landmarks, and the fold of each: what folds say of gaps is without the landmarks there.

    No landmark lies in a gap to come.  In a fold that is left out some would, whose kernel no row
    holds, and which swings at small penalties.
    """

    feature_map: Nystroem
    folds: Array  # (m,)

    @classmethod
    def of(cls, feature_map: Any, rows: Array, folds: Array) -> Self | None:
        """Give each landmark the fold of the nearest row; None of other features."""
        from scipy.spatial import cKDTree  # noqa: PLC0415  slow, and for these alone

        inner = innermost(solve_map(feature_map)[0])
        if not isinstance(inner, Nystroem):
            return None
        return cls(inner, folds[cKDTree(rows).query(inner.similarities.landmarks)[1]])

    @classmethod
    def restored(cls, feature_map: Any, folds: Array, n_folds: int) -> Self:
        """Return those of a map again, or raise ValueError unless they are its landmarks'."""
        inner = innermost(solve_map(feature_map)[0])
        if not isinstance(inner, Nystroem) or folds.shape != (inner.n_components,):
            raise ValueError(f"folds of landmarks of shape {folds.shape}, of another map")
        if not ((folds >= -1) & (folds < n_folds)).all():
            raise ValueError(f"landmarks of other folds than {n_folds}")
        return cls(inner, folds)

    def span_without(self, fold: int, n_components: int) -> Floats | None:
        """Return what the first landmarks span without those of a fold, None if all are."""
        left_out = self.folds[:n_components] == fold
        if left_out.all():
            return None
        return self.feature_map.first(n_components).span_without(left_out)
