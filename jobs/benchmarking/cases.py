"""What is measured: cases, and sweeps of them along one axis."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.runtime.memory import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CODECS = ("none", "gzip", "lzf", "blosc", "bitshuffle")
PRECISIONS = ("single", "double")
PLACES = ("processes", "threads")
HEADLINE = "headline"


@dataclass(frozen=True)
class Case:
    """One problem, and where it is solved.

    Parameters
    ----------
    rows, inputs, components : int
        n, p and D.
    precision : {'single', 'double'}
        Of features and products; rows are stored in single.
    codec : str
        Of the HDF5 file, one of `CODECS`.
    workers : int
        Cores for every contender: processes of streamkern and Dask, BLAS threads of scikit-learn.
    latency : float
        Seconds added to every chunk that streamkern reads.
    place : {'processes', 'threads'}
        Where streamkern's tasks and the roofline run.
    """

    rows: int = 400_000
    inputs: int = 90
    components: int = 2048
    precision: str = "single"
    codec: str = "none"
    workers: int = usable_cores()
    latency: float = 0.0
    place: str = "processes"

    @property
    def length_scale(self) -> float:
        """That of the Gaussian kernel, for inputs of unit variance."""
        return math.sqrt(self.inputs)

    @property
    def alpha(self) -> float:
        """The penalty, in the units of the sum of squares."""
        return 1e-6 * self.rows

    @property
    def itemsize(self) -> int:
        """Bytes of a number in the precision of the features."""
        return 4 if self.precision == "single" else 8

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    def described(self) -> dict[str, Any]:
        """Return the fields, and the kernel's length scale and the penalty, for the results."""
        return self.as_dict() | {"length_scale": self.length_scale, "alpha": self.alpha}


class Sweep(NamedTuple):
    """Values of one axis, who is measured at each, and n where the usual rows are soon done."""

    axis: str
    values: tuple[Any, ...]
    contenders: tuple[str, ...] = ("roofline", "streamkern")
    rows: int | None = None


FITS = (
    "roofline",
    "streamkern",
    "roofline int8",
    "int8",
    "choice",
    "dask",
    "ridge",
    "landmarks",
    "nystroem",
    "sgd",
)
SWEEPS = {
    "components": Sweep("components", (512, 1024, 2048, 4096, 8192)),
    "inputs": Sweep("inputs", (8, 90, 784)),
    "rows": Sweep("rows", (1_000_000, 2_000_000, 5_000_000, 10_000_000)),
    "precision": Sweep("precision", PRECISIONS),
    "codecs": Sweep("codec", CODECS),
    "workers": Sweep("workers", (1, 2)),
    "latency": Sweep("latency", (0.0, 0.02)),
    "prediction": Sweep(
        "components", (1024, 2048, 4096), ("prediction roofline", "prediction"), rows=2_000_000
    ),
}


class Measured(NamedTuple):
    """Cases, and who is measured at all of them."""

    cases: list[Case]
    contenders: tuple[str, ...]


def measured_by(
    name: str, given: Mapping[str, Sequence[Any]], place: str, contenders: Sequence[str] = ()
) -> Measured:
    """Return what a sweep measures, or what is measured without one under the name `HEADLINE`.

    Parameters
    ----------
    name : str
    given : mapping of str to sequence
        Values of axes, every combination of which is a case; they go before those of a sweep.
    place : str
    contenders : sequence of str
        Where there are none, those of the sweep, or all that fit.
    """
    axes = dict(given)
    if name == HEADLINE:
        chosen: tuple[str, ...] = FITS
    else:
        sweep = SWEEPS[name]
        chosen = sweep.contenders
        axes.setdefault(sweep.axis, sweep.values)
        if sweep.rows is not None:
            axes.setdefault("rows", (sweep.rows,))
    cases = [
        replace(Case(place=place), **dict(zip(axes, values, strict=True)))
        for values in product(*axes.values())
    ]
    return Measured(cases, tuple(contenders or chosen))


def together(sweeps: Iterable[Measured]) -> dict[Case, list[str]]:
    """Return every case once, with all who are measured at it."""
    everyone: dict[Case, list[str]] = {}
    for sweep in sweeps:
        for case in sweep.cases:
            at = everyone.setdefault(case, [])
            at += [name for name in sweep.contenders if name not in at]
    return everyone
