"""A predictor applied to every row of a source: to a file, or against the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine import accumulate, map_shards
from streamkern.errors import DataError
from streamkern.plan import cut
from streamkern.statistics import ColumnStatistics, PredictionErrors, Together
from streamkern.storage import RowWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.predictor import Predictor
    from streamkern.sources import Reader, Shard, Source

# What the predictions of one shard may take on their way to the writer.
_SHARD_BYTES = 32 << 20


@dataclass(frozen=True)
class _PredictShard:
    predictor: Predictor
    block_rows: int

    def __call__(self, reader: Reader) -> Floats:
        return np.concatenate([self.predictor.predict(b.X) for b in reader.blocks(self.block_rows)])


def predicted_shards(predictor: Predictor, source: Source) -> Iterator[tuple[Shard, Floats]]:
    """Yield every shard of a source with its predictions (rows,) or (rows, q), in order.

    Raises
    ------
    DataError
        If the rows have another number of columns than the model was fitted on.
    """
    predictor.feature_map.check((source.n_samples, source.n_features))
    D, q = predictor.coef.shape
    shard_rows, block_rows = cut(source, 8 * D)
    shard_rows = min(shard_rows, max(_SHARD_BYTES // (8 * q), 1))
    task = _PredictShard(predictor, min(block_rows, shard_rows))
    return map_shards(source, task, shard_rows=shard_rows, label="predict")


def predict_to_hdf5(
    predictor: Predictor,
    source: Source,
    path: str | Path,
    *,
    skip_bad_rows: bool = False,
    force: bool = False,
) -> int:
    """Predict the rows of a source into the dataset `y_pred` of a new HDF5 file.

    Parameters
    ----------
    predictor : Predictor
    source : Source
        Of n rows; one that was opened without targets saves reading them.
    path : path
    skip_bad_rows : bool
        Write NaN for rows with values that are not finite, instead of refusing them.
    force : bool
        Replace an existing file.

    Returns
    -------
    int
        How many rows were predicted as NaN.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written.
    DataError
        If the rows cannot be used.
    """
    bad = first = 0
    with RowWriter.create(path, force=force) as writer:
        for shard, rows in predicted_shards(predictor, source):
            unknown = np.flatnonzero(np.isnan(rows.reshape(len(rows), -1)).any(axis=1))
            if len(unknown) and not bad:
                first = shard.start + int(unknown[0])
            bad += len(unknown)
            writer.append("y_pred", rows)
        if bad and not skip_bad_rows:
            raise DataError(
                f"{bad:,} of {source.n_samples:,} rows have no finite prediction, the first at "
                f"{source.locate(first)}, because their inputs are NaN, infinite or overflow; give "
                f"--on-bad-rows skip to write NaN for them."
            )
    return bad


def evaluate(
    predictor: Predictor, source: Source, *, skip_bad_rows: bool = False
) -> dict[str, Any]:
    """Compare predictions with the targets of a source, in one pass.

    Parameters
    ----------
    predictor : Predictor
    source : Source
    skip_bad_rows : bool
        Leave out rows with values that are not finite, instead of refusing them.

    Returns
    -------
    dict
        `rows`, `skipped_rows`, `rmse`, `mae` and `r2`: numbers for targets (n,), else lists, with
        their means as `rmse_mean` and so on.

    Raises
    ------
    DataError
        If the rows cannot be used.
    """
    predictor.feature_map.check((source.n_samples, source.n_features))
    D, q = predictor.coef.shape
    if source.n_targets != q:
        raise DataError(
            f"the model predicts {q} target{'s' * (q > 1)}, but the data has {source.n_targets}; "
            f"name the dataset that holds them with --y."
        )
    shard_rows, block_rows = cut(source, 8 * D)
    result = accumulate(
        source,
        Together(PredictionErrors(predictor), ColumnStatistics(source.n_features + q)),
        shard_rows=shard_rows,
        block_rows=block_rows,
        skip_bad_rows=skip_bad_rows,
        label="evaluate",
    )
    errors, columns = result.statistic.parts
    assert isinstance(errors, PredictionErrors)  # noqa: S101  for the type checker
    assert isinstance(columns, ColumnStatistics)  # noqa: S101
    if columns.n_bad_rows:
        raise source.bad_rows_error(columns.n_bad_rows, columns.first_bad_row or 0)
    if not result.n_rows:
        raise DataError(f"all {source.n_samples:,} rows were skipped; none is left to evaluate.")
    if not np.isfinite(errors.squared).all():
        raise DataError(
            "predictions or their squared errors overflow on rows far outside of those that were "
            "fitted; look at the largest inputs with `streamkern inspect`, or rescale them."
        )
    found: dict[str, Any] = {"rows": result.n_rows, "skipped_rows": result.n_skipped}
    for name in ("rmse", "mae", "r2"):
        values = getattr(errors, name)
        if source.target_ndim == 1:
            found[name] = float(values[0])
        else:
            found[name] = values.tolist()
            found[f"{name}_mean"] = float(values.mean())
    return found
