"""Other losses than the squared one, by reweighted passes."""

# How a loss is named.
FORM = "squared|logistic|multinomial|poisson|gamma|tweedie:P|huber[:T]|quantile:Q[,Q...]"
