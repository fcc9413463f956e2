"""A fit in the fewest bits whose rounding does not count: precision 'auto'."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamkern.errors import OverflowedError
from streamkern.features.metric import metric_in
from streamkern.models.feature_rounding import LARGEST_SHARE, ROUNDED
from streamkern.parameters.fit_options import FitOptions

# What reports say of how features were chosen.
_CHOSEN_BY = "kernel_errors", "scale_errors", "metric_errors"


def fit_in_fewest_bits(fit: Callable[..., Any], options: FitOptions) -> Any:
    """Return the model of the coarsest precision whose rounding is little of the error.

    `fit` makes a model of options, reads the rows, and adds to its report the seconds of fits
    before it, and how these chose the kernel.
    """
    seconds, choice = dict[str, float](), dict[str, Any]()
    for precision in ROUNDED:
        try:
            model = fit(replace(options, precision=precision), seconds, choice)
        except OverflowedError:  # double has room for anything
            break
        if model.ridge.outcome.rounding_share <= LARGEST_SHARE:
            return model
        seconds[precision] = model.seconds["total"] - sum(seconds.values())
        if options.chooses_kernel:  # whose rounding it was
            outcome, report = model.ridge.outcome, model.ridge.report
            chosen: Any = {"kernel": outcome.kernel, "scale": outcome.scale}
            chosen["metric"] = metric_in(model.ridge.feature_map)
            options = replace(options, chooses_kernel=False, **chosen)
            choice |= {name: report[name] for name in _CHOSEN_BY if name in report}
    return fit(replace(options, precision="double"), seconds, choice)
