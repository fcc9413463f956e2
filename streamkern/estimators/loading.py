"""Fitted models of any kind from files, and templates from models, moments and files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkern.errors import ParameterError
from streamkern.features import FAMILIES, Cosines, uncombined
from streamkern.features.metric import metric_in
from streamkern.kernels import kernel_from
from streamkern.models.data_moments import DataMoments, moments_header
from streamkern.models.fitted_model import FittedModel
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.parameters import AUTO
from streamkern.parameters.template import Template
from streamkern.registry import fitted_kind
from streamkern.storage.codec import MOMENTS, kind_of, opened_card


def read_fitted(
    path: str | Path, kind: type[FittedModel] | None = None, *, with_equations: bool = True
) -> tuple[Any, dict[str, Any]]:
    """Read a fitted model and its card, of one kind of file or, by default, of any."""
    held = kind_of(path)
    kind = kind or (fitted_kind(held.format) if held else None) or FittedRidge
    with opened_card(path, kind.file_kind) as (file, card):
        if kind is FittedRidge:
            kind = fitted_kind(str(card.get("kind"))) or kind
        model = kind.restored(file, card, with_equations=with_equations)
        kernel_from(card["report"]["kernel"], card["report"]["kernel_parameters"])  # or damage
        return model, card


def load_fitted(path: str | Path, *needs: str, with_equations: bool = True) -> Any:
    """Read a fitted model, or raise ModelFileError unless its kind has what is needed of it."""
    held = kind_of(path)
    known = (fitted_kind(held.format) if held else None) or FittedRidge
    kind = None if all(getattr(known, each, False) for each in needs) else FittedRidge
    return read_fitted(path, kind, with_equations=with_equations)[0]


def fitted_of(model: Any) -> FittedModel:
    """Return the fitted model that an estimator holds, or the model itself."""
    return getattr(model, "__streamkern_model__", model)


def fitted_model(model: Any, what: str) -> Any:
    """Return the fitted regression or classifier that an estimator holds, or ParameterError."""
    fitted = fitted_of(model)
    if not isinstance(getattr(fitted, "ridge", None), FittedRidge):
        raise ParameterError(
            f"{what} made of a fitted RandomFeatureRidge or RandomFeatureClassifier, not of "
            f"{model!r}; fit it first."
        )
    return fitted


def template_of(like: Any) -> Template | None:
    """Return what moments, a fitted model, an estimator, or a path of these are to other rows."""
    if like is None or isinstance(like, Template):
        return like
    if isinstance(like, (str, Path)):
        like = (
            moments_header(like) if kind_of(like) is MOMENTS else read_fitted(like, FittedRidge)[0]
        )
    if isinstance(like, DataMoments):
        return like.template()
    whole: Any = fitted_of(like)
    fitted = getattr(whole, "ridge", whole)
    if not isinstance(fitted, FittedRidge):
        raise ParameterError(
            f"like must be moments, a fitted model, or the path of either, not {like!r}; give one "
            f"of these."
        )
    feature_map, outcome = uncombined(fitted.feature_map), fitted.outcome
    if outcome.by_gradients and outcome.n_components != feature_map.n_components:
        raise ParameterError(
            "like is a model of landmarks that conjugate gradients solved, which keeps few "
            "directions of their features; give one of solver 'direct' (--solver direct)."
        )
    # Of a search, kernel and map are what was chosen.
    is_chosen = outcome.searched or fitted.parameters.kernel == AUTO
    searched = fitted.kernel if is_chosen else None
    options = fitted.parameters.map_options(outcome.feature_map, searched)
    metric = options.metric
    if metric is None:  # but one may have been chosen
        metric = metric_in(feature_map)
    paired, name = options.paired, options.feature_map
    if isinstance(getattr(feature_map, "inner", None), Cosines):
        # What was chosen from pairs has no pairs any more, and that of a grid no grid.
        paired, name = False, name if FAMILIES[name].has_phases else "iid"
    options = replace(
        options,
        n_components=feature_map.n_components,
        paired=paired,
        feature_map=name,
        precision=outcome.precision,
        metric=metric,
        scale=options.scale if outcome.scale is None else outcome.scale,
    )
    own: Any = feature_map  # standardised, or Template refuses it
    known, loss = (fitted.kernel, fitted.columns), getattr(whole, "loss", "squared")
    start = None if loss == "squared" else fitted.predictor
    return Template(options, own, *known, encoding=whole.encoding, loss=loss, start=start)


def rows_of(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """Return rows as the model takes them: an estimator checks tables, and encodes them."""
    taken = getattr(model, "__streamkern_rows__", None)
    return (X, y, sample_weight) if taken is None else taken(X, y, sample_weight)
