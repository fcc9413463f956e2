"""Conjugate gradients, which solve without a D x D system by passes over the rows."""
