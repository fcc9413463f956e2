"""Files of all kinds that commands are run with."""

import pytest
from commandline import rows, write

from streamkern import RandomFeatureRidge
from streamkern.sources.shard_reader import HDF5Reader


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Rows a and b, both together, and their moments A and B; a model of a, and a table."""
    folder = tmp_path_factory.mktemp("made")
    X, y = rows(300)
    write(folder / "a.h5", X[:200], y[:200])
    write(folder / "b.h5", X[200:], y[200:])
    write(folder / "some.h5", X[:20], y[:20])
    write(folder / "both.h5", X, y)
    model = RandomFeatureRidge("gaussian", n_components=32, precision="double", alpha=0.1)
    first = model.moments(X[:200], y[:200])
    first.save(folder / "A.h5")
    model.moments(X[200:], y[200:], like=first).save(folder / "B.h5")
    model.solve(first).save(folder / "model.h5")
    (folder / "table.csv").write_text("x,y\n1,2\n2,3\n4,5\n")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def all_files(folder, made):
    for name, content in made.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def no_reading(monkeypatch):
    monkeypatch.setattr(HDF5Reader, "blocks", lambda *_: pytest.fail("rows were read"))
