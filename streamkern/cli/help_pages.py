"""Help of commands: options in groups, examples after them, and names that were nearly right.

Of a command with many options `--help` has those that most people need, on two screens, and
`--help-all` has all.
"""

import re
from collections.abc import Sequence
from typing import Any

import click

from streamkern.errors import MissingExtensionError
from streamkern.errors.formatting import meant
from streamkern.registry import check_map

# By the names of parameters; what is of one command alone stands first, without a group.
GROUPS = {
    "Rows": "x y weights targets ids delimiter decimal thousands on_bad_rows like",
    "Outputs": "out report force checkpoint dry_run",
    "Kernel and features": "kernel length_scale n_components feature_map paired metric trend scale "
    "standardize precision random_state",
    "Penalty and size": "alpha alphas n_folds fold_by gap per_target one_standard_error sparse "
    "sparse_method solver fit_intercept target_range",
    "Classes": "classify class_weight calibration boost proba",
    "Where it runs": "cluster scheduler scheduler_file workers",
    "What is printed": "as_json quiet log_json debug help help_all",
}
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}
_OTHERS = "Options"
# Of a command with more options than this, those that `--help` shows.
_MANY = 25
_USUAL = {
    *("targets", "ids", "out", "report", "force", "checkpoint", "dry_run", "budget", "std"),
    *("kernel", "n_components", "feature_map", "metric", "alpha", "fold_by", "solver"),
    *("precision", "classify", "boost", "cluster", "scheduler", "workers", "as_json"),
    *("help", "help_all"),
}


def _show_all(ctx: click.Context, option: click.Parameter, asked: bool) -> None:  # noqa: ARG001
    if asked and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_ALL = "every option"
_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show every option, in groups, and exit.",
)


class Command(click.Command):
    """A command whose help has options in groups with their defaults, and examples."""

    examples: Sequence[str] = ()

    @property
    def has_many_options(self) -> bool:
        return len(self.params) > _MANY

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *[_HELP_ALL] * self.has_many_options]

    def option_groups(self, context: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by the heading that they stand under."""
        groups: dict[str, list[click.Option]] = {_OTHERS: [], **{name: [] for name in GROUPS}}
        for each in self.get_params(context):
            if isinstance(each, click.Option):
                name = "help" if "--help" in each.opts else each.name or ""
                groups[_GROUP_OF.get(name, _OTHERS)].append(each)
        return {name: options for name, options in groups.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = self.option_groups(ctx)
        if self.has_many_options and not ctx.meta.get(_ALL):
            every = [each for options in groups.values() for each in options]
            usual = [each for each in every if each.name in _USUAL or "--help" in each.opts]
            with formatter.section(f"Options, {len(usual)} of {len(every)}"):
                formatter.write_dl([_in_short(each, ctx) for each in usual])
            return
        for heading, options in groups.items():
            records = [record for each in options if (record := each.get_help_record(ctx))]
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _in_short(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return an option with the first clause of its help, and its default."""
    names, text = option.get_help_record(ctx) or ("", "")
    said, _, default = text.partition("  [")
    first = re.split(r":|; (?=auto)|\.(?= |$)|, (?=or auto)", said)[0]
    if " " not in first:  # a name, and then what it is
        first = re.split(r"[,;.]", said)[0]
    return names, f"{first}.{default and '  [' + default}"


class NearChoice(click.Choice[str]):
    """A choice that names the nearest value."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        try:
            check_map(str(value))
        except MissingExtensionError as error:
            return str(error)
        told = super().get_invalid_choice_message(value, ctx)
        return told.removesuffix(".") + meant(str(value), map(str, self.choices)) + "."
