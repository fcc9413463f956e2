"""What is added to a solution after solving: nothing, but after conjugate gradients."""

from typing import TYPE_CHECKING, ClassVar

from streamkern.parameters.penalty_options import PenaltyOptions

if TYPE_CHECKING:
    from streamkern.solvers.fold_solution import Solved


class Completion:
    """Of sums of all features: nothing."""

    is_whole: ClassVar[bool] = True
    n_components: int | None = None  # D, where sums are of combinations of features
    note: str = ""  # what to know of the solution

    def penalty_of(self, given: PenaltyOptions) -> PenaltyOptions:
        """Return how the penalty is chosen."""
        return given

    def completed(self, solved: "Solved") -> "Solved":
        """Return a solution with what the sums do not tell of it."""
        return solved


WHOLE = Completion()
