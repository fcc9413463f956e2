"""Extensions: a folder each, which imports the core and no other; `registry.py` finds them."""
