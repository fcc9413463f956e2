"""The solvers by name, and which of them a fit has."""

from streamkern import registry
from streamkern.features import Standardized
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.solvers.base import Solver
from streamkern.solvers.direct import Direct
from streamkern.statistics.folds import Weighting

# The first that takes a fit is used, and `Direct` takes any.  To add one of your own in a program:
# `table.SOLVERS = {"mine": Mine, **table.SOLVERS}`.
SOLVERS: dict[str, type[Solver]] = {**registry.solvers(), "direct": Direct}


def solver_of(
    context: FitContext,
    summary: ColumnSummary,
    feature_map: Standardized,
    weighting: Weighting | None = None,
) -> Solver:
    """Return what holds the normal equations of a fit."""
    made = next(each for each in SOLVERS.values() if each.takes(context, feature_map))
    return made(context, summary, weighting)
