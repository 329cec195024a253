"""Calibration: is what was configured what the wire shows? Small cells, each measured against plain arithmetic."""

from .netem_judge import judge
from .probes import Probe, probes
from .profile_judge import VIRTUAL, WALL, Clock, Curve, judge_profile
from .profile_probes import ON_THE_WALL_CLOCK, Budget, netem_probes, profile_probes
from .row import Row

__all__ = [
    "ON_THE_WALL_CLOCK",
    "VIRTUAL",
    "WALL",
    "Budget",
    "Clock",
    "Curve",
    "Probe",
    "Row",
    "judge",
    "judge_profile",
    "netem_probes",
    "probes",
    "profile_probes",
]
