"""What boosting takes as given."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.predict.ensemble import ALGORITHMS


@dataclass(frozen=True)
class BoostingOptions:
    """How rounds follow each other, checked when it is made.

    Parameters
    ----------
    n_estimators : int
        T, the most rounds there may be.
    algorithm : {'gentle', 'real', 'discrete'}
        How scores become votes.
    learning_rate : float
        What votes are multiplied by besides, above 0 and at most 1.

    Raises
    ------
    ParameterError
        If an option has a value that it cannot have.
    """

    n_estimators: int = 10
    algorithm: str = "gentle"
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        T: Any = self.n_estimators
        rate: Any = self.learning_rate
        if isinstance(T, bool) or not isinstance(T, (int, np.integer)) or T < 1:
            raise ParameterError(
                f"n_estimators must be a whole number of at least 1, not {T!r}; give how many "
                f"rounds there may be."
            )
        if self.algorithm not in ALGORITHMS:
            raise ParameterError(
                f"algorithm must be one of {', '.join(ALGORITHMS)}, not "
                f"{unknown(self.algorithm, ALGORITHMS)}; choose one of them."
            )
        if (
            isinstance(rate, bool)
            or not isinstance(rate, (int, float, np.number))
            or not 0 < rate <= 1
        ):
            raise ParameterError(
                f"learning_rate must be above 0 and at most 1, not {rate!r}; take 1 for full steps."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as plain JSON values."""
        return asdict(self)
