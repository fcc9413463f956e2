"""The moments of a data set, as an object and a file: merged, relieved of rows, and solved."""

from streamkern.datamoments.moments import DataMoments, load_moments, moments_header

__all__ = ["DataMoments", "load_moments", "moments_header"]
