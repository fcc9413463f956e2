"""Summary tables of a fit: what its report says, in rows of words for a terminal and for a page.

Functions take the report of a model, of moments or of components, and `number`, which
writes figures: `brief` for a terminal, `numbers.number` for a page.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from streamkern.errors.formatting import listed
from streamkern.parameters.fit_options import has_few_rows
from streamkern.parameters.fit_report import FitReport
from streamkern.registry import rows_of
from streamkern.runtime.memory import in_words
from streamkern.sources.columns import Columns

Number = Callable[[Any], str]

Row = tuple[str, str]  # a name and what stands beside it
# How many values, columns and files are named.
_MOST_VALUES, _MOST_COLUMNS, _MOST_FILES = 5, 8, 3
_FAULTS = {
    "skipped_rows": "rows skipped",
    "weightless_rows": "rows of weight 0",
    "forgotten_rows": "rows forgotten",
    "resumed_shards": "shards resumed",
    "retried_shards": "shards retried",
}
_COLUMNS = {
    "dropped_columns": "constant columns left out",
    "nearly_constant_columns": "nearly constant columns, taken to spread wider than they do",
}
_TERM = itemgetter("term", "coefficient", "deviation")
# Classes of a summary, and rows of it that a line has no room for.
_MOST_CLASSES, _LONG = 8, {"seconds", "note"}
# Where errors at landmarks were found too small.
_FEW_ROWS = 5000


def brief(value: Any) -> str:
    """Return a number with five digits, or the first four of several."""
    if isinstance(value, (list, tuple)):
        shown = ", ".join(brief(item) for item in value[:4])
        return shown + (f", ... ({len(value)})" if len(value) > 4 else "")
    if value is None:
        return "none"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    title: str = ""


def _columns(report: FitReport) -> Columns:
    return Columns.restored({"report": report}, report["n_features"])


def fit_rows(report: FitReport, number: Number = brief) -> list[Row]:
    return [
        *data_rows(report, number),
        *rows_of("classes", report),
        *_choices(report, number),
        ("alpha", _alpha(report, number)),
        *[
            (f"trend: {name}", f"{number(slope)}, standard error {number(error)}")
            for name, slope, error in map(_TERM, report.get("trend", ()))
        ],
        ("training rmse", number(report["train_rmse"]) + unit_of(report)),
        ("cross-validated rmse", _cross_validated(report, number)),
        *[
            ("rmse of the rounding of features", number(error))
            for error in [report.get("rounding_rmse")]
            if error is not None
        ],
        ("effective degrees of freedom", number(report["effective_dof"])),
        ("solver", f"{report['solver']}, condition {number(report['condition'])}"),
        *rows_of("gradients", report, number),
    ]


def unit_of(report: FitReport) -> str:
    """Return what errors are in units of: a target that has a name."""
    names: Any = _columns(report).target_names or []
    return f", in units of {names[0]}" if len(names) == 1 and "classes" not in report else ""


def _cross_validated(report: FitReport, number: Number) -> str:
    few = report["feature_map"] == "nystroem" and report["rows"] < _FEW_ROWS
    # Where rows crowd, or are as few as that, folds have no landmarks of their own.
    few &= not (report.get("crowding") or has_few_rows(report["rows"], report["n_components"]))
    known = report["cv_rmse"] is not None and report.get("alpha_curve") is not None
    more = "; of few rows up to 5% too small, as landmarks are chosen among those left out, too"
    return number(report["cv_rmse"]) + more * (few and known)


def _tried(report: FitReport, what: str, number: Number) -> str:
    """Return the errors that something was chosen by, in words, or nothing."""
    errors: Any = report.get(f"{what}_errors")
    tried = ", ".join(f"{name} {number(error)}" for name, error in (errors or {}).items())
    return f"; errors of small fits, in standard deviations: {tried}" if tried else ""


def _choices(report: FitReport, number: Number) -> Iterator[Row]:
    """Yield the kernel and the scale, with the errors that they were chosen by, if they were."""
    for what in ("kernel", "scale"):
        if tried := _tried(report, what, number):
            yield f"choice of {what}", f"{report[what]}{tried}"
    if evidence := report.get("kernel_evidence"):
        tried = ", ".join(f"{name} {number(each)}" for name, each in evidence.items())
        yield "choice of kernel", f"{report['kernel']}; evidence a row of windows: {tried}"


def model_rows(report: FitReport) -> list[Row]:
    """Return the rows of `fit_rows`, what reading took, and what is to be noted."""
    more = [(name, report[name]) for name in ("note", "model") if report.get(name)]
    return [*fit_rows(report), *pass_rows(report), *more]


def moments_rows(report: FitReport) -> list[Row]:
    n_folds = report["n_folds"]
    return [
        *data_rows(report),
        *rows_of("classes", report),
        ("folds", f"{n_folds} by {report['fold_by']}" if n_folds else "none"),
        *pass_rows(report),
        ("moments", f"{report['moments']}, {in_words(report['bytes'])}"),
    ]


def data_rows(report: FitReport, number: Number = brief) -> list[Row]:
    features, weights = f"{report['n_components']:,}", report.get("weights")
    if report.get("sparse_of"):
        features += f" of {report['sparse_of']:,} by {report['sparse_method']}"
    names = None if "classes" in report else _columns(report).target_names
    called = "" if names is None else f": {listed(names, _MOST_VALUES)}"
    size, kernel = input_rows(report, number)
    total = f"{weights}, which add up to {report['weight']:,.10g}" if weights else ""
    return [
        size,
        ("targets", f"{report['n_targets']:,}{called}"),
        *([("weights", total)] if weights else []),
        kernel,
        *_metric_rows(report, number),
        ("components", f"{features} ({report['precision']} precision)"),
    ]


def input_rows(report: FitReport, number: Number = brief) -> tuple[Row, Row]:
    kernel, scale = report["kernel"], report["length_scale"]
    kernel += f", length scale {number(scale)}" if scale is not None else ""
    size = f"{report['rows']:,} x {report['n_features']:,}"
    return ("rows x inputs", size), ("kernel", kernel)


def _metric_rows(report: FitReport, number: Number) -> list[Row]:
    metric, tried = report.get("metric"), _tried(report, "metric", number)
    if not metric:
        return [("metric", f"plain distances{tried}")] if tried else []
    if "kernel_evidence" in report:
        return [("length scales", _turned(report, metric, number))]
    rounds = metric.get("rounds")
    if not rounds:
        how = f"{metric['kind']}{tried}"
    else:
        kept, is_weighted = (rounds[metric["kept"]].get(name) for name in ("number", "is_weighted"))
        how = f"learnt, round {kept} of {max(each['number'] for each in rounds)}"
        how += ", from weights by descent" if is_weighted else ""
        if not kept:
            return [("metric", "plain distances, which predicted better than a learnt one")]
    names = _columns(report).input_names or range(report["n_features"])
    shares = zip(metric["importance"], metric["columns"], strict=True)
    heaviest = sorted(shares, key=lambda pair: -pair[0])[:_MOST_VALUES]
    named = ", ".join(f"{names[j]} ({100 * part:.0f}%)" for part, j in heaviest)
    return [("metric", how), ("inputs that weigh most", named)]


def _turned(report: FitReport, metric: dict[str, Any], number: Number) -> str:
    """Return the length scales of a field along the directions of its metric, in words."""
    names, scale = _columns(report).named(metric["columns"]), report["length_scale"]
    shares = metric["eigenvalues"]
    middle = math.prod(shares) ** (1.0 / len(shares))
    found = []
    for share, direction in zip(shares, metric["directions"], strict=True):
        way = " ".join(f"{part:+.2f} {name}" for part, name in zip(direction, names, strict=True))
        found.append(f"{number(scale * math.sqrt(middle / share))} along {way}")
    own = report.get("scale") == "none"
    return "; ".join(found) + ("" if own else ", of inputs over their deviations")


def _alpha(report: FitReport, number: Number) -> str:
    curve, alpha = report.get("alpha_curve"), number(report["alpha"])
    if not curve:
        return alpha
    crossed = curve["criterion"] == "cv"
    folds = f", {report['n_folds']} folds by {report['fold_by']}" if crossed else ""
    return f"{alpha} by {curve['criterion']}{folds}, of {len(curve['alphas'])} tried"


def pass_rows(report: FitReport) -> list[Row]:
    peak, planned = report["peak_worker_bytes"], report["projected_worker_bytes"]
    seconds = ", ".join(f"{name} {value:.1f}" for name, value in report["seconds"].items())
    names = _columns(report).input_names or range(report["n_features"])
    return [
        ("seconds", seconds),
        ("memory of a worker", f"{in_words(peak)} of {in_words(planned)} projected"),
        *((name, f"{count:,}") for key, name in _FAULTS.items() if (count := report.get(key))),
        *(
            (label, brief([names[j] for j in report[key]]))
            for key, label in _COLUMNS.items()
            if report.get(key)
        ),
    ]


def card_rows(card: dict[str, Any], rows: Sequence[Row], seed: int | None = None) -> list[Row]:
    report, versions = card["report"], card["versions"]
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    is_drawn = seed is not None
    return [
        ("made", f"{card['created']} by streamkern {versions['streamkern']}"),
        *rows,
        *([("feature map", f"{report['feature_map']}, seed {seed}")] if is_drawn else []),
        ("data", data_words(report["data"])),
        *_column_rows(card),
        *([("libraries", used)] if is_drawn else []),
    ]


def _column_rows(card: dict[str, Any]) -> list[Row]:
    columns = Columns.restored(card, card["report"]["n_features"])
    recipe, names = columns.recipe, columns.input_names
    inputs = [] if names is None else [listed(names, _MOST_COLUMNS)]
    if recipe is None:
        return [("columns", each) for each in inputs]
    named = listed((column.name for column in recipe.columns), _MOST_COLUMNS)
    made = [] if recipe.is_plain else [("inputs made of them", each) for each in inputs]
    left = listed((f"{name}: {why}" for name, why in recipe.left_out.items()), _MOST_COLUMNS)
    return [("columns of a table", named), *made, *[("left out", left)] * bool(left)]


def data_words(data: dict[str, Any]) -> str:
    files = [entry["path"] for entry in data.get("files", [])]
    more = f", ... ({len(files)})" if len(files) > _MOST_FILES else ""
    return ", ".join(files[:_MOST_FILES]) + more if files else str(data["kind"])


def summary_rows(report: FitReport) -> list[tuple[str, str]]:
    """Return what people ask of a model first, in words, as far as it is known."""
    classes, seconds = report.get("classes"), report["seconds"]
    D = report.get("n_random_features", report.get("n_components"))
    parts = ", ".join(f"{name} {each:.1f}" for name, each in seconds.items() if name != "total")
    rows = {
        "rows x inputs": f"{report['rows']:,} x {report['n_features']:,}",
        "classes": listed(classes["values"], _MOST_CLASSES) if classes else "",
        "kernel": report.get("kernel"),
        "length scale": report.get("length_scale"),
        "features": f"{D:,}, {report['precision']} precision",
        "principal components": report["n_components"] if "rank" in report else "",
        "rounds": len(report["rounds"]) if "rounds" in report else "",
        "alpha": report.get("alpha"),
        "cross-validated RMSE": report.get("cv_rmse"),
        "training RMSE": report.get("train_rmse"),
        "training error": report.get("train_error"),
        "seconds": f"{seconds['total']:.1f}: {parts}",
        "note": report.get("note"),
    }
    return [(name, brief(value)) for name, value in rows.items() if value not in (None, "")]


def summary_line(name: str, report: FitReport) -> str:
    """Return an object's name with the same in a line."""
    known = (f"{name}: {words}" for name, words in summary_rows(report) if name not in _LONG)
    return f"{name}({', '.join(known)})"


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
