"""The choice of kernel and length scales of a field, by one pass that samples windows of it."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.engine.scheduler import run, shared, task
from streamkern.models.checkpoint_job import RowPasses
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import WindowSamples
from streamkern.tune.column_pass import ColumnPass
from streamkern.tune.window_evidence import Evidence, Window, by_evidence

# Rows of a window, with how many it tells something; places that windows are around; and by how
# much windows around a place differ.
_ROWS, _FEWEST, _PLACES, _SMALLER = 300, 50, 4, 3.0
# Shares of the sample on either side that the range of an input leaves out.
_ENDS = 0.01
_MOST_TARGETS = 32


def with_chosen_kernel(rows: RowPasses, seen: ColumnPass) -> RowPasses:
    """Read the rows once if the kernel of a field is open, and return passes with the best.

    Windows are a third as wide from one to the next, down to what waves tell apart.
    """
    begun, options = time.perf_counter(), rows.options
    if not options.chooses_kernel or rows.like is not None:
        return rows
    standardizer, sample = seen.standardizer, seen.sample
    placed = standardizer(sample.X)
    ranges = np.ptp(np.quantile(placed, [_ENDS, 1.0 - _ENDS], axis=0), axis=0)
    ranges = np.where(ranges > 0, ranges, np.ptp(placed, axis=0))
    p = len(ranges)
    n_sizes = math.ceil(math.log(options.n_components) / p / math.log(_SMALLER))
    # Of the whole field, too.
    sizes = 0.5 * _SMALLER ** -np.arange(1.0, n_sizes + 1)
    centres = np.repeat(placed[:_PLACES], n_sizes, axis=0)
    halves = np.concatenate([np.full((1, p), np.inf), np.outer(np.tile(sizes, _PLACES), ranges)])
    centres = np.concatenate([np.zeros((1, p)), centres])
    empty = WindowSamples(standardizer, centres, halves, _ROWS, options.random_state)
    read: Any = rows.read(empty, "kernels").statistic
    windows = _told(read, n_sizes, seen)
    found = run(task(_chosen, shared(windows), ranges, name="evidence"))
    best = max(found, key=lambda each: each.per_row)
    lengths = np.ones(rows.source.n_features)
    lengths[standardizer.columns] = best.length_scales
    scales: Any = tuple(lengths.tolist()) if len(lengths) > 1 else float(lengths[0])
    kernel = best.kernel.with_length_scale(scales)
    report: Any = {**(rows.scaled or {}), "passes": 1}
    report["kernel_evidence"] = {each.kernel.name: each.per_row for each in found}
    report["seconds"] = {**report.get("seconds", {}), "kernels": time.perf_counter() - begun}
    options = replace(options, kernel=kernel, chooses_kernel=False)
    return rows._replace(options=options, scaled=report)


@blas_threads(1)  # the choice is part of the result
def _chosen(windows: list[Window], ranges: Any) -> list[Evidence]:
    return by_evidence(windows, ranges)


def _told(read: WindowSamples, n_sizes: int, seen: ColumnPass) -> list[Window]:
    """Return the windows with rows enough, less those that are in others with all their rows."""
    whole, *others = read.samples
    kept = [whole]
    for start in range(0, len(others), n_sizes):
        around = others[start] if len(whole.hashes) == _ROWS else None
        for each in others[start : start + n_sizes]:
            if around is None or len(each.hashes) < _FEWEST:
                break
            kept.append(each)
            around = each if len(each.hashes) == _ROWS else None
    weight = float(np.mean([each.weights.mean() for each in kept]))
    scale = seen.target_scale
    return [
        Window(
            seen.standardizer(each.X),
            (each.y[:, :_MOST_TARGETS] - scale["target_shift"][:_MOST_TARGETS])
            / scale["target_unit"][:_MOST_TARGETS],
            each.weights / weight,
        )
        for each in kept
    ]
