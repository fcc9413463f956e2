"""Moments files: what the rows of a data set were reduced to, to be merged and solved later.

/              attributes format = "streamkern-moments", format_version
/card          JSON: options, report, data, versions of libraries, map and parameters, kernel
/map/...       what the feature map drew
/shifts/..     feature_shift (D,), target_shift and target_unit (q,): all sums are about these
/folds/K/..    gram, one packed triangle of D (D + 1) / 2; cross (D, q + 1), target (q,),
               target_sum (q,), weight, n_rows
               (of rounded features gram is in int32, with gram_upper above it if that is needed,
               and cross, target, target_sum are three words to base 2^56;
               version 1 had the products of all targets as target, (q, q))
/index/hashes  (n,) uint64, of the values of every row, ascending
/index/folds   (n,) which fold the row is in
/landmarks/folds  (D,) which fold every landmark is in, where rows are few for them
"""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern._typing import Group
from streamkern._version import __version__
from streamkern.errors import OverflowedError
from streamkern.errors.checks import is_integer
from streamkern.features import LEVELS, LandmarkFolds
from streamkern.features.metric import checked_metric, described_metric, with_metric
from streamkern.models.feature_rounding import USUAL_ROUNDING
from streamkern.models.fitted_model import described_kernel, restored_kernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.registry import encoding_in, extension
from streamkern.sources.columns import Columns
from streamkern.sources.target_encoding import NUMBERS
from streamkern.statistics import FeatureSums, FoldStatistics, Moments, RowIndex, unplaced_folds
from streamkern.statistics.triangle import Triangle
from streamkern.storage.codec import MOMENTS, map_card, opened_card, restored_map, write_card
from streamkern.storage.untrusted import finite_array, finite_arrays, mark

if TYPE_CHECKING:
    from streamkern.models.data_moments import DataMoments

_SHIFTS = ("feature_shift", "target_shift", "target_unit")
_MOST_FOLDS = 1 << 20
_SUMS = ("gram", "cross", "target", "target_sum", "weight", "n_rows")
# What a solve repeats of the report.
_NUMBERS = (
    *("rows", "n_features", "n_targets", "rows_per_second", "peak_worker_bytes", "n_folds"),
    *("projected_worker_bytes", "skipped_rows", "retried_shards", "resumed_shards"),
)
_REPORTED = {*_NUMBERS, "seconds", "fold_by", "precision", "dropped_columns", "data"}
_SECONDS = {"total", "columns", "pass"}


def write_moments(path: str | Path, moments: "DataMoments", *, force: bool) -> None:
    index, folds, options = moments.known_rows(), moments.gathered().folds, moments.options
    empty, parts = folds.empty, sorted(folds.parts.items())
    if not all(part.is_finite() for _, part in parts):
        raise OverflowedError(
            f"sums of features or targets overflowed in {options.precision} precision; "
            f"standardise or rescale the inputs."
        )
    described = {"kernel": described_kernel(options.kernel)}
    card = {
        "options": options.parameters() | described | {"metric": described_metric(options.metric)},
        "kernel": described_kernel(moments.kernel),
        "flat": moments.flat,
        "report": moments.report,
        "streamkern": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_targets": empty.n_targets,
        "n_folds": moments.n_folds,
        **map_card(moments.feature_map, empty.precision),
        **({"weight_unit": empty.weight_unit} if options.precision in LEVELS else {}),
    }
    arrays = {
        "map": empty.feature_map.arrays(),
        "shifts": {name: getattr(empty, name) for name in _SHIFTS},
        "folds": {str(i): _sums_of(part.with_gram()) for i, part in parts},
        "index": {"hashes": index.hashes, "folds": index.labels},
    }
    if moments.landmarks is not None:
        arrays["landmarks"] = {"folds": moments.landmarks.folds}
    write_card(path, MOMENTS, card, arrays, force=force)


def read_moments(path: str | Path, *, with_folds: bool) -> dict[str, Any]:
    """Return the fields of `DataMoments`; without folds, these and their rows are empty."""
    with opened_card(path, MOMENTS) as (file, card):
        folds, index = _restored_folds(file, card, with_folds=with_folds)
        feature_map, report = folds.empty.feature_map, card["report"]
        _check_report(report)
        columns = Columns.restored(card, feature_map.n_features)
        if with_folds and report["rows"] != len(index):
            raise ValueError(f"{report['rows']} rows, but {len(index):,} in the index")
        options = with_metric(card["options"], feature_map)
        options["metric"] = checked_metric(options.get("metric"))
        return {
            "folds": folds,
            "n_folds": folds.rule.n_folds,
            "feature_map": feature_map,
            "kernel": restored_kernel(card["kernel"]),
            "flat": bool(card["flat"]),
            "report": report,
            "options": FitOptions(restored_kernel(options.pop("kernel")), **options),
            "index": index,
            "columns": columns,
            "n_rows": report["rows"],
            "landmarks": _restored_landmarks(file, folds),
            "encoding": encoding_in(report) or NUMBERS,
            "feature_rounding": report.get("feature_rounding", USUAL_ROUNDING),
            "weight_unit": report.get("weight_unit"),
        }


