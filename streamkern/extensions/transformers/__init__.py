"""scikit-learn transformers: the feature maps alone, drawn when they are fitted."""
