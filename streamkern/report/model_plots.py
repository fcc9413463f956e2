"""Pictures of a fitted model on matplotlib Axes, as `model.plot` gives them."""

from typing import Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.estimators.importance import permutation_importance
from streamkern.estimators.loading import fitted_model, rows_of
from streamkern.models.scoring import scored
from streamkern.predict.class_errors import ClassErrors
from streamkern.predict.evaluation import Evaluation, Measure
from streamkern.report import choice_figures, page_facts, validation_curves
from streamkern.report.class_figures import probability_figure
from streamkern.report.input_effects import importance_figure, weights_figure
from streamkern.report.numbers import counted
from streamkern.report.prediction_figures import pairs_figures
from streamkern.report.rendering import Figure
from streamkern.report.validation_pass import MOST_TARGETS, pair_counts
from streamkern.sources import Source, as_source
from streamkern.statistics import RowSample

# Rows that partial dependence is found on.
_SAMPLE_ROWS = 1024
# Of one picture of an overview, in inches.
_SIZE = (4.8, 3.6)


class ModelPlots:
    """Pictures of a fitted model, those of its report: `model.plot` is one of these.

    Rows are given as to `evaluate`, and read once.  Every method draws on `ax`, a matplotlib Axes,
    or on a new one of pyplot, and returns it.  ParameterError says what is missing for a picture.

    Parameters
    ----------
    model : RandomFeatureRidge or RandomFeatureClassifier
        Fitted, or loaded from a file.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"ModelPlots({self._model!r})"

    def __call__(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Draw all that is known of the model into one matplotlib Figure, and return that.

        With rows (n, p) and their targets, predictions and the inputs that matter are shown too.
        The Figure is none of pyplot's: a notebook shows it once, and `savefig` writes it.
        """
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  slow

        model, shown = self._fitted, []
        rows = X, y, sample_weight
        makers: list[Any] = [lambda: self._predicted(rows, 0)] if X is not None else []
        makers += [lambda: self._inputs(*rows), self._penalty, self._sizes]
        for make in makers:
            try:
                shown.append(make())
            except ParameterError as error:
                missing = error
        if not shown:
            raise missing
        across = min(len(shown), 2)
        down = -(-len(shown) // across)
        canvas = Canvas(figsize=(_SIZE[0] * across, _SIZE[1] * down + 0.3), layout="constrained")
        for j, each in enumerate(shown):
            _drawn(each, canvas.add_subplot(down, across, j + 1))
        canvas.suptitle(page_facts.lead(model.report), fontsize="medium", parse_math=False)
        return canvas

    def predicted(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target: int = 0, ax: Any = None
    ) -> Any:
        """Draw predicted against actual values of a target, as counts of rows.

        Of a classifier: the share of rows that are of a class over the probability that they get.
        """
        return _drawn(self._predicted((X, y, sample_weight), target), ax)

    def penalty(self, *, ax: Any = None) -> Any:
        """Draw what the penalty alpha was chosen by, over the penalties that were tried."""
        return _drawn(self._penalty(), ax)

    def sizes(self, *, ax: Any = None) -> Any:
        """Draw the cross-validated error over the number of features D."""
        return _drawn(self._sizes(), ax)

    def inputs(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, ax: Any = None
    ) -> Any:
        """Draw the permutation importance of each column of the table, on rows (n, p).

        Without rows, the weights of inputs in the metric, or one over their length scales.
        """
        return _drawn(self._inputs(X, y, sample_weight), ax)

    def partial_dependence(self, X: Any, column: int | str, *, ax: Any = None) -> Any:
        """Draw mean predictions of rows (n, p) over the values of a column of the table.

        It is given by its name, or as an input, by name or number.

        Friedman (2001), "Greedy function approximation: a gradient boosting machine".
        """
        model = self._fitted
        every = range(model.n_features)
        named = {name: [j] for j, name in enumerate(model.columns.named(every))}
        known: dict[Any, Any] = named | dict(model.columns.table) | {j: [j] for j in every}
        if column not in known:
            raise ParameterError(
                f"column must be the name of an input or its number, from 0 to {len(named) - 1}, "
                f"not {unknown(column, list(named))}; name one of the inputs."
            )
        return _drawn(page_facts.dependence_of(model, self._sampled(X), known[column]), ax)

    @property
    def _fitted(self) -> Any:
        return fitted_model(self._model, "a picture is")

    def _read(self, source: Source, statistic: Any) -> tuple[int, Any]:
        """Read rows once, and return how many they are and what the statistic holds."""
        model = self._fitted.ridge
        model.check_rows(source)
        cost = 8 * model.predictor.n_components, "plot", model.parameters.skips_bad_rows
        result, found, _ = scored(source, statistic, statistic, *cost)
        return result.n_rows, found

    def _sampled(self, X: Any) -> RowSample:
        source = as_source(*rows_of(self._model, X))
        sample: RowSample = self._read(source, RowSample(_SAMPLE_ROWS))[1]
        return sample

    def _predicted(self, rows: tuple[Any, Any, Any], target: int) -> Figure:
        model, is_classifier = self._fitted, hasattr(self._fitted, "rule")
        names, ridge = page_facts.shown_targets(model), model.ridge
        most = min(len(names), MOST_TARGETS)
        if not (is_classifier or 0 <= target < most):
            raise ParameterError(f"target must be from 0 to {most - 1}, not {target}; choose one.")
        errors = np.atleast_1d(ridge.report["cv_rmse"] or ridge.report["train_rmse"])
        measure: Measure = ClassErrors(model.rule) if is_classifier else pair_counts(ridge, errors)
        given = rows_of(self._model, *rows)
        source = model.labelled(*given) if is_classifier else as_source(*given)
        n_rows, found = self._read(source, Evaluation(ridge.predictor, measure))
        if is_classifier:
            return probability_figure(found.measures[0])
        return pairs_figures(found.measures[0], n_rows, target, names[target])[0]

    def _penalty(self) -> Figure:
        model = self._fitted.ridge
        curve = validation_curves.penalty_curve(model)
        if curve is None:
            if model.report.get("alpha_curve"):
                model.normal_equations  # noqa: B018  or why there is none
            raise ParameterError(
                "the penalty of this model was given, so there is no curve that it was chosen "
                "from; fit with alpha='cv'."
            )
        return choice_figures.penalty_figure(curve, page_facts.shown_targets(model))

    def _sizes(self) -> Figure:
        model = self._fitted.ridge
        sparse = validation_curves.sparsity_curve(model)
        curve = sparse or validation_curves.components_curve(model)
        if curve is None:
            raise ParameterError(
                "the error over the number of features is not known of this model; fit with "
                "alpha='cv' and keep_moments=True, or n_components='auto'."
            )
        return choice_figures.sizes_figure(curve, is_sparse=sparse is not None)

    def _inputs(self, X: Any, y: Any, sample_weight: Any) -> Figure:
        model = self._fitted
        if X is not None:
            found = permutation_importance(self._model, X, y, sample_weight)
            rows = counted(found.n_samples, "row")
            return importance_figure(model, found.importances_mean, rows)
        metric = page_facts.metric_facts(model.report, model.columns)
        known = metric["inputs"] if metric else page_facts.input_bars(model.ridge)[0]
        if not known:
            raise ParameterError(
                "the kernel weighs all inputs alike, so which matter is to be seen on rows; give "
                "some: model.plot.inputs(X, y)."
            )
        return weights_figure([(name, share) for name, _, _, share in known])


def _drawn(figure: Figure, ax: Any) -> Any:
    """Draw a figure on Axes, new ones of pyplot by default, with its title, and return them."""
    if ax is None:
        from matplotlib import pyplot as plt  # noqa: PLC0415  slow

        ax = plt.subplots(layout="constrained")[1]
    figure.draw(ax)
    ax.set_title(figure.title, parse_math=False)
    return ax
