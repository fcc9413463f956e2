"""Kernel principal components: the directions of features in which rows vary most."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors.checks import checked_integer
from streamkern.features import FeatureMap
from streamkern.predict.predictor import Predictor, Uncached


@dataclass(frozen=True)
class PrincipalComponents(Uncached):
    """The directions of features in which rows vary most: kernel principal components.

    With G = V diag(d) V^T of the centred features, the components are the leading columns of V,
    their variances d / (N - 1), and a row becomes (phi(x) - phibar)^T V.
    """

    feature_map: FeatureMap
    mean: Floats
    components: Floats  # (K, D), orthonormal; in each the number of largest size is positive
    explained_variance: Floats  # (K,), descending
    total_variance: float  # of all D features
    weight: float  # N, of weights that are 1 in the mean where they are less
    precision: str = "single"

    @cached_property
    def projection(self) -> Predictor:
        """The function that takes rows (n, p) to their scores (n, K), as a predictor."""
        coef = np.ascontiguousarray(self.components.T)
        return Predictor(self.feature_map, coef, -self.mean @ coef, precision=self.precision)

    @property
    def explained_variance_ratio(self) -> Floats:
        return self.explained_variance / self.total_variance

    @property
    def singular_values(self) -> Floats:
        """The lengths (K,) of the columns of scores of all rows: sqrt((N - 1) variance)."""
        return np.sqrt(self.explained_variance * (self.weight - 1.0))


def checked_number(n_components: Any) -> int | float | None:
    """Return how many components to keep: a number, a share of the variance, or None for all."""
    if n_components is None:
        return None
    if isinstance(n_components, (float, np.floating)) and 0.0 < n_components < 1.0:
        return float(n_components)
    sentence = (
        "n_components must be a whole number of at least 1, a share of the variance between 0 and "
        "1, or None for all, not {!r}; give one of these."
    )
    return checked_integer(n_components, sentence, 1)
