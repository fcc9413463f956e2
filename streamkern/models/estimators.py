"""The scikit-learn face: random-feature models that are estimators too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin

from streamkern.models.boosting_model import BoostedModel, restored_ensemble
from streamkern.models.callbacks import CallbackSupportMixin, told_to_callbacks
from streamkern.models.classifier_model import ClassifierModel, restored_classifier
from streamkern.models.component_estimator import RandomFeaturePCA, restored_pca
from streamkern.models.component_files import read_components
from streamkern.models.conventions import FeatureEstimator, TableEstimator
from streamkern.models.ensemble_files import read_ensemble
from streamkern.models.model_files import read_model
from streamkern.models.ridge_model import RidgeModel, restored
from streamkern.storage import holds_components, holds_ensemble

if TYPE_CHECKING:
    from pathlib import Path


class RandomFeatureRidge(
    CallbackSupportMixin,  # type: ignore[misc]
    FeatureEstimator,
    RidgeModel,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Kernel ridge regression by random features, in two passes over the rows.

    Minimises sum_i s_i |y_i - mu - phi(x_i)^T w|^2 + alpha |w|^2, s_i being the weight of a row, 1
    by default, and phi(x)^T phi(x') equal to the kernel in expectation.  Rows may be more than
    memory holds: memory grows with D^2, not with n.  Work runs on the current Dask scheduler.

    Parameters
    ----------
    kernel : Kernel or str
        By default Gaussian with the median length scale; or its name, or what the command line
        takes for --kernel, such as 'matern32' or 'gaussian[0-2]*periodic(period=7)[3]'.
    n_components : int or 'auto'
        D, the number of features; with pairs, of D / 2 frequencies, the last of which has a cosine
        alone, of random phase, where D is odd.  'auto' makes 4,096, or fewer where there are fewer
        rows, and keeps the smallest of 64, 128, ... of them whose cross-validated error is within
        one standard error of the best, without reading the rows again.
    alpha : float, sequence of float, or {'cv', 'gcv', 'evidence', 'loo'}
        The penalty, in the units of the sum of squares: not divided by n.  Or penalties to choose
        from by cross-validation; or how to choose: by cross-validation, robust generalised
        cross-validation, the evidence, for which the rows are not read again, or by leaving out
        every row in turn, exactly, in one more pass.  One penalty for several targets has the
        least error as a share of their variances, averaged; by 'loo' the least mean squared error
        of the targets as they are, as in `sklearn.linear_model.RidgeCV`.
    alphas : sequence of float, optional
        What to choose from, where `alpha` says how; by default 30 penalties between the precision
        floor and the largest eigenvalue of G.
    n_folds : int
        K, the parts that cross-validation leaves out in turn.
    fold_by : {'auto', 'shards', 'rows', 'blocks'}
        How rows are dealt to folds: whole shards by a seeded shuffle, which costs no memory while
        rows are read; rows, spread evenly by a seeded rule; or contiguous blocks, for rows in the
        order of time.  'auto' is shards where there are 4 a fold, else rows.
    per_target : bool
        Choose one penalty for every target, instead of one for all.
    one_standard_error : bool
        Choose the largest penalty whose error is within one standard error of the least.
    sparse : int or 'auto', optional
        K, the number of features that are kept of the D: the model predicts in K cosines.  'auto'
        keeps the fewest of 1, 2, 3, 4, 6, 8, 11, 16, ... D whose cross-validated error is within
        one standard error of the best; every fold is predicted with features chosen without it.
    sparse_method : {'forward', 'omp', 'lasso'}
        How they are chosen: each the one that lowers the sum of squares most; orthogonal matching
        pursuit; or the path of the lasso.  The coefficients are those of ridge, whichever it is.
    feature_map : str
        Fourier features of frequencies that are random, 'orthogonal' or independent ('iid'); by
        fast transforms, for hundreds of inputs ('sorf'); at Sobol or Halton points ('qmc',
        'halton'); on a 'grid', for one to three inputs.  The kernel at landmarks, for every kernel:
        'nystroem', 'nystroem-uniform' or 'nystroem-pivoted'.  'binning' for the Laplacian kernel;
        'sketch' for the polynomial one; 'identity' for the inputs as features, D = p of them;
        'auto', for `tune` alone, is a short list to choose from.
    paired : bool
        Cosine and sine of every frequency, or cosines with random phases.
    metric : str, or ndarray of shape (p, p), optional
        M: the kernel takes (x - x')^T M (x - x') of standardised rows for the squared distance.
        'learn' takes the average gradient outer product of a fit for the metric of the next one, in
        up to four rounds, or ROUNDS of 'learn:ROUNDS', and keeps the round that predicts rows held
        out best, or plain distances where no round does better by more than a standard error;
        'diagonal' or 'diagonal:ROUNDS' learns one weight an input, as 'learn' does for the
        Laplacian kernel, whose distance is along the axes.  That is done on a sample of up to
        16,384 rows, at up to 1,024 features, and takes 10 rows an input.  The length scale is
        chosen again in every round.
    standardize : bool
        Take inputs less their means, over their standard deviations; where fewer than a tenth of
        the rows depart from the value that all others have, over what it would be if a tenth did.
    fit_intercept : bool
    precision : {'single', 'double'}
        Of features and products, which are summed in double.
    on_bad_rows : {'error', 'skip'}
        What to do about rows with values that are not finite.
    random_state : int

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (D, q)
    intercept_ : float or ndarray of shape (q,)
    feature_map_ : FeatureMap
        From raw rows to features, standardisation included.
    kernel_ : Kernel
        With its length scale resolved.
    alpha_ : float
    metric_ : ndarray of shape (p, p)
        M, the identity where no metric was given or learnt; 0 for inputs that are left out.
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit.  `errors_from` says whether `train_rmse`
        and `cv_rmse` are told by the 'moments', or by the 'rows', or are a 'bound', where residuals
        are smaller than the rounding of sums.
    penalty_curve_ : PenaltyCurve or None
        What the penalty was chosen by, with the errors of every fold; not saved.
    moments_ : DataMoments or None
        Of all rows that are in, where they were to be kept or rows come and go; not saved with the
        model, but by themselves.
    recipe_ : Recipe or None
        How a table became the inputs, where it was not numbers alone, or `convert` wrote it.
    n_features_in_ : int
        Columns of the rows that were fitted, before a recipe makes inputs of them.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where a data frame or a table had some.  Predictions ask a frame for the same:
        in any order and among others where there is a recipe.

    Notes
    -----
    Of features that are there already this is `sklearn.linear_model.RidgeCV` out of core, where
    `feature_map` is 'identity', `standardize` False, `precision` 'double' and `alpha` 'loo', with
    its grid as `alphas` and its `alpha_per_target` as `per_target`; `n_folds` in `fold_by` 'blocks'
    are its `cv` with `scoring` 'neg_mean_squared_error', and `penalty_curve_` has the means of its
    `cv_results_`.  A target of 1 and -1, or one for every class of several, makes it
    `RidgeClassifierCV`.

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models", for the metric.
    """

    fit = told_to_callbacks(RidgeModel.fit)
    tune = told_to_callbacks(RidgeModel.tune)


