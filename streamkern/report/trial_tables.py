"""Tables of what was tried: rounds of boosting, configurations of a search, and their cost."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern.choice.trials import map_in_words
from streamkern.parameters.fit_report import FitReport


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def round_table(report: FitReport) -> Table:
    """Return the training error after every round of boosting, with its bound if there is one."""
    keys = {"weighted error": "weighted_error", "votes count": "step", "error": "train_error"}
    if report["train_error_bound"] is not None:
        keys["at most"] = "train_error_bound"
    rounds = report["rounds"]
    rows = [(str(each["round"]), *(f"{each[k]:.4f}" for k in keys.values())) for each in rounds]
    return Table(("round", *keys), rows)


def frontier_table(report: FitReport) -> Table:
    """Return every configuration that none beats in error and cost, and the one chosen."""
    header = ("", "map", "kernel", "length scale", "D", "error", "seconds", "passes")
    rows = [
        (
            "chosen" if each["is_chosen"] else "",
            *_configuration(each),
            f"{each['n_components']:,}",
            f"{error_of(each):.4f}",
            f"{each['seconds']:.3g}",
            f"{each['passes']:.2g}",
        )
        for each in report["frontier"]
        if each["is_best"] or each["is_chosen"]
    ]
    return Table(header, rows)


def tuning_table(report: FitReport) -> Table:
    """Return the cross-validated errors over sd(y), one a number of features, the best starred."""
    tried = report["tuning"]
    sizes = sorted({attempt["n_components"] for attempt in tried})
    errors: dict[tuple[str, str, str], dict[int, float]] = {}
    for each in sorted(tried, key=lambda a: (map_in_words(a), a["kernel"], first_scale(a))):
        mine = errors.setdefault(_configuration(each), {})
        mine[each["n_components"]] = error_of(each)
    best = {size: min(each[size] for each in errors.values() if size in each) for size in sizes}

    def cell(mine: dict[int, float], size: int) -> str:
        if size not in mine:
            return ""
        return f"{mine[size]:.4f}" + ("*" if mine[size] == best[size] else " ")

    header = ("map", "kernel", "length scale", *(f"D = {size:,}" for size in sizes))
    rows = [(*name, *(cell(mine, size) for size in sizes)) for name, mine in errors.items()]
    return Table(header, rows)


def _configuration(tried: dict[str, Any]) -> tuple[str, str, str]:
    more = "" if isinstance(tried["length_scale"], float) else ", ..."
    scale = first_scale(tried)
    return map_in_words(tried), tried["kernel"], f"{scale:.4g}{more}" if scale else ""


def error_of(tried: dict[str, Any]) -> float:
    """Return the root of the mean square of an attempt, over sd(y)."""
    return math.sqrt(tried["relative_mse"])


def first_scale(tried: Mapping[str, Any]) -> float:
    """Return the length scale of an attempt, or that of its first input; 0 where it has none."""
    scale = tried["length_scale"]
    return float(np.ravel(scale)[0] if scale else 0.0)
