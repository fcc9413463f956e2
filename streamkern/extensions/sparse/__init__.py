"""Sparse models: the best K of many features, chosen from sums."""
