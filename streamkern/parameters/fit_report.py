"""Fit report: what a fit says of itself, by the keys of `docs/reference/reports.md`."""

from typing import Any

FitReport = dict[str, Any]


def with_seconds(report: FitReport, **parts: float) -> FitReport:
    """Return a report with the seconds of more parts of the work, which the total counts too."""
    seconds = report["seconds"]
    added = {name: seconds.get(name, 0.0) + spent for name, spent in parts.items()}
    total = seconds["total"] + sum(parts.values())
    return report | {"seconds": seconds | added | {"total": total}}
