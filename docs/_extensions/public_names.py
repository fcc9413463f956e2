"""What the reference makes of the package: a page a command, and the parameters of a fit."""

import inspect
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from streamkern.cli import COMMANDS, main
from streamkern.parameters.parameters import OPTIONS


class ParameterList(Directive):
    """The parameters of a fit: in Python, on the command line, by default, and what they are."""

    def run(self) -> list[nodes.Node]:
        parameters = nodes.definition_list()
        for field in OPTIONS:
            option, default = (
                field.metadata["option"],
                getattr(field.default, "name", field.default),
            )
            flag = f"--{option.name or field.name.replace('_', '-')}"
            text = option.help + (f": {option.listed()}" if option.listed else "")
            term = nodes.term("", "", nodes.literal(text=field.name), nodes.Text(" or "))
            term += nodes.literal(text=flag)
            said = f"{text}  By default {default!r}."
            body = nodes.definition("", nodes.paragraph("", "", nodes.Text(said)))
            parameters += nodes.definition_list_item("", term, body)
        return [parameters]


def write_commands(app: Sphinx) -> None:
    """Write a page for each command."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        with click.Context(main, info_name="streamkern") as parent:
            command = main.get_command(parent, name)
            context = click.Context(command, parent, name, **command.context_settings)
            text = _command_page(command, context)
        path = folder / f"command-{name}.rst"
        if not path.exists() or path.read_text() != text:  # what is unchanged is not built again
            path.write_text(text)


def _command_page(command: Any, context: click.Context) -> str:
    title = context.command_path
    lines = [title, "=" * len(title), "", f".. program:: {title}", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        is_literal = paragraph.startswith("\b\n")
        lines += ["::", "", indent(paragraph[2:], "   "), ""] if is_literal else [paragraph, ""]
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    lines += [".. code-block:: text", "", f"   {usage}", ""]
    if command.examples:
        lines += [".. code-block:: sh", "", *(f"   {line}" for line in command.examples), ""]
    for heading, options in command.option_groups(context).items():
        lines += [heading, "-" * len(heading), ""]
        for option in options:
            names, text = option.get_help_record(context)
            forms, _, metavar = names.partition(" ")
            lines += [f".. option:: {forms} {metavar}".rstrip(), "", f"   {_escaped(text)}", ""]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return re.sub(r"[|*`]|_(?=\W|$)", r"\\\g<0>", text)


class CommandList(Directive):
    """The commands with a line each."""

    def run(self) -> list[nodes.Node]:
        lines = [
            f"[`{name}`](generated/command-{name}.rst)\n: {line}\n"
            for name, line in COMMANDS.items()
        ]
        toctree = "\n".join(f"streamkern {name} <generated/command-{name}>" for name in COMMANDS)
        text = "\n".join(lines) + f"\n```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"
        node = nodes.Element()
        self.state.nested_parse(text.splitlines(), self.content_offset, node)
        return node.children


def escape_formulas(*event: Any) -> None:
    """Take bars and final underscores outside of code as they are, and drop links to elsewhere.

    Docstrings are written to be read in a terminal: |x| is a length there, and coef_ a name.
    """
    lines: list[str] = event[-1]
    for i, line in enumerate(lines):
        plain = re.sub(r":ref:`([^`<]+?) *(?:<[^`]*>)?`", r"\1", line)
        parts = re.split(r"(`+[^`]*`+)", plain)
        parts[::2] = (re.sub(r"\||(?<=\w)_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2])
        lines[i] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("parameter-list", ParameterList)
    app.add_directive("command-list", CommandList)
    app.connect("builder-inited", write_commands, priority=100)
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
    return {"parallel_read_safe": True}
