"""Ridge regression on the D x D system: one penalty by Cholesky, all of them by eigenvalues."""

from streamkern.solve.cholesky import Cholesky
from streamkern.solve.decomposition import decomposed
from streamkern.solve.equations import NormalEquations, kept_gram
from streamkern.solve.ridge import checked_alpha, solve_ridge
from streamkern.solve.solution import RidgeSolution, precision_floor
from streamkern.solve.spectrum import Eigenbasis, Spectrum

__all__ = [
    "Cholesky",
    "Eigenbasis",
    "NormalEquations",
    "RidgeSolution",
    "Spectrum",
    "checked_alpha",
    "decomposed",
    "kept_gram",
    "precision_floor",
    "solve_ridge",
]
