"""Spec x factors -> Plan: product first, then resolve ("1 bdp" of this cell), then freeze."""

from ..study import Plan, plan_from_json
from .make import make_plan

__all__ = ["Plan", "make_plan", "plan_from_json"]
