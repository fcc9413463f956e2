"""What people read of the errors of a regression."""

from typing import Any

import numpy as np


def error_tables(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the title and the rows of a table of what an evaluation found."""
    rows = []
    for name in ("rmse", "mae", "r2"):
        label = f"{name}, mean over targets" if f"{name}_mean" in found else name
        rows.append((label, f"{found.get(f'{name}_mean', found[name]):.6g}"))
    spread = np.mean(found["baseline"]["rmse"])
    rows.append(("baseline rmse", f"{spread:.6g}, by always saying the mean of these targets"))
    rows += _support_rows(found.get("by_support")) + _interval_rows(found.get("intervals"))
    return [("Errors", rows)]


def _support_rows(found: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """Return a row of the share and the error of rows where none were fitted."""
    if found is None:
        return []
    counts = [each["rows"] for each in found]
    squares = [np.mean(np.square(each["rmse"] or 0.0)) for each in found]
    others = np.dot(squares[1:], counts[1:]) / max(sum(counts[1:]), 1)
    share, (outside, inside) = counts[0] / sum(counts), np.sqrt([squares[0], others])
    said = f"{share:.2%}, of rmse {outside:.6g}" if counts[0] else "none"
    said += f"; {inside:.6g} of the others" * (sum(counts) > counts[0] > 0)
    return [("rows outside the fit", said)]


def _interval_rows(found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return rows of what intervals hold, in all and in the worst tenth of difficulty."""
    if found is None:
        return []
    tenths = enumerate(found["by_difficulty"], 1)
    known = [each for each in tenths if np.all(each[1]["rows"])]
    place, worst = min(known, key=lambda each: np.mean(each[1]["coverage"]))

    def said(facts: dict[str, Any]) -> str:
        return f"{100 * np.mean(facts['coverage']):.3g}%, mean width {np.mean(facts['width']):.4g}"

    level = f"{100 * found['level']:.3g}% intervals hold"
    return [(level, said(found)), (f"tenth {place} of 10, by width", f"{said(worst)}, the worst")]
