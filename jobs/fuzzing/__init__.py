"""The parts of `fuzz.py`: files whose structure is strange."""
