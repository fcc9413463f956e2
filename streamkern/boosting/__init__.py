"""AdaBoost with random-feature ridge on streamed, reweighted rows."""

from streamkern.boosting.model import ROUND_COMPONENTS, BoostedModel, restored_ensemble
from streamkern.boosting.options import BoostingOptions
from streamkern.boosting.rounds import boosting_options

__all__ = [
    "ROUND_COMPONENTS",
    "BoostedModel",
    "BoostingOptions",
    "boosting_options",
    "restored_ensemble",
]
