"""The folder that commands are run in, as of the tests of other commands."""

from cli.conftest import folder, no_reading

__all__ = ["folder", "no_reading"]
