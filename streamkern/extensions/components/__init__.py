"""Kernel principal components: the leading directions of the features of all rows."""
