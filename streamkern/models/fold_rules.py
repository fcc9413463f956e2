"""How the rows of a fit are dealt to folds: by place, by region of their inputs, by a column."""

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.models.checkpoint_job import hash_of_rows
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.job_plan import Plan
from streamkern.sources import Source
from streamkern.statistics import Folds, RowFolds, block_folds, shard_folds
from streamkern.statistics.folds import PlacedFolds, RegionFolds, TurnedFolds
from streamkern.tune.column_pass import ColumnPass

# Rows, or shards, for every fold: fewer are dealt unevenly.
_FEW = 10
# Regions of a fold: of many small ones each would be near rows of others.
_REGIONS = 2


def placed_folds(
    source: Source, plan: Plan, options: FitOptions, *, few_rows: bool = False, turned: bool = False
) -> PlacedFolds:
    """Return the rule of folds by place, of rows that the plan has seen to be enough.

    If `turned`, and rows or shards are few, which fold is the first follows from what they hold:
    more such rows may come again and again, and would all go to the same folds.
    """
    K, by, n_units = options.n_folds, plan.fold_by, source.n_samples
    folds: PlacedFolds = RowFolds(K, options.random_state)
    if K == 1:
        return block_folds(source.n_samples, 1)
    if by == "shards":
        shards = source.shards(plan.shard_rows, plan.fewest_rows)
        if len(shards) < K and not few_rows:
            raise ParameterError(
                f"{K} folds need as many shards, but there are {len(shards):,}; take fewer folds, "
                f"or deal rows with fold_by 'rows' (--fold-by rows)."
            )
        folds, n_units = shard_folds(shards, K, options.random_state), plan.n_shards
    elif by == "blocks":
        folds = block_folds(source.n_samples, K)
    if not turned or n_units >= _FEW * K:
        return folds
    known = source.tolerant() if options.on_bad_rows == "skip" else source
    return TurnedFolds(K, folds, int(hash_of_rows(known), 16) % K)


def region_folds(seen: ColumnPass, n_folds: int, random_state: int) -> Folds:
    """Return folds of regions: cells of k-means on the sample, two a fold, in standardised inputs.

    Roberts et al. (2017), "Cross-validation strategies for data with temporal, spatial,
    hierarchical, or phylogenetic structure".
    """
    from scipy.cluster.vq import kmeans2  # noqa: PLC0415  slow, and for regions alone

    z = seen.standardizer(seen.sample.X)
    different = len(np.unique(z, axis=0))
    if different < n_folds:
        raise DataError(
            f"{n_folds} regions need as many different rows, but the sample has {different}; take "
            f"fewer folds, or deal rows with fold_by 'rows' (--fold-by rows)."
        )
    n_cells = min(_REGIONS * n_folds, different)
    centres, cells = kmeans2(z, n_cells, minit="++", seed=random_state)
    weights = np.bincount(cells, seen.sample.weights, minlength=n_cells)
    folds, dealt = np.zeros(n_cells, dtype=np.int64), np.zeros(n_folds)
    for cell in np.argsort(-weights, kind="stable"):  # the largest first, each to the emptiest
        folds[cell] = dealt.argmin()
        dealt[folds[cell]] += weights[cell]
    return RegionFolds(n_folds, seen.standardizer, centres, folds)
