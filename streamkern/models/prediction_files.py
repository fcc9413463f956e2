"""Predictions of the rows of a source, written to an HDF5 file shard by shard."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.engine.reduction import accumulate
from streamkern.errors import DataError, ParameterError, warn
from streamkern.models.prediction import predicted_shards
from streamkern.predict.intervals import Interval
from streamkern.predict.predictor import RowFunction
from streamkern.predict.support import SupportRows
from streamkern.sources import Shard, Source
from streamkern.sources.nonfinite_rows import bad_inputs
from streamkern.statistics import ColumnStatistics
from streamkern.storage.hdf5_files import IDS, RowWriter
from streamkern.storage.outputs import check_output

# Places of rows without a prediction, and what is written of a part of the rows.
Written = Iterator[tuple[Array, dict[str, Array]]]

NONE = np.empty(0, dtype=np.int64)
# Rows, spread over the source, that are looked at for whether they lie where none were fitted.
_CHECKED = 2048


def predict_to_hdf5(
    predictor: RowFunction,
    source: Source,
    path: str | Path,
    *,
    deviation: Any = None,
    interval: Interval | None = None,
    support: SupportRows | None = None,
    with_support: bool = False,
    dataset: str = "y_pred",
    **how: bool,
) -> int:
    """Predict the rows of a source into the dataset `y_pred` of a new HDF5 file.

    With a task of what tells standard deviations, a dataset `y_std` holds those of new targets;
    with an interval `y_lower` and `y_upper` hold its ends; and with support `support` that of rows,
    of which a warning says how many are outside.  `how` is `skip_bad_rows` and `force`.
    """
    if with_support and "support" in source.ids:
        raise ParameterError(
            "rows have a column 'support' of their own, which support (--support) would be written "
            "over; call that otherwise."
        )
    step, supports = max(source.n_samples // _CHECKED, 1), [np.empty(0)]

    def written(source: Source) -> Written:
        more: Any = {"support": support, "every": 1 if with_support else step}
        shards = predicted_shards(predictor, source, deviation, interval=interval, **more)
        for shard, made in shards:
            if support is not None:
                known = made["support"][::step] if with_support else made.pop("support")
                supports.append(known)
            rows, unknown = made.pop("y_pred"), NONE
            with np.errstate(over="ignore", invalid="ignore"):
                total = rows.sum()  # where it is finite no row is NaN, and it is quick
            if not np.isfinite(total):
                unknown = np.flatnonzero(np.isnan(rows.reshape(len(rows), -1)).any(axis=1))
            yield shard.start + unknown, {dataset: rows, **made}

    without = "no finite prediction", "write NaN for them"
    n_bad = write_predictions(written, source, path, without, **how)
    if support is not None and (share := support.share_outside(np.concatenate(supports))):
        warn(
            f"{share:.0%} of the rows lie where no rows were fitted; their errors are not those of "
            f"the card, and support (--support) says which they are."
        )
    return n_bad


def write_predictions(
    written: Callable[[Source], Written],
    source: Source,
    path: str | Path,
    without: tuple[str, str],
    *,
    skip_bad_rows: bool = False,
    force: bool = False,
) -> int:
    """Write a new HDF5 file, part by part, and return how many rows have no prediction.

    `without` says what these are without, and what skipping them would do.
    """
    check_output(path, force=force, inputs=source.paths)
    source = source.skip_invalid() if skip_bad_rows else source
    bad = first = 0
    with RowWriter.create(path, force=force, release=True) as writer:
        for unknown, datasets in written(source):
            if len(unknown) and not bad:
                first = int(unknown[0])
            bad += len(unknown)
            for name, values in datasets.items():
                writer.append(name, values)
        for name in source.ids:
            for part in source.column(name).reader(Shard(0, 0, source.n_samples)):
                writer.append(name, part)
        if source.ids:
            writer.note(IDS, json.dumps(list(source.ids)))
        if bad and not skip_bad_rows:
            raise DataError(
                f"{bad:,} of {source.n_samples:,} rows have {without[0]}, the first at "
                f"{source.locate(first)}, because their inputs are NaN, infinite or overflow"
                f"{_bad_inputs(source)}; give on_bad_rows 'skip' (--on-bad-rows skip) to "
                f"{without[1]}, or fit to a table converted with impute=True (--impute), which "
                f"fills missing cells."
            )
    return bad


def _bad_inputs(source: Source) -> str:
    """Say in which inputs there are values that are not finite, after one more light pass."""
    statistic = ColumnStatistics(source.n_features + source.n_targets)
    columns = accumulate(source, statistic, label="columns").statistic
    found = bad_inputs(source, columns.n_nonfinite.tolist())
    return f" in {found}" if found else ""
