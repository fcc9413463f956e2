"""Rows that come and go: moments merged, rows taken out of them, and models that grow."""
