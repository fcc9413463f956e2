"""Reports: what a fit did and how well, in words, pictures, HTML and ONNX."""
