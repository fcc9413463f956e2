"""The passes of a fit: their context, and the first of them."""
