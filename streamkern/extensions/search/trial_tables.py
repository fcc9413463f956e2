"""Tables of what a search tried: configurations, their errors and their cost."""

from typing import Any

from streamkern.models.report_rows import Table
from streamkern.parameters.fit_report import FitReport, error_of, first_scale, map_in_words


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
    return Table(header, rows, "Error against cost")


def tuning_table(report: FitReport) -> Table:
    """Return the cross-validated errors over sd(y), one a number of features, the best starred."""
    tried = report["tuning"]
    sizes = sorted({each["n_components"] for each in tried})
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
    return Table(header, rows, "Settings tried")


def _configuration(tried: dict[str, Any]) -> tuple[str, str, str]:
    more = "" if isinstance(tried["length_scale"], float) else ", ..."
    scale = first_scale(tried)
    return map_in_words(tried), tried["kernel"], f"{scale:.4g}{more}" if scale else ""
