"""Exact kernel ridge regression, and random features compared with it."""
