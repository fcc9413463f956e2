"""AdaBoost: rounds of ridge regression on rows weighted by how the rounds before did."""
