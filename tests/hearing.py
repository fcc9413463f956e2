"""Listeners that tests are: of passes that begin and end, and of the rows of every shard once."""

import os
import signal


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


class When(Passes):
    """Does something when so many shards are reported, of the passes of a label if one is given."""

    def __init__(self, what, after=1, label=None):
        super().__init__()
        self.what, self.left, self.label = what, after, label
        self.rows = 0  # that were reported, of those passes

    def started(self, label, n_rows):  # noqa: ARG002  as it is called
        self.present = label

    def advanced(self, n_rows):
        if self.label in (None, self.present):
            self.rows += n_rows
            self.left -= 1
            if not self.left:
                self.what()


def killer_of_workers(client, label):
    """Return what kills all workers when the first shard of a pass is reported, and their pids."""
    victims = set(client.run(os.getpid).values())

    def kill():
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

    return When(kill, label=label), victims
