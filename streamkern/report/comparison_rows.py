"""The train/test split of a comparison: a uniform sample of the rows."""

from dataclasses import dataclass
from typing import Any

from streamkern._typing import Floats
from streamkern.engine.reduction import accumulate
from streamkern.errors import DataError, ParameterError
from streamkern.sources import Source
from streamkern.sources.nonfinite_rows import bad_rows_error
from streamkern.statistics import ColumnStatistics, RowSample, Together

# The fewest rows to draw from, and to test on, and how many are tested at least if there are.
_FEWEST, _FEWEST_TESTED, _TEST_ROWS = 10, 2, 1000


@dataclass(frozen=True)
class Split:
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
    how: dict[str, Any] = {"random_state": random_state, "skip_bad_rows": skip_bad_rows}
    if test is not None:
        X, y, s = _sample(source, n_train, _FEWEST, **how)
        tested = _sample(test, max(n_train, _TEST_ROWS), _FEWEST_TESTED, **how)
        return Split(X, y, tested[0], tested[1], s, tested[2])
    n_train = min(n_train, 4 * source.n_samples // 5)
    X, y, s = _sample(source, n_train + max(n_train // 4, _FEWEST_TESTED), _FEWEST, **how)
    n = min(n_train, len(X) - len(X) // 5)  # fewer than asked for where rows are skipped
    weights = (None, None) if s is None else (s[:n], s[n:])
    return Split(X[:n], y[:n], X[n:], y[n:], *weights)


def _sample(
    source: Source, n_rows: int, fewest: int, *, random_state: int, skip_bad_rows: bool
) -> tuple[Floats, Floats, Floats | None]:
    columns = ColumnStatistics(source.n_features + source.n_targets)
    statistic = Together(columns, RowSample(n_rows, random_state))
    found: Any = accumulate(source, statistic, skip_bad_rows=skip_bad_rows, label="sample")
    seen, drawn = found.statistic.parts
    if seen.n_bad_rows:
        raise bad_rows_error(source, seen.n_bad_rows, seen.first_bad_row or 0, seen.n_nonfinite)
    if found.n_rows < fewest:
        weightless = f" or have weight 0 in {source.weighted_by}" * (found.n_weightless > 0)
        raise DataError(
            f"{source.n_samples - found.n_rows:,} of {source.n_samples:,} rows hold NaN or "
            f"infinite values{weightless}, and {found.n_rows} are left, but a comparison needs "
            f"{fewest}; add rows."
        )
    weights = None if source.weighted_by is None else drawn.weights
    return drawn.X.astype(float), drawn.y[:, 0] if source.target_ndim == 1 else drawn.y, weights
