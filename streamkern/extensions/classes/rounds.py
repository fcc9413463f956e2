"""The rounds: ridge on reweighted rows, what its votes count, and the weights that follow.

    column pass --> moments, weights of round 1 --> ridge --> errors, same weights --> step
                --> moments, weights of round 2 --> ridge --> errors, same weights --> step
                --> ...                                   --> errors of all rounds

A weight is a function of a row and of the rounds before, made where the row is read, so nothing is
kept of a row: a round is one pass for moments, and one light pass for errors.
"""

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.extensions.classes.ensemble import ALGORITHMS, Ensemble, RoundErrors, StagedErrors
from streamkern.extensions.classes.labelled_source import LabelledSource
from streamkern.features import Identity, Standardized, drawn_from
from streamkern.fit import solve
from streamkern.fitting.draw_features import Features, draw_features, features_like
from streamkern.fitting.planned_fit import planned_fit
from streamkern.fitting.sum_features import sum_features
from streamkern.fitting.summarize import summarize
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import Parameters, first_kernel_of
from streamkern.parameters.template import Template
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.fit_context import FitContext
from streamkern.predict.evaluation import Evaluation
from streamkern.runtime.threads import blas_threads
from streamkern.sources.columns import columns_of

if TYPE_CHECKING:
    from streamkern.extensions.classes.fitted_ensemble import Boosting

# Of a solution, what is said of every round; and of a fit, what all of them have in common.
_OF_ROUND: Final = ("alpha", "effective_dof", "cv_rmse", "n_components", "note")
_IN_COMMON: Final = (
    *("rows", "n_features", "n_targets", "skipped_rows", "dropped_columns"),
    *("nearly_constant_columns", "data", "metric"),
    *("kernel", "kernel_parameters", "length_scale", "feature_map", "precision"),
    *("n_folds", "fold_by", "projected_worker_bytes"),
)


def round_options(parameters: Parameters) -> FitOptions:
    if parameters.n_components == "auto":
        raise ParameterError(
            "n_components 'auto' is chosen once, but rounds have maps of their own; give the "
            "number of features of a round."
        )
    if parameters.trend is not None:
        raise ParameterError("rounds have no trend beside their maps; leave the trend out.")
    return replace(parameters, kernel=first_kernel_of(parameters.kernel)).pass_options()


def fit_rounds(
    source: LabelledSource,
    parameters: Parameters,
    boosting: "Boosting",
    checkpoint: str | Path | None = None,
) -> tuple[Ensemble, FitReport]:
    begun, (options, solution, _) = time.perf_counter(), boosting.job(parameters)
    how: Any = {"folder": checkpoint, "searched": [boosting.as_dict()], **solution}
    with checkpointed(planned_fit(source, options, **how)) as planned:
        rows, summary = summarize(planned)
        job = _Job(*draw_features(rows, summary), boosting)
        ensemble = Ensemble(boosting.algorithm, len(source.encoding.classes))
        rounds, stopped = [], None
        while len(ensemble) < boosting.n_estimators and stopped is None:
            ensemble, found, stopped = job.next_round(ensemble, parameters)
            rounds += found
        if not len(ensemble):
            raise DataError(
                f"{stopped}, so there is nothing to boost; check which dataset holds the labels, "
                f"or take more components."
            )
        staged = job.read(StagedErrors(ensemble), "rounds")
    report = {name: job.first[name] for name in _IN_COMMON}
    bounds = staged.error_bounds
    for i, each in enumerate(rounds):
        each["train_error"] = float(staged.errors[i])
        each["train_error_bound"] = None if bounds is None else float(bounds[i])
    job.seconds["total"] = time.perf_counter() - begun
    report |= boosting.as_dict() | job.counts
    report |= {
        "rounds": rounds,
        "stopped": stopped,
        "n_components": sum(each["n_components"] for each in rounds),
        "train_error": rounds[-1]["train_error"],
        "train_error_bound": rounds[-1]["train_error_bound"],
        "seconds": job.seconds,
        "rows_per_second": len(rounds) * report["rows"] / job.seconds["pass"],
    }
    return ensemble, report


