"""Spec x factors -> Plan: product first, then resolve ("1 bdp" of this cell), then freeze."""

from .make import make_plan
from .types import Plan

__all__ = ["Plan", "make_plan"]
