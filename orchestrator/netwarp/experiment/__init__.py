"""Reads TOML into a Spec. Every error names file, line, key and a correct example; all errors of a file are reported
together.
"""

from .example import EXAMPLE_SPEC
from .load import Spec, find_spec, load_spec, parse_spec
from .problems import Problems
from .profiles import list_profiles

__all__ = ["EXAMPLE_SPEC", "Problems", "Spec", "find_spec", "list_profiles", "load_spec", "parse_spec"]
