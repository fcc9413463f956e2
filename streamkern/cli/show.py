"""`streamkern show`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.common_options import Say, common
from streamkern.errors import ModelFileError, StreamkernError, first_line
from streamkern.errors.formatting import listed

# Columns that are named.
_NAMED = 8


@click.command()
@click.argument("model")
@common
def show(say: Say, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result.

    Of a file of moments or of principal components, show which rows it is of, and how they were
    read.
    """
    from streamkern.storage import holds_components, holds_ensemble, holds_moments
    from streamkern.storage.untrusted import WRONG_VALUES

    if holds_moments(model):
        shown = _show_moments
    elif holds_components(model):
        shown = _show_components
    elif holds_ensemble(model):
        shown = _show_boosted
    else:
        shown = _show_model
    try:
        shown(say, model)
    except StreamkernError:
        raise
    except WRONG_VALUES as error:
        raise ModelFileError(f"{model} is damaged ({first_line(error)}); copy it again.") from error


def _show_model(say: Say, path: str) -> None:
    from streamkern.cli.fit import card_rows
    from streamkern.cli.tune import tell_search
    from streamkern.models.model_files import read_model

    card = read_model(path, with_equations=False).card
    report = card["report"]
    say.table(f"Model {path}", _card_rows(card, card_rows(report), card["options"]))
    if report.get("tuning"):
        tell_search(say, report)
    say.result(card)


def _table_rows(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return which columns of a table or of a data frame the model takes, where they have names."""
    from streamkern.sources.preprocessing import recipe_of
    from streamkern.sources.preprocessing.column_names import input_names

    recipe = recipe_of(card["report"])
    names = input_names(card["report"]) or card.get("feature_names")
    if recipe is None or names is None:
        return [] if names is None else [("columns", listed(names, _NAMED))]
    rows = [("columns of a table", listed((column.name for column in recipe.columns), _NAMED))]
    return rows if recipe.is_plain else [*rows, ("inputs made of them", listed(names, _NAMED))]


def _show_boosted(say: Say, path: str) -> None:
    from streamkern.cli.boost_option import boosted_rows, tell_rounds
    from streamkern.models.ensemble_files import read_ensemble

    card = read_ensemble(path).card
    report = card["report"]
    say.table(f"Model {path}", _card_rows(card, boosted_rows(report), card["base"]))
    tell_rounds(say, report)
    say.result(card)


def _card_rows(
    card: dict[str, Any], rows: list[tuple[str, str]], options: dict[str, Any]
) -> list[tuple[str, str]]:
    """Return what a card says beside the rows that say what was fitted."""
    report, versions = card["report"], card["versions"]
    return [
        ("made", f"{card['created']} by streamkern {versions['streamkern']}"),
        *rows,
        ("feature map", f"{report['feature_map']}, seed {options['random_state']}"),
        ("data", _named(report["data"])),
        *_table_rows(card),
        ("libraries", ", ".join(f"{k} {v}" for k, v in versions.items())),
    ]


def _show_moments(say: Say, path: str) -> None:
    from streamkern.cli.moments import moments_report, moments_rows
    from streamkern.models.data_moments import moments_header

    found = moments_header(path)
    report = moments_report(found, path)
    data = found.report["data"]
    say.table(f"Moments {path}", [*moments_rows(report), ("data", _named(data))])
    say.result(report | {"data": data})


def _show_components(say: Say, path: str) -> None:
    from streamkern.cli.pca import pca_rows
    from streamkern.models.component_files import read_components

    _, card = read_components(path)
    made = f"{card['created']} by streamkern {card['versions']['streamkern']}"
    data = _named(card["report"]["data"])
    rows = [("made", made), *pca_rows(card["report"]), ("data", data)]
    rows += _table_rows(card)
    say.table(f"Principal components {path}", rows)
    say.result(card)


def _named(data: dict[str, Any]) -> str:
    """Return the first files of a data set, or what else it is."""
    files = [entry["path"] for entry in data.get("files", [])]
    more = f", ... ({len(files)})" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more if files else str(data["kind"])
