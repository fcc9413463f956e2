"""The command line: one click command a file, imported when it is asked for."""

import importlib
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, cast

import click

from streamkern import registry
from streamkern._version import __version__
from streamkern.errors import MissingExtensionError
from streamkern.errors.formatting import unknown
from streamkern.errors.urls import without_secrets
from streamkern.registry import MISSING

# Names and one-line helps stand here so that `streamkern --help` imports no command.
CORE = {
    "demo": "Fit four million rows out of core, and compare with exact and linear ridge.",
    "inspect": "Show what data files hold, and what a fit would need.",
    "fit": "Fit one model.",
    "predict": "Predict every row of a data set.",
    "evaluate": "Compare predictions with targets.",
    "compare": "Exact kernel ridge against random features, over their number.",
    "show": "Show the card of a model, or what moments or components are of.",
}
COMMANDS = CORE | registry.commands()
# Commands of earlier versions, and what does the same.
_GONE = {"diagnose": "evaluate MODEL.h5 DATA --leave-one-out N"}


class Commands(click.Group):
    """Imports a command when it is run."""

    def list_commands(self, ctx: click.Context) -> Sequence[str]:  # type: ignore[override] # noqa: ARG002
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which is nearest."""
        if args[0] in _GONE:
            ctx.fail(f"The command {args[0]!r} is gone; take `streamkern {_GONE[args[0]]}`.")
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            try:
                registry.command(args[0])
            except MissingExtensionError as error:
                ctx.fail(str(error))
            name = unknown(args[0], COMMANDS)
            ctx.fail(f"No such command {name}; `streamkern --help` lists them.")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        ctx.meta["begun"] = time.perf_counter()  # the import takes its time, too
        if cmd_name not in CORE:
            return cast("click.Command", registry.command(cmd_name))
        return getattr(importlib.import_module(f"streamkern.cli.{cmd_name}"), cmd_name)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, also where standard streams are closed."""
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # else a file of rows would take its number
                stream = open(os.devnull, mode)  # noqa: PTH123, SIM115
                os.set_inheritable(stream.fileno(), True)
                setattr(sys, name, stream)
        try:
            return super().main(*args, **kwargs)
        except SystemExit:
            signals = sys.modules.get("streamkern.cli.signals")
            # A program waits for its threads when it ends; one that calls a command goes on.
            if signals and not (args or kwargs) and (stopped := signals.raised()) is not None:
                signals.end_later(stopped.number)
            raise

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what is wrong with its options is told without secrets of URLs."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            for name, each in registry.EXTENSIONS.items():
                if each.options and name not in registry.installed():
                    told = f"{error.message.removesuffix('.')}; {MISSING.format(name)}"
                    raise click.NoSuchOption(error.option_name, told, ctx=error.ctx) from error
            raise
        except click.ClickException as error:
            vars(error).update(message=without_secrets(error.message))
            raise
        except (KeyboardInterrupt, MemoryError) as error:  # while a command is imported
            stopped = isinstance(error, KeyboardInterrupt)
            click.echo(f"Error: {'interrupted' if stopped else 'out of memory'}.", err=True)
            sys.exit(130 if stopped else 1)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        for heading, listed in (("Commands", CORE), ("Of extensions", registry.commands())):
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(list(listed.items()))


@click.group(
    "streamkern",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="streamkern")
def main() -> None:
    """Kernel ridge regression for data that does not fit in memory.

    Rows stream from HDF5, CSV or Parquet files through a random-feature map; what ridge regression
    needs of them is accumulated on Dask workers, and solved for on a small system.

    \b
    streamkern fit houses.csv --target price --out model.h5
    streamkern evaluate model.h5 test.csv
    streamkern predict model.h5 new.csv --out predictions.csv
    streamkern fit 'train-*.h5' --out model.h5
    """  # noqa: D301  a backspace, by which click keeps the lines that follow as they are
