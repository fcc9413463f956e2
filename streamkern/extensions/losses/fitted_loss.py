"""Fitted regressions of other losses, and the problem that they solve."""

from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn, Self

import numpy as np

from streamkern._typing import Floats, Group
from streamkern.engine.scheduler import delayed
from streamkern.errors import ParameterError
from streamkern.estimators.problems import Regression, Rows
from streamkern.extensions.losses import KINDS
from streamkern.extensions.losses.exposed_rows import ExposedRows
from streamkern.extensions.losses.loss import Loss
from streamkern.extensions.losses.loss_errors import LossErrors
from streamkern.extensions.losses.loss_names import link_of, losses_of, name_of, restored_loss
from streamkern.extensions.losses.reweighted_fit import reweighted_fit
from streamkern.extensions.losses.robust_losses import Quantile
from streamkern.models import scoring
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.report_rows import Row, model_rows
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.parameters.planning import Job
from streamkern.parameters.template import Template
from streamkern.passes.fit_context import FitContext
from streamkern.predict.deviation import Deviation
from streamkern.solve import NormalEquations
from streamkern.sources import Source

# Parameters of a ridge regression that other losses do without.
NOT_OURS = {"per_target", "sparse", "sparse_method", "solver", "trend"}
# What is said of losses, in this order.
_FIGURES = ("deviance", "log_loss", "huber_loss", "pinball", "d2", "coverage")


@dataclass(frozen=True)
class LossRegression(Regression):
    """Regression with other losses."""

    losses: tuple[Loss, ...]
    are_signs: bool = False  # targets are +1 and -1, of classes
    exposed: tuple[str, str] | None = None  # "exposure" or "offset", and the name of the column

    is_squared, keeps_folds, has_intervals = False, True, False

    def __post_init__(self) -> None:
        (kind, _), loss = self.exposed or ("", ""), self.losses[0]
        if kind and loss.link != "log" and (kind, loss.link) != ("offset", "identity"):
            raise ParameterError(
                f"an {kind} is for {'counts and amounts' if kind == 'exposure' else 'numbers'}, "
                f"but the loss is {loss.words}; take poisson, gamma or tweedie:P, or leave it out."
            )

    def prepared(self, parameters: Parameters) -> Parameters:
        return self.checked(super().prepared(parameters))

    def job(self, parameters: Parameters, template: Template | None = None) -> Job:
        return self.planned(super().job(parameters, template))

    @staticmethod
    def planned(job: Job) -> Job:
        """Return a job whose plan knows that folds are solved, and a sample is summed first."""
        own = {"fixed_alpha": False, "begins_on_sample": True}
        return job._replace(plan_arguments=job.plan_arguments | own)

    def checked(self, parameters: Parameters) -> Parameters:
        """Return parameters, or raise ParameterError unless they go with reweighted passes."""
        alpha, words = parameters.alpha, ", ".join(loss.words for loss in self.losses)
        wrong = {
            f"alpha {alpha!r}": isinstance(alpha, str) and alpha != "cv",
            "n_components 'auto'": parameters.n_components == AUTO,
            "sparse": parameters.sparse is not None,
            "solver 'cg'": parameters.solver == "cg",
            "per_target": parameters.per_target,
            "a trend": parameters.trend is not None,
            f"precision {parameters.precision!r}": parameters.precision not in ("single", "double"),
            "feature_map 'grid'": parameters.feature_map == "grid",
            "folds by time": str(parameters.fold_by).startswith("time:"),
        }
        for what, is_asked in wrong.items():
            if is_asked:
                raise ParameterError(
                    f"{what} is not for the loss {words}, whose rows weigh anew in every pass; "
                    f"leave it out (alpha may be 'cv', a number, or some to choose from)."
                )
        return replace(parameters, solver="direct")

    def source(self, rows: Rows, *_: Any, **__: Any) -> Source:
        source = super().source(rows)
        if source.n_targets != 1:
            raise ParameterError(
                f"the loss {self.losses[0].words} is of one target, but there are "
                f"{source.n_targets}; fit one after another."
            )
        return ExposedRows(source, *self.exposed, self.losses[0]) if self.exposed else source

    def regression(self, context: FitContext, parameters: Parameters) -> FittedRidge:
        """Return the fitted regression; of classes that on a linear scale."""
        how: Any = {"are_signs": self.are_signs}
        ridge, losses, constants = reweighted_fit(context, parameters, self.losses, **how)
        if self.are_signs:
            return ridge
        held = {each.name: getattr(ridge, each.name) for each in fields(ridge)}
        kind = self.exposed[0] if self.exposed else ""
        return FittedLoss(**held, losses=losses, constants=constants, exposed_by=kind).linked

    def check_moments(self, *_: Any, **__: Any) -> NoReturn:
        raise ParameterError(
            f"sums of the loss {self.losses[0].words} are weighted by the coefficients that they "
            f"were made at, so they cannot be kept, merged or solved again; fit all rows, with "
            f"like=model (--like) to begin at a model."
        )

    growing_source = moments = check_moments


@dataclass(frozen=True)
class LossDeviation:
    """The standard deviations of new targets by the Hessian of the last step."""

    leverage: Deviation
    predictor: Any
    loss: Loss
    dispersion: float

    def standard_deviations(self, X: Any) -> Floats:
        means = self.predictor.predict(X).reshape(len(X), -1)
        spread = self.loss.spread(means, self.leverage.leverages(X))
        return np.sqrt(self.dispersion * spread).reshape(-1 if self.predictor.flat else means.shape)


