"""`--report`, of the commands that make models."""

import click

OPTIONS = {
    "report": (
        click.option(
            "--report",
            metavar="FILE.html",
            help="Write what was fitted, how well it does on rows left out, and what it took.",
        ),
    )
}
