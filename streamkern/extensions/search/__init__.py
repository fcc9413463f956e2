"""The search: kernel, length scale, map, metric and scale, chosen on a sample within a budget."""
