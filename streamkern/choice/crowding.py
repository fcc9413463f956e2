"""Whether rows crowd: what neighbours tell of them is then not told of where no rows are."""

from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.left_out_errors import LeftOutErrors
from streamkern.choice.small_fit import SmallFit
from streamkern.kernels import Laplacian
from streamkern.parameters.parameters import Parameters
from streamkern.passes.column_summary import ColumnSummary
from streamkern.runtime.threads import blas_threads
from streamkern.sources import Block
from streamkern.statistics import Folds

# The small fit.
_ROWS = 2048  # of the sample, at most
_COMPONENTS = 512  # at most
_ROWS_A_FEATURE = 4  # at least
_BLOCKS = 10  # that are left out
# Rows crowd if errors of blocks or regions are at least `_FAR` times those of single rows, and
# `_SURE` standard errors above them; of rows in random order they were up to 1.03 times.
_FAR = 1.5
_SURE = 2.0
_SORTED = 0.01  # rows are sorted by a target if fewer of its steps go against the order
# A column makes groups if at least `_FEWEST_GROUPS` of its values occur, each in at most `_SHARE`
# of the rows.  A note is given if the error for a new value is at least `_LARGER` times that for a
# known one.
_FEWEST_GROUPS = 10
_SHARE = 0.1
_LARGER = 1.2
_DAY = 86_400.0  # seconds
# Gaps between rows.
_MOST_INPUTS = 3  # in more, gaps cannot be told from the emptiness of space
_NEIGHBOURS = 2, 8  # whose distances are compared
_SHORT = 0.75  # dimensions that rows fall short of where they crowd
_GAP = 5.0  # times the widest step of rows at random along one input
_TAIL = 0.02  # share of the rows at either end that may lie far out
_FEW_VALUES = 8  # an input of no more values is no coordinate
_BOUND = 3.0  # quartile ranges that coordinates are bounded in


class Crowding(NamedTuple):
    """Errors of a small fit over the deviation of the targets, where rows crowd."""

    fold_by: str  # "blocks" of consecutive rows, or regions of "space", that are left out whole
    near: float  # where single rows are left out
    far: float  # where blocks or regions are

    @property
    def swings(self) -> bool:
        """Whether predictions far from rows are worse than the mean."""
        return self.far > 1.0

    def note(self) -> str:
        """Say it in one sentence."""
        what = "blocks of consecutive rows" if self.fold_by == "blocks" else "regions of the inputs"
        return (
            f"rows crowd: a small fit predicts them with {self.near:.2g} standard deviations of "
            f"error where single rows are left out, and {self.far:.2g} where {what} are, so folds "
            f"are {what} and guard the penalty; fold_by 'rows' (--fold-by rows) if all rows to "
            f"predict lie among these."
        )


class NewValues(NamedTuple):
    """The same errors, where new values of a column are harder: folds stay as they are.

    Rows to predict may be of values that are known.
    """

    fold_by: str  # the column, as folds by its values are asked for
    near: float  # where single rows are left out
    far: float  # where all rows of a value are

    def note(self) -> str:
        """Say it in one sentence."""
        kind, _, name = self.fold_by.partition(":")
        values = f"values of {name!r}" if kind == "column" else f"days of {name!r}"
        return (
            f"new {values} are harder to predict: a small fit has {self.near:.2g} standard "
            f"deviations of error where single rows are left out, and {self.far:.2g} where all "
            f"rows of one are; fold_by {self.fold_by!r} (--fold-by {quote(self.fold_by)}) if "
            f"rows to predict have new ones."
        )


