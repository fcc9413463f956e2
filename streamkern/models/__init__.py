"""Fits, what they leave (moments, fitted models, their files), and the estimators."""
