"""Listeners that tests are: of passes that begin and end, and of the rows of every shard once."""

from __future__ import annotations


class Passes:
    """Hears events as calls of `started`, `advanced` and `finished`, which do nothing here."""

    def __init__(self):
        self.shards = set()

    def __call__(self, event):
        kind = event["kind"]
        if kind == "pass begun":
            self.started(event["label"], event["rows"])
        elif kind == "pass ended":
            self.finished()
        elif kind == "shard done" and (key := (event["pass"], event["shard"])) not in self.shards:
            self.shards.add(key)
            self.advanced(event["rows"])

    def started(self, label, n_rows):
        pass

    def advanced(self, n_rows):
        pass

    def finished(self):
        pass
