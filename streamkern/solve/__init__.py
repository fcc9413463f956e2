"""Ridge regression on the D x D system: one penalty by Cholesky, all of them by eigenvalues."""

from streamkern.solve.equations import NormalEquations
from streamkern.solve.ridge import checked_alpha, solve_ridge
from streamkern.solve.solution import RidgeSolution, precision_floor
from streamkern.solve.spectrum import Eigenbasis, Spectrum

__all__ = [
    "Eigenbasis",
    "NormalEquations",
    "RidgeSolution",
    "Spectrum",
    "checked_alpha",
    "precision_floor",
    "solve_ridge",
]
