"""Reads the datagrams of a probe from the captures of both hosts: when each was sent and arrived, and which were lost,
late or duplicated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...captures.capture import read_captures
from ...captures.hop_joins import NOWHERE, match_packets
from ...captures.native import Bools, Ints, Rows
from ...core.errors import CaptureError
from ...core.wire import UDP

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Way:
    """The datagrams of one direction. Times in ns since 1970. For each datagram sent: its size, and its row among the
    arrived ones (or NOWHERE).
    """

    sent_ns: Ints
    ip_bytes: Ints
    arrived_ns: Ints
    arrival: Ints
    again: int
    """Arrived a second time."""
    strangers: int
    """Arrived as something that was never sent: corrupted."""
    copies: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The number of arrivals of each datagram sent."""
    last_arrival: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The row of its last arrival (or NOWHERE)."""

    @property
    def came(self) -> Bools:
        """The datagrams that arrived."""
        came: Bools = self.arrival != NOWHERE
        return came

    @property
    def delays_s(self) -> Floats:
        """Delays of the datagrams that arrived, in the order sent."""
        came = self.came
        return (self.arrived_ns[self.arrival[came]] - self.sent_ns[came]) / 1e9

    @property
    def overtaken(self) -> int:
        """The number of those that arrived after one that was sent later."""
        order = self.arrival[self.came]
        return int((order < np.maximum.accumulate(order)).sum()) if len(order) else 0


def both_ways(cell_dir: Path) -> tuple[Way, Way]:
    """The datagrams from a to b, and those back. Raises CaptureError if none was sent."""
    near, far = (_identities(cell_dir, node) for node in ("a", "b"))
    there, back = (_way(near, far, 0), _way(far, near, 1))
    if not len(there.sent_ns):
        raise CaptureError(f"calibration: {cell_dir.name}: no datagram was sent")
    return there, back


def _identities(cell_dir: Path, node: str) -> tuple[Rows, Ints]:
    """The `identities` row of every datagram, with its direction: 0 from a to b."""
    capture = read_captures([cell_dir / "capture" / f"{node}-p1.pcap.zst"], ("packets", "identities"))
    rows = capture.identities
    packets = capture.packets[rows["packet"]]
    mine = (packets["protocol"] == UDP) & (rows["path"] < len(capture.paths))
    first_is_a = np.array([_is_host_a(capture.address(path, 0)) for path in range(len(capture.paths))], dtype=np.bool_)
    rows = rows[mine]
    return rows, np.where(first_is_a[rows["path"]], rows["path_direction"], 1 - rows["path_direction"]).astype(np.int64)


def _is_host_a(address: str) -> bool:
    """True if the address is host a's: of a link's two hosts the one listed first gets the lower address
    (testbed.layout).
    """
    return address.startswith("10.") and int(address.rsplit(".", 1)[1]) < 64


def _way(near: tuple[Rows, Ints], far: tuple[Rows, Ints], direction: int) -> Way:
    sent, arrived = (rows[way == direction] for rows, way in (near, far))
    matched = match_packets(sent, arrived)
    order = np.argsort(arrived["fingerprint"], kind="stable")
    ordered = arrived["fingerprint"][order]
    first, behind = (np.searchsorted(ordered, sent["fingerprint"], side=side) for side in ("left", "right"))
    known = int(np.isin(arrived["fingerprint"], sent["fingerprint"]).sum())
    return Way(
        sent_ns=sent["time_ns"].astype(np.int64),
        ip_bytes=sent["ip_bytes"].astype(np.int64),
        arrived_ns=arrived["time_ns"].astype(np.int64),
        arrival=matched.place,
        again=matched.again,
        strangers=len(arrived) - known,
        copies=(behind - first).astype(np.int64),
        last_arrival=np.where(behind > first, np.append(order, NOWHERE)[behind - 1], NOWHERE).astype(np.int64),
    )
