"""What a report has of a trend."""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.features import compress, trended
from streamkern.models.report_facts import as_stored
from streamkern.parameters.fit_report import FitReport
from streamkern.predict.deviation import roots
from streamkern.predict.predictor import Predictor
from streamkern.solve import NormalEquations
from streamkern.sources.columns import Columns


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
