"""Learning the metric of a kernel on a sample of the rows, before the pass that fits."""

from streamkern.learning.choice import LearntMetric, check_metric_of, in_metric, learnt_metric
from streamkern.learning.rounds import Round

__all__ = ["LearntMetric", "Round", "check_metric_of", "in_metric", "learnt_metric"]
