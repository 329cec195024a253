"""Errors of netwarp's own apps in the words of a spec, with the remedy: an app knows only its own options."""

from __future__ import annotations

import re

from ..core.checkout import CHECKOUT
from ..core.types import Cell

FRAGMENT = CHECKOUT / "kernel" / "fragment.config"
_CONGESTION = re.compile(r"TCP_CONGESTION: No such file or directory: (\S+)")
_BUILT_IN = re.compile(r"^CONFIG_TCP_CONG_([A-Z]+)=y$", re.MULTILINE)
_LATE = "connect: Connection timed out: not connected "


def in_words_of_the_spec(cell: Cell, app: str, message: str) -> str:
    """A message of an app ("flow.role") as a user of the spec knows it; as it is if nothing is known of it."""
    flow = next((flow for flow in cell.flows if flow.name == app.rpartition(".")[0]), None)
    if match := _CONGESTION.fullmatch(message):
        return (
            f'this kernel has no congestion control "{match[1]}"; netwarp\'s guest kernels have:'
            f" {', '.join(congestion_controls())} (kernel/fragment.config)"
        )
    if flow is not None and message.startswith(_LATE):
        rtt_ms = max(path.base_rtt_ns for path in flow.paths) / 1e6
        until = "its stop" if message.endswith("--stop-ns") else "its connect_deadline"
        return (
            f"the connection was not up at {until}: setting it up takes at least one RTT ({rtt_ms:g} ms), and after a"
            " loss also a timeout of 1 s (TCP) or 3 s (SCTP). Is the link cut or its loss 100 %? Else a longer duration"
            f" or a later stop ({message})"
        )
    return message


def congestion_controls() -> tuple[str, ...]:
    """Those of the guest kernels' configuration; reno is in every kernel."""
    names = _BUILT_IN.findall(FRAGMENT.read_text()) if FRAGMENT.exists() else []
    return ("reno", *(name.lower() for name in names if name != "ADVANCED"))
