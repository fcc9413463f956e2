"""Events of a job that tests tell, and a clock that they turn."""

from streamkern.monitor.jobs import Jobs

ROWS, SHARDS = 1000, 10


class Story:
    """Jobs, and a view of them if one is wanted, that hear what a test tells."""

    def __init__(self, view=None, jobs=Jobs):
        self.now = 100.0
        self.jobs = jobs(lambda: self.now)
        self.view = view and view(self.jobs)

    def tell(self, kind, *, after=0.0, **facts):
        self.now += after
        self.jobs.hear({"kind": kind, **facts})
        if self.view is not None:
            self.view.told({"kind": kind, **facts})

    def begin(self, name="fit model.h5", number="j", client=None):
        self.tell("job begun", job=number, name=name, client=client)
        self.tell("planned", job=number, worker_bytes=10**9, allowed_bytes=10**10)

    def plan_solution(self, flops, *, seconds=20.0, readings=1, number="j"):
        facts = {"worker_bytes": 10**9, "seconds": seconds, "readings": readings}
        self.tell("planned", job=number, **facts)
        self.tell("solution planned", job=number, flops=flops)

    def begin_pass(self, label="moments", number="p", job="j", row_flops=2e9):
        facts = {"rows": ROWS, "shards": SHARDS, "row_bytes": 400, "row_flops": row_flops}
        self.tell("pass begun", job=job, label=label, **{"pass": number}, **facts)

    def shard(self, shard, *, after=1.0, worker="tcp://10.0.0.1:4000", number="p"):
        which = {"shard": shard, "worker": worker, "pass": number}
        self.tell("shard begun", **which)
        seconds = {"features": 0.2 * after, "products": 0.7 * after, "waiting": 0.1 * after}
        facts = {"rows": ROWS // SHARDS, "elapsed": after, "seconds": seconds}
        facts |= {"peak_bytes": 5 * 10**8, "attainable": 4e11}
        self.tell("shard done", after=after, **which, **facts)

    def validated(self, rows, error, *, leading=512, n_components=2048, number="p"):
        size = {"leading": leading, "n_components": n_components}
        self.tell("validated", rows=rows, error=error, **size, **{"pass": number})

    def solve(self, number="j"):
        curve = {"criterion": "cv", "alphas": [0.1, 1.0, 10.0], "values": [0.5, 0.25, 0.75]}
        found = {"alpha": 1.0, "alpha_curve": curve, "cv_rmse": 0.25, "train_rmse": 0.2}
        self.tell("solved", job=number, seconds={"solve": 2.0}, **found)

    def end(self, error=None, number="j"):
        self.tell("job ended", job=number, error=error)

    @property
    def job(self):
        return self.jobs.latest

    @property
    def reading(self):
        return self.job.current
