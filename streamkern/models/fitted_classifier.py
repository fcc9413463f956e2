"""What a fitted classifier can do, however it was fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streamkern.models.classifier_passes import calibrated_by_rows
from streamkern.models.labelling import described_class_weight
from streamkern.models.model_files import ModelFile, write_model
from streamkern.models.scored_classes import ScoredClasses
from streamkern.predict.calibration_fit import checked_method
from streamkern.predict.calibrators import PlainRule
from streamkern.predict.class_rule import ClassRule

if TYPE_CHECKING:
    from pathlib import Path

    from streamkern._typing import Floats
    from streamkern.features import FeatureMap
    from streamkern.kernels import Kernel
    from streamkern.models.data_moments import DataMoments
    from streamkern.models.ridge_model import RidgeModel
    from streamkern.predict.predictor import RowFunction


class FittedClassifier(ScoredClasses):
    """What a ridge regression that gives scores says of a classifier, its calibration and its file.

    A class that fits calls `_take`.
    """

    _fitted_by = "ridge_"
    ridge_: RidgeModel
    class_weight: Any
    calibration: Any

    def _take(self, ridge: RidgeModel, rule: ClassRule, class_factors: Floats | None) -> Self:
        """Set the fitted attributes from a regression, a rule, and weights of classes."""
        self._take_ridge(ridge, class_factors)
        self.rule_ = rule
        return self

    def _take_ridge(self, ridge: RidgeModel, class_factors: Floats | None) -> None:
        """Set all but what turns scores into classes and probabilities."""
        self.ridge_, self.class_factors_ = ridge, class_factors
        self._note_inputs(ridge._known_report()["n_features"], ridge._feature_names())

    @property
    def report_(self) -> dict[str, Any]:
        """Rows, seconds, memory and diagnostics of the fit; errors are those of the scores."""
        # The regression, and its report, may be that of copies which are calibrated otherwise.
        return {**self.ridge_.report_, "calibration": self.rule_.calibrator.name}

    @property
    def moments_(self) -> DataMoments | None:
        """Of the rows, where they are kept: what `partial_fit` adds to; None where they are not."""
        self._check_fitted()
        return self.ridge_.moments_

    @property
    def coef_(self) -> Floats:
        """Of the scores before calibration, (D,) for two classes, else (D, K)."""
        return self.ridge_.coef_

    @property
    def intercept_(self) -> Any:
        """Of the scores before calibration, a float for two classes, else (K,)."""
        return self.ridge_.intercept_

    @property
    def feature_map_(self) -> FeatureMap:
        """From raw rows to features, standardisation included."""
        return self.ridge_.feature_map_

    @property
    def kernel_(self) -> Kernel:
        """With its length scale resolved."""
        return self.ridge_.kernel_

    @property
    def alpha_(self) -> Any:
        """The penalty that was given or chosen."""
        return self.ridge_.alpha_

    @property
    def metric_(self) -> Floats:
        """M (p, p), as of `RandomFeatureRidge`."""
        return self.ridge_.metric_

    def transform(self, X: Any) -> Any:
        """Return the features (n, D) of rows (n, p), as `RandomFeatureRidge.transform` does."""
        self._check_fitted()
        X, *_ = self._tables(X)
        return self.ridge_.transform(X)

    def calibrate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        calibration: str | None = "sigmoid",
    ) -> Self:
        """Calibrate the probabilities by rows that the model was not fitted on, in one pass.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        calibration : {'sigmoid', 'isotonic'}, optional
            As the parameter of that name, which stays as it is.  None forgets the calibration, and
            reads no rows.
        """
        source = self._labelled(X, y, sample_weight, weighted=True)
        if checked_method(calibration) is None:
            calibrator: Any = PlainRule(source.n_targets)
        else:
            calibrator = calibrated_by_rows(self.ridge_, source, str(calibration))
        self.rule_ = ClassRule(self.rule_.classes, calibrator)
        return self

    @property
    def predictor_(self) -> RowFunction:
        """What gives the scores of rows."""
        return self.ridge_.predictor_

    def _scores(self, X: Any) -> Any:
        return self.ridge_.predict(X)

    def save(self, path: str | Path, *, compact: bool = False, force: bool = False) -> None:
        """Write the fitted model to an HDF5 file, which `streamkern.load` reads.

        Parameters and errors are those of `RandomFeatureRidge.save`.
        """
        self._check_fitted()
        rule, factors = self.rule_, self.class_factors_
        card = self.ridge_._card() | {
            "kind": "RandomFeatureClassifier",
            "report": self.report_,
            "feature_names": self._feature_names(),
            "classifier": {
                **rule.as_dict(),
                "class_factors": None if factors is None else factors.tolist(),
                "option_class_weight": described_class_weight(self.class_weight),
                "option_calibration": self.calibration,
            },
        }
        kept = None if compact else self.ridge_.equations_
        write_model(path, ModelFile(self.ridge_.predictor_, card, kept), force=force)
