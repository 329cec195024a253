"""Analyses SCTP associations (RFC 9260) beyond the tables of the capture (docs/metrics.md, "SCTP").

`analyze_sctp(capture, flow)` gives an SctpAssociation with .totals, .series, .events and .tables.
"""

from __future__ import annotations

from .association import Association
from .connection import SctpAssociation, analyze_sctp

__all__ = ["Association", "SctpAssociation", "analyze_sctp"]
