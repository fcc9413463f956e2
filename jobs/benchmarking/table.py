"""One table of everything that was measured, in Markdown that is aligned for reading as it is."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarking.contenders import CONTENDERS
from benchmarking.wording import Wording, machine_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLUMNS = ("seconds", "ratio to roofline", "µs a row", "peak memory", "test RMSE")
_PARTS = {
    "metric": "\N{EM SPACE}of these, learning the metric",
    "accumulate": "\N{EM SPACE}of these, accumulating",
}


def table(results: Mapping[str, Any]) -> str:
    """Return the table, under a line that says what all rows have in common."""
    measured = results["cases"]
    wording = Wording(entry["case"] for entry in measured)
    axes = wording.axes
    lines = [["case", "", *_COLUMNS] if axes else ["", *_COLUMNS]]
    for entry in measured:
        place = [wording.apart(entry["case"])] if axes else []
        for name, contender in entry["contenders"].items():
            for cells in _rows_of(name, contender):
                lines.append([*place, *cells])
                place = [""] if axes else []
    title = (
        f"{wording.common()}.  Medians of {results['repeats']} (fastest to slowest); "
        f"{machine_of(results)}; other programs took {_load_of_others(measured):.2f} cores."
    )
    return "\n".join((title, "", *_aligned(lines, 2 if axes else 1)))


def _load_of_others(measured: Sequence[Mapping[str, Any]]) -> float:
    """Return the median over all runs."""
    contenders = (found for entry in measured for found in entry["contenders"].values())
    loads = [run["load_of_others"] for c in contenders for run in c["runs"] if "seconds" in run]
    return float(median(loads)) if loads else math.nan


def _rows_of(name: str, contender: Mapping[str, Any]) -> list[list[str]]:
    label = CONTENDERS[name].label
    if "seconds" not in contender:
        reason = "refused" if "refused" in contender else "failed"
        return [[f"{label} {reason}: {contender[reason]}", "", "", "", "", ""]]
    is_roofline = CONTENDERS[name].roofline == name
    rmse = contender.get("test_rmse")
    rows = [
        [
            label,
            spread_of(contender["seconds"]),
            _ratio(contender),
            f"{contender['microseconds_a_row']:.3g}",
            "" if is_roofline else f"{contender['peak_bytes'] / 1e9:.2f} GB",
            "" if rmse is None else f"{rmse:.4f}",
        ]
    ]
    for part, words in _PARTS.items():
        found = contender.get("parts", {}).get(part)
        if found:
            rows.append([words, spread_of(found["seconds"]), _ratio(found), "", "", ""])
    return rows


def _ratio(entry: Mapping[str, Any]) -> str:
    return f"{entry['ratio']:.2f}" if "ratio" in entry else ""


def _aligned(lines: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Return the rows of a Markdown table whose first columns are aligned left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * w if i < n_left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]

    def joined(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(w) if i < n_left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    head, *rest = lines
    return [joined(head), joined(rule), *map(joined, rest)]
