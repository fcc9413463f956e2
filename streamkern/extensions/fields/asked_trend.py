"""The trend that is asked for, by columns and words: its checks, its map, and what is reported."""

from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats, Source
from streamkern.errors import ParameterError
from streamkern.errors.checks import is_integer
from streamkern.errors.formatting import listed
from streamkern.extensions.fields.trend import DEGREES, Trend, Trended
from streamkern.features import FeatureMap, compress, trended
from streamkern.kernels import Kernel
from streamkern.parameters.fit_options import OF_DISTANCES, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.predict.deviation import roots
from streamkern.predict.evaluation import as_stored
from streamkern.predict.predictor import Predictor
from streamkern.solve import NormalEquations
from streamkern.sources.columns import MOST_NAMED, Columns, columns_of

Asked = tuple[int | str, ...]


def checked_trend(trend: Any) -> Asked:
    """Return what is asked for, from text with commas or a list."""
    parts: Any = trend.split(",") if isinstance(trend, str) else np.atleast_1d(np.array(trend, "O"))
    asked = tuple(each.strip() if isinstance(each, str) else each for each in parts)
    right = (each if isinstance(each, str) else is_integer(each, 0) for each in asked)
    if not asked or not all(right):
        raise ParameterError(
            f"a trend must be names or numbers of columns, 'linear' or 'quadratic', not {trend!r}; "
            f"give some, or leave the trend out."
        )
    return tuple(each if isinstance(each, str) else int(each) for each in asked)


def trend_of_source(asked: Asked, source: Source) -> Asked:
    """Return a trend with the numbers of columns in the place of their names."""
    names, p = columns_of(source).input_names or [], source.n_features
    places: dict[Any, int] = {name: j for j, name in enumerate(names)}
    found = list[int | str]()
    for each in asked:
        number = int(each) if isinstance(each, int) or each.isdecimal() else -1
        column = each if each in DEGREES else places.get(each, number)
        if each in DEGREES and each in places:
            raise ParameterError(
                f"{each!r} is a word of a trend, and a column of X too; give that another name."
            )
        if not (each in DEGREES or 0 <= int(column) < p):
            known = listed(names, MOST_NAMED) if names else f"0 to {p - 1}"
            raise ParameterError(
                f"a trend must be of columns of X, {known}, not {each!r}; name some of these."
            )
        if column in found:
            raise ParameterError(f"the trend has {each!r} twice; name every column once.")
        found.append(column)
    return tuple(found)


def check_trend(options: FitOptions) -> None:
    """Raise ParameterError unless a trend goes with the other options."""
    if options.is_identity or not options.is_field:
        raise ParameterError(
            f"a trend is beside a field, of the map 'grid' and a kernel of distances, not of "
            f"{options.feature_map!r} and {options.kernel.name!r}; take these (--map grid), or "
            f"leave the trend out: its columns are inputs as others."
        )
    if options.metric is not None or options.scale in ("auto", *OF_DISTANCES):
        raise ParameterError(
            f"a trend is of straight lines in inputs, which a metric would mix and scale "
            f"{options.scale!r} may bend; take scale 'standard' (--scale standard), and no metric."
        )


def check_columns(options: FitOptions, n_features: int) -> None:
    """Raise ParameterError unless a trend leaves some of p inputs, and features for waves."""
    n_covariates, k = n_features - options.n_coordinates(n_features), options.n_terms(n_features)
    if n_covariates >= n_features:
        raise ParameterError(
            f"a trend of {n_covariates} columns leaves no coordinates of a field among "
            f"{n_features} columns of X; name fewer, or take the map 'identity'."
        )
    if k >= options.n_components:
        raise ParameterError(
            f"n_components counts {k} terms of the trend and waves beside them, so it must be "
            f"more than {k}, not {options.n_components}; take 2048."
        )


def map_beside(
    options: FitOptions, kept: Array, rows: Floats, weights: Floats | None, ends: Floats | None
) -> tuple[FeatureMap, Kernel]:
    """Draw the map of options with a trend; parameters as of `FitOptions.map_for`."""
    asked: Any = options.trend
    trend = Trend.of(asked, kept)
    along, k, field = trend.along, len(trend.terms), kept[trend.along]
    # As among the columns that are coordinates.
    field = field - np.searchsorted(sorted(each for each in asked if each not in DEGREES), field)
    plain = replace(options, trend=None, n_components=options.n_components - k)
    ends = None if ends is None else ends[:, along]
    drawn, kernel = plain.map_for(field, rows[:, along], weights, ends)
    return (Trended.beside(drawn, trend, rows) if k else drawn), kernel


def trend_facts(predictor: Predictor, equations: NormalEquations, columns: Columns) -> FitReport:
    """Return the slopes of a trend, in units of the target by those of its inputs, with errors."""
    feature_map, coef = compress(predictor.feature_map, predictor.coef, alike=True)
    found: Any = trended(feature_map)
    standardizer: Any = feature_map.standardizer  # type: ignore[attr-defined]
    names = columns.named(standardizer.columns.tolist())
    centred = [f"({name} - mean)" for name in names]
    variances: Floats | None = None
    if equations.leading is not None or equations.gram.order == len(coef):  # else not known
        told = equations.of_leading()
        _, basis, weights = roots(told)
        leverages = np.square(basis[: found.n_terms], dtype=float) @ weights
        leverages = leverages * np.divide(told.alphas, equations.alphas)
        variances = equations.row_weight * leverages * equations.noise_variance
    units = [np.prod(standardizer.deviation[[*term]]) for term in found.trend.terms] * found.unit
    terms = []
    for j, term in enumerate(found.trend.terms):
        parts = [names[i] for i in term] if len(term) == 1 else [centred[i] for i in term]
        error = None if variances is None else np.sqrt(variances[j])
        facts = {"coefficient": coef[j], "deviation": error}
        shown = {
            name: None if each is None else as_stored(each / units[j], predictor.flat)
            for name, each in facts.items()
        }
        terms.append({"term": " * ".join(parts), **shown})
    return {"trend": terms}
