"""AdaBoost with random-feature ridge on streamed, reweighted rows."""

from streamkern.boosting.model import BoostedModel, restored_ensemble
from streamkern.boosting.options import BoostingOptions

__all__ = ["BoostedModel", "BoostingOptions", "restored_ensemble"]
