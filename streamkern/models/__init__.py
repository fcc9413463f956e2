"""What a fit leaves: moments, fitted models, their files and what is told of them."""
