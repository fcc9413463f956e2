"""Predictions of the points of a grid, slab by slab: as arrays, or as a file."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import delayed, scatter
from streamkern.errors import DataError, ParameterError
from streamkern.features import trended
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.prediction import predicted_shards
from streamkern.runtime.memory import check_free
from streamkern.sources import Source, as_source
from streamkern.storage.hdf5_files import RowWriter
from streamkern.storage.outputs import check_output, replacing, written
from streamkern.storage.temporary_paths import temporary_path

# Points that are one task, which makes them.
_POINTS = 1 << 18
# What xarray writes, by the endings of names.
_BY_XARRAY = (".nc", ".zarr")
# Names that inputs cannot have beside predictions.
_TAKEN = {"y_pred", "y_std", "target", "", "."}


class GridPrediction(NamedTuple):
    """Predictions at all points of a grid.

    Attributes
    ----------
    y_pred : array
        Predictions (n_1, ..., n_p), or (n_1, ..., n_p, q) of several targets.
    y_std : array or None
        The standard deviations of new targets there, if they were asked for.
    axes : dict
        The coordinates (n_j,) along every input, by its name.
    """

    y_pred: Floats
    y_std: Floats | None
    axes: dict[str, Floats]

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset` of `y_pred`, and of `y_std` if it is there.

        The first input is the last dimension, which is drawn from left to right, unless it is a
        latitude: so inputs x and y have the dimensions y and x.
        """
        import xarray

        names = (*self.axes, "target")[: self.y_pred.ndim]
        made = xarray.Dataset({name: (names, each) for name, each in self._layers()}, self.axes)
        is_latitude = names[0].lower() in {"latitude", "lat", "y"}
        return made if is_latitude else made.transpose(*reversed(list(self.axes)), ...)

    def _repr_html_(self) -> Any:
        return self.to_xarray()._repr_html_() if find_spec("xarray") else None

    def _layers(self) -> list[tuple[str, Floats]]:
        return [("y_pred", self.y_pred)] + [("y_std", self.y_std)] * (self.y_std is not None)  # type: ignore[list-item]


def predicted_grid(
    model: FittedRidge, points: Sequence[Any], extent: Any = None, *, return_std: bool = False
) -> GridPrediction:
    """Return predictions in memory; parameters are as of `RandomFeatureRidge.predict_grid`."""
    axes = _axes(model, points, extent)
    n_values = math.prod(map(len, axes.values())) * model.predictor.n_targets
    check_free(2 * 8 * n_values * (1 + return_std), "a prediction on a grid")
    parts = list(_slabs(model, axes, return_std=return_std))
    mean, std = (
        np.concatenate([part[name] for part in parts]) if name in parts[0] else None
        for name in ("y_pred", "y_std")
    )
    return GridPrediction(mean, std, axes)  # type: ignore[arg-type]


def grid_to_file(
    model: FittedRidge,
    points: Sequence[Any],
    path: str | Path,
    extent: Any = None,
    *,
    return_std: bool = False,
    force: bool = False,
) -> tuple[int, ...]:
    """Write predictions to HDF5, NetCDF (.nc) or Zarr (.zarr), and return the shape of the grid.

    In HDF5 they are datasets `y_pred` and `y_std`, with dimension scales named like the inputs.
    """
    axes, ending = _axes(model, points, extent), Path(path).suffix.lower()
    shape = tuple(map(len, axes.values()))
    if ending not in _BY_XARRAY:
        with RowWriter.create(path, force=force, release=True) as writer:
            for made in _slabs(model, axes, return_std=return_std):
                for name, values in made.items():
                    writer.append(name, values)
            writer.attach(axes, list(made))
        return shape
    for name in ("xarray", *(["zarr"] if ending == ".zarr" else [])):
        if find_spec(name) is None:
            raise ParameterError(
                f"{path} takes the package {name}, which is not installed; pip install {name}, or "
                f"write HDF5 (.h5)."
            )
    target = check_output(path, force=force)
    dataset = predicted_grid(model, list(axes.values()), return_std=return_std).to_xarray()
    if ending == ".zarr":
        with written(target), temporary_path(target.parent) as store:
            dataset.to_zarr(store, zarr_format=2)  # of which every program can read the metadata
            store.rename(target)
    else:
        with replacing(path, force=force) as temporary:
            dataset.to_netcdf(temporary)
    return shape


