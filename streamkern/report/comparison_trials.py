"""Results of a comparison: every model, and confidence intervals over the seeds of a map."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
INTERVAL = (
    f"mean over the seeds of the map, and the {CONFIDENCE:.0%} interval of that mean by Student's "
    f"t; the rows are the same for every seed"
)


@dataclass(frozen=True)
class Run:
    """One model, fitted and tested; errors are in units of the target, over all targets.

    `kernel_error` is the mean of |phi(x)^T phi(x') - k(x, x')| over pairs of held-out rows.  Below
    the penalty `precision_floor` the rounding of sums decides.  A fit includes choosing alpha.
    """

    seed: int | None
    alpha: float
    test_rmse: float
    cv_rmse: float | None
    loo_rmse: float | None
    kernel_error: float | None
    precision_floor: float | None
    fit_seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Trial:
    """One line of a comparison: a model, over the seeds of its map.

    Errors and seconds are means over the runs; their definitions are those of `Run`.
    """

    method: str
    map: str | None
    n_components: int | None
    seeds: tuple[int, ...]
    test_rmse: float
    relative_rmse: float
    cv_rmse: float | None
    loo_rmse: float | None
    kernel_error: float | None
    interval: dict[str, tuple[float, float] | None]
    alpha: float
    fit_seconds: float
    predict_seconds: float
    matrix_bytes: int
    runs: tuple[Run, ...]

    @classmethod
    def of(
        cls,
        method: str,
        runs: Sequence[Run],
        order: int,
        reference: float,
        *,
        n_components: int | None = None,
        map_name: str | None = None,
    ) -> Trial:
        """Summarise runs."""
        test_rmse = _mean([run.test_rmse for run in runs])
        return cls(
            method=method,
            map=map_name,
            n_components=n_components,
            seeds=tuple(run.seed for run in runs if run.seed is not None),
            test_rmse=test_rmse,
            relative_rmse=test_rmse / reference,
            cv_rmse=_mean_of("cv_rmse", runs),
            loo_rmse=_mean_of("loo_rmse", runs),
            kernel_error=_mean_of("kernel_error", runs),
            interval={
                name: confidence_interval([getattr(run, name) for run in runs])
                for name in ("test_rmse", "kernel_error")
            },
            alpha=float(np.median([run.alpha for run in runs])),
            fit_seconds=_mean([run.fit_seconds for run in runs]),
            predict_seconds=_mean([run.predict_seconds for run in runs]),
            matrix_bytes=8 * order**2,
            runs=tuple(runs),
        )


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds."""

    trials: tuple[Trial, ...]
    n_train: int
    n_test: int
    kernel: dict[str, Any]
    alpha: float | tuple[float, ...] | str
    target_deviation: float
    interval: str = INTERVAL

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    def by_map(self) -> dict[str, list[Trial]]:
        """Return the trials of random features, by map and in the order of their numbers."""
        lines: dict[str, list[Trial]] = {}
        for trial in self.trials:
            if trial.map is not None:
                lines.setdefault(trial.map, []).append(trial)
        return lines


def confidence_interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Return the 95% interval of the mean of normal values of unknown variance, low and high.

    mean -+ t s / sqrt(m), with the standard deviation s of m values and the 97.5% quantile t of
    Student's distribution of m - 1 degrees of freedom.  None for fewer than two values, or for
    values that are not known.
    """
    known = [value for value in values if value is not None]
    m = len(known)
    if m < 2:
        return None
    half = float(stdtrit(m - 1, 0.5 + CONFIDENCE / 2.0) * np.std(known, ddof=1) / np.sqrt(m))
    mean = _mean(known)
    return mean - half, mean + half


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _mean_of(name: str, runs: Sequence[Run]) -> float | None:
    values = [getattr(run, name) for run in runs]
    return None if None in values else _mean(values)
