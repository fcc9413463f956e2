"""Tables in object stores: the rows of the same files here, in few requests."""

import numpy as np
import pandas as pd
import pytest
from servers import late_proxy

from streamkern.extensions.tables.table_files import TableFile
from streamkern.extensions.tables.table_rows import opened
from streamkern.registry import extension
from streamkern.sources import Shard

N, GROUP, P = 20_000, 2_000, 12


@pytest.fixture
def stored(tmp_path, bucket):
    """What opens the rows of a table in a store, how many requests there were, and the rows."""
    rng = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(P - 1)), "y"]
    rows = pd.DataFrame(rng.standard_normal((N, P)), columns=names)
    path, log = tmp_path / "t.parquet", tmp_path / "log"
    rows.to_parquet(path, row_group_size=GROUP, index=False)
    url = bucket.put(path)
    with late_proxy(bucket.server, "--seconds", 0, "--log", log) as (proxy, _):

        def source(**options):
            found = extension("stores", "files_at_urls").files_at(url, bucket.options_at(proxy))
            files = [TableFile(each) for each in found]
            return opened(files, None, options, targets=("y",)).source

        yield source, lambda: log.read_text().count("\n"), rows


def read(source, start=0, stop=N):
    blocks = source.reader(Shard(0, start, stop)).blocks(700)
    return np.concatenate([np.column_stack([block.X, block.y]) for block in blocks])


def test_a_group_of_rows_comes_in_one_request(stored, monkeypatch):
    monkeypatch.setattr(extension("stores", "files_at_urls"), "_BLOCK_BYTES", GROUP * P)
    source, requests, rows = stored
    source = source()
    before = requests()
    np.testing.assert_array_equal(read(source), rows)
    assert requests() - before <= 6 + N // GROUP  # and the footer
    np.testing.assert_array_equal(read(source, 2 * GROUP - 1, 3 * GROUP), rows[3999:6000])


@pytest.mark.parametrize("kept", [4, 1])
def test_large_groups_are_read_in_pieces(stored, monkeypatch, kept):
    files_at_urls = extension("stores", "files_at_urls")
    for name in ("_LARGE_BYTES", "_BLOCK_BYTES"):
        monkeypatch.setattr(files_at_urls, name, 4 << 10)
    monkeypatch.setattr(files_at_urls.FileAtURL, "kept_bytes", kept * GROUP * P * 8)
    source, requests, rows = stored
    source = source(drop=["x1", "x7"])
    before = requests()
    np.testing.assert_array_equal(read(source), rows.drop(columns=["x1", "x7"]))
    assert requests() - before <= 20 + N // GROUP * (3 if kept > 2 else P)
