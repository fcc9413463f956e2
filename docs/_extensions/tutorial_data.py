"""The files that tutorials begin with, made of real data sets in a folder of their own."""

import os
import tempfile
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

DATA = Path(os.environ["STREAMKERN_DATA"])
CUT = ("Fair", "Good", "Very Good", "Premium", "Ideal")
COLOR = tuple("DEFGHIJ")
CLARITY = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")


def arrays(name):
    """Return the arrays of a data set by name."""
    with np.load(DATA / name / "data.npz") as file:
        return dict(file)


def new_folder():
    """Work in an empty folder, so that paths stay short."""
    os.chdir(tempfile.mkdtemp())
    # What Dask says of a busy machine is no part of a page.
    warnings.filterwarnings("ignore", module="distributed")


def table(name, n=None, seed=0):
    """Return rows of a data set as a data frame with the target last, in random order."""
    held = arrays(name)
    frame = pd.DataFrame(held["X"], columns=held["feature_names"].tolist())
    frame[held["target_name"].item().split()[0]] = held["y"]
    return frame.sample(frac=1.0, random_state=seed, ignore_index=True)[:n]


def diamonds():
    """Return diamonds with their grades as text."""
    frame = table("diamonds")
    for column, levels in (("cut", CUT), ("color", COLOR), ("clarity", CLARITY)):
        frame[column] = frame[column].astype(int).map(dict(enumerate(levels)))
    return frame


def split(name, seed=0):
    """Return the inputs and targets of nine tenths of the rows, and of the others."""
    held = arrays(name)
    test = np.random.default_rng(seed).random(len(held["y"])) < 0.1
    return held["X"][~test], held["y"][~test], held["X"][test], held["y"][test]


def write_hdf5(path, X, y):
    """Write a file of inputs and targets, in chunks of 4,096 rows."""
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(min(4096, len(X)), X.shape[1]))
        file.create_dataset("y", data=y)
