"""The suites: which names are replaced in them, which tests cannot apply, which differ, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from foreign import adapters as a


class Suite(NamedTuple):
    """A module of tests; patterns are regular expressions that names of tests begin with."""

    module: str  # where it is installed, or a file in a folder of tests
    names: dict[str, Any]
    not_applicable: dict[str, str] = {}  # noqa: RUF012  nobody changes it
    differences: dict[str, str] = {}  # noqa: RUF012


LINEAR = "sklearn.linear_model."
SUITES = {
    "kernel_ridge": Suite(
        "sklearn.tests.test_kernel_ridge",
        {"sklearn.kernel_ridge.KernelRidge": a.KernelRidge},
        differences={
            "test_kernel_ridge_sparse": "exact rows are dense, and sparse ones refused",
            "test_kernel_ridge_singular": "a system without a Cholesky factor is refused",
        },
    ),
    "kernel_approximation": Suite(
        "sklearn.tests.test_kernel_approximation",
        {
            f"sklearn.kernel_approximation.{kind.__name__}": kind
            for kind in (a.RBFSampler, a.Nystroem)
        },
        differences={
            "test_nystroem_approximation": "additive_chi2, which is 0 of equal rows, is refused"
        },
    ),
    "ridge": Suite(
        "sklearn.linear_model.tests.test_ridge",
        {LINEAR + kind.__name__: kind for kind in (a.Ridge, a.RidgeCV)}
        | {LINEAR + kind.__name__: kind for kind in (a.RidgeClassifier, a.RidgeClassifierCV)},
        {
            r".*array_api": "arrays are NumPy's: no other namespace is dispatched to",
            r".*(positive|lbfgs)": "coefficients have no sign that is asked for",
            r".*[[-](svd|lsqr|saga?|sparse_cg)\b|.*(_sag|sparse_error|n_iter|sparse_cg)": (
                "the solver and its tolerance are not chosen by these names"
            ),
            r"test_(primal_dual|X_Cent|compute_|check_gcv|ridge_regression_(con|che|dt))": (
                "a function of scikit-learn is called, and no class"
            ),
            r".*(cv_results|results_pred|gcv_sample_w|gcv_int|multioutput_sample)": (
                "errors of rows at every penalty are not kept"
            ),
        },
        {
            "test_ridge_regression_unpenal": "a singular system with no penalty is refused",
            "test_regularization_limits": "1e-16 leaves out no row that others predict: refused",
            "test_(ridge_shapes|dense_sparse.*_ridge_cv)": "the intercept of one target is a float",
            "test_ridgecv_alphas_(zero|valid)": "the messages are streamkern's",
            "test_raises_value_error": "a weight for all rows is no vector, and refused",
            "test_dtype_match": "coefficients of sums in double are double",
            "test_ridgeclassifier_multilabel": "a row has one label",
        },
    ),
    "calibration": Suite(
        "sklearn.tests.test_calibration",
        {
            f"sklearn.{name}": a.scores
            for name in (
                "svm.LinearSVC",
                "linear_model.LogisticRegression",
                "linear_model.SGDClassifier",
                "ensemble.RandomForestClassifier",
                "naive_bayes.MultinomialNB",
                "tree.DecisionTreeClassifier",
            )
        },
        {".*array_api": "arrays are NumPy's: no other namespace is dispatched to"},
        {
            r"test_calibration\[True-sigmoid-csr_(matrix|array)\]$": (
                "a sigmoid makes these scores worse, whose Brier score is 0.124, and not better"
            ),
            r"test_calibration_frozen\[isotonic-csr_(matrix|array)\]$": (
                "steps make these scores worse, whose Brier score is 0.096, and not better"
            ),
            r"test_temperature_scaling\[False-[235]\]$": (
                "probabilities without a calibration are scores cut off at 0 and 1, whose order "
                "is not that of the scores"
            ),
            r"test_calibrated_classifier_cv_double_sample_weights_equivalence"
            r"\[(True|False)-(sigmoid|isotonic|temperature)\]$": (
                "sums in single precision differ by more than 1e-7"
            ),
            r"test_calibrated_classifier_cv_works_with_large_confidence_scores\[\d+\]$": (
                "scores are near +1 and -1, and never above 10,000"
            ),
            r"test_calibration_display_compute\[(uniform|quantile)-(5|10)\]$": (
                "the name of the class is RandomFeatureClassifier"
            ),
            "test_calibration_inconsistent_prefit_n_features_in$": (
                "the message names the class RandomFeatureClassifier"
            ),
            "test_calibration_(default_estimator|with_non_sample_aligned_fit_param)$": (
                "a function takes the place of the class, which the test asks for or inherits"
            ),
        },
    ),
    "incremental": Suite(
        "test_incremental.py",
        {LINEAR + "SGDClassifier": a.scores, LINEAR + "SGDRegressor": a.regression},
    ),
    "parallel_post_fit": Suite(
        "test_parallel_post_fit.py",
        {
            LINEAR + "LogisticRegression": a.scores,
            LINEAR + "LinearRegression": a.regression,
            "sklearn.ensemble.GradientBoostingClassifier": a.scores,
        },
    ),
}
