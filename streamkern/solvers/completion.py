"""What is added to a solution after solving: nothing, but after conjugate gradients."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamkern.parameters.penalty_options import PenaltyOptions

if TYPE_CHECKING:
    from streamkern.solvers.fold_solution import Solved


@dataclass(frozen=True)
class Completion:
    """Nothing, but after conjugate gradients what the summed combinations of features leave out."""

    n_components: int | None = None  # D, where sums are of combinations of features
    penalty: PenaltyOptions | None = None  # how it is chosen from these sums
    rest: Any = None
    note: str = ""  # what to know of the solution

    @property
    def is_whole(self) -> bool:
        """Whether sums are of all features."""
        return self.n_components is None

    def penalty_of(self, given: PenaltyOptions) -> PenaltyOptions:
        """Return how the penalty is chosen."""
        return self.penalty or given

    def completed(self, solved: "Solved") -> "Solved":
        """Return a solution with what the sums do not tell of it."""
        if self.rest is None or self.n_components is None:
            return solved
        solution, equations = self.rest.completed(solved.solution, solved.equations)
        D: int = self.n_components
        sizes = tuple(replace(each, n_components=D) for each in solved.sizes)
        return replace(solved, solution=solution, equations=equations, sizes=sizes)


WHOLE = Completion()
