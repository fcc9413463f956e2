"""What a fitted regression is, where its parameters left it open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from streamkern.kernels import Kernel, kernel_from


@dataclass(frozen=True)
class Settled:
    """What the sums of a regression were made by, and what was chosen and found with them."""

    kernel: Kernel  # with its length scale resolved
    feature_map: str | None  # its family
    scale: str | None  # of the inputs; None in files of before there was a choice
    precision: Any
    alpha: Any  # for every target where they differ
    cv_rmse: Any  # of every target; None where no error is cross-validated
    n_components: int  # features that have coefficients
    sparse_of: int | None = None  # features before the selection of some
    by_gradients: bool = False  # solved by conjugate gradients
    searched: bool = False  # kernel and map are those of a search
    rounding_share: float = 0.0  # of features, in a target's squared error; not in files
    # Of which integers stand for weights, where their sums tell the errors.
    weight_unit: float | None = None

    @classmethod
    def restored(cls, report: Mapping[str, Any]) -> Self:
        """Return what the report in a file says."""
        by_sums = report.get("errors_from") == "moments"
        return cls(
            kernel_from(report["kernel"], report["kernel_parameters"]),
            *(report.get("feature_map"), report.get("scale"), report["precision"], report["alpha"]),
            *(report.get("cv_rmse"), report["n_components"], report.get("sparse_of")),
            by_gradients=report.get("solver") == "cg",
            searched="tuning" in report,
            weight_unit=report.get("weight_unit") if by_sums else None,
        )
