"""The parts of `benchmark.py`: cases, rows, contenders, and what is said of them."""
