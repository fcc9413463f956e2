"""What tests of other commands have, too."""

from cli.conftest import no_reading

__all__ = ["no_reading"]
