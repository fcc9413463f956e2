"""Problems: what targets become, and what is made of the regression on them.

rows --> problem.source --> moments --> regression --> problem.model --> fitted model
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from streamkern.errors import ParameterError
from streamkern.features.base import checked_n_components
from streamkern.fit import fit, solve, sums_of
from streamkern.fitting.planned_fit import planned_fit
from streamkern.models.data_moments import DataMoments, checked_moments
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_options import SAMPLE_ROWS, FitOptions
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.footprint import solve_bytes
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.parameters.planning import Job, tell_of_plan
from streamkern.parameters.template import Template
from streamkern.passes.fit_context import FitContext
from streamkern.registry import extension, installed
from streamkern.runtime.memory import check_free
from streamkern.runtime.resources import current_resources
from streamkern.sources import Source, as_source

Rows = tuple[Any, ...]


class Problem(ABC):
    """What a fit is for: regression, or what is made of one, as classification on +1 and -1.

    Rows are (X, y, sample_weight) and columns for folds, if there are; where X is a `Source`, y and
    weights are None.
    """

    reads_labels: ClassVar[bool] = False
    has_intervals: ClassVar[bool] = False
    # Whether it is least squares, whose sums say more, and which a search chooses by.
    is_squared: ClassVar[bool] = True

    @property
    @abstractmethod
    def keeps_folds(self) -> bool:
        """Whether the fitted model needs the moments of folds, whatever the penalty."""

    @abstractmethod
    def source(self, rows: Rows, parameters: Parameters, template: Template | None) -> Source:
        """Return rows with the targets of the regression."""

    @abstractmethod
    def model(self, ridge: FittedRidge, source: Source | None) -> Any:
        """Return the fitted model that a regression makes, on rows of a source or from moments."""

    @abstractmethod
    def check_moments(self, moments: DataMoments) -> None:
        """Raise ParameterError if the moments are not for this problem."""

    @property
    @abstractmethod
    def deciding(self) -> dict[str, Any]:
        """Options by which the first rows decide the moments that more are added to."""

    @abstractmethod
    def growing_source(
        self, rows: Rows, parameters: Parameters, template: Template | None, *, first: bool
    ) -> Source:
        """Return rows that come to a model: the `first` ones, or more like the template."""

    def prepared(self, parameters: Parameters) -> Parameters:
        """Return the parameters with the folds that the problem needs."""
        return replace(parameters, keeps_folds=self.keeps_folds)

    def job(self, parameters: Parameters, template: Template | None = None) -> Job:
        """Return what is known of a fit before its rows: a dry run plans by it, and the fit."""
        parameters = self.prepared(parameters)
        n_penalties, options = parameters.penalty.n_loo_penalties, parameters.pass_options(template)
        solution = {"fixed_alpha": parameters.solves_at_once, "n_loo_penalties": n_penalties}
        solution |= parameters.solution_by_passes(options, like=template is not None)
        return job_of(parameters, options, template, **solution)

    def moments_job(self, parameters: Parameters, template: Template | None) -> Job:
        """Return the same of `moments`."""
        return job_of(parameters, parameters.moment_options(template), template, indexed=True)

    def fit(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        template: Template | None = None,
        checkpoint: str | Path | None = None,
        keep_moments: bool = False,
    ) -> Any:
        """Fit rows in two passes, and return the fitted model."""
        parameters = self.prepared(parameters)
        job, source = self.job(parameters, template), self.source(rows, parameters, template)
        if template is not None:
            template.check(source)
        options = job.for_rows(job.options, source)
        parameters.check_sparse(options.components_for(source.n_features))

        how: Any = {"like": template, "folder": checkpoint, **job.plan_arguments}
        how |= {"target_range": parameters.target_range, "penalty": parameters.penalty}

        def fitted(
            options: FitOptions, seconds: dict[str, float] | None = None, choice: Any = None
        ) -> Any:
            """Fit; the seconds of fits before, and what they chose by, are added to the report."""
            context = planned_fit(source, options, **how)
            tell_of_plan(source, options, context.plan, job.plan_arguments)
            ridge = self.regression(context, parameters)
            report = with_seconds(ridge.report, **seconds or {}) | (choice or {})
            ridge = replace(ridge, report=report)
            return self.made(ridge, source, keep_moments=keep_moments)

        is_open = parameters.precision == AUTO and template is None and checkpoint is None
        if is_open and options.has_bounds:
            if "integers" in installed():
                return extension("integers", "fewest_bits").fit_in_fewest_bits(fitted, options)
            options = replace(options, precision="double")
        return fitted(options)

    def regression(self, context: FitContext, parameters: Parameters) -> FittedRidge:
        """Return the regression on the targets of rows, linear in the features."""
        return fit(context, parameters, with_intervals=self.has_intervals)

    def moments(
        self,
        parameters: Parameters,
        rows: Rows,
        *,
        template: Template | None = None,
        checkpoint: str | Path | None = None,
    ) -> DataMoments:
        """Return the moments of rows, which know their rows."""
        parameters.check_direct()
        source = self.source(rows, parameters, template)
        job = self.moments_job(parameters, template)
        options = job.for_rows(job.options, source)
        how: Any = {"like": template, "folder": checkpoint, **job.plan_arguments}
        return sums_of(planned_fit(source, options, **how))

    def solve(self, parameters: Parameters, moments: DataMoments) -> Any:
        """Return the fitted model of moments, which it keeps, without reading rows."""
        parameters.check_direct()
        checked_moments(moments).check_whole()
        parameters = self.prepared(parameters)
        self.check_moments(moments)
        D, size, penalty = moments.feature_map.n_components, None, parameters.penalty
        if parameters.n_components != "auto" and not moments.options.is_identity:
            size = checked_n_components(parameters.n_components)
            if D < size <= moments.options.n_components:
                size = D  # rows made fewer landmarks than were asked for
            if size > D:
                raise ParameterError(
                    f"the moments are of {D:,} features, but n_components is {size:,}; ask for no "
                    f"more than there are."
                )
        n_folds = moments.n_folds if penalty.needs_folds or self.keeps_folds else 1
        resources = current_resources()
        if not resources.n_workers:
            needed = solve_bytes(size or D, moments.n_targets, n_folds, resources.n_threads)
            check_free(needed, "solving")
        return self.solved(moments, parameters, size)

    def solved(self, moments: DataMoments, parameters: Parameters, size: int | None = None) -> Any:
        """Return the fitted model of moments alone, which it keeps."""
        return self.model(solve(moments, parameters, size=size), None)

    def made(self, ridge: FittedRidge, source: Source, *, keep_moments: bool) -> Any:
        model = self.model(ridge, source)
        return model if keep_moments else model.without_moments()


def job_of(
    parameters: Parameters, options: FitOptions, template: Template | None, **solution: Any
) -> Job:
    """Return a job; of rows like a template, any number will do, and a sample of the usual size."""
    if template is not None:
        solution |= {"empty_folds": True, "n_sample": SAMPLE_ROWS}
    return Job(options, solution, partial(parameters.for_rows, template=template))


class Regression(Problem):
    keeps_folds, has_intervals = False, True
    deciding: ClassVar[dict[str, Any]] = {}

    def source(self, rows: Rows, *_: Any, **__: Any) -> Source:
        return as_source(*rows)

    growing_source = source

    def model(self, ridge: FittedRidge, source: Source | None) -> FittedRidge:  # noqa: ARG002
        return ridge

    def check_moments(self, moments: DataMoments) -> None:
        """Any moments will do."""
