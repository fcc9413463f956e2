"""What the processor that tests run on multiplies exactly."""

import pytest

from streamkern.registry import extension


def require_exact_products(name):
    """Skip a test of products that are not installed, or that the program refuses here."""
    if name not in extension("integers", "integer_products").exact_products():
        pytest.skip(
            f"products of bytes by {name} are not installed, or not exact on this processor"
        )
