"""`streamkern show`."""

from __future__ import annotations

import click

from streamkern.cli.options import Say, common


@click.command()
@click.argument("model")
@common
def show(say: Say, model: str) -> None:
    """Show the card of a model: what it was fitted on, how, and with what result."""
    from streamkern.cli.fit import card_rows
    from streamkern.storage import read_model

    file = read_model(model)
    card, report = file.card, file.card["report"]
    data = report["data"]
    files = [entry["path"] for entry in data.get("files", [])]
    options = card["options"]
    rows = [
        ("made", f"{card['created']} by streamkern {card['versions']['streamkern']}"),
        *card_rows(report),
        ("feature map", f"{options['feature_map']}, seed {options['random_state']}"),
        ("data", ", ".join(files[:3]) + (f", ... ({len(files)})" if len(files) > 3 else "")
         if files else data["kind"]),
        ("libraries", ", ".join(f"{k} {v}" for k, v in card["versions"].items())),
    ]  # fmt: skip
    if report["note"]:
        rows.append(("note", report["note"]))
    say.table(f"Model {model}", rows)
    say.result(card)
