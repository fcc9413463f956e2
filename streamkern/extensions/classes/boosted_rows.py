"""What the report of boosted rounds says: rows of words, and a table of the rounds."""

from streamkern.extensions.classes.class_rows import class_rows
from streamkern.models.report_rows import Row, Table, brief, data_rows, pass_rows
from streamkern.parameters.fit_report import FitReport


def boosted_rows(report: FitReport) -> list[Row]:
    rounds, rate, bound = report["rounds"], report["learning_rate"], report["train_error_bound"]
    slower = f", learning rate {rate:g}" if rate < 1 else ""
    return [
        *data_rows(report),
        *class_rows(report),
        ("rounds", f"{len(rounds):,} by {report['algorithm']} AdaBoost{slower}"),
        *([("stopped", report["stopped"])] if report["stopped"] else []),
        ("training error", brief(report["train_error"])),
        *([] if bound is None else [("training error, at most", brief(bound))]),
        *pass_rows(report),
        *[("note", note) for note in dict.fromkeys(each["note"] for each in rounds) if note],
    ]


def round_table(report: FitReport) -> Table:
    """Return the training error after every round of boosting, with its bound if there is one."""
    keys = {"weighted error": "weighted_error", "votes count": "step", "error": "train_error"}
    if report["train_error_bound"] is not None:
        keys["at most"] = "train_error_bound"
    rounds = report["rounds"]
    rows = [(str(each["round"]), *(f"{each[k]:.4f}" for k in keys.values())) for each in rounds]
    return Table(("round", *keys), rows, "Training error after every round")
