"""Tests of other projects, run with streamkern's classes: python jobs/foreign_suites.py.

The modules are imported from where they are installed, and names in them replaced by the adapters
of jobs/foreign.  Prints how many tests passed, how many cannot apply, with the reasons, and which
give another answer, with the reasons that are known.  Ends with status 1 where another test fails,
or where one passes that is expected to fail.

    python jobs/foreign_suites.py ridge kernel_ridge      # some of the suites
    python jobs/foreign_suites.py --dask-ml FOLDER        # and the tests of a checkout of Dask-ML
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import pytest
from foreign import adapters
from foreign.suites import SUITES, Suite


class Plugin:
    """Replaces names while modules are collected, and counts what becomes of their tests."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.counts: Counter[str] = Counter()
        self.reasons: defaultdict[str, list[str]] = defaultdict(list)
        self.failed: dict[str, str] = {}
        self.differed: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Any:
        with ExitStack() as stack:
            for name, adapter in self.suite.names.items():
                module, _, attribute = name.rpartition(".")
                stack.enter_context(
                    patch.object(importlib.import_module(module), attribute, adapter)
                )
            return (yield)

    def pytest_runtest_setup(self, item: Any) -> None:
        adapters.used.clear()
        for pattern, reason in self.suite.not_applicable.items():
            if fnmatch(item.name, pattern):
                adapters.cannot(reason)

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.outcome == "failed":
            for pattern in self.suite.differences:
                if fnmatch(name, pattern):
                    self.differed[pattern] += 1
                    return
            self.failed[name] = str(report.longrepr)
        elif report.outcome == "skipped":
            reason = "" if hasattr(report, "wasxfail") else str(report.longrepr[2])
            _, found, reason = reason.partition(adapters.NOT_APPLICABLE)
            if found:
                self.counts["not applicable"] += 1
                self.reasons[reason].append(name)
            else:
                self.counts["skipped by the suite itself"] += 1
        elif report.when == "call":
            touched = self.suite.always or adapters.used
            self.counts["passed" if touched else "passed without a class of ours"] += 1


def ran(suite: Suite, folder: Path | None, *, verbose: bool) -> bool:
    """Run one suite, print what came out, and say whether it was expected."""
    if suite.module:
        file = importlib.util.find_spec(suite.module).origin  # type: ignore[union-attr]
    else:
        file = str(folder / suite.file)  # type: ignore[operator]
    plugin, options = Plugin(suite), ["--quiet", "--no-header", "--no-summary", "--tb=short"]
    options += [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-c",
        os.devnull,
        "--rootdir",
        str(Path(file).parent),
    ]
    with open(os.devnull, "w") as nowhere, ExitStack() as stack:  # noqa: PTH123
        if not verbose:
            stack.enter_context(patch.object(sys, "stdout", nowhere))
        pytest.main([file, *options, *suite.options], plugins=[plugin])
    known = sum(plugin.differed.values())
    counts = ", ".join(f"{n} {what}" for what, n in plugin.counts.items())
    print(f"{suite.name}: {counts}, {known} differ as known, {len(plugin.failed)} failed")
    for reason, names in plugin.reasons.items():
        kinds = Counter(name.partition("[")[0] for name in names)
        print(f"  {len(names)} cannot apply, since {reason}:")
        print(*(f"    {kind} ({n})" for kind, n in kinds.items()), sep="\n")
    for pattern, reason in suite.differences.items():
        print(f"  {plugin.differed[pattern]} differ, since {reason}: {pattern}")
    for name, text in plugin.failed.items():
        print(f"  NOT EXPECTED: {name} fails\n{text if verbose else text.splitlines()[-1]}")
    unused = [pattern for pattern in suite.differences if not plugin.differed[pattern]]
    print(
        *(f"  NOT EXPECTED: {pattern} passes" for pattern in unused),
        sep="\n",
        end="\n" * bool(unused),
    )
    return bool(plugin.counts["passed"]) and not plugin.failed and not unused


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"suites to run: {', '.join(SUITES)}; all")
    parser.add_argument("--dask-ml", type=Path, help="the folder `tests` of a checkout of Dask-ML")
    parser.add_argument("--verbose", action="store_true", help="print pytest's output too")
    given = parser.parse_args()
    there = [s for s in SUITES.values() if s.module or given.dask_ml]
    chosen = [SUITES[name] for name in given.names] or there
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="synchronous"):
        went_well = [ran(suite, given.dask_ml, verbose=given.verbose) for suite in chosen]
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
