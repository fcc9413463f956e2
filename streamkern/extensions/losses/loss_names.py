"""Losses by the names that options and files have for them."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from streamkern.errors import ParameterError
from streamkern.extensions.losses import FORM
from streamkern.extensions.losses.exponential_families import NAMES, Logistic, Tweedie
from streamkern.extensions.losses.loss import Loss
from streamkern.extensions.losses.robust_losses import Huber, Quantile

LOSSES: dict[str, Any] = {each.name: each for each in (Logistic, Tweedie, Huber, Quantile)}
LOG_LOSSES = ("logistic", "multinomial")  # of classes, where they are one


def losses_of(text: Any) -> tuple[Loss, ...]:
    """Return the loss of a name, or those of several quantiles, or raise ParameterError."""
    name, _, given = str(text).partition(":")
    for power, known in NAMES.items():
        if text == known:
            return (Tweedie(power),)
    try:
        kind = LOSSES[name]
        numbers = [float(number) for number in given.split(",")] if given else []
        is_known = len(numbers) <= 1 or name == "quantile"
    except (KeyError, ValueError):
        is_known = False
    if name == "squared":
        raise ParameterError(
            "the squared loss is that of RandomFeatureRidge, which reads the rows once; take it."
        )
    if name == "multinomial":
        raise ParameterError(
            "the loss multinomial is of labels; take RandomFeatureClassifier (--classify)."
        )
    if not is_known or (numbers and not fields(kind)):
        raise ParameterError(f"loss must be one of {FORM}, not {text!r}; give one.")
    if list(numbers) != sorted(set(numbers)):
        raise ParameterError(
            f"quantiles must be in ascending order, each once, not {given}; give them so."
        )
    return tuple(kind(number) for number in numbers) or (kind(),)


def name_of(losses: Sequence[Loss]) -> str:
    """Return what options call losses."""
    first, *others = (loss.words for loss in losses)
    return ",".join([first, *(each.partition(":")[2] for each in others)])


def restored_loss(described: dict[str, Any]) -> Loss:
    """Return the loss that `Loss.as_dict` described; KeyError or TypeError if nothing did."""
    given = dict(described)
    return LOSSES[given.pop("name")](**given)
