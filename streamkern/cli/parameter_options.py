"""Options made from the table of parameters, and parameters made from options."""

import re
from contextlib import suppress
from dataclasses import Field
from typing import Any

import click

from streamkern.cli.help_pages import NearChoice
from streamkern.cli.options import Decorator
from streamkern.errors import ParameterError
from streamkern.kernels import Kernel, length_scale_of, parsed_kernel
from streamkern.parameters.parameters import AUTO, DEFAULT_KERNEL, OPTIONS, Option, Parameters
from streamkern.registry import installed

# Parameters of a map.
OF_MAPS = ("kernel", "feature_map", "paired", "standardize", "precision", "random_state")
# Where the kernel is not chosen.
GIVEN_KERNEL = {"default": "gaussian", "metavar": "KERNEL", "help": "How similar two rows are"}
# What moments or a model that others are to be like decide.
OF_LIKE = (*OF_MAPS, "length_scale", "n_components", "metric", "trend", "scale", "class_weight")


def parameter_options(*names: str, **changes: dict[str, Any]) -> list[Decorator]:
    """Return the options of all parameters, or of those named, as the table has them.

    `changes` are other arguments of `click.option`, by the names of the parameters.
    """
    made = []
    for field in OPTIONS:
        belongs = field.metadata["option"].extension
        if belongs is not None and belongs not in installed():
            continue
        if not names or field.name in names:
            made.append(_parameter_option(field, changes.get(field.name, {})))
            if field.name == "kernel":
                made.append(_length_scale_option)
    return made


_length_scale_option = click.option(
    "--length-scale",
    default="median",
    metavar="median|FLOAT[,FLOAT...]",
    help="In units of the standardised inputs; several: one per input.  Of all kernels for which "
    "--kernel says none.",
)


def _parameter_option(field: Field[Any], changes: dict[str, Any]) -> Decorator:
    option: Option = field.metadata["option"]
    default = getattr(field.default, "name", field.default)  # of a kernel its name
    named: dict[str, Any] = {"help": option.help}
    if isinstance(default, bool):
        named["is_flag"] = True
        if default:
            named["callback"] = lambda _context, _option, flag: not flag
    else:
        named["default"] = default
        if option.choices:
            named["type"] = NearChoice([*option.choices, *filter(None, [option.form])])
        elif option.form:
            named |= {"type": str, "metavar": option.form}
        elif option.least is not None:
            named["type"] = click.IntRange(min=option.least)
    named |= changes
    if option.listed:
        named["help"] += f": {option.listed()}"
    return click.option(_flag_of(field), field.name, **named)


def _flag_of(field: Field[Any]) -> str:
    option: Option = field.metadata["option"]
    return f"--{option.name or field.name.replace('_', '-')}"


def with_flags(sentence: str) -> str:
    """Return a sentence about parameters that names their options."""
    flags = {field.name: _flag_of(field) for field in OPTIONS} | {"length_scale": "--length-scale"}
    # Names that are words of English too are those of parameters where a sentence begins.
    first = re.sub(rf"^({'|'.join(flags)})\b(?= must )", lambda found: flags[found[1]], sentence)
    named = "|".join(name for name in flags if "_" in name)
    # Some sentences say both: a name, perhaps a value, and the option in brackets.
    both = re.sub(
        r"\b(?:[a-z]+_[a-z_]+|[a-z]+=True|[a-z_]+ '[^']+') \((--[a-z-]+(?: [\w:]+| '[^']+')?)\)",
        r"\1",
        first,
    )
    # What is for `convert` stays so where a command has no such option.
    context = click.get_current_context(silent=True)
    has = {each for given in (context.command.params if context else ()) for each in given.opts}
    both = re.sub(
        r"(`convert` )?\b([a-z]+) \(((--\2)(?: [^)]+)?)\)",
        lambda found: found[0] if found[1] and found[4] not in has else found[3],
        both,
    )
    return re.sub(rf"(?<![\w.(-])({named})\b", lambda found: flags[found[1]], both)


def values_of(options: dict[str, Any]) -> dict[str, Any]:
    return {field.name: _value(field, options) for field in OPTIONS if field.name in options}


def parameters_of(options: dict[str, Any]) -> Parameters:
    return Parameters(**values_of(options))


def _ends(text: str) -> list[float | None]:
    return [float(end) if end.strip() else None for end in text.split(",")]


# What some forms become, unless they are texts of another kind.
_READ: dict[str | None, Any] = {"FLOAT|TIME": float, "LOW,HIGH": _ends}


def _value(field: Field[Any], options: dict[str, Any]) -> Any:
    """Return a parameter that may be given as text: a kernel, numbers, a whole number, words."""
    given, option = options[field.name], field.metadata["option"]
    if field.name == "kernel":
        return kernel_named(given, options["length_scale"])
    words = (option.form or "").split("|")
    if option.form in _READ and given is not None:
        with suppress(ValueError):
            return _READ[option.form](given)
    if not isinstance(given, str) or given in words or option.choices:
        return given
    if words[-1] == "FLOAT[,FLOAT...]":
        others = "".join(f"{word}, " for word in words[:-1])
        numbers = numbers_of(given, _flag_of(field), others and f"{others}or ")
        return numbers[0] if others and len(numbers) == 1 else numbers
    if words[1:] != ["auto"]:
        return given
    try:
        return int(given)
    except ValueError as error:
        raise ParameterError(
            f"{_flag_of(field)} must be a whole number or auto, not {given!r}; give one of these."
        ) from error


def numbers_of(text: str, option: str, others: str = "", kind: type[float] = float) -> list[Any]:
    """Return the numbers that an option names, in place of which it takes others."""
    others += "whole " * (kind is int)
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError as error:
        raise ParameterError(
            f"{option} must be {others}numbers with commas between, not {text!r}; give "
            f"{'one of these' if kind is float and others else 'some'}."
        ) from error


def kernel_named(text: str, length_scale: str) -> Kernel | str:
    if text == AUTO and length_scale == "median":
        return text
    text = DEFAULT_KERNEL.name if text == AUTO else text
    kernel = parsed_kernel(text, "median")
    if length_scale == "median":
        return kernel
    if length_scale_of(kernel) != "median":
        said = "no length scale" if length_scale_of(kernel) is None else "its own length scale"
        raise ParameterError(f"the {text} kernel has {said}; leave --length-scale out.")
    numbers = tuple(numbers_of(length_scale, "--length-scale", "'median' or "))
    return parsed_kernel(text, numbers[0] if len(numbers) == 1 else numbers)
