"""scikit-learn's own checks of every estimator: python jobs/sklearn_checks.py.

Prints how many checks ran and passed, and those that are expected to fail, each with its reason.
Ends with status 1 where another one fails, or where one passes that is expected to fail.  A warning
fails a check.
"""

import argparse
import os
import sys
import time
import warnings
from typing import Any, NamedTuple

if __name__ == "__main__":
    # Without it one check, of arrays that are not NumPy's, is left out; SciPy reads it once.
    os.environ["SCIPY_ARRAY_API"] = "1"

import dask
from sklearn.utils.estimator_checks import check_estimator

from streamkern import (
    ExactKernelRidge,
    Gaussian,
    GridFourierFeatures,
    Identity,
    Nystroem,
    QuasiRandomFourierFeatures,
    RandomFeatureAdaBoost,
    RandomFeatureClassifier,
    RandomFeaturePCA,
    RandomFeatureRidge,
    RandomFourierFeatures,
    StructuredFourierFeatures,
)


class Case(NamedTuple):
    """An estimator, and the checks that it fails, with the reason for each."""

    estimator: Any
    expected: dict[str, str] = {}  # noqa: RUF012  nobody changes it


EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
FEW_INPUTS = dict.fromkeys(
    (
        "check_all_zero_sample_weights_error",
        "check_array_api_input",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        *EQUIVALENCE,
    ),
    "the check has more than three inputs, for which a grid has too many points",
)
WEIGHTS = dict.fromkeys(EQUIVALENCE, "rows are dealt to folds one by one, whatever they weigh")
LANDMARKS = dict.fromkeys(
    EQUIVALENCE, "landmarks begin at rows that are drawn by their places, whatever they weigh"
)
SINGLE = {
    "check_methods_subset_invariance": "features are in single precision, and the check asks for "
    "seven digits"
}
ROUNDED = dict.fromkeys(
    EQUIVALENCE, "features are in single precision, and the check asks for nine digits"
)
# scikit-learn 1.6 gives sparse rows to what says that it takes none.
DENSE = {EQUIVALENCE[1]: "sparse rows are refused with a DataError, and the check has a TypeError"}
LEFT_OUT = DENSE | {
    EQUIVALENCE[0]: "a row of weight 2 is left out whole, and of two equal rows one at a time"
}
BY_NAME = {
    "check_dataframe_column_names_consistency": "columns of data frames go by their names, in any "
    "order, and the check asks for an error"
}

# The first of every class fails what the class fails as it is by default, of more features.
CASES = (
    Case(RandomFeatureRidge(n_components=32), WEIGHTS | BY_NAME),
    Case(
        RandomFeatureRidge(
            Gaussian(2.0), n_components=32, alpha=1.0, paired=False, precision="double"
        ),
        BY_NAME,
    ),
    Case(RandomFeatureClassifier(n_components=32), WEIGHTS | BY_NAME),
    Case(
        RandomFeatureClassifier(
            Gaussian(2.0),
            n_components=32,
            alpha=1.0,
            paired=False,
            precision="double",
            calibration=None,
        ),
        BY_NAME,
    ),
    Case(
        RandomFeatureAdaBoost(RandomFeatureRidge(n_components=128), n_estimators=1),
        WEIGHTS | SINGLE | BY_NAME,
    ),
    Case(
        RandomFeatureAdaBoost(
            RandomFeatureRidge(Gaussian(2.0), n_components=32, alpha=1.0, precision="double"),
            n_estimators=3,
        ),
        BY_NAME,
    ),
    Case(RandomFeaturePCA(n_random_features=32), ROUNDED | BY_NAME),
    Case(RandomFeaturePCA(n_random_features=32, precision="double"), BY_NAME),
    Case(ExactKernelRidge(), DENSE),
    Case(ExactKernelRidge(alpha="loo"), LEFT_OUT),
    Case(RandomFourierFeatures(n_components=16)),
    Case(RandomFourierFeatures(n_components=16, paired=False)),
    Case(QuasiRandomFourierFeatures(n_components=16)),
    Case(QuasiRandomFourierFeatures(n_components=16, paired=False)),
    Case(StructuredFourierFeatures(n_components=16)),
    Case(StructuredFourierFeatures(n_components=16, paired=False)),
    Case(GridFourierFeatures(n_components=16), FEW_INPUTS),
    Case(Nystroem(n_components=16), LANDMARKS),
    Case(Identity()),
)


def checked(case: Case) -> bool:
    """Run the checks of one estimator, print what came out, and say whether it was expected."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = check_estimator(
            case.estimator, expected_failed_checks=case.expected, on_fail=None, on_skip=None
        )
    found: dict[str, list[str]] = {"passed": [], "failed": [], "xfail": [], "skipped": []}
    for result in results:
        found[result["status"]].append(result["check_name"])
    names = " ".join(repr(case.estimator).split())
    print(
        f"{names}: {len(results)} checks, {len(found['passed'])} passed, "
        f"{len(found['xfail'])} failed as expected, {len(found['failed'])} failed, "
        f"{len(found['skipped'])} left out, {time.perf_counter() - begun:.1f} s"
    )
    by_reason: dict[str, list[str]] = {}
    for name, reason in case.expected.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, expected in by_reason.items():
        print(f"  {len(expected)} expected, since {reason}:")
        print(*(f"    {name}" for name in expected), sep="\n")
    wrong = dict.fromkeys(found["failed"], "fails")
    wrong |= {name: "passes" for name in case.expected if name in found["passed"]}
    for name, how in wrong.items():
        print(f"  NOT EXPECTED: {name} {how}")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="classes to check, by default all")
    parser.add_argument("--defaults", action="store_true", help="as they are by default: minutes")
    given, cases = parser.parse_args(), CASES
    if given.defaults:
        first = {type(case.estimator): case.expected for case in reversed(CASES)}
        cases = tuple(Case(kind(), expected) for kind, expected in first.items())
    names = given.names
    with dask.config.set(scheduler="synchronous"):
        went_well = [
            checked(case) for case in cases if not names or type(case.estimator).__name__ in names
        ]
    return 0 if went_well and all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
