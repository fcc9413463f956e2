"""What moments in a subspace of the features leave out: degrees of freedom, and variances."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.gradients.preconditioner import BlockPreconditioner
from streamkern.solve.cholesky import Cholesky
from streamkern.solve.eigendecomposition import decomposed
from streamkern.solve.solution import LeadingEquations, NormalEquations
from streamkern.solvers.base import Completion

if TYPE_CHECKING:
    from streamkern.solvers.fold_solution import Solved


class Remainder(NamedTuple):
    """What a subspace leaves of the eigenvalues of a Gram matrix: their sum, and of squares."""

    total: float = 0.0
    squares: float = 0.0

    def effective_dof(self, alpha: float) -> float:
        """Return an estimate of the sum of d / (d + alpha): as if all d were their mean by size.

        Golub and Meurant (2010), "Matrices, moments and quadrature", chapter 6: one node.
        """
        return self.total / (self.squares / self.total + alpha) if self.total > 0.0 else 0.0

    def completed(self, equations: NormalEquations) -> NormalEquations:
        """Return equations in the subspace with the degrees of freedom of all features."""
        more = np.array([self.effective_dof(alpha) for alpha in equations.alphas])
        return replace(equations, effective_dof=equations.effective_dof + more)


class LeadingPart(NamedTuple):
    """The leading features of many, with those of the others' sums that are known.

    It is what preconditions the system: as if nothing was between the leading features and the
    others, and between these.
    """

    equations: LeadingEquations
    beyond: Floats  # sums of squares of each of the other features
    n_rows: int
    preconditioner: BlockPreconditioner

    def effective_dof(self, alpha: float) -> float:
        """Return a bound on tr (G + alpha I)^-1 G: that of its blocks, by concavity.

        It is no more than that of as many equal eigenvalues as there are rows.
        """
        gram = self.equations.gram.astype(np.float64)
        try:
            kept = alpha * Cholesky.of_shifted(gram, alpha).inverse_trace()
        except np.linalg.LinAlgError:  # rounding makes the block indefinite
            kept = float((alpha / (np.maximum(decomposed(gram.dense())[0], 0.0) + alpha)).sum())
        found = gram.order - kept + float((self.beyond / (self.beyond + alpha)).sum())
        trace = float(gram.diagonal().sum() + self.beyond.sum())
        return min(found, trace / (trace / self.n_rows + alpha))

    def completed(self, equations: NormalEquations) -> NormalEquations:
        """Return equations in the subspace with that bound, and those of the leading features."""
        alphas, places = np.unique(
            np.maximum(equations.alphas, equations.floor), return_inverse=True
        )
        dof = np.array([self.effective_dof(float(alpha)) for alpha in alphas])[places]
        return replace(equations, leading=self.equations, effective_dof=dof + equations.intercept)


@dataclass(frozen=True)
class SubspaceCompletion(Completion):
    """What is added to a solution in a subspace of the features."""

    rest: Remainder | LeadingPart

    def completed(self, solved: "Solved") -> "Solved":
        """Return a solution in the subspace with what the moments there do not tell of it."""
        equations = self.rest.completed(solved.equations)
        dof = equations.effective_dof
        own = dof if np.ndim(solved.solution.effective_dof) else float(dof[0])
        solution = replace(solved.solution, effective_dof=own)
        sizes = tuple(replace(each, n_components=self.n_components) for each in solved.sizes)
        return replace(solved, solution=solution, equations=equations, sizes=sizes)
