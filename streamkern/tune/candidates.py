"""What a search tries: kernels, families of maps, and length scales."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError, ParameterError
from streamkern.errors.checks import check_choice
from streamkern.features import FAMILIES
from streamkern.kernels import KERNELS, Kernel, ScaledKernel, ShiftInvariantKernel, as_kernel
from streamkern.kernels.scaled import DistanceKernel
from streamkern.parameters.fit_options import FitOptions
from streamkern.parameters.parameters import AUTO, FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.sources import Source
from streamkern.tune.trials import Result

# From smooth to rough; and the one that is rough along every input by itself.
_AUTO_KERNELS = ("gaussian", "matern52", "matern32", "matern12", "laplacian")
# Fourier features for what is smooth, landmarks for what is rough or clustered.
_AUTO_MAPS = ("orthogonal", "nystroem")
# Few inputs have a better map than random frequencies.
_GRID, _GRID_INPUTS = "grid", 3
# In octaves from the kernel's own length scale: what is tried of every kernel, what is tried at the
# farthest, and how much farther at a time.
_NEAR, _FARTHEST, _FARTHER = 3, 12, (1, 2)
# How many length scales rows are apart where that is far, and factors of their distance.
_TIGHT, _ABOUT = 10.0, (0.5, 1.0, 2.0, 4.0)


class MetricSettings(NamedTuple):
    """Kernels, each with the family of its map, on rows in the metric that a column pass has."""

    metric: str
    summary: ColumnSummary
    pairs: Sequence[tuple[Any, str]]
    scale: str | None = None  # of the inputs, where that is not the chosen one
    is_default: bool = False  # what a plain fit is
    parts: tuple[int, ...] = ()  # the contenders, by their places, that a sum is of


class Setting(NamedTuple):
    """A kernel with numbers for its length scale, if it has one, and the family of its map."""

    kernel: Any
    tried: Any  # without columns that are constant
    feature_map: str
    metric: str  # its name
    place: int  # of the contender

    @property
    def is_linear(self) -> bool:
        """Whether it is linear ridge, which has no length scale."""
        return self.feature_map == "identity"


class ScaledSetting(NamedTuple):
    """An arm, by its place in the list of all, and what its length scale is multiplied by."""

    setting: int
    factor: float


def kernels_to_try(
    kernels: Kernel | str | Sequence[Kernel | str] | None, given: Kernel | str
) -> list[Kernel]:
    given = as_kernel(given)
    if kernels is None:
        return [given]
    if kernels == AUTO:
        scale = given.length_scale if isinstance(given, DistanceKernel) else "median"
        listed = [KERNELS[name] for name in _AUTO_KERNELS if name != given.name]
        others = [each for each in listed if isinstance(each, ScaledKernel)]
        return [given, *(each.with_length_scale(scale) for each in others)]
    several = [kernels] if isinstance(kernels, (Kernel, str)) else kernels
    return [as_kernel(each) for each in several]


def maps_to_try(
    maps: str | Sequence[str] | None, given: str, n_features: int = _GRID_INPUTS + 1
) -> list[str]:
    wanted = given if maps is None else maps
    if wanted == AUTO:
        listed = [*_AUTO_MAPS, *([_GRID] if n_features <= _GRID_INPUTS else [])]
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


def octaves(settings: Sequence[Setting], steps: Sequence[float]) -> list[ScaledSetting]:
    """Return every arm at so many octaves from its own length scale, arm by arm."""
    factors = (2.0 ** np.asarray(steps, dtype=float)).tolist()
    return [
        ScaledSetting(setting, factor) for setting in range(len(settings)) for factor in factors
    ]


def far_steps(kernel: Any, rows: Floats) -> list[int]:
    """Return half octaves from a length scale to try as well, where rows are far apart beside it.

    That is in the root of the mean square: most distances of rows in a tight cluster are short, and
    the median says nothing of the others.
    """
    scale = np.asarray(getattr(kernel, "length_scale", None))
    if scale.ndim or scale.dtype.kind != "f":
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        apart = math.sqrt(2.0 * rows.var(axis=0).sum()) / float(scale)
    if not _TIGHT < apart < np.inf:
        return []
    return [round(2.0 * math.log2(apart * factor)) for factor in _ABOUT]


def beyond(candidates: Sequence[ScaledSetting], tried: Sequence[Result]) -> list[ScaledSetting]:
    """Return farther length scales of arms whose last is within a standard error of the best."""
    found = []
    for setting in sorted({candidate.setting for candidate in candidates}):
        mine = sorted(
            (np.log2(candidate.factor), attempt.relative_mse, attempt.standard_error)
            for candidate, attempt in zip(candidates, tried, strict=True)
            if candidate.setting == setting
        )
        _, least, error = min(mine, key=lambda each: each[1])
        for (end, score, _), sign in ((mine[-1], 1), (mine[0], -1)):
            if score <= least + error:
                steps = [end + sign * farther for farther in _FARTHER]
                found += [
                    ScaledSetting(setting, 2.0**step) for step in steps if abs(step) <= _FARTHEST
                ]
    return found


def sober(candidates: Sequence[ScaledSetting], tried: Sequence[Result]) -> list[float]:
    """Return the errors of attempts, infinite for length scales that are needlessly far.

    Where the best of an arm is beyond those that every kernel is tried at, that is all but the
    nearest one within a standard error of it, and those nearer still: there most are alike.
    """
    scores = [attempt.relative_mse for attempt in tried]
    octaves = [abs(np.log2(candidate.factor)) for candidate in candidates]
    for setting in {candidate.setting for candidate in candidates}:
        mine = [i for i, candidate in enumerate(candidates) if candidate.setting == setting]
        best = min(mine, key=scores.__getitem__)
        if octaves[best] > _NEAR:
            enough = scores[best] + tried[best].standard_error
            nearest = min(octaves[i] for i in mine if scores[i] <= enough)
            for i in mine:
                scores[i] = scores[i] if octaves[i] <= nearest else np.inf
    return scores


def tiers(
    settings: Sequence[Setting], candidates: Sequence[ScaledSetting], scores: Sequence[float]
) -> list[list[ScaledSetting]]:
    """Return the best length scale of every arm: the best of every map and metric, the second ...

    In every tier the best come first, and among equals those that were tried first.
    """
    best: dict[int, ScaledSetting] = {}
    for i in np.argsort(scores, kind="stable").tolist():
        best.setdefault(candidates[i].setting, candidates[i])
    found: defaultdict[int, list[ScaledSetting]] = defaultdict(list)
    summary: Counter[tuple[str, str]] = Counter()
    for candidate in best.values():
        name = settings[candidate.setting].feature_map, settings[candidate.setting].metric
        found[summary[name]].append(candidate)
        summary[name] += 1
    return [*found.values()]


def near(chosen: Sequence[ScaledSetting], steps: Sequence[float]) -> list[ScaledSetting]:
    """Return what is so many half octaves from each of some candidates."""
    return [
        ScaledSetting(setting, factor * 2.0 ** (step / 2))
        for setting, factor in chosen
        for step in steps
    ]
