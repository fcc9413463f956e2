"""The version of streamkern, on its own so that a build can read it."""

__version__ = "0.1.0"
