"""The average gradient outer product of a fitted function: which directions of the input matter."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.features import Standardizer, gradients
from streamkern.features.metric import standardizer_of
from streamkern.predict.predictor import Predictor
from streamkern.runtime.scratch import Scratch
from streamkern.sources import Block
from streamkern.statistics import Statistic, Work, total


class GradientOuterProduct(Statistic):
    """Outer products of a predictor's gradients, summed over rows and targets.

    sum_i s_i sum_k grad f_k(x_i) grad f_k(x_i)^T / u_k^2, with respect to what the standardizer
    makes of a row; u (q,) are units of targets, such as their deviations.
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models".
    Samarov (1993), "Exploring regression structure using nonparametric functional estimation".
    """

    predictor: Predictor
    target_unit: Floats | None = None
    weight: float = total()
    sums: Floats = total("standardizer.n_outputs", "standardizer.n_outputs")

    @property
    def mean(self) -> Floats:
        """M, (p', p'), of the standardised inputs that are kept, averaged over rows."""
        outer, A = self.sums / self.weight, self.standardizer.linear
        if A is None:
            return outer
        pulled: Floats = A.T @ outer @ A if A.ndim == 2 else outer * np.outer(A, A)
        return (pulled + pulled.T) / 2.0

    @property
    def work(self) -> Work:
        D, q = self.predictor.coef.shape
        dtype = "float32" if self.predictor.precision == "single" else "float64"
        return Work(4.0 * D * len(self.sums) * q, D, dtype)

    @property
    def standardizer(self) -> Standardizer:
        return standardizer_of(self.predictor.feature_map)

    @np.errstate(over="ignore", invalid="ignore")  # of rows that are refused after the pass
    def update(self, blocks: Iterable[Block]) -> None:
        whole: Any = self.predictor.feature_map
        standardizer, inner = self.standardizer, whole.inner
        scratch = self.scratch or Scratch()
        dtype = np.float32 if self.predictor.precision == "single" else np.float64
        # (phi / scale)^T coef, in units of the targets.
        unit = 1.0 if self.target_unit is None else self.target_unit
        coefs = self.predictor.coef * (whole.scale / unit)
        for block in blocks:
            whole.check(block.X.shape)
            rows = scratch.array("rows", (len(block), standardizer.n_outputs), dtype)
            standardizer.write(block.X, rows, scratch)
            weights = None if block.weights is None else np.sqrt(block.weights).astype(dtype)
            for coef in coefs.T:
                slopes = gradients(inner, rows, coef, scratch)
                if weights is not None:
                    slopes *= weights[:, None]
                self.sums += slopes.T @ slopes
            self.weight += len(block) if block.weights is None else float(block.weights.sum())
