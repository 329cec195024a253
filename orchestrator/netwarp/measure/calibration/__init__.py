"""Calibrates links: runs small cells and compares their captures with plain arithmetic."""

from .aqm_probes import aqm_probes
from .datagram_judge import VIRTUAL, WALL, Clock, judge_profile
from .datagram_probes import ON_THE_WALL_CLOCK, Budget, netem_probes, profile_probes
from .rule_probes import rule_probes
from .tcp_judge import judge
from .tcp_probes import Probe, probes

__all__ = [
    "ON_THE_WALL_CLOCK",
    "VIRTUAL",
    "WALL",
    "Budget",
    "Clock",
    "Probe",
    "aqm_probes",
    "judge",
    "judge_profile",
    "netem_probes",
    "probes",
    "profile_probes",
    "rule_probes",
]
