"""A fitted ridge regression: predictions, their deviations and errors, and its file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Floats, Group
from streamkern.engine.scheduler import compute, delayed, is_delayed, scatter
from streamkern.errors import ModelFileError
from streamkern.features import FeatureMap
from streamkern.features.metric import metric_of_map
from streamkern.kernels import Kernel, kernel_from
from streamkern.models import scoring
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_model import (
    FittedModel,
    described_parameters,
    predictor_arrays,
    restored_equations,
    restored_intervals,
    restored_parameters,
    through,
)
from streamkern.models.prediction import (
    applied,
    by_rows,
    features_of,
    predicted_rows,
    predicted_shards,
)
from streamkern.models.prediction_files import predict_to_hdf5
from streamkern.models.report_rows import error_tables
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import Parameters
from streamkern.predict.deviation import Deviation
from streamkern.predict.evaluation import FoldPredictors, PredictionErrors
from streamkern.predict.intervals import Interval, Intervals
from streamkern.predict.predictor import Predictor
from streamkern.predict.stored_predictor import restored_predictor
from streamkern.predict.support import MOST_INPUTS, SupportRows
from streamkern.solve import NormalEquations
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import Source, as_source
from streamkern.sources.arrays import as_rows
from streamkern.sources.columns import Columns
from streamkern.sources.containers import is_dask_array
from streamkern.sources.target_encoding import NUMBERS, TargetEncoding
from streamkern.storage.codec import MODEL, map_card

# Bytes of moments that a fit keeps though nobody asked for them.
_MOST_GROWING = 64 << 20


@dataclass(frozen=True)
class Outcome:
    """What the sums of a regression were made by, and what was chosen and found with them."""

    kernel: Kernel  # with its length scale resolved
    feature_map: str | None  # its family
    scale: str | None  # of the inputs; None in files of before there was a choice
    precision: Any
    alpha: Any  # for every target where they differ
    cv_rmse: Any  # of every target; None where no error is cross-validated
    n_components: int  # features that have coefficients
    sparse_of: int | None = None  # features before the selection of some
    by_gradients: bool = False  # solved by conjugate gradients
    searched: bool = False  # kernel and map are those of a search
    rounding_share: float = 0.0  # of features, in a target's squared error; not in files
    # Of which integers stand for weights, where their sums tell the errors.
    weight_unit: float | None = None


@dataclass(frozen=True, repr=False)
class FittedRidge(FittedModel):
    file_kind = MODEL
    estimator = "RandomFeatureRidge"

    parameters: Parameters
    predictor: Predictor
    report: FitReport
    columns: Columns
    outcome: Outcome
    equations: NormalEquations | None = None  # of all rows; not of a model that was saved compact
    penalty_curve: PenaltyCurve | None = None  # not of a model that was loaded
    moments: DataMoments | None = None  # of the rows, where they are kept
    size: int | None = None  # the leading features of the moments that are solved for
    # Small ones of a fit, for `partial_fit` alone: they are in no copy and in no file.
    growing: DataMoments | None = None
    support_rows: SupportRows | None = None  # where there is a sample of dense rows
    intervals: Intervals | None = None  # of a fit to rows that held some out
    # What predicts rows without their fold, of losses that keep no moments; in no model file.
    unseen: FoldPredictors | None = None

    encoding: ClassVar[TargetEncoding] = NUMBERS
    deciding: ClassVar[dict[str, Any]] = {}  # options that decide what rows become, beside these
    n_features = through("feature_map.n_features")
    kernel = through("outcome.kernel", "The kernel, with its length scale resolved.")
    alpha = through("outcome.alpha", "The penalty, given or chosen, a float or a list of q.")

    def estimator_parameters(self) -> dict[str, Any]:
        return self.parameters.values()

    @property
    def ridge(self) -> Self:
        """The regression itself, as classifiers have one."""
        return self

    @property
    def feature_map(self) -> FeatureMap:
        """From raw rows to features, standardisation included."""
        return self.predictor.feature_map

    @property
    def coef(self) -> Floats:
        """The coefficients, (D,) or (D, q)."""
        return self.predictor.coef[:, 0] if self.predictor.flat else self.predictor.coef

    @property
    def intercept(self) -> Any:
        """The intercept, a float or (q,)."""
        predictor = self.predictor
        return float(predictor.intercept[0]) if predictor.flat else predictor.intercept

    @property
    def metric(self) -> Floats:
        """The matrix M (p, p) of squared distances of standardised rows; 0 where left out."""
        return metric_of_map(self.feature_map)

    @cached_property
    def target_spread(self) -> tuple[Floats, Floats]:
        """Means (q,) and deviations (q,) of targets, about zero where there is no intercept."""
        moments = self.normal_equations.moments(self.predictor.coef, self.predictor.intercept)
        return moments.target_mean, np.sqrt(moments.target / moments.weight)

    @property
    def target_unit(self) -> Floats:
        """The deviation of every target, or 1 of one that is constant, (q,)."""
        deviation = self.target_spread[1]
        return np.where(deviation > 0, deviation, 1.0)

    @property
    def normal_equations(self) -> NormalEquations:
        """The normal equations, or ModelFileError if they were not saved."""
        if self.equations is None:
            raise ModelFileError(
                "standard deviations, leverages and sparse models need the normal equations, but "
                "the model was saved without them; fit it again, and save it with compact=False."
            )
        return self.equations

    def predict(self, X: Any, *, return_std: bool = False, interval: float | None = None) -> Any:
        """Predict rows, with standard deviations and intervals of new targets if asked for."""
        self.check_inputs(X)
        wanted = None if interval is None else self.interval(interval)
        if wanted is None and not return_std:
            return predicted_rows(self.predictor, X)
        if isinstance(X, Source):
            deviation = self.deviation_task() if return_std else None
            shards = predicted_shards(self.predictor, X, deviation, interval=wanted)
            parts = [made for _, made in shards]
            made = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            ends = [made.pop(name) for name in ("y_lower", "y_upper") if name in made]
            return (*made.values(), *([np.stack(ends, axis=-1)] if ends else []))
        rows = as_rows(X)
        found = [predicted_rows(self.predictor, rows)]
        if return_std:
            n_columns = None if self.predictor.flat else self.predictor.n_targets
            function = partial(applied, method="standard_deviations")
            known = self.deviation_task() if is_dask_array(rows) else self._deviation
            found.append(by_rows(function, rows, n_columns, model=known))
        if wanted is not None:
            q, flat = self.predictor.n_targets, self.predictor.flat
            both = by_rows(partial(applied, method="predict"), rows, 2 * q, model=wanted)
            found.append(both if flat else np.stack([both[:, :q], both[:, q:]], axis=-1))
        return tuple(found)

    def interval(self, level: float) -> Interval:
        """Return intervals that hold a share of new targets, or raise ModelFileError."""
        if self.intervals is None:
            raise ModelFileError(
                "intervals need errors on held-out rows, which a fit of a regression to rows keeps "
                "by itself, but not conjugate gradients, moments, rows that came or went, a trend, "
                "more than 4,096 features without folds, or files of before; fit the rows again, "
                "with alpha 'cv' and solver 'direct' (--alpha cv --solver direct)."
            )
        return self.intervals.at(level, self.predictor)

    @property
    def known_support(self) -> SupportRows:
        """The rows that support is told by, or ModelFileError if there are none."""
        if self.support_rows is None:
            raise ModelFileError(
                f"support needs sampled rows, which models of earlier versions, of moments, of "
                f"sparse rows or of more than {MOST_INPUTS:,} inputs do not have; fit it again."
            )
        return self.support_rows

    def support(self, X: Any) -> Any:
        """Return how well the rows of the fit cover the places of rows, (n,), from 0 to 1."""
        self.check_inputs(X)
        known = self.known_support
        if isinstance(X, Source):
            made = predicted_shards(self.predictor, X, support=known)
            return np.concatenate([each["support"] for _, each in made])
        rows = as_rows(X)
        self.predictor.check(rows.shape)
        return by_rows(partial(applied, method="support"), rows, None, model=known)

    @cached_property
    def _deviation(self) -> Deviation:
        """As costly as a solve, and as lasting."""
        return compute(self.deviation_task())

    def deviation_task(self) -> Any:
        """Return a task of what tells the standard deviations of new targets."""
        arguments = self.feature_map, scatter(self.normal_equations), self.predictor.flat
        return delayed(Deviation.of, *arguments, name="deviation")

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again, and moments that are not in this process."""
        state = {**vars(self)}
        for name in ("_deviation", "target_spread"):
            state.pop(name, None)
        if self.moments is not None and is_delayed(self.moments.folds):
            state["moments"] = None
        return state | {"growing": None}

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p), lazily of a Dask collection."""
        self.check_inputs(X)
        return features_of(self.feature_map, X)

    def source(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        as_fitted: bool = False,  # noqa: ARG002
    ) -> Source:
        """Return rows with targets as predictions are, and weights, in the fit or of the rows."""
        return as_source(X, y, sample_weight)

    def measure(self, *, as_fitted: bool = False) -> PredictionErrors:  # noqa: ARG002
        """Return the errors of no predictions yet, of rows that weigh as in the fit or not."""
        return PredictionErrors(self.predictor.n_targets)

    def evaluate(self, source: Source) -> dict[str, Any]:
        self.check_rows(source)
        skip = self.parameters.skips_bad_rows
        how: Any = {"support": self.support_rows, "intervals": self.intervals}
        return scoring.evaluate(self.predictor, source, skip_bad_rows=skip, **how)

    error_tables = staticmethod(error_tables)
    gradient_outer_product = scoring.gradient_outer_product
    diagnose = scoring.diagnose

    def predict_to_hdf5(
        self,
        source: Source,
        path: str | Path,
        *,
        return_std: bool = False,
        interval: float | None = None,
        force: bool = False,
    ) -> int:
        """Predict the rows of a source into a new HDF5 file, and return how many are NaN."""
        self.check_inputs(source)
        write, *_ = self.prediction_writer({"std": return_std, "interval": interval})
        return write(source, path, skip_bad_rows=self.parameters.skips_bad_rows, force=force)

    def prediction_writer(
        self, options: Mapping[str, Any]
    ) -> tuple[Callable[..., int], list[str], str]:
        """Return what writes what is asked for beside y_pred, as what, and what bad rows become."""
        std, level, support = options["std"], options["interval"], bool(options.get("support"))
        known = self.known_support if support else self.support_rows
        how: Any = {"support": known, "with_support": support}
        how["deviation"] = self.deviation_task() if std else None
        how["interval"] = None if level is None else self.interval(level)
        datasets = ["y_std"] * std + ["support"] * support
        datasets += ["y_lower", "y_upper"] * (level is not None)
        return partial(predict_to_hdf5, self.predictor, **how), datasets, "NaN"

    def stored(self, *, compact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        predictor, arrays = self.predictor, predictor_arrays(self.predictor)
        options, kernel = described_parameters(self.parameters)
        card = {"options": options, "option_kernel": kernel, "flat": predictor.flat}
        if self.equations is not None and not compact:
            found = vars(self.equations) | {"intercept": int(self.equations.intercept)}
            if (leading := found.pop("leading")) is not None:
                found["leading"] = leading._asdict()
            arrays["equations"] = found
        if self.support_rows is not None:
            arrays["support"] = self.support_rows.arrays()
        if self.intervals is not None:
            linear, own = self.intervals.features, vars(self.intervals)
            features = {"coef": linear.coef, "intercept": linear.intercept}
            arrays["intervals"] = own | {"features": features}
        return card | map_card(predictor.feature_map, predictor.precision), arrays

    @classmethod
    def restored(cls, file: Group, card: dict[str, Any], *, with_equations: bool) -> Self:
        predictor, equations = restored_predictor(file, card, flat=card["flat"]), None
        if with_equations and "equations" in file:
            equations = restored_equations(file["equations"], predictor)
        kernel, feature_map = card["option_kernel"], predictor.feature_map
        parameters = restored_parameters(card["options"], kernel, feature_map)
        report, columns = card["report"], Columns.restored(card, feature_map.n_features)
        predictor = replace(predictor, limits=parameters.target_range)
        by_sums = report.get("errors_from") == "moments"
        outcome = Outcome(
            kernel_from(report["kernel"], report["kernel_parameters"]),
            *(report.get("feature_map"), report.get("scale"), report["precision"]),
            *(report["alpha"], report.get("cv_rmse"), report["n_components"]),
            sparse_of=report.get("sparse_of"),
            by_gradients=report.get("solver") == "cg",
            searched="tuning" in report,
            weight_unit=report.get("weight_unit") if by_sums else None,
        )
        model = cls(parameters, predictor, report, columns, outcome, equations)
        if group := file.get("intervals"):
            model = replace(model, intervals=restored_intervals(group, predictor))
        if group := file.get("support"):
            known = SupportRows.restore(group, feature_map, model.kernel)
            model = replace(model, support_rows=known)
        return model

    def without_moments(self) -> Self:
        """Return the model without its moments, but for what `partial_fit` goes on from."""
        moments = self.moments
        if moments is None or moments.completion is not None or moments.nbytes > _MOST_GROWING:
            return replace(self, moments=None, unseen=None)
        return replace(self, moments=None, growing=moments.gathered())
