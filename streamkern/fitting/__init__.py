"""The calls of a fit, a file each, in the order of `fit.py`."""
