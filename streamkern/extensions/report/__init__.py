"""Reports: a fitted model as one HTML page, and its pictures."""
