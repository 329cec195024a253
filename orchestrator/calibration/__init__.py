"""Calibration: is what was configured what the wire shows? Small cells, each measured against plain arithmetic."""

from .judge import Row, judge
from .probes import Probe, probes

__all__ = ["Probe", "Row", "judge", "probes"]
