"""`--cluster` of commands that compute."""

import click

OPTIONS = (click.option("--cluster", metavar="FILE.yaml", help="Start the cluster of this file."),)
