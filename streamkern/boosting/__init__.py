"""AdaBoost with random-feature ridge on streamed, reweighted rows."""

from streamkern.boosting.model import BoostedModel, restored_ensemble
from streamkern.boosting.options import BoostingOptions
from streamkern.boosting.rounds import boosting_options

__all__ = ["BoostedModel", "BoostingOptions", "boosting_options", "restored_ensemble"]