class RandomFeatureClassifier(
    CallbackSupportMixin,  # type: ignore[misc]
    FeatureEstimator,
    ClassifierModel,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Kernel classification by random features, in a few passes over the rows.

    Ridge regression on +1 for a class and -1 for the rest, as scikit-learn's `RidgeClassifier`: of
    K classes each against the rest, from the same sums, and of two classes one.  Scores become
    probabilities by a calibration on rows that the model which predicts them has not seen: every
    row is predicted from the moments of the other folds.  Classes are chosen by these
    probabilities, each against the rest.

    Parameters
    ----------
    kernel, n_components, feature_map, paired, metric, standardize, fit_intercept, precision
        As of `RandomFeatureRidge`.
    alpha, alphas, n_folds, fold_by, per_target, one_standard_error
        As of `RandomFeatureRidge`: what is compared is the squared error of +1 and -1, and with
        `per_target` each class has a penalty of its own.  Folds are made for the calibration too,
        whatever `alpha` is.
    sparse, sparse_method, random_state
        As of `RandomFeatureRidge`.
    on_bad_rows : {'error', 'skip'}
        What to do about rows with values that are not finite, or without a label.
    class_weight : 'balanced', or mapping of label to float, optional
        What weights of rows are multiplied by.  'balanced' is N / (K N_k) for a class of weight
        N_k, so that all classes weigh the same.  Probabilities are then those of rows so weighted.
    calibration : {'sigmoid', 'isotonic'}, optional
        Platt's sigmoid, or a function that never falls, for each class against the rest.  With
        None the probability is (1 + s) / 2 of a score s, cut off at 0 and 1, no folds are made for
        it, and the rows are read once less.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (D,), or (D, K) for more classes than two
        Of the scores before calibration.
    intercept_ : float or ndarray of shape (K,)
    feature_map_, kernel_, alpha_, metric_, n_features_in_
        As of `RandomFeatureRidge`.
    report_ : dict
        Rows, seconds, memory and diagnostics of the fit; its errors are those of +1 and -1.
    ridge_ : RidgeModel
        The regression that gives the scores.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", for isotonic regression, and for more classes than two.
    """

    fit = told_to_callbacks(ClassifierModel.fit)
    tune = told_to_callbacks(ClassifierModel.tune)


class RandomFeatureAdaBoost(
    CallbackSupportMixin,  # type: ignore[misc]
    TableEstimator,
    BoostedModel,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """AdaBoost with random-feature ridge regression, on rows that are weighted as they are read.

    A round is ridge regression on +1 and -1, as of `RandomFeatureClassifier`, with a map of its own
    and the standardisation and kernel that all rounds share.  Its scores become votes, the votes
    V (n, K) of all rounds are added up, and the class with most is chosen.  The next round weighs a
    row of class y by its own weight times exp(-V_y), which is computed where the row is read, from
    the rounds before: nothing is kept of any row.  A round is two passes over the rows, one for
    sums and a light one for what its votes count.

    Memory and solving take the D of one round, not of all together.  A single model of as many
    features, where it can be had, often gets fewer rows wrong.

    Parameters
    ----------
    estimator : RandomFeatureRidge, optional
        What every round is, by default of 512 features; the seed of its map is `random_state` in
        the first round and one more in each after it.
    n_estimators : int
        T, the most rounds there may be.  There are fewer where one does no better than chance on
        its weights, or gets no row wrong: `report_["stopped"]` says so.
    algorithm : {'gentle', 'real', 'discrete'}
        How scores become votes: as they are, which is Gentle AdaBoost; by the logarithms of the
        probabilities that they estimate, which is Real AdaBoost, or SAMME.R; or as one class, with
        a weight that follows from how many rows are wrong, which is AdaBoost, or SAMME.
    learning_rate : float
        What votes are multiplied by besides, above 0 and at most 1.
    class_weight : 'balanced', or mapping of label to float, optional
        As of `RandomFeatureClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    ensemble_ : Ensemble
        The predictors of the rounds, with what their votes are multiplied by.
    report_ : dict
        Rows, seconds and memory of the fit, and `rounds`: of each its weighted error, and the
        training error after it, for two classes with its bound, the mean of exp(-V) for the votes
        V of a row's class.  Both are means with the weights of rows.
    n_features_in_ : int

    Notes
    -----
    Probabilities are those of the additive model that the rounds fit: p_k is in proportion to
    exp(V_k).

    References
    ----------
    Freund and Schapire (1997), "A decision-theoretic generalization of on-line learning and an
    application to boosting", for AdaBoost and the bound.
    Friedman, Hastie and Tibshirani (2000), "Additive logistic regression: a statistical view of
    boosting", for Real and Gentle AdaBoost, and probabilities.
    Zhu, Zou, Rosset and Hastie (2009), "Multi-class AdaBoost".
    """

    fit = told_to_callbacks(BoostedModel.fit)


def load(
    path: str | Path,
) -> RandomFeatureRidge | RandomFeatureClassifier | RandomFeatureAdaBoost | RandomFeaturePCA:
    """Read a model of any kind: what `save`, or `streamkern fit`, `tune`, or `pca`, wrote.

    Raises
    ------
    ModelFileError
        If the file is missing, is not a model, is damaged, or has a newer format.
    """
    if holds_ensemble(path):
        boosted = read_ensemble(path)
        return restored_ensemble(RandomFeatureAdaBoost, RandomFeatureRidge, boosted, path)
    if holds_components(path):
        return restored_pca(*read_components(path), path)
    file = read_model(path)
    if "classifier" in file.card:
        return restored_classifier(RandomFeatureClassifier, file, path)
    return restored(RandomFeatureRidge, file, path)
