"""TCP flows in guests, with the kernel's own counters of the sender's namespace (/proc/net/netstat) at the end."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from msgspec.structs import replace
from netwarp.captures import Capture, read_captures
from netwarp.captures.tcp import TcpConnection, analyze_tcp
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell, Event

from support.apps_lab import FLOW, MS, Record, Run, S, make_cell, run, with_arguments

LINK = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=10_000_000, queue_packets=60)
AND_COUNTERS = ["/bin/sh", "-c", '"$@"; status=$?; cat /proc/net/netstat >&2; exit $status', "sh"]
"""Test only: the guest's root is this machine's. The flow's namespace has no other connection."""


@dataclasses.dataclass(frozen=True)
class Lab:
    """A flow that ran, and what the sender's kernel counted: netstat's TcpExt, and TCP_INFO in the summary."""

    run: Run
    netstat: dict[str, int]
    info: Record

    def capture(self, node: str) -> Capture:
        """One host's capture."""
        return read_captures([self.run.result.directory / "capture" / f"{node}-p1.pcap"])

    def connection(self, node: str, capture: Capture | None = None) -> TcpConnection:
        """Its only connection."""
        found = self.capture(node) if capture is None else capture
        assert len(found.flows) == 1
        return analyze_tcp(found, 0)


def play(kernel: Path, directory: Path, cell: Cell) -> Lab:
    """Run a cell of one TCP flow."""
    done = run(kernel, directory, cell, change=with_arguments("sender", lambda words: [*AND_COUNTERS, *words]))
    text = (directory / "apps" / f"{FLOW}.sender.stderr").read_text()
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("TcpExt:"))
    netstat = {name: int(value) for name, value in zip(names, values, strict=True)}
    return Lab(done, netstat, done.sent["kernel"]["tcp_info"])


def tcp_cell(
    forward: LinkImpairment = LINK,
    backward: LinkImpairment = LINK,
    *,
    seed: int = 1,
    stop_s: float | None = 8,
    total_bytes: int | None = None,
    events: tuple[Event, ...] = (),
    sysctls: dict[str, str] | None = None,
    receiver: dict[str, int | str | bool] | None = None,
) -> Cell:
    """A cell of one TCP flow over p1; its shapes by direction."""
    cell = make_cell(
        "tcp",
        shape=LINK,
        message_bytes=1448,
        stop_ns=None if stop_s is None else round(stop_s * S),
        total_bytes=total_bytes,
        duration_ns=30 * S,
        sysctls=sysctls,
        receiver=receiver,
        timeline=events,
    )
    (link,) = cell.links
    return replace(cell, links=(replace(link, forward=forward, backward=backward),), seed=seed)
