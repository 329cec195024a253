"""Errors of netwarp's own apps in the words of a spec, with the remedy: an app knows only its own options."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.checkout import CHECKOUT
from ..core.types import Cell
from ..store.app_records import AppRecord, Summary, WindowClampLost
from ..store.ndjson import last, of_kind

FRAGMENT = CHECKOUT / "kernel" / "fragment.config"
_CONGESTION = re.compile(r"TCP_CONGESTION: No such file or directory: (\S+)")
_BUILT_IN = re.compile(r"^CONFIG_TCP_CONG_([A-Z]+)=y$", re.MULTILINE)
CLAMP = "window_clamp_bytes"
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


def clamp_lost(cell: Cell, name: str, records: Sequence[AppRecord]) -> str:
    """The window clamp of a receiver ("flow.receiver") that the kernel overwrote, in words; "": it did not."""
    asked = next((flow.receiver_options.get(CLAMP) for flow in cell.flows if f"{flow.name}.receiver" == name), None)
    lost = [record.found_bytes for record in of_kind(records, WindowClampLost)]
    summary = last(records, Summary)
    if summary is not None and summary.kernel.window_clamp_bytes not in (None, asked):  # after its last look
        lost.append(summary.kernel.window_clamp_bytes or 0)
    if asked is None or not lost:
        return ""
    times = "" if len(lost) == 1 else f", {len(lost)} times"
    return (
        f"Linux overwrote the receiver's window_clamp of {asked} B with {lost[0]} B{times}, as it does when full"
        " segments follow shorter ones of one length: for a while it offered another window than the one asked for"
        " (docs/formats.md, window_clamp_lost); another seed may not lead there"
    )


def congestion_controls() -> tuple[str, ...]:
    """Those of the guest kernels' configuration; reno is in every kernel."""
    names = _BUILT_IN.findall(FRAGMENT.read_text()) if FRAGMENT.exists() else []
    return ("reno", *(name.lower() for name in names if name != "ADVANCED"))
