"""The garbage collector and HDF5, each in a thread of its own."""

import gc
import os
import threading

import h5py
import numpy as np
import pytest
from rows_read import python, store
from servers import web_server

from streamkern.extensions.stores import garbage_collector
from streamkern.extensions.stores.files_at_urls import FileAtURL
from streamkern.extensions.stores.requests import Target
from streamkern.sources.hdf5_opening import opened

# The thread that answers makes objects, as any does, while there is garbage of h5py's.
PROGRAM = """
import asyncio, gc, sys, threading
import fsspec.asyn, h5py
from streamkern import open_hdf5
from streamkern.extensions.stores import files_at_urls
from streamkern.sources import Shard

url, other = sys.argv[1:]
file = h5py.File(other)
asked = files_at_urls.request

async def make_objects():
    return [[] for _ in range(2000)]

def ask(*arguments):
    if threading.current_thread() is threading.main_thread():
        for _ in range(10):
            cycle = [file["/"]]
            cycle.append(cycle)
    asyncio.run_coroutine_threadsafe(make_objects(), fsspec.asyn.get_loop()).result()
    return asked(*arguments)

source = open_hdf5(url)
files_at_urls.request = ask
gc.set_threshold(100)
were_on = [gc.isenabled() for block in source.reader(Shard(0, 0, 3000)).blocks(100)]
print(len(were_on), all(were_on), gc.isenabled())
"""


def test_garbage_that_is_collected_while_hdf5_waits_stops_nothing(tmp_path):
    store(tmp_path / "a.h5", np.zeros((3000, 2)), np.zeros(3000), chunks=(16, 2))
    h5py.File(tmp_path / "b.h5", "w").close()
    with web_server(tmp_path) as server:
        done = python(PROGRAM, f"http://{server}/a.h5", tmp_path / "b.h5")
    assert done.stdout.split() == ["30", "True", "True"], done.stderr


def test_a_collection_that_is_under_way_is_waited_for():
    class Slow:
        def __del__(self):
            began.set()
            assert goes_on.wait(10)

    def collect():
        slow = Slow()
        slow.itself = slow
        del slow
        gc.collect()

    began, goes_on, paused = threading.Event(), threading.Event(), threading.Event()
    collecting = threading.Thread(target=collect)
    pausing = threading.Thread(target=lambda: (garbage_collector.pause(), paused.set()))
    collecting.start()
    assert began.wait(10)
    pausing.start()
    assert not paused.wait(0.1)
    goes_on.set()
    assert paused.wait(10)
    assert not gc.isenabled()
    garbage_collector.resume()
    assert gc.isenabled()
    collecting.join()
    pausing.join()


def test_a_child_that_is_forked_in_a_pause_collects():
    garbage_collector.pause()
    try:
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        garbage_collector.resume()
    assert gc.isenabled()


def test_ctrl_c_while_a_collection_is_waited_for_leaves_no_pause(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(garbage_collector.time, "sleep", interrupted)
    file = FileAtURL("s3://rows/a.h5", Target("s3://rows/a.h5", {}, "rows/a.h5"), 1, "")
    with pytest.raises(KeyboardInterrupt), opened(file):
        pass
    assert gc.isenabled()
