"""Spec x factors -> Plan: product first, then resolve ("1 bdp" of this cell), then freeze."""

from .make import make_plan

__all__ = ["make_plan"]