def crowding(
    summary: ColumnSummary, regions: Callable[[], Folds], random_state: int, recipe: Any
) -> Crowding | NewValues | None:
    """Return how rows crowd, or else whose new values are harder, or None.

    Errors of blocks of consecutive rows, or of regions, are far above those of single rows: all are
    of a small fit without them, and of every block the logarithms of both are compared.  In any
    space regions are harder than rows; they count where rows leave gaps between them.  If these do
    not tell, it is asked of values of a table's columns.
    Roberts et al. (2017), "Cross-validation strategies for data with temporal, spatial,
    hierarchical, or phylogenetic structure".
    """
    order = np.argsort(summary.sample.places[:_ROWS])
    n, X, y = len(order), summary.sample.X[:_ROWS][order], summary.targets[:_ROWS][order]
    if n < 2 * _ROWS_A_FEATURE * _BLOCKS:
        return None
    with blas_threads(1):
        z = summary.standardizer(X)
        parts = {} if _is_sorted(y) else {"blocks": np.array_split(np.arange(n), _BLOCKS)}
        if _leave_gaps(z):
            cells = regions().of(Block(X, y, 0))
            parts["space"] = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
        groups = {} if recipe is None else _groups(recipe, X)
        given = Parameters(kernel=Laplacian(), precision="double", random_state=random_state)
        D = min(_COMPONENTS, n // _ROWS_A_FEATURE) // 2 * 2
        drawn = SmallFit(given.pass_options(), D, n).drawn(Laplacian().resolved(z), z, None)
        errors = LeftOutErrors(drawn.transform(z), y)
        return _far_parts(errors, parts) or _new_values(errors, groups)


def _is_sorted(y: Floats) -> bool:
    """Say whether rows come in the order of their targets, which blocks of them then tell."""
    steps = np.diff(y, axis=0)
    against = np.minimum((steps > 0).mean(axis=0), (steps < 0).mean(axis=0))
    return bool((against < _SORTED).all())


def _far_parts(errors: LeftOutErrors, several: Mapping[str, Sequence[Array]]) -> Crowding | None:
    for fold_by, parts in several.items():
        pairs = errors.of_parts(parts)
        logs, is_far = _compared(pairs, _FAR)
        # Regions are harder than rows in any space, but rarely worse than the mean.
        if is_far and (fold_by == "blocks" or logs[:, 1].mean() > 0.0):
            return Crowding(fold_by, *_mean(parts, pairs))
    return None


def _new_values(errors: LeftOutErrors, groups: Mapping[str, Sequence[Array]]) -> NewValues | None:
    harder = dict[str, float]()
    for fold_by, parts in groups.items():
        logs, is_far = _compared(errors.of_parts(parts), _LARGER)
        if is_far:
            harder[fold_by] = float(np.diff(logs).mean())
    if not harder:
        return None
    fold_by = max(harder, key=lambda each: harder[each])
    # At the penalty of rows a few values are far off, and decide the mean.
    pairs = errors.of_parts(groups[fold_by], own_penalty=True)
    return NewValues(fold_by, *_mean(groups[fold_by], pairs))


def _compared(errors: Floats, times: float) -> tuple[Floats, bool]:
    """Return logarithms of errors, (K, 2), and whether parts are so many times harder for sure."""
    logs = np.log(np.maximum(errors, np.finfo(float).tiny)) / 2.0
    more = logs[:, 1] - logs[:, 0]
    sure = _SURE * more.std(ddof=1) / np.sqrt(len(more))
    return logs, bool(more.mean() >= max(np.log(times), sure))


def _mean(parts: Sequence[Array], errors: Floats) -> tuple[float, float]:
    near, far = np.sqrt(np.average(errors, axis=0, weights=list(map(len, parts)))).tolist()
    return near, far


def _groups(recipe: Any, X: Floats) -> dict[str, list[Array]]:
    """Return rows (n, p) of a table that share a category or a day, by the folds that see it."""
    found, first = dict[str, list[Array]](), 0
    for column in recipe.columns:
        inputs = X[:, first : (first := first + len(column.inputs()))]
        if column.kind not in {"categories", "times"} or not inputs.shape[1]:
            continue
        is_time = column.kind == "times"
        values = np.floor(inputs[:, 0] / _DAY) if is_time else inputs.argmax(axis=1)
        _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
        several = np.flatnonzero((sizes > 1) & (sizes <= _SHARE * len(X)))
        if len(several) >= _FEWEST_GROUPS:
            name = f"{'time' if is_time else 'column'}:{column.name}"
            found[name] = [np.flatnonzero(codes == each) for each in several]
    return found


def _leave_gaps(z: Floats) -> bool:
    """Say whether rows, of few inputs, lie closer together than rows at random in their space.

    Along one input, some step between neighbours is far wider than the widest of rows at random.
    In the plane or in space, rows along lines have neighbours at distances that grow as along a
    line: the 8th is four times as far as the 2nd, and twice as far if they fill the plane.
    Inputs of few values are no coordinates, and others count in units of their quartiles.
    Levina and Bickel (2004), "Maximum likelihood estimation of intrinsic dimension".
    """
    from scipy.spatial import cKDTree  # noqa: PLC0415  slow, and for few inputs alone

    if z.shape[1] > _MOST_INPUTS:
        return False
    z = z[:, [len(np.unique(column)) > _FEW_VALUES for column in z.T]]
    n, p = z.shape
    if not p:
        return False
    if p == 1:
        steps = np.diff(np.sort(z[:, 0]))
        inner = steps[int(_TAIL * n) : n - int(_TAIL * n)]
        return bool(inner.max() > _GAP * np.log(n) / n * steps.sum())
    lower, middle, upper = np.quantile(z, [0.25, 0.5, 0.75], axis=0)
    u = (z - middle) / np.where(upper > lower, upper - lower, 1.0)
    u /= np.sqrt(1.0 + np.square(u / _BOUND))
    second, eighth = cKDTree(u).query(u, k=[k + 1 for k in _NEIGHBOURS])[0].T
    apart = second > 0
    if not apart.any():
        return False
    growth = np.log(eighth[apart] / second[apart]).mean()
    return bool(growth > np.sum(1.0 / np.arange(*_NEIGHBOURS)) / (p - _SHORT))
