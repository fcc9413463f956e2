"""What a search compares: kernels and maps in metrics that were learnt, and a plain fit."""

from collections.abc import Sequence
from functools import partial

from streamkern.choice.sample_choice import in_given_metric, with_chosen_scale, with_guarded_kernel
from streamkern.choice.small_fit import ISOTROPIC, STANDARD
from streamkern.extensions.search.budget import Clock, run_in_time
from streamkern.extensions.search.metric_beginnings import Pair
from streamkern.extensions.search.metric_learning import LearntMetric, in_metric
from streamkern.extensions.search.settings import MetricSettings
from streamkern.features.metric import GivenMetric
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext


def contenders_of(
    context: FitContext, summary: ColumnSummary, pairs: Sequence[Pair], clock: Clock | None
) -> tuple[FitContext, list[MetricSettings], LearntMetric | None]:
    """Return the best metrics with their kernels and maps, and how the metrics were learnt.

    By a clock metrics are learnt while there is time, and the last contender is a plain fit: of the
    first pair, to standardised inputs if the scale was chosen.  Where the kernel is open, it is
    what a fit would choose, and the one before has the standardised inputs and no kernel.
    """
    context = with_guarded_kernel(context, summary)
    options, given, plain = context.options, pairs, summary
    make = partial(run_in_time, clock, share=1.0)
    given_scale, kernel_is_open = options.scale, options.chooses_kernel and not options.has_grid
    if context.crowding is not None and (options.kernel, options.feature_map) not in pairs:
        given = [(options.kernel, options.feature_map)]  # which holds where no rows are
    context, scaled = with_chosen_scale(context, summary, make)
    options = context.options
    contenders, learnt = in_metric(scaled, options, given, context.plan, clock)
    chosen = options.scale != given_scale
    if clock is None or (learnt is None and not chosen):
        return context, contenders, learnt
    name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
    if isinstance(options.metric, GivenMetric):
        plain = in_given_metric(plain, options.metric)
    default = MetricSettings(name, plain, given[:1], scale, is_default=True)
    if kernel_is_open:
        if learnt is not None:  # linear ridge may be compared
            contenders.append(default._replace(pairs=[], is_default=False))
        usual = [(options.kernel, options.feature_map)]
        default = MetricSettings(ISOTROPIC, scaled, usual, is_default=True)
    return context, [*contenders, default], learnt
