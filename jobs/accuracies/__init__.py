"""What `accuracy.py` measures: real sets, contenders, and the picture of their errors."""
