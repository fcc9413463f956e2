"""What sums in a subspace of the features leave out: degrees of freedom, and variances."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.gradients.preconditioner import BlockPreconditioner
from streamkern.solve.cholesky import Cholesky
from streamkern.solve.eigendecomposition import decomposed
from streamkern.solve.solution import LeadingEquations, NormalEquations, RidgeSolution


class Remainder(NamedTuple):
    """What a subspace leaves of the eigenvalues of a Gram matrix: their sum, and of squares."""

    total: float = 0.0
    squares: float = 0.0

    def effective_dof(self, alpha: float) -> float:
        """Return an estimate of the sum of d / (d + alpha): as if all d were their mean by size.

        Golub and Meurant (2010), "Matrices, moments and quadrature", chapter 6: one node.
        """
        return self.total / (self.squares / self.total + alpha) if self.total > 0.0 else 0.0

    def completed(
        self, solution: RidgeSolution, equations: NormalEquations
    ) -> tuple[RidgeSolution, NormalEquations]:
        """Return a solution and its equations with the degrees of freedom of all features."""
        inside = equations.effective_dof
        dof = [d + self.effective_dof(a) for d, a in zip(inside, equations.alphas, strict=True)]
        return with_dof(solution, equations, np.array(dof))


class LeadingPart(NamedTuple):
    """The leading features of many, with those of the others' sums that are known.

    It is what preconditions the system: as if nothing was between the leading features and the
    others, and between these.
    """

    equations: LeadingEquations
    beyond: Floats  # sums of squares of each of the other features
    n_rows: int

    @property
    def preconditioner(self) -> BlockPreconditioner:
        return BlockPreconditioner(self.equations.gram, self.beyond)

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

    def completed(
        self, solution: RidgeSolution, equations: NormalEquations
    ) -> tuple[RidgeSolution, NormalEquations]:
        """Return a solution and its equations with that bound and those of the leading features."""
        alphas, places = np.unique(
            np.maximum(equations.alphas, equations.floor), return_inverse=True
        )
        dof = np.array([self.effective_dof(float(alpha)) for alpha in alphas])[places]
        equations = replace(equations, leading=self.equations)
        return with_dof(solution, equations, dof + equations.intercept)


def with_dof(
    solution: RidgeSolution, equations: NormalEquations, dof: Floats
) -> tuple[RidgeSolution, NormalEquations]:
    """Return both with other degrees of freedom, (q,)."""
    own = dof if np.ndim(solution.effective_dof) else float(dof[0])
    return replace(solution, effective_dof=own), replace(equations, effective_dof=dof)
