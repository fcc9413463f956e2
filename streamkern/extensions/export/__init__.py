"""Export: the predictions of fitted models as ONNX graphs."""
