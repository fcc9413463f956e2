"""Fields: rows of few inputs, such as coordinates and time, by a regular grid of waves."""
