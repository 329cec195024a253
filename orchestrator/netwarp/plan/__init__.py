"""Makes the cells of an experiment: the product of its factors, each combination resolved ("1 bdp" of this cell) and
frozen.
"""

from .make import make_plan
from .types import Plan

__all__ = ["Plan", "make_plan"]
