"""`streamkern evaluate`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import place_of
from streamkern.cli.parameter_options import parameter_options
from streamkern.cli.row_files import opened_rows

# Classes whose confusions are printed.
_MOST_CLASSES = 12


@command(
    click.argument("model"),
    *shared.data_options,
    *shared.more_options_with_model,
    click.option(
        "--leave-one-out",
        type=click.IntRange(min=1),
        metavar="N",
        help="DATA holds the rows of the fit: say how MODEL would do on each without it, and name "
        "the N rows of largest leverage and of largest error.",
    ),
    *parameter_options("on_bad_rows"),
    *shared.place_options,
    examples=(
        "streamkern evaluate model.h5 test.csv",
        "streamkern evaluate model.h5 train.csv --leave-one-out 5",
    ),
)
def evaluate(console: Console, **options: Any) -> None:
    """Compare the predictions of MODEL with the targets of DATA, in one pass.

    Targets of a classifier are labels.  DATA is HDF5; or, for a model of a table, CSV or Parquet
    with the same columns, whose rows are converted in TMPDIR meanwhile, and count by the column
    that was --weights there, or by the one that --weights names here.
    """
    import numpy as np

    from streamkern.errors.formatting import listed
    from streamkern.estimators.loading import load_fitted
    from streamkern.models.fitted_classes import FittedClasses
    from streamkern.report.report_rows import class_error_rows

    left_out = options["leave_one_out"]
    with_equations = left_out is not None
    model: Any = load_fitted(
        options["model"], boosted=not left_out, components=False, with_equations=with_equations
    )
    is_classifier = isinstance(model, FittedClasses)
    skip = options["on_bad_rows"] == "skip"
    with (
        opened_rows(options, model.columns, labels=is_classifier) as opened,
        place_of(console, options),
    ):
        if left_out is not None:
            source: Any = opened.source
            if is_classifier:
                source = model.labelled(source, weighted=True)
            ridge = model.with_bad_rows(options["on_bad_rows"]).ridge
            _show_left_out(console, ridge, ridge.diagnose(source, n_largest=left_out))
            return
        if is_classifier:
            found = model.evaluate(model.labelled(opened.source), skip_bad_rows=skip)
        else:
            found = model.with_bad_rows(options["on_bad_rows"]).evaluate(opened.source)
    found |= opened.unexpected
    rows = [("rows", f"{found['rows']:,}")]
    if names := model.columns.target_names:
        rows.insert(0, ("targets" if names[1:] else "target", listed(names, _MOST_CLASSES)))
    if unlabelled := opened.unlabelled:
        found["unlabelled_rows"] = unlabelled
        rows.append(("rows without a label", f"{unlabelled:,}, left out"))
    if found["skipped_rows"]:
        rows.append(("rows skipped", f"{found['skipped_rows']:,}"))
    if is_classifier:
        commonest = f"{found['baseline']['accuracy']:.6g}, by always saying the commonest class"
        errors = class_error_rows(found, "{:.6g}".format)
        console.table("Errors", [*rows, *errors, ("baseline accuracy", commonest)])
        names = [str(value) for value in found["classes"][:_MOST_CLASSES]]
        cells = [
            (name, *map("{:,.10g}".format, row[:_MOST_CLASSES]))
            for name, row in zip(names, found["confusion_matrix"], strict=False)
        ]
        console.table("Rows of each class, by the class predicted", cells, ("class", *names))
    else:
        for name in ("rmse", "mae", "r2"):
            label = f"{name}, mean over targets" if f"{name}_mean" in found else name
            rows.append((label, f"{found.get(f'{name}_mean', found[name]):.6g}"))
        spread = np.mean(found["baseline"]["rmse"])
        rows.append(("baseline rmse", f"{spread:.6g}, by always saying the mean of these targets"))
        rows += _support_rows(found.get("by_support"))
        console.table("Errors", [*rows, *_interval_rows(found.get("intervals"))])
    console.result(found)


def _show_left_out(console: Console, ridge: Any, found: dict[str, Any]) -> None:
    """Print leave-one-out errors, and the rows that matter most."""
    from streamkern.models.report_facts import brief
    from streamkern.report.numbers import figure_row

    rows = [
        figure_row("loo_rmse", found, brief),
        figure_row("train_rmse", ridge.report, brief),
        figure_row("cv_rmse", ridge.report, brief),
        figure_row("effective_dof", found, "{:,.1f}".format),
        ("rows of leverage 1", f"{found['rows_of_leverage_one']:,}"),
    ]
    console.table(f"Leave-one-out on {found['rows']:,} rows", rows)
    for key, title in (
        ("largest_leverages", "Largest leverages"),
        ("largest_errors", "Largest leave-one-out errors"),
    ):
        cells = [(r["place"], f"{r['leverage']:.4f}", brief(r["error"])) for r in found[key]]
        console.table(title, cells, header=("row", "leverage", "error"))
    console.result(found)


def _support_rows(found: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """Return a row of the share and the error of rows where none were fitted."""
    import numpy as np

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
    import numpy as np

    if found is None:
        return []
    tenths = enumerate(found["by_difficulty"], 1)
    known = [each for each in tenths if np.all(each[1]["rows"])]
    place, worst = min(known, key=lambda each: np.mean(each[1]["coverage"]))

    def said(facts: dict[str, Any]) -> str:
        return f"{100 * np.mean(facts['coverage']):.3g}%, mean width {np.mean(facts['width']):.4g}"

    level = f"{100 * found['level']:.3g}% intervals hold"
    return [(level, said(found)), (f"tenth {place} of 10, by width", f"{said(worst)}, the worst")]
