"""Ridge regression on the D x D system: one penalty by Cholesky, all of them by eigenvalues."""

from streamkern.solve.cholesky import Cholesky as Cholesky
from streamkern.solve.cholesky import inverting_bytes as inverting_bytes
from streamkern.solve.eigendecomposition import decomposed as decomposed
from streamkern.solve.eigendecomposition import decomposition_bytes as decomposition_bytes
from streamkern.solve.ridge import solve_each as solve_each
from streamkern.solve.ridge import solve_ridge as solve_ridge
from streamkern.solve.solution import NormalEquations as NormalEquations
from streamkern.solve.solution import RidgeSolution as RidgeSolution
from streamkern.solve.solution import kept_gram as kept_gram
from streamkern.solve.solution import rounding_variance as rounding_variance
from streamkern.solve.solution import rss_rounding as rss_rounding
from streamkern.solve.spectrum import Eigenbasis as Eigenbasis
from streamkern.solve.spectrum import Spectrum as Spectrum
