"""Losses by the names that options and files have for them."""

from collections.abc import Sequence
from typing import Any

from streamkern.errors import ParameterError
from streamkern.extensions.losses import FORM
from streamkern.extensions.losses.exponential_families import NAMES, Logistic, Tweedie
from streamkern.extensions.losses.loss import Loss, number_of
from streamkern.extensions.losses.robust_losses import Huber, Quantile

LOSSES: dict[str, Any] = {each.name: each for each in (Logistic, Tweedie, Huber, Quantile)}
# Losses that others are to be asked for.
_OTHERS = {
    "squared": "the squared loss is that of RandomFeatureRidge, which reads rows once; take it.",
    "multinomial": "the loss multinomial is of labels; take RandomFeatureClassifier (--classify).",
}
LOG_LOSSES = ("logistic", "multinomial")  # of classes, where they are one


def losses_of(text: Any) -> tuple[Loss, ...]:
    """Return the loss of a name, or those of several quantiles, or raise ParameterError."""
    name, _, given = str(text).partition(":")
    if text in NAMES.values():
        return tuple(Tweedie(power) for power, known in NAMES.items() if text == known)
    if name in _OTHERS:
        raise ParameterError(_OTHERS[name])
    try:
        kind, numbers = LOSSES[name], [float(each) for each in given.split(",") if given]
        is_one = len(numbers) == 1 and number_of(kind) is not None
        is_known = not numbers or name == "quantile" or is_one
    except (KeyError, ValueError):
        is_known = False
    if not is_known:
        raise ParameterError(f"loss must be one of {FORM}, not {text!r}; give one.")
    if numbers != sorted(set(numbers)):
        raise ParameterError(
            f"quantiles must be in ascending order, each once, not {given}; give them so."
        )
    return tuple(kind(number) for number in numbers) or (kind(),)


def name_of(losses: Sequence[Loss]) -> str:
    """Return what options call losses."""
    first, *others = (loss.words for loss in losses)
    return ",".join([first, *(each.partition(":")[2] for each in others)])


def link_of(losses: Sequence[Loss]) -> str:
    """Return the link of what is predicted: of several quantiles, they are put in order."""
    first, *others = losses
    return "sorted" if others and not first.is_joint else first.link


def restored_loss(described: dict[str, Any]) -> Loss:
    """Return the loss that `Loss.as_dict` described; KeyError or TypeError if nothing did."""
    given = dict(described)
    return LOSSES[given.pop("name")](**given)
