"""Calibrates links: runs small cells and compares their captures with plain arithmetic."""

from .aqm import aqm_probes
from .buckets import bucket_probes
from .datagram_judge import VIRTUAL, WALL, ProbeClock, judge_profile, wall_clock
from .datagram_probes import ON_THE_WALL_CLOCK, Budget, generic_probes, netem_probes, over_ipv6, profile_probes
from .datagrams import Probe
from .rules import rule_probes

__all__ = [
    "ON_THE_WALL_CLOCK",
    "VIRTUAL",
    "WALL",
    "Budget",
    "Probe",
    "ProbeClock",
    "aqm_probes",
    "bucket_probes",
    "generic_probes",
    "judge_profile",
    "netem_probes",
    "over_ipv6",
    "profile_probes",
    "rule_probes",
    "wall_clock",
]
