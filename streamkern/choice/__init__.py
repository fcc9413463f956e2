"""The kernel and scale of a fit, chosen by small fits to the sample of the first pass."""
