"""The version of probdice."""

__version__ = "0.1.0"
