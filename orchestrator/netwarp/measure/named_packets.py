"""The packets of a flow by name (core/metrics/packet_names.py), as metrics of a spec ask for them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ..captures.arrays import spread
from ..captures.mptcp.data_level import data_level
from ..captures.native import Bools, Ints, Rows
from ..core.metrics.packet_names import AGAIN, SEGMENTS, PacketName, packet_name
from ..core.wire import ACK, CHUNK_NAMES, FIN, RST, SYN
from .flow_packets import FlowPackets
from .sent_data import data_units


class NamedPackets:
    """The packets of a flow at one end, in the order of the capture, which orders those of one time as well."""

    def __init__(self, protocol: str, packets: FlowPackets, path_names: Sequence[str]) -> None:
        self._protocol = protocol
        self._packets = packets
        self._paths = list(path_names)
        table = packets.point.capture.packets
        back = packets.mask(table, back=True)
        self._rows: Ints = np.flatnonzero(back | packets.mask(table))
        self._back: Bools = back[self._rows]
        self._known: dict[tuple[str, bool, str], Ints] = {}

    def at(self, name: str) -> float | None:
        """When a packet passed, in s from T0; None: there is no such packet."""
        row = self._row(packet_name(name))
        if row is None:
            return None
        time_ns = int(self._packets.point.capture.packets["time_ns"][row])
        return (time_ns - self._packets.t0_realtime_ns) / 1e9

    def count(self, kind: str, after: str | None = None, before: str | None = None) -> float | None:
        """How many packets of a kind passed after one packet and before another; None if one is not there."""
        rows = self._of_kind(packet_name(kind))
        begin, end = 0, len(rows)
        if after is not None:
            if (first := self._row(packet_name(after))) is None:
                return None
            begin = int(np.searchsorted(rows, first, side="right"))
        if before is not None:
            if (last := self._row(packet_name(before))) is None:
                return None
            end = int(np.searchsorted(rows, last, side="left"))
        return float(max(0, end - begin))

    def _row(self, name: PacketName) -> int | None:
        """The row of a packet in the capture."""
        if name.of is not None:
            return self._acknowledgement(name, name.of)
        if name.again:
            rows = self._carriers(name)
            number = name.again
        else:
            rows, number = self._of_kind(name), name.number or 1
        return int(rows[number - 1]) if number <= len(rows) else None

    # ---------------------------------------------------------------------------------------------------------- kinds
    def _of_kind(self, name: PacketName) -> Ints:
        """The rows of a kind of packets."""
        key = (name.kind, name.back, name.path)
        if key not in self._known:
            of_kind = self._kind(name.kind) & (self._back == name.back)
            if name.path:
                of_kind &= self._path == (self._paths.index(name.path) if name.path in self._paths else -1)
            self._known[key] = self._rows[of_kind]
        return self._known[key]

    def _kind(self, kind: str) -> Bools:
        table = self._packets.point.capture.packets[self._rows]
        if kind == "DATA":
            return self._column("new_bytes") > 0
        if kind == AGAIN:
            return (table["payload_bytes"] > 0) & self._column("retransmission").astype(np.bool_)
        if self._protocol == "sctp":
            return self._with_chunk(kind)
        return self._segments_of(kind) if kind in SEGMENTS else np.zeros(len(self._rows), dtype=np.bool_)

    def _column(self, name: str) -> Ints:
        """A column of PacketColumns, of both directions."""
        values = np.zeros(len(self._rows), dtype=np.int64)
        values[~self._back] = getattr(self._packets.data, name)
        values[self._back] = getattr(self._packets.back, name)
        return values

    @functools.cached_property
    def _path(self) -> Ints:
        return self._column("path")

    def _these(self, packets: Ints) -> Bools:
        """Which of the rows are among the rows of these packets."""
        return np.isin(self._rows, packets)

    def _with_chunk(self, kind: str) -> Bools:
        capture = self._packets.point.capture
        if kind == "DSACK":
            return self._these(capture.sacks["packet"][capture.sacks["duplicate_tsns"] > 0])
        types = [number for number, name in CHUNK_NAMES.items() if name == kind]
        return self._these(capture.chunks["packet"][np.isin(capture.chunks["type"], types)])

    def _segments_of(self, kind: str) -> Bools:
        segments = self._packets.point.capture.segments
        flags, alone = segments["flags"], segments["payload_bytes"] == 0
        acks = (flags & (SYN | FIN | RST | ACK) == ACK) & alone
        chosen = {
            "SYN": flags & (SYN | ACK) == SYN,
            "SYN ACK": flags & (SYN | ACK) == SYN | ACK,
            "FIN": flags & FIN > 0,
            "RST": flags & RST > 0,
            "ACK": acks,
            "SACK": acks & (segments["sack_blocks"] > 0),
        }
        found = segments[chosen[kind]] if kind in chosen else self._duplicates(segments[acks])
        return self._these(found["packet"])

    def _duplicates(self, acks: Rows) -> Rows:
        """The acknowledgements whose first block is a duplicate (RFC 2883 4): below their number, or in the second."""
        acks = acks[acks["sack_blocks"] > 0]
        blocks = self._packets.point.capture.blocks
        first = acks["first_block"].astype(np.int64)
        one, two = blocks[first], blocks[np.minimum(first + 1, len(blocks) - 1)] if len(blocks) else blocks[first]
        within = (acks["sack_blocks"] > 1) & (two["start"] <= one["start"]) & (one["end"] <= two["end"])
        return acks[(one["end"] <= acks["ack"]) | within]

    # ------------------------------------------------------------------------------------------ data by their numbers
    @functools.cached_property
    def _units(self) -> tuple[Rows, Ints, Ints]:
        """Segments or chunks with data, and the number of the first byte or chunk of each and the one after its last:
        of MPTCP of the connection.
        """
        rows, column = data_units(self._packets, self._protocol)
        if self._protocol == "sctp":
            begin = rows[column].astype(np.int64)
            return rows, begin, begin + 1
        begin = data_level(rows).start if self._protocol == "mptcp" else rows[column].astype(np.int64)
        return rows, begin, begin + rows["payload_bytes"].astype(np.int64)

    def _first_unit(self, number: int) -> int | None:
        """The place in the units of the first new one of a DATA packet."""
        data = self._of_kind(PacketName("DATA"))
        if number > len(data):
            return None
        rows = self._units[0]
        of_packet = np.flatnonzero(rows["packet"] == data[number - 1])
        new = of_packet[~rows["is_retransmission"][of_packet].astype(np.bool_)]
        places = new if len(new) else of_packet
        return int(places[0]) if len(places) else None

    def _carriers(self, name: PacketName) -> Ints:
        """The packets that carry the first byte or chunk of a DATA packet after it."""
        unit = self._first_unit(name.number or 1)
        if unit is None:
            return np.zeros(0, dtype=np.int64)
        rows, begin, end = self._units
        carries = (begin <= begin[unit]) & (begin[unit] < end) & (rows["packet"] > rows["packet"][unit])
        if self._protocol == "tcp":
            carries &= rows["flow"] == rows["flow"][unit]
        packets = np.unique(rows["packet"][carries].astype(np.int64))
        if not name.path:
            return packets
        wanted = self._paths.index(name.path) if name.path in self._paths else -1
        on_path = self._rows[self._path == wanted]
        return packets[np.isin(packets, on_path)]

    def _acknowledgement(self, name: PacketName, number: int) -> int | None:
        """The first acknowledgement that covers a DATA packet's first transmission: all up to it, or ("SACK") also it
        alone.
        """
        unit = self._first_unit(number)
        if unit is None:
            return None
        sent = self._units[0][unit]
        sctp, capture = self._protocol == "sctp", self._packets.point.capture
        acks = self._packets.rows(capture.sacks if sctp else capture.segments, back=True)
        acks = acks[(acks["flow"] == sent["flow"]) & (acks["packet"] > sent["packet"])]
        if sctp:
            begin, end = int(sent["tsn"]), int(sent["tsn"]) + 1
            covers, blocks = acks["cumulative_tsn"] >= begin, acks["gap_blocks"]
        else:
            acks = acks[acks["flags"] & ACK > 0]
            begin, end = int(sent["seq"]), int(sent["seq"]) + int(sent["payload_bytes"])
            covers, blocks = acks["ack"] >= end, acks["sack_blocks"]
        if name.kind == "SACK":
            owner, place = spread(acks["first_block"].astype(np.int64), blocks.astype(np.int64))
            within = (capture.blocks["start"][place] <= begin) & (capture.blocks["end"][place] >= end)
            covers = covers | (np.bincount(owner, weights=within, minlength=len(acks)) > 0)
        packets = acks["packet"][covers]
        if name.path:
            packets = packets[np.isin(packets, self._of_kind(PacketName(name.kind, back=True, path=name.path)))]
        return int(packets[0]) if len(packets) else None
