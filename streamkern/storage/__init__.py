"""What streamkern writes: files of models and moments, and tables of rows, whole or not at all."""