def _restored_landmarks(file: Group, folds: FoldStatistics) -> LandmarkFolds | None:
    """Return the folds of landmarks, which files of other maps and of earlier versions lack."""
    if "landmarks" not in file:
        return None
    found = finite_array(file["landmarks"], "folds", kinds="i")
    return LandmarkFolds.restored(folds.empty.feature_map, found, folds.rule.n_folds)


def _sums_of(part: Any) -> dict[str, Any]:
    """Return the sums of a fold by name; integers of G as their lower and upper 32 bits."""
    sums = {name: getattr(part, name) for name in _SUMS}
    return sums | _integers().written(part) if part.precision in LEVELS else sums


def _integers() -> Any:
    """Return how files hold sums of integers."""
    return extension("integers", "integer_moments")


def _restored_folds(
    file: Group, card: dict[str, Any], *, with_folds: bool
) -> tuple[FoldStatistics, RowIndex]:
    """Return the folds of a file and the index of their rows, or both empty."""
    K, q, feature_map = card["n_folds"], card["n_targets"], restored_map(file, card)
    if not (is_integer(K, 1) and is_integer(q, 1) and K <= _MOST_FOLDS):
        raise ValueError(f"{K!r} folds of {q!r} targets")
    shapes = zip(_SHIFTS, ((feature_map.n_components,), (q,), (q,)), strict=True)
    shifts: dict[str, Any] = finite_arrays(file["shifts"], dict(shapes), "f")
    if not (shifts["target_unit"] > 0).all():
        raise ValueError("units of targets that are not positive")
    kind: Any = Moments
    if card["precision"] in LEVELS:
        kind = _integers().IntegerMoments
        unit = card["weight_unit"]
        if not (isinstance(unit, float) and math.frexp(unit)[0] == 0.5):
            raise ValueError(f"the unit {unit!r} of weights")
        shifts["weight_unit"] = unit
    empty = kind(feature_map, q, precision=card["precision"], **shifts)
    folds = FoldStatistics(unplaced_folds(K), empty)
    if not with_folds:
        return folds, RowIndex(folds.rule)
    for name, group in file["folds"].items():
        folds.parts[int(name)] = _read_part(group, empty)
    return folds, _read_index(file["index"], folds)


def _check_report(report: FitReport) -> None:
    """Raise an error of damage unless a report has what a solve needs of it."""
    missing = _REPORTED - report.keys() or _SECONDS - report["seconds"].keys()
    if missing or "kind" not in report["data"]:
        raise ValueError(f"the report lacks {min(missing or {'data'})}")
    numbers = [*(report[name] for name in _NUMBERS), *report["seconds"].values()]
    numbers += [*report["dropped_columns"], *report.get("nearly_constant_columns", [])]
    numbers.append(report.get("feature_rounding", 0.0))
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise ValueError("what are no numbers in the report")


def _read_part(group: Group, empty: FeatureSums) -> FeatureSums:
    part = empty.zero()
    D, q = part.feature_map.n_components, part.n_targets
    if part.precision in LEVELS:
        vars(part).update(_integers().read(group, part))
        return _counted(group, part)
    all_products = mark(group.file, "format_version") == 1
    shapes = {"gram": (D * (D + 1) // 2,), "cross": (D, q + 1), "target_sum": (q,)}
    found = finite_arrays(group, shapes | {"target": (q, q) if all_products else (q,)}, "f")
    if all_products:
        found["target"] = np.diagonal(found["target"]).copy()
    part.gram = Triangle.unpacked(found.pop("gram"))
    vars(part).update(found)
    return _counted(group, part)


def _counted(group: Group, part: FeatureSums) -> FeatureSums:
    """Read how many rows a part is of, and what they weigh."""
    part.weight = float(finite_array(group, "weight", (), "f"))
    part.n_rows = int(finite_array(group, "n_rows", (), "iu"))
    if part.weight < 0 or part.n_rows < 0:
        raise ValueError(f"{part.n_rows:,} rows that weigh {part.weight:g}")
    return part


def _read_index(group: Group, folds: FoldStatistics) -> RowIndex:
    """Read which rows are in the folds, and check that the two agree."""
    hashes = finite_array(group, "hashes", kinds="u")
    labels = finite_array(group, "folds", hashes.shape, "u")
    if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] < hashes[:-1]).any():
        raise ValueError("hashes of rows that are not in order")
    K, parts = folds.rule.n_folds, folds.parts
    if len(labels) and labels.max() >= K:
        raise ValueError(f"fold {labels.max()} of {K}")
    stored = [parts[fold].n_rows if fold in parts else 0 for fold in range(K)]
    known = parts and min(parts) >= 0 and max(parts) < K
    if not known or (np.bincount(labels, minlength=K) != stored).any():
        raise ValueError("folds that do not hold the rows of the index")
    return RowIndex.of(hashes, labels, folds.rule)
