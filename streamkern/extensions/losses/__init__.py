"""Other losses than the squared one, by reweighted passes."""

# How a loss is named.
FORM = "squared|logistic|multinomial|poisson|gamma|tweedie:P|huber[:T]|quantile:Q[,Q...]"
# What may stand beside rows, of which it makes rates or differences.
KINDS = ("exposure", "offset")