@dataclass
class _Job:
    """What all rounds have in common, and what is counted on the way."""

    rows: FitContext
    features: Features  # of the first round
    boosting: "Boosting"

    def __post_init__(self) -> None:
        passed = self.features.summary.passed
        self.first: FitReport = {}
        self.seconds = {"columns": passed.seconds, "pass": 0.0, "errors": 0.0, "solve": 0.0}
        self.counts: FitReport = {
            "peak_worker_bytes": passed.peak_worker_bytes,
            "retried_shards": passed.retried_shards,
            "resumed_shards": passed.resumed_shards,
        }

    def next_round(
        self, before: Ensemble, parameters: Parameters
    ) -> tuple[Ensemble, list[dict[str, Any]], str | None]:
        """Return the ensemble with one more round, facts of that, and why it is the last.

        A round that does no better than chance is left out.
        """
        number, rate = len(before), self.boosting.learning_rate
        moments = self._moments(before)
        with warnings.catch_warnings():  # of residuals: a round is judged by its votes
            warnings.filterwarnings("ignore", "residuals are smaller", StreamkernWarning)
            solved = solve(moments, parameters)
        report = solved.report
        self.first = self.first or report
        for name in ("pass", "solve"):
            self.seconds[name] += report["seconds"][name]
        first = self.features.summary.passed  # the report counts it too
        self._count(
            report["peak_worker_bytes"],
            report["retried_shards"] - first.retried_shards,
            report["resumed_shards"] - first.resumed_shards,
        )
        weighted = Evaluation(solved.predictor, RoundErrors(before, rate))
        (errors,) = self.read(weighted, f"round-{number + 1}").measures
        error, after = errors.wrong / errors.weight, errors.after / errors.weight
        step = ALGORITHMS[before.algorithm].step(error, after, rate, before.n_classes)
        if not step.is_forward:
            return before, [], f"round {number + 1} does no better than chance on its weights"
        found = {
            "round": number + 1,
            "step": step.size,
            "weighted_error": error,
            "shrinkage": step.shrinkage,
            **{name: report[name] for name in _OF_ROUND},
        }
        stopped = None if error else f"round {number + 1} gets no row wrong"
        return before.grown(solved.predictor, step), [found], stopped

    def _moments(self, before: Ensemble) -> DataMoments:
        if not len(before):
            return sum_features(self.rows, self.features)
        known = self.features.kernel, columns_of(self.rows.source)
        like = Template(self.rows.options, self._drawn(len(before)), *known)
        rows = replace(self.rows, like=like)
        return sum_features(rows, features_like(rows, self.features.summary), before)

    def _drawn(self, number: int) -> Standardized:
        """Return the map of a round after the first, with the kernel of that one."""
        summary, options = self.features.summary, self.rows.options
        standardizer = summary.standardizer
        if options.is_identity:
            return Standardized(standardizer, Identity().draw(len(standardizer.columns)))
        options = replace(options, random_state=options.random_state + number)
        with blas_threads(1):  # frequencies are part of the result
            # Landmarks begin at the first rows, whatever the seed.
            turn = -number * options.n_components
            rows = np.roll(standardizer(summary.sample.X), turn, axis=0)
            weights = summary.weights
            weights = None if weights is None else np.roll(weights, turn)
            ends = summary.ends if options.is_field else None
            rows = rows if ends is None else ends
            inner = drawn_from(options.map_of(self.features.kernel), rows, weights)
        return Standardized(standardizer, inner)

    def read(self, statistic: Any, label: str) -> Any:
        passed = self.rows.read(statistic, label)
        self.seconds["errors"] += passed.seconds
        self._count(passed.peak_worker_bytes, passed.retried_shards, passed.resumed_shards)
        return passed.statistic

    def _count(self, peak_bytes: int, retried: int, resumed: int) -> None:
        self.counts["retried_shards"] += retried
        self.counts["resumed_shards"] += resumed
        self.counts["peak_worker_bytes"] = max(self.counts["peak_worker_bytes"], peak_bytes)
