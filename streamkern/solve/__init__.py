"""Ridge regression on the D x D system: one penalty by Cholesky, all of them by eigenvalues."""

from streamkern.solve.cholesky import Cholesky, inverting_bytes
from streamkern.solve.eigendecomposition import decomposed, decomposition_bytes
from streamkern.solve.ridge import checked_alpha, solve_each, solve_ridge
from streamkern.solve.solution import (
    NormalEquations,
    RidgeSolution,
    kept_gram,
    precision_floor,
    relative_rounding,
    rounding_variance,
    rss_rounding,
)
from streamkern.solve.spectrum import Eigenbasis, Spectrum

__all__ = [
    "Cholesky",
    "Eigenbasis",
    "NormalEquations",
    "RidgeSolution",
    "Spectrum",
    "checked_alpha",
    "decomposed",
    "decomposition_bytes",
    "inverting_bytes",
    "kept_gram",
    "precision_floor",
    "relative_rounding",
    "rounding_variance",
    "rss_rounding",
    "solve_each",
    "solve_ridge",
]
