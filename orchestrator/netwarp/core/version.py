"""The version of netwarp."""

__version__ = "0.1.0"
