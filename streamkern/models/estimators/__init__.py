"""scikit-learn's conventions about fitted models: all that imports scikit-learn to fit is here."""
