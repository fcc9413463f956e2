"""Estimators as scikit-learn has them, and the tasks that they are for."""
