"""Train and test split: uniform samples of rows, small enough for memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamkern.engine.reduction import accumulate
from streamkern.errors import DataError, ParameterError
from streamkern.statistics import ColumnStatistics, RowSample, Together

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.sources import Source

# The fewest rows to draw from, and to test on.
_FEWEST, _FEWEST_TESTED = 10, 2
_TEST_ROWS = 1000


@dataclass(frozen=True)
class Split:
    """Rows to fit, and rows to test, in random order."""

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats
    weights: Floats | None = None
    test_weights: Floats | None = None


def check_split(source: Source, test: Source | None, n_train: int, *, fewest: int) -> int:
    """Return how many rows there will be to fit, or raise before any is read."""
    for rows, needed in ((source, _FEWEST), (test, _FEWEST_TESTED)):
        if rows is not None and rows.n_samples < needed:
            which = "to test" if rows is test else "to fit"
            raise DataError(
                f"a comparison needs {needed} rows {which}, but there are {rows.n_samples}; add "
                f"rows."
            )
    shape = source.n_features, source.n_targets
    if test is not None and (test.n_features, test.n_targets) != shape:
        raise DataError(
            f"the test rows must have {shape[0]} inputs and {shape[1]} targets, as those to fit, "
            f"not {test.n_features} and {test.n_targets}; name rows of the same kind."
        )
    n_train = min(n_train, source.n_samples if test is not None else 4 * source.n_samples // 5)
    if n_train < fewest:
        raise ParameterError(
            f"a comparison must fit at least {fewest} rows, not {n_train}; ask for more rows."
        )
    return n_train


def sampled_split(
    source: Source, test: Source | None, n_train: int, *, random_state: int, skip_bad_rows: bool
) -> Split:
    """Draw rows to fit and rows to test, in one pass over each source."""
    if test is not None:
        X, y, s = _sample(source, n_train, random_state, _FEWEST, skip_bad_rows=skip_bad_rows)
        n_test = max(n_train, _TEST_ROWS)
        X_test, y_test, s_test = _sample(
            test, n_test, random_state, _FEWEST_TESTED, skip_bad_rows=skip_bad_rows
        )
        return Split(X, y, X_test, y_test, s, s_test)
    n_train = min(n_train, 4 * source.n_samples // 5)
    n_rows = n_train + max(n_train // 4, _FEWEST_TESTED)
    X, y, s = _sample(source, n_rows, random_state, _FEWEST, skip_bad_rows=skip_bad_rows)
    n_train = min(n_train, len(X) - len(X) // 5)  # fewer than asked for where rows are skipped
    fitted, tested = slice(n_train), slice(n_train, None)
    weights = (None, None) if s is None else (s[fitted], s[tested])
    return Split(X[fitted], y[fitted], X[tested], y[tested], *weights)


def _sample(
    source: Source, n_rows: int, random_state: int, fewest: int, *, skip_bad_rows: bool
) -> tuple[Floats, Floats, Floats | None]:
    statistic = Together(
        ColumnStatistics(source.n_features + source.n_targets), RowSample(n_rows, random_state)
    )
    found = accumulate(source, statistic, skip_bad_rows=skip_bad_rows, label="sample")
    columns, drawn = found.statistic.parts
    assert isinstance(columns, ColumnStatistics)  # noqa: S101  for the type checker
    assert isinstance(drawn, RowSample)  # noqa: S101
    if columns.n_bad_rows:
        raise source.bad_rows_error(
            columns.n_bad_rows, columns.first_bad_row or 0, columns.n_nonfinite
        )
    if found.n_rows < fewest:
        weightless = f" or have weight 0 in {source.weighted_by}" * (found.n_weightless > 0)
        raise DataError(
            f"{source.n_samples - found.n_rows:,} of {source.n_samples:,} rows hold NaN or "
            f"infinite values{weightless}, and {found.n_rows} are left, but a comparison needs "
            f"{fewest}; add rows."
        )
    weights = None if source.weighted_by is None else drawn.weights
    return drawn.X.astype(float), drawn.y[:, 0] if source.target_ndim == 1 else drawn.y, weights
