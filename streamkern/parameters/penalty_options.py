"""Checked options of the penalty.

What checks penalties is imported when a fit is told, not when options of commands are listed.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from streamkern._typing import Array
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from streamkern.solve.penalty_curve import PenaltyCurve


@dataclass(frozen=True)
class PenaltyOptions:
    """How the penalty is chosen, checked when it is made; fields are those of `Parameters`."""

    alpha: Any
    alphas: Any = None
    per_target: bool = False
    one_standard_error: bool = False

    def __post_init__(self) -> None:
        from streamkern.solve.penalty_grid import checked_grid, checked_penalty

        object.__setattr__(self, "alpha", checked_penalty(self.alpha))
        if self.alphas is not None:
            if not isinstance(self.alpha, str):
                raise ParameterError(
                    f"alphas are what to choose from, but alpha is {self.alpha!r} and says not "
                    f"how; take alpha 'cv', 'gcv', 'evidence' or 'loo', or leave alphas out."
                )
            object.__setattr__(self, "alphas", checked_grid(self.alphas))
        if self.per_target and self.is_fixed:
            raise ParameterError(
                f"one penalty for every target is a choice, but alpha is {self.alpha:g}; take "
                f"alpha 'cv', 'gcv', 'evidence', 'loo' or a grid, or leave per_target out."
            )
        if self.one_standard_error and not self.needs_folds:
            raise ParameterError(
                f"the one-standard-error rule needs folds, but alpha is {self.alpha!r}; take alpha "
                f"'cv' or a grid, or leave the rule out."
            )

    @property
    def is_fixed(self) -> bool:
        return isinstance(self.alpha, float)

    def guarded(self) -> Self:
        """Return the same choice guarded by its folds, if it is by these alone."""
        if not self.needs_folds:
            return self
        return replace(self, alpha="guarded", alphas=self.grid)

    def chosen(self, curve: "PenaltyCurve") -> Array:
        """Return the places of the chosen penalties on a curve of errors: one, or (q,)."""
        rule = {"per_target": self.per_target, "one_standard_error": self.one_standard_error}
        return curve.choose(**rule)

    @property
    def grid(self) -> tuple[float, ...] | None:
        """The penalties to choose from, None where they follow from G."""
        return self.alpha if isinstance(self.alpha, tuple) else self.alphas

    @property
    def reads_rows(self) -> bool:
        """Whether the choice takes another pass over the rows."""
        return bool(self.alpha == "loo")

    @property
    def n_loo_penalties(self) -> int:
        """How many penalties the leave-one-out pass tries; 0 if there is no such pass."""
        from streamkern.solve.penalty_grid import N_ALPHAS

        return len(self.grid or range(N_ALPHAS)) if self.reads_rows else 0

    def check_without_rows(self) -> None:
        if self.reads_rows:
            raise ParameterError(
                "leave-one-out reads the rows again, and moments do not have them; fit the rows, "
                "or take alpha 'cv', 'gcv' or 'evidence'."
            )

    @property
    def needs_folds(self) -> bool:
        return self.alpha in ("cv", "guarded") or isinstance(self.alpha, tuple)

    @property
    def is_guarded(self) -> bool:
        """Whether folds guard a choice by the error between neighbours."""
        return bool(self.alpha == "guarded")
