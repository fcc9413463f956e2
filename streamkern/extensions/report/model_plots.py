"""Pictures of a fitted model on matplotlib Axes, as `model.plot` gives them."""

from typing import Any

import numpy as np

from streamkern._docstrings import described
from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.estimators.loading import fitted_model, rows_of
from streamkern.extensions.report import choice_figures, input_effects
from streamkern.extensions.report.class_figures import probability_figure
from streamkern.extensions.report.importance import permutation_importance
from streamkern.extensions.report.numbers import counted
from streamkern.extensions.report.pair_counts import MOST_TARGETS, pair_counts
from streamkern.extensions.report.pictures import Figure
from streamkern.extensions.report.prediction_figures import pairs_figures
from streamkern.models.scoring import scored
from streamkern.predict.evaluation import Evaluation, Measure
from streamkern.sources import Source, as_source
from streamkern.statistics import RowSample

# Rows that partial dependence is found on.
_SAMPLE_ROWS = 1024


_METHODS = """
X, y, sample_weight : as of `evaluate`
    Rows (n, p), targets and weights.
column : int or str
    Of the table, by its name; or an input, by name or number.
target : int
    Its number, from 0.
ax : matplotlib Axes, optional
    By default a new one of pyplot.
predicted(), penalty(), sizes(), inputs(), partial_dependence() : matplotlib Axes
"""


@described(_METHODS, partial_dependence="X : as of `evaluate`\n    Rows (n, p).")
class ModelPlots:
    """Pictures of a fitted model, those of its report: `model.plot` is one of these.

    Rows are read once.  ParameterError says what is missing for a picture.

    Parameters
    ----------
    model : RandomFeatureRidge or RandomFeatureClassifier
        Fitted, or loaded from a file.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"ModelPlots({self._model!r})"

    def predicted(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target: int = 0, ax: Any = None
    ) -> Any:
        """Draw predicted against actual values of a target, as counts of rows.

        Of a classifier: the share of rows that are of a class over the probability that they get.
        """
        model, is_classifier = self._fitted, hasattr(self._fitted, "rule")
        names, ridge = input_effects.shown_targets(model), model.ridge
        most = min(len(names), MOST_TARGETS)
        if not (is_classifier or 0 <= target < most):
            raise ParameterError(f"target must be from 0 to {most - 1}, not {target}; choose one.")
        errors = np.atleast_1d(ridge.report["cv_rmse"] or ridge.report["train_rmse"])
        measure: Measure = model.measure() if is_classifier else pair_counts(ridge, errors)
        given = rows_of(self._model, X, y, sample_weight)
        n_rows, found = self._read(model.source(*given), Evaluation(ridge.predictor, measure))
        if is_classifier:
            return _drawn(probability_figure(found.measures[0]), ax)
        return _drawn(pairs_figures(found.measures[0], n_rows, target, names[target])[0], ax)

    def penalty(self, *, ax: Any = None) -> Any:
        """Draw what the penalty alpha was chosen by, over the penalties that were tried."""
        model = self._fitted.ridge
        curve = choice_figures.penalty_curve(model)
        if curve is None:
            if model.report.get("alpha_curve"):
                model.normal_equations  # noqa: B018  or why there is none
            raise ParameterError(
                "the penalty of this model was given, so there is no curve that it was chosen "
                "from; fit with alpha='cv'."
            )
        return _drawn(
            choice_figures.penalty_figure(curve, input_effects.shown_targets(self._fitted)), ax
        )

    def sizes(self, *, ax: Any = None) -> Any:
        """Draw the cross-validated error over the number of features D."""
        model = self._fitted.ridge
        sparse = choice_figures.sparsity_curve(model)
        curve = sparse or choice_figures.components_curve(model)
        if curve is None:
            raise ParameterError(
                "the error over the number of features is not known of this model; fit with "
                "alpha='cv' and keep_moments=True, or n_components='auto'."
            )
        return _drawn(choice_figures.sizes_figure(curve, is_sparse=sparse is not None), ax)

    def inputs(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, ax: Any = None
    ) -> Any:
        """Draw the permutation importance of each column of the table.

        Without rows, the weights of inputs in the metric, or one over their length scales.
        """
        model = self._fitted
        if X is not None:
            found = permutation_importance(self._model, X, y, sample_weight)
            rows = counted(found.n_samples, "row")
            return _drawn(input_effects.importance_figure(model, found.importances_mean, rows), ax)
        figure = input_effects.weights_figure(model.ridge)
        if figure is None:
            raise ParameterError(
                "the kernel weighs all inputs alike, so which matter is to be seen on rows; give "
                "some: model.plot.inputs(X, y)."
            )
        return _drawn(figure, ax)

    def partial_dependence(self, X: Any, column: int | str, *, ax: Any = None) -> Any:
        """Draw mean predictions of rows over the values of a column.

        References
        ----------
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
        sample = self._read(as_source(*rows_of(self._model, X)), RowSample(_SAMPLE_ROWS))[1]
        return _drawn(input_effects.dependence_figure(model, sample, known[column]), ax)

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


def _drawn(figure: Figure, ax: Any) -> Any:
    """Draw a figure on Axes, new ones of pyplot by default, with its title, and return them."""
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    figure.draw(ax)
    ax.set_title(figure.title, parse_math=False)
    return ax