def loss_regression(loss: str, *, are_signs: bool) -> LossRegression:
    """Return the regression of a named loss, of classes where the targets are signs."""
    return LossRegression(losses_of(loss), are_signs=are_signs)


def _said(found: Any, *more: str) -> list[Row]:
    """Return what is known of the losses, in words."""
    rows = [("loss", found["loss"])]
    for name in (*(f"{cv}{each}" for each in _FIGURES for cv in ("", "cv_")), *more):
        if found.get(name) is not None:
            values = found[name] if isinstance(found[name], list) else [found[name]]
            rows.append((name.replace("_", " "), ", ".join(f"{each:.6g}" for each in values)))
    return rows


@dataclass(frozen=True, repr=False)
class FittedLoss(FittedRidge):
    """A fitted regression of other losses: means, or quantiles, of the target."""

    estimator = "RandomFeatureRegressor"
    is_linear = False

    losses: tuple[Loss, ...] = ()
    constants: tuple[float, ...] = ()  # functions that suit all rows of the fit best
    exposed_by: str = ""  # "exposure" or "offset", where rows of the fit had one

    @staticmethod
    def rows_of(report: FitReport) -> list[Row]:
        """Return what a report says in words."""
        (loss, *said), rows = _said(report), model_rows(report)
        at = [name for name, _ in rows].index("training rmse")
        return [loss, *rows[:at], *said, *rows[at:]]

    def estimator_parameters(self) -> dict[str, Any]:
        given = self.parameters.values().items()
        return {name: v for name, v in given if name not in NOT_OURS} | {"loss": self.loss}

    @property
    def loss(self) -> str:
        """The losses as options name them."""
        return name_of(self.losses)

    @property
    def quantiles(self) -> list[float]:
        """The levels of the quantiles that are predicted, none of other losses."""
        return [each.level for each in self.losses if isinstance(each, Quantile)]

    @property
    def linked(self) -> Self:
        """The model with predictions of means, or of quantiles in order."""
        return replace(self, predictor=replace(self.predictor, link=link_of(self.losses)))

    @property
    def normal_equations(self) -> NormalEquations:
        """Those of the last step, or ParameterError where they tell no deviations."""
        if self.report.get("dispersion") is None:
            raise ParameterError(
                f"standard deviations are of distributions, which the loss {self.loss} has none "
                f"of; fit quantile:Q,Q of the two ends of intervals."
            )
        return super().normal_equations

    def deviation_task(self) -> Any:
        how = self.predictor, self.losses[0], self.report["dispersion"]
        return delayed(LossDeviation, super().deviation_task(), *how, name="loss deviation")

    def measure(self, *, as_fitted: bool = False) -> LossErrors:  # noqa: ARG002
        how: Any = {"link": self.predictor.link, "constants": self.constants}
        plain = tuple(loss.plain for loss in self.losses)
        return LossErrors(len(plain), losses=plain, columns=(0,) * len(plain), **how)

    def exposed(self, source: Source, column: tuple[str, str] | None) -> Source:
        """Return rows to evaluate with their exposures, or offsets, as those of the fit had them.

        ParameterError is raised if only one of both had.
        """
        given = "" if column is None else column[0]
        if given != self.exposed_by:
            both = self.exposed_by, given
            had, have = (f"an {each}" if each else "no exposure" for each in both)
            raise ParameterError(
                f"the rows of the fit had {had}, but those to evaluate have {have}; give both the "
                f"same (--exposure, --offset), of ones or zeros where there is none."
            )
        return source if column is None else ExposedRows(source, *column, self.losses[0])

    def evaluate(self, source: Source) -> dict[str, Any]:
        """Compare predictions with targets, in one pass."""
        self.check_rows(source)
        how: Any = {"skip_bad_rows": self.parameters.skips_bad_rows, "n_targets": 1}
        return scoring.evaluate(self.predictor, source, self.measure(), **how)

    @staticmethod
    def error_tables(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the title and the rows of a table of what an evaluation found."""
        spread = f"{found['baseline']['rmse']:.6g}, by always saying the mean of these targets"
        return [("Errors", [*_said(found, "rmse", "mae", "r2"), ("baseline rmse", spread)])]

    def interval(self, level: float) -> Any:
        raise ParameterError(
            f"intervals of {100 * level:g}% are of least squares; fit quantile:Q,Q of the two ends."
        )

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        card, arrays = super().stored(compact=compact)
        described = [loss.as_dict() for loss in self.losses]
        own = {"losses": described, "constants": list(self.constants)}
        return card | own | {"exposed_by": self.exposed_by}, arrays

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:
        model = super().restored(file, card, with_equations=with_equations)
        losses = tuple(restored_loss(each) for each in card["losses"])
        constants = tuple(float(each) for each in card["constants"])
        if not 0 < len(losses) == len(constants) == model.predictor.n_targets:
            raise ValueError(f"{len(losses)} losses")
        exposed_by = card.get("exposed_by", "")
        if exposed_by not in ("", *KINDS):
            raise ValueError(f"rows with {exposed_by!r}")
        return replace(model, losses=losses, constants=constants, exposed_by=exposed_by).linked
