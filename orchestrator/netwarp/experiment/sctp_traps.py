"""Settings of an SCTP end that do something else than they seem to: a rule each, with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.numbers import in_short
from ..core.units import counted, parse_quantity

KERNEL_S = {"rto_initial": 3.0, "rto_min": 1.0, "rto_max": 60.0}
KERNEL_COUNTS = {"association_max_retrans": 10, "path_max_retrans": 5}
"""Linux' own values (net/sctp/protocol.c, sctp_defaults_init)."""
SHORT_S = 0.1
"""An INIT's timer below it is rather a number of seconds that was taken as milliseconds."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A setting of an end, what it does, and where that is written."""

    setting: str
    text: str
    source: str

    @property
    def words(self) -> str:
        """A sentence."""
        return f"{self.text} ({self.source})"


def traps(settings: Mapping[str, Any], *, connects: bool, paths: int) -> Iterator[Trap]:
    """Those of an end with these settings (options of docs/spec.md; what is left out is Linux' own). connects: False:
    it listens. paths: of the association.
    """
    least, most, first = (_seconds(settings, name) for name in ("rto_min", "rto_max", "rto_initial"))
    retrans, path_retrans = (_count(settings, name) for name in KERNEL_COUNTS)
    if least == most:
        timeouts, after = counted(retrans + 1, "timeout"), in_short(least * (retrans + 1), "s")
        text = (
            f"rto_min and rto_max are both {in_short(least, 's')}: the RTO does not double, and {timeouts} end the "
            f"association after {after} without an answer"
        )
        yield Trap("rto_max", text, "RFC 9260 6.3.3 E2, 8.1")
    if not least <= first <= most and "rto_initial" in settings:
        bounds = f"{in_short(least, 's')} to {in_short(most, 's')}"
        text = f"rto_initial {in_short(first, 's')} lies outside {bounds}, and holds until a round trip is measured"
        yield Trap("rto_initial", text, "RFC 9260 6.3.1 C1")
    if paths > 1 and retrans > paths * path_retrans:
        text = (
            f"association_max_retrans {retrans} is larger than path_max_retrans of {counted(paths, 'path')} together "
            f"({paths * path_retrans}): all paths may be inactive while the association still counts as reachable"
        )
        yield Trap("association_max_retrans", text, "RFC 9260 8.2")
    if settings.get("heartbeat_interval") == "off" and paths > 1:
        text = "without HEARTBEATs the failure of a path that carries no data is not noticed, nor its return"
        yield Trap("heartbeat_interval", text, "RFC 9260 8.3")
    yield from _of_init(settings, connects)


def _of_init(settings: Mapping[str, Any], connects: bool) -> Iterator[Trap]:
    for name in ("init_attempts", "init_max_timeout"):
        if name in settings and not connects:
            yield Trap(name, f"{name} does nothing at an end that listens: it sends no INIT", "RFC 9260 5.1")
    if "init_max_timeout" not in settings:
        return
    timeout = _seconds(settings, "init_max_timeout")
    if timeout < SHORT_S:
        text = f"init_max_timeout is {in_short(timeout, 's')}: the kernel takes milliseconds, and seconds may be meant"
        yield Trap("init_max_timeout", text, "struct sctp_initmsg, RFC 6458 5.3.1")


def _seconds(settings: Mapping[str, Any], name: str) -> float:
    if name not in settings:
        return KERNEL_S[name]
    return int(parse_quantity(str(settings[name]), "time").value) / 1e9


def _count(settings: Mapping[str, Any], name: str) -> int:
    return int(settings.get(name, KERNEL_COUNTS[name]))
