"""Other losses than the squared one, by reweighted passes."""

from collections.abc import Mapping
from typing import Any

from streamkern.errors import ParameterError

# How a loss is named.
FORM = "squared|logistic|multinomial|poisson|gamma|tweedie:P|huber[:T]|quantile:Q[,Q...]"
# What may stand beside rows, of which it makes rates or differences.
KINDS = ("exposure", "offset")


def exposed_by(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the kind and the name of what stands beside rows, if something does."""
    found = [(kind, given[kind]) for kind in KINDS if given.get(kind) is not None]
    if len(found) > 1:
        raise ParameterError(
            "an offset is the logarithm of an exposure, and rows have one of both; add the "
            "logarithm to the offset, and leave the exposure out."
        )
    return next(((kind, each if isinstance(each, str) else kind) for kind, each in found), None)
