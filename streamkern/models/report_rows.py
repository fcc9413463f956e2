"""Summary tables of a fit: what its report says, in rows of words for a terminal and for a page.

Functions take the report of a model, of moments or of components, and `number`, which
writes figures: `brief` for a terminal, `numbers.number` for a page.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from streamkern.errors.formatting import listed
from streamkern.models.report_facts import brief
from streamkern.parameters.fit_report import FitReport
from streamkern.runtime.memory import in_words
from streamkern.sources.columns import Columns

Number = Callable[[Any], str]

Row = tuple[str, str]  # a name and what stands beside it
LABELS = {
    "train_rmse": "training rmse",
    "cv_rmse": "cross-validated rmse",
    "loo_rmse": "leave-one-out rmse",
    "effective_dof": "effective degrees of freedom",
    "noise": "standard deviation of the noise",
    "precision_floor": "precision floor of alpha",
    "rounding_rmse": "rmse of the rounding of features",
    # Rounds of boosting.
    "train_error": "training error",
    "train_error_bound": "training error, at most",
    # Classes.
    "accuracy": "accuracy",
    "cv_accuracy": "cross-validated accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "expected_calibration_error": "expected calibration error",
    "auc": "area under the curve",
}
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
# Where errors at landmarks were found too small.
_FEW_ROWS = 5000
_CLASS_ERRORS = (
    *("accuracy", "balanced_accuracy", "log_loss", "brier_score"),
    "expected_calibration_error",
)


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    title: str = ""


def figure_row(
    field: str, figures: Mapping[str, Any], write: Callable[[Any], str]
) -> tuple[str, str]:
    """Return the label of a field, and its figure as `write` writes it."""
    return LABELS[field], write(figures[field])


def _columns(report: FitReport) -> Columns:
    return Columns.restored({"report": report}, report["n_features"])


def fit_rows(report: FitReport, number: Number = brief) -> list[Row]:
    return [
        *data_rows(report, number),
        *class_rows(report),
        *_choices(report, number),
        ("alpha", _alpha(report, number)),
        *[
            (f"trend: {name}", f"{number(slope)}, standard error {number(error)}")
            for name, slope, error in map(_TERM, report.get("trend", ()))
        ],
        figure_row("train_rmse", report, number),
        _cross_validated(report, number),
        *([figure_row("rounding_rmse", report, number)] if "rounding_rmse" in report else []),
        figure_row("effective_dof", report, number),
        ("solver", f"{report['solver']}, condition {number(report['condition'])}"),
        *_gradients(report, number),
    ]


def _cross_validated(report: FitReport, number: Number) -> Row:
    label, shown = figure_row("cv_rmse", report, number)
    few = report["feature_map"] == "nystroem" and report["rows"] < _FEW_ROWS
    known = report["cv_rmse"] is not None and report.get("alpha_curve") is not None
    more = "; of few rows up to 5% too small, as landmarks are chosen among those left out, too"
    return label, shown + more * (few and known)


def _choices(report: FitReport, number: Number) -> Iterator[Row]:
    """Yield the kernel and the scale, with the errors that they were chosen by, if they were."""
    for what in ("kernel", "scale"):
        errors: Any = report.get(f"{what}_errors")
        if errors:
            tried = ", ".join(f"{name} {number(error)}" for name, error in errors.items())
            yield f"choice of {what}", f"{report[what]}; errors of small fits: {tried}"
    if evidence := report.get("kernel_evidence"):
        tried = ", ".join(f"{name} {number(each)}" for name, each in evidence.items())
        yield "choice of kernel", f"{report['kernel']}; evidence a row of windows: {tried}"


def _gradients(report: FitReport, number: Number) -> list[Row]:
    """Return what conjugate gradients took, if they solved."""
    if not (found := report.get("gradients")):
        return []
    n, seconds = report["iterations"], number(found["seconds_a_pass"])
    taken = f"{n} of {report['passes']} passes of {seconds} s"
    if found.get("by_sums"):
        taken = f"{n} by transforms of sums, {seconds} s each"
    beside = f"a sketch of {found['sketch']}"
    if found.get("block"):
        beside = f"a block of {found['block']:,}"
    taken += f", {found['vectors']} vectors beside {beside}"
    deviations = "of the directions that matter, in others the prior's"
    if found.get("block"):
        deviations = f"of {found['block']:,} leading features, of others the prior's"
    rows = [("iterations", taken), ("left to solve", number(found["bound"]))]
    rows.append(("deviations", deviations))
    if found["tried_from"] is not None:
        rows.append(("penalties tried from", number(found["tried_from"])))
    return rows


def model_rows(report: FitReport) -> list[Row]:
    """Return the rows of `fit_rows`, what reading took, and what is to be noted."""
    more = [(name, report[name]) for name in ("note", "model") if report.get(name)]
    return [*fit_rows(report), *pass_rows(report), *more]


def moments_rows(report: FitReport) -> list[Row]:
    n_folds = report["n_folds"]
    return [
        *data_rows(report),
        *class_rows(report),
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
    metric = report.get("metric")
    if not metric:
        return []
    if "kernel_evidence" in report:
        return [("length scales", _turned(report, metric, number))]
    how, rounds = metric["kind"], metric.get("rounds")
    if rounds:
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


def class_rows(report: FitReport) -> list[Row]:
    if "classes" not in report:
        return []
    values, factors = report["classes"]["values"], report["class_factors"]
    weights = listed((f"{factor:.4g}" for factor in factors or ()), _MOST_VALUES)
    counts = listed((f"{n:,.10g}" for n in report.get("class_counts") or ()), _MOST_VALUES)
    each = "weight" if report.get("weights") else "rows"
    return [
        ("classes", f"{len(values):,}: {listed(values, _MOST_VALUES)}"),
        *([("weights of classes", weights)] if factors is not None else []),
        *([(f"{each} of each", counts)] if factors is None and counts else []),
        *([("calibration", report["calibration"])] if "calibration" in report else []),
        *_accuracy(report),
    ]


def _accuracy(report: FitReport) -> list[Row]:
    """Return the accuracy on rows left out, beside that of always saying the commonest class."""
    if "cv_accuracy" not in report:
        return []
    label, shown = figure_row("cv_accuracy", report, "{:.4f}".format)
    if counts := report.get("class_counts"):
        shown += f", where the commonest class alone has {max(counts) / sum(counts):.4f}"
    return [(label, shown)]


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


def class_error_rows(found: dict[str, Any], number: Number) -> list[Row]:
    rows = [figure_row(name, found, number) for name in _CLASS_ERRORS]
    if found["auc"] is not None:
        area = f"{number(found['auc'])}, within {found['auc_error']:.1g}"
        rows.append((LABELS["auc"], area))
    return rows


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
