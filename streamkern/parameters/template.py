"""What moments of more rows take over from others, so that the two go together."""

from dataclasses import dataclass, replace
from typing import Any

from streamkern.errors import DataError
from streamkern.errors.formatting import listed_apart
from streamkern.features import Standardized
from streamkern.features.metric import standardizer_of
from streamkern.kernels import Kernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.sources import Source
from streamkern.sources.columns import Columns, columns_of
from streamkern.sources.target_encoding import NUMBERS, TargetEncoding
from streamkern.statistics import FeatureSums


@dataclass(frozen=True)
class Template:
    """A map with its shifts, and the options that it was made by."""

    options: FitOptions
    feature_map: Standardized
    kernel: Kernel  # its length scale is resolved
    columns: Columns
    # Of no rows, with the shifts to take, which else follow from rows.
    empty: FeatureSums | None = None
    encoding: TargetEncoding = NUMBERS
    loss: str = "squared"
    start: Any = None  # the predictor that a fit of another loss begins at

    def __post_init__(self) -> None:
        standardizer_of(self.feature_map)  # of other maps there are no moments

    def check(self, source: Source) -> None:
        """Raise DataError unless the source has the inputs and targets of the template."""
        names, known = columns_of(source).input_names, self.columns.input_names
        if names and known and list(names) != list(known):
            then, now = listed_apart(known, names)
            raise DataError(
                f"the map that like gives is of the columns {then}, but these are {now}; give "
                f"them in that order."
            )
        self.feature_map.check((source.n_samples, source.n_features))
        if self.empty is not None:
            check_targets(source, self.empty.n_targets)

    def applied(self, options: FitOptions) -> FitOptions:
        """Return the options of the template, with those that it does not say from `options`."""
        own = ["fold_by", "on_bad_rows", "fit_intercept"] + ["n_folds"] * (self.empty is None)
        return replace(self.options, **{name: getattr(options, name) for name in own})


def check_targets(source: Source, n_targets: int, what: str = "the moments are of") -> None:
    """Raise DataError unless the source has so many targets."""
    if source.n_targets != n_targets:
        raise DataError(
            f"{what} {n_targets} target{'s' * (n_targets > 1)}, but the data has "
            f"{source.n_targets}; name the dataset that holds them with y (--y)."
        )
