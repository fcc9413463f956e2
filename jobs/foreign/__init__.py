"""Classes of streamkern in the place of those that other projects test."""
