"""`streamkern convert`: a table becomes a file to fit, or one sentence says why not."""

import h5py
import numpy as np
import pytest
from commandline import refused, streamkern


@pytest.fixture
def table(tmp_path):
    values = np.random.default_rng(0).standard_normal((30, 4))
    values[3, 3] = np.nan
    np.savetxt(tmp_path / "t.csv", values, "%.17g", ",", header="a,b,c,price", comments="")
    return tmp_path / "t.csv"


def test_a_table_becomes_a_file_that_fits(table, tmp_path):
    done = streamkern("convert", table, tmp_path / "o.h5", "--target", "price")
    assert done.stdout == f"30 rows of 3 inputs and 1 target in {tmp_path}/o.h5\n"
    assert done.stderr == "note: 1 rows have missing values; fit with --on-bad-rows skip.\n"
    with h5py.File(tmp_path / "o.h5") as file:
        assert (file["X"].shape, file["y"].shape) == ((30, 3), (30,))


def test_a_table_to_be_predicted_has_no_target(table, tmp_path):
    streamkern("convert", table, tmp_path / "o.h5", "--no-target")
    with h5py.File(tmp_path / "o.h5") as file:
        assert file["X"].shape == (30, 5)  # of which one says where a price is missing
        assert "y" not in file
    both = ("convert", table, tmp_path / "p.h5", "--no-target", "--target", "a")
    assert "exclude each other" in refused(*both, status=2)
    assert not (tmp_path / "p.h5").exists()
