"""What a search compares: kernels and maps in metrics that were learnt, and a plain fit."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from streamkern.choice.sample_choice import in_given_metric, with_chosen_scale, with_guarded_kernel
from streamkern.choice.small_fit import ISOTROPIC
from streamkern.errors import ParameterError
from streamkern.extensions.search.budget import Clock, run_in_time
from streamkern.extensions.search.metric_learning import LearntMetric, learnt_metric
from streamkern.extensions.search.settings import STANDARD, MetricSettings, Pair
from streamkern.features.metric import GivenMetric
from streamkern.kernels import Linear
from streamkern.parameters.fit_options import FitOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext


def contenders_of(
    context: FitContext,
    summary: ColumnSummary,
    pairs: Sequence[Pair],
    clock: Clock | None,
    *,
    adds_linear: bool,
) -> tuple[FitContext, list[MetricSettings], LearntMetric | None]:
    """Return the best metrics with their kernels and maps, and how the metrics were learnt.

    By a clock metrics are learnt while there is time, and the last contender is a plain fit: of the
    first pair, to standardised inputs if the scale was chosen.  Where the kernel is open, it is
    what a fit would choose.  Linear ridge on the standardised inputs is added, if it can be fitted:
    it is far ahead where a few values lie far out along a straight line.
    """
    context = with_guarded_kernel(context, summary)
    options, given, plain = context.options, pairs, summary
    make = partial(run_in_time, clock, share=1.0)
    given_scale, kernel_is_open = options.scale, options.chooses_kernel and not options.is_field
    if context.crowding is not None and (options.kernel, options.feature_map) not in pairs:
        given = [(options.kernel, options.feature_map)]  # which holds where no rows are
    context, scaled = with_chosen_scale(context, summary, make)
    options = context.options
    learnt, contenders = None, [MetricSettings(ISOTROPIC, scaled, given)]
    if isinstance(options.metric, GivenMetric):
        inside, plain = (in_given_metric(each, options.metric) for each in (scaled, plain))
        contenders = [MetricSettings(options.metric.name, inside, given)]
    elif options.metric is not None:
        learnt = learnt_metric(scaled, options, given, context.plan, clock)
        contenders = list(learnt.contenders.values())
    chosen = options.scale != given_scale
    if clock is None or (learnt is None and not chosen):
        return context, contenders, learnt
    name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
    adds_linear &= learnt is not None and _has_linear(options, plain, scale)
    linear: list[Pair] = [(Linear(), "identity")] if adds_linear else []
    default = MetricSettings(name, plain, [*given[:1], *linear], scale, is_default=True)
    if kernel_is_open:
        contenders.append(default._replace(pairs=linear, is_default=False))
        usual = [(options.kernel, options.feature_map)]
        default = MetricSettings(ISOTROPIC, scaled, usual, is_default=True)
    return context, [*contenders, default], learnt


def _has_linear(options: FitOptions, summary: ColumnSummary, scale: str | None) -> bool:
    """Say whether linear ridge can be fitted, by a plan of kernels' features, which are more."""
    linear: dict[str, Any] = {"kernel": Linear(), "feature_map": "identity", "metric": None}
    try:
        replace(options, **linear, scale=scale or options.scale)
    except ParameterError:  # of integers, of phases, of a bounded scale
        return False
    return len(summary.standardizer.columns) <= options.n_components
