"""What is chosen before or after the pass: the kernel, map, length scale, metric and penalty."""
