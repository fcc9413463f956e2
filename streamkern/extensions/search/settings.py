"""What a search tries: kernels, families of maps, and length scales."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from streamkern.choice.cross_validated_fit import Result
from streamkern.errors import DataError, ParameterError
from streamkern.errors.checks import check_choice
from streamkern.features import FAMILIES
from streamkern.kernels import KERNELS, DistanceKernel, Kernel, ShiftInvariantKernel, as_kernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.parameters import AUTO, FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.sources import Source

# A kernel with a length scale, and the family of its maps.
Pair = tuple[Any, str]
# Metrics: one that was learnt, plain distances of standardised inputs where another scale was
# chosen, and those of kernels that are added.
LEARNT, STANDARD, ADDED = "learnt", "standard scale", "a metric each"
# From smooth to rough; and the one that is rough along every input by itself.
_AUTO_KERNELS = ("gaussian", "matern52", "matern32", "matern12", "laplacian")
# Fourier features for what is smooth, landmarks for what is rough or clustered.
_AUTO_MAPS = ("orthogonal", "nystroem")
# Few inputs have a better map than random frequencies.
_GRID, _GRID_INPUTS = "grid", 3
# In octaves from the kernel's own length scale: what is tried of every kernel, what is tried at the
# farthest, and how much farther at a time.
_NEAR, _FARTHEST, _FARTHER = 3, 12, (1, 2)
ERROR = attrgetter("relative_mse")


class MetricSettings(NamedTuple):
    """Kernels, each with the family of its map, on rows in the metric that a column pass has."""

    name: str  # of the metric
    summary: ColumnSummary
    pairs: Sequence[Pair]
    scale: str | None = None  # of the inputs, where that is not the chosen one
    is_default: bool = False  # what a plain fit is
    parts: tuple[int, ...] = ()  # the metrics, by their places, that a sum is of


@dataclass(frozen=True)
class Setting:
    """What is tried: a kernel at a length scale, and the family of its map, on some inputs."""

    number: int  # of the kernel, map and inputs
    place: int  # of these inputs among the metrics
    kernel: Any = field(compare=False)  # with numbers for its own length scale, if it has one
    tried: Any = field(compare=False)  # the same, without columns that are constant
    feature_map: str
    metric: str  # its name
    factor: float = 1.0  # times the kernel's own length scale

    @property
    def is_linear(self) -> bool:
        """Whether it is linear ridge, which has no length scale."""
        return self.feature_map == "identity"

    @property
    def names(self) -> tuple[str, str, str]:
        return self.metric, self.feature_map, self.tried.name

    @property
    def octave(self) -> float:
        return float(np.log2(self.factor))

    def stretched(self, kernel: Any) -> Any:
        """Return the kernel, of all columns or without constant ones, at the length scale."""
        return kernel if self.is_linear else kernel.stretched(self.factor)

    def scaled(self, octaves: float) -> "Setting":
        """Return the setting so many octaves from this one."""
        return replace(self, factor=self.factor * 2.0**octaves)


def kernels_to_try(
    kernels: Kernel | str | Sequence[Kernel | str] | None, given: Kernel | str
) -> list[Kernel]:
    given = as_kernel(given)
    if kernels is None:
        return [given]
    if kernels == AUTO:
        scale = given.length_scale if isinstance(given, DistanceKernel) else "median"
        listed = [KERNELS[name] for name in _AUTO_KERNELS if name != given.name]
        others = [each for each in listed if isinstance(each, ShiftInvariantKernel)]
        return [given, *(each.with_length_scale(scale) for each in others)]
    several = [kernels] if isinstance(kernels, (Kernel, str)) else kernels
    return [as_kernel(each) for each in several]


def maps_to_try(
    maps: str | Sequence[str] | None, given: str, n_features: int = _GRID_INPUTS + 1
) -> list[str]:
    wanted = given if maps is None else maps
    if wanted == AUTO:
        listed = [*_AUTO_MAPS, *([_GRID] * (_GRID in FAMILIES and n_features <= _GRID_INPUTS))]
        return [*([] if given in (AUTO, *listed) else [given]), *listed]
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        check_choice("maps", name, (*FAMILIES, AUTO))
    if not names or len(set(names)) < len(names):
        raise ParameterError(f"maps must be named, each once, not {names!r}; give some names.")
    return names


def pairs_to_try(
    kernels: Sequence[Any], maps: Sequence[str], options: FitOptions, source: Source
) -> list[tuple[ShiftInvariantKernel, str]]:
    """Return the kernels with the maps that go with them, in the order of both."""
    if "identity" in maps or options.is_identity or not kernels:
        raise ParameterError(
            "a search needs a kernel with a length scale and its random features, not the linear "
            "kernel or the identity map; fit it instead."
        )
    pairs = []
    for kernel in kernels:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise ParameterError(
                f"a search needs kernels that have a length scale, not {kernel!r}; leave it out, "
                f"or fit it."
            )
        kernel.check_inputs(source.n_features)
        refusals = []
        for name in maps:
            try:
                replace(options, feature_map=name, kernel=kernel).check_map(source.n_features)
            except ParameterError as error:
                refusals.append(error)
            else:
                pairs.append((kernel, name))
        if len(refusals) == len(maps):
            raise refusals[0]
    if source.n_samples < FEWEST_ROWS:
        raise DataError(
            f"a search needs {FEWEST_ROWS} rows, but there are {source.n_samples}; add rows, or "
            f"fit with a length scale."
        )
    return pairs


def near(settings: Sequence[Setting], octaves: Sequence[float]) -> list[Setting]:
    """Return what is so many octaves from each of some settings."""
    return [one.scaled(octave) for one in settings for octave in octaves]


def by_error(tried: Sequence[Result]) -> list[Result]:
    """Return results with the best first, and among equals those that were tried first."""
    errors = [each.relative_mse for each in tried]
    return [tried[i] for i in np.argsort(errors, kind="stable")]


def _by_number(tried: Sequence[Result]) -> list[list[Result]]:
    numbers = sorted({each.setting.number for each in tried})
    return [[each for each in tried if each.setting.number == number] for number in numbers]


def beyond(tried: Sequence[Result]) -> list[Setting]:
    """Return farther length scales of kernels whose last is within a standard error of the best."""
    found = []
    for mine in _by_number(tried):
        mine.sort(key=lambda each: (each.setting.octave, each.relative_mse, each.standard_error))
        best = min(mine, key=ERROR)
        for end, sign in ((mine[-1], 1), (mine[0], -1)):
            if end.relative_mse <= best.relative_mse + best.standard_error:
                steps = [end.setting.octave + sign * farther for farther in _FARTHER]
                own = replace(end.setting, factor=1.0)
                found += near([own], [step for step in steps if abs(step) <= _FARTHEST])
    return found


def sober(tried: Sequence[Result]) -> list[Result]:
    """Return results without those of length scales that are needlessly far.

    Where the best of a kernel is beyond those that every kernel is tried at, these are all but the
    nearest one within a standard error of it, and those nearer still: there most are alike.
    """
    reach: dict[int, float] = {}
    for mine in _by_number(tried):
        best = min(mine, key=ERROR)
        enough = best.relative_mse + best.standard_error
        good = [abs(each.setting.octave) for each in mine if each.relative_mse <= enough]
        reach[best.setting.number] = min(good) if abs(best.setting.octave) > _NEAR else math.inf
    return [each for each in tried if abs(each.setting.octave) <= reach[each.setting.number]]


def tiers(tried: Sequence[Result]) -> list[list[Setting]]:
    """Return the best length scale of every kernel: first the best of every map and metric.

    Then come the second best of each, and so on, in every tier the best first.
    """
    best: dict[int, Setting] = {}
    for each in by_error(tried):
        best.setdefault(each.setting.number, each.setting)
    found: defaultdict[int, list[Setting]] = defaultdict(list)
    before: Counter[tuple[str, str]] = Counter()
    for setting in best.values():
        found[before[setting.names[:2]]].append(setting)
        before[setting.names[:2]] += 1
    return [*found.values()]
