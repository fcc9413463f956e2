"""Help of commands: options in groups, examples after them, and names that were nearly right."""

from collections.abc import Sequence
from typing import Any

import click

from streamkern.errors.formatting import meant

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
    "What is printed": "as_json quiet log_json debug help",
}
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}
_OTHERS = "Options"


class Command(click.Command):
    """A command whose help has options in groups with their defaults, and examples."""

    examples: Sequence[str] = ()

    def option_groups(self, context: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by the heading that they stand under."""
        groups: dict[str, list[click.Option]] = {_OTHERS: [], **{name: [] for name in GROUPS}}
        for each in self.get_params(context):
            if isinstance(each, click.Option):
                name = "help" if "--help" in each.opts else each.name or ""
                groups[_GROUP_OF.get(name, _OTHERS)].append(each)
        return {name: options for name, options in groups.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, options in self.option_groups(ctx).items():
            records = [record for each in options if (record := each.get_help_record(ctx))]
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class NearChoice(click.Choice[str]):
    """A choice that names the nearest value."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        told = super().get_invalid_choice_message(value, ctx)
        return told.removesuffix(".") + meant(str(value), map(str, self.choices)) + "."
