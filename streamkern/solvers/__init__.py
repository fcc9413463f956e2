"""What holds the normal equations of a fit, and the path of penalties."""
