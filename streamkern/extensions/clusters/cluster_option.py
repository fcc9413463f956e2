"""`--cluster`, of the commands that compute."""

import click

OPTIONS = {
    "place": (
        click.option("--cluster", metavar="FILE.yaml", help="Start the cluster of this file."),
    )
}
