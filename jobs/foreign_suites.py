"""Tests of other projects, run with streamkern's classes: python jobs/foreign_suites.py.

The modules are imported from where they are installed, and names in them replaced by the adapters
of jobs/foreign.  Prints how many tests passed, how many cannot apply, with the reasons, and which
give another answer, with the reasons that are known.  Ends with status 1 where another test fails,
or where one passes that is expected to fail.

    python jobs/foreign_suites.py ridge kernel_ridge          # some of the suites
    python jobs/foreign_suites.py --dask-ml-tests FOLDER      # those of a checkout of Dask-ML too
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import signal
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import pytest
from foreign import adapters
from foreign.suites import SUITES, Suite

SECONDS = 60  # that a test may take


def found(name: str, reasons: dict[str, str]) -> str | None:
    """Return the first pattern that a name of a test begins with."""
    return next((pattern for pattern in reasons if re.match(pattern, name)), None)


class Plugin:
    """Replaces names while modules are collected, and counts what becomes of their tests."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.counts: Counter[str] = Counter()
        self.reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failed: dict[str, str] = {}
        self.differed: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Any:
        with ExitStack() as stack:
            for name, adapter in self.suite.names.items():
                module, _, attribute = name.rpartition(".")
                replaced = patch.object(importlib.import_module(module), attribute, adapter)
                stack.enter_context(replaced)
            return (yield)

    def pytest_runtest_setup(self, item: Any) -> None:
        adapters.used.clear()
        if pattern := found(item.name, self.suite.not_applicable):
            adapters.cannot(self.suite.not_applicable[pattern])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"takes more than {SECONDS} s"))
        signal.alarm(SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.outcome == "failed":
            if pattern := found(name, self.suite.differences):
                self.differed[pattern] += 1
            else:
                self.failed[name] = str(report.longrepr)
        elif report.outcome == "skipped":
            reason = "" if hasattr(report, "wasxfail") else str(report.longrepr[2])
            _, cannot, reason = reason.partition(adapters.NOT_APPLICABLE)
            self.counts["cannot apply" if cannot else "skipped by the suite itself"] += 1
            if cannot:
                self.reasons[reason][name.partition("[")[0]] += 1
        elif report.when == "call":
            self.counts["passed" if adapters.used else "passed without a class of ours"] += 1


def ran(suite: Suite, name: str, folder: Path | None, *, verbose: bool) -> bool:
    """Run one suite, print what came out, and say whether it was expected."""
    if suite.module.endswith(".py"):
        file = str(folder / suite.module)  # type: ignore[operator]
    else:
        file = importlib.util.find_spec(suite.module).origin  # type: ignore[union-attr]
    options = ["--quiet", "--no-header", "--no-summary", "--tb=short", "-p", "no:cacheprovider"]
    options += ["-p", "no:xdist", "-c", os.devnull, "--rootdir", str(Path(file).parent)]
    plugin = Plugin(suite)
    with open(os.devnull, "w") as nowhere, ExitStack() as stack:  # noqa: PTH123
        if not verbose:
            stack.enter_context(patch.object(sys, "stdout", nowhere))
        pytest.main([file, *options], plugins=[plugin])
    known = sum(plugin.differed.values())
    counts = ", ".join(f"{n} {what}" for what, n in plugin.counts.items())
    print(f"{name}: {counts}, {known} differ as known, {len(plugin.failed)} failed")
    for reason, kinds in plugin.reasons.items():
        print(f"  {kinds.total()} cannot apply, since {reason}:")
        print(*(f"    {kind} ({n})" for kind, n in kinds.items()), sep="\n")
    for pattern, reason in suite.differences.items():
        print(f"  {plugin.differed[pattern]} differ, since {reason}: {pattern}")
    for test, text in plugin.failed.items():
        print(f"  NOT EXPECTED: {test} fails\n{text if verbose else text.splitlines()[-1]}")
    unused = [pattern for pattern in suite.differences if not plugin.differed[pattern]]
    for pattern in unused:
        print(f"  NOT EXPECTED: {pattern} passes")
    return bool(plugin.counts["passed"]) and not plugin.failed and not unused


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"suites to run: {', '.join(SUITES)}; all")
    parser.add_argument("--dask-ml-tests", type=Path, metavar="FOLDER")
    parser.add_argument("--verbose", action="store_true", help="print pytest's output too")
    given = parser.parse_args()
    folder = given.dask_ml_tests
    there = [name for name, s in SUITES.items() if folder or not s.module.endswith(".py")]
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="synchronous"):
        went_well = [
            ran(SUITES[name], name, folder, verbose=given.verbose) for name in given.names or there
        ]
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
