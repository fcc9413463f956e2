"""What was measured on: processor, memory, libraries and their settings."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401  brings its part of the Dask configuration
import psutil
import scipy.linalg  # noqa: F401  brings a BLAS of its own

from streamkern.runtime.memory import total_bytes, usable_cores
from streamkern.runtime.threads import blas_libraries, processor

_LIBRARIES = (
    *("streamkern", "numpy", "scipy", "scikit-learn", "dask", "distributed"),
    *("h5py", "hdf5plugin", "threadpoolctl"),
)
_VARIABLES = ("OPENBLAS", "OMP_", "MKL_", "BLIS_", "VECLIB", "DASK_", "MALLOC_")
_SETTINGS = (
    *("array", "scheduler", "num_workers", "streamkern"),
    *("distributed.nanny", "distributed.worker"),
)


def description() -> dict[str, Any]:
    """Return the machine and the software as plain JSON values."""
    return {
        "processor": processor() + _speed(),
        "cores": usable_cores(),
        "memory_bytes": total_bytes(),
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "commit": _commit(),
        "blas": blas_libraries(),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLES) and "://" not in value
        },
        "dask_config": {name: dask.config.get(name, None) for name in _SETTINGS},
    }


def _speed() -> str:
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    return f", {frequency.current / 1000:.1f} GHz" if frequency else ""


def _commit() -> str | None:
    """Return the commit of this checkout, marked where it has changes."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],  # noqa: S607
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
