"""Reads TOML, or an experiment written in Python, into a Spec. Every error names file, line, key and a correct example;
all errors of a file are reported together.
"""

from .example import EXAMPLE_SPEC
from .load import Spec, find_spec, load_spec, parse_spec
from .problems import Problems
from .profiles import list_profiles
from .study import AnyExperiment, Study, load_experiment

__all__ = [
    "EXAMPLE_SPEC",
    "AnyExperiment",
    "Problems",
    "Spec",
    "Study",
    "find_spec",
    "list_profiles",
    "load_experiment",
    "load_spec",
    "parse_spec",
]  # fmt: skip