def _axes(model: FittedRidge, points: Sequence[Any], extent: Any) -> dict[str, Floats]:
    """Return the coordinates along every input by its name, or raise ParameterError."""
    p, beside = model.n_features, trended(model.feature_map)
    if beside is not None and p > len(beside.along):
        raise ParameterError(
            "a grid has coordinates alone, but the model has a trend in other columns, of which no "
            "values at its points are known; predict rows that have them."
        )
    if isinstance(points, (str, Mapping)) or not hasattr(points, "__len__") or len(points) != p:
        raise ParameterError(
            f"a grid has an axis for every input, {p} here, not {points!r}; give {p} numbers of "
            f"points, or coordinates."
        )
    known: Any = model.columns.input_range if extent is None else extent
    try:
        ends: Any = np.asarray(known, dtype=float)
    except (TypeError, ValueError):
        ends = np.empty(0)
    is_known = ends.shape == (p, 2) and np.isfinite(ends).all()
    if not is_known and any(np.ndim(each) == 0 for each in map(_as_array, points)):
        raise ParameterError(
            f"numbers of points are spread over an extent, two numbers for each of {p} inputs, not "
            f"{known}; give that (--extent), or coordinates."
        )
    axes = []
    for j, each in enumerate(points):
        axis = _as_array(each)
        if not axis.ndim:
            if not (float(axis).is_integer() and axis >= 1):
                raise ParameterError(f"an axis has 1 point or more, not {each!r}; give how many.")
            check_free(8 * int(axis), "an axis of a grid")
            axis = np.linspace(ends[j, 0], ends[j, 1], int(axis))
        if axis.ndim != 1 or not len(axis) or not np.isfinite(axis).all():
            raise ParameterError(
                f"coordinates along an axis are one row of finite numbers, not {each!r}; give such."
            )
        axes.append(axis)
    names = model.columns.input_names or []
    if len(set(names) - _TAKEN) < p or any("/" in name for name in names):
        names = [f"x{j}" for j in range(p)]
    return dict(zip(names, axes, strict=True))


def _as_array(points: Any) -> Any:
    """Return coordinates, or their number, in double; nothing of what is neither."""
    with suppress(TypeError, ValueError):
        found = np.asarray(points)
        if found.dtype.kind not in "mMSU":
            return found.astype(float)
    return np.empty(0)


def _slabs(
    model: FittedRidge, axes: dict[str, Floats], *, return_std: bool
) -> Iterator[dict[str, Floats]]:
    """Yield predictions at some points of the first axis and all of the others, in order."""
    beside, held = [len(axis) for axis in list(axes.values())[1:]], dict[str, Floats]()
    deviation, slab = model.deviation_task() if return_std else None, math.prod(beside)
    for _, made in predicted_shards(model.predictor, _grid(axes), deviation):
        for name, values in made.items():
            held[name] = np.concatenate([held[name], values]) if name in held else values
        whole = len(held["y_pred"]) // slab * slab
        if not np.isfinite(held["y_pred"]).all():
            raise DataError("points of the grid overflow; give an extent near that of the rows.")
        if whole:
            yield {
                name: values[:whole].reshape(-1, *beside, *values.shape[1:])
                for name, values in held.items()
            }
            held = {name: values[whole:] for name, values in held.items()}


def _grid(axes: dict[str, Floats]) -> Source:
    """Return all points of a grid as rows, the last axis varying fastest."""
    import dask.array as da

    known: Any = scatter(tuple(axes.values()))
    n, p = math.prod(map(len, axes.values())), len(axes)
    parts = [
        da.from_delayed(delayed(_points, known, *ends, name="points"), (np.diff(ends)[0], p), float)
        for ends in pairwise([*range(0, n, _POINTS), n])
    ]
    return as_source(da.concatenate(parts))


def _points(axes: Sequence[Floats], start: int, stop: int) -> Floats:
    """Return points (n, p), from one in their order to another."""
    places = np.unravel_index(np.arange(start, stop), [len(axis) for axis in axes])
    return np.stack([axis[at] for axis, at in zip(axes, places, strict=True)], axis=1)
