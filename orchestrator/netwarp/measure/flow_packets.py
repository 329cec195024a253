"""The packets of a flow at one capture point, in NumPy columns, each with the path it took."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from ..captures.capture import columns_of, rows_where
from ..captures.mptcp import data_level
from ..captures.native import Bools, Ints, Rows
from ..captures.sctp.association import Association
from ..captures.tcp.connection import analyze_tcp
from ..captures.tcp.direction import Direction
from ..captures.time_spans import by, kept
from ..core.errors import CaptureError
from ..core.types import Flow
from ..core.wire import DATA, ECN_MASK, I_DATA, IP_PROTOCOLS
from .capture_point import CapturePoint

IPERF3 = "iperf3"


@dataclasses.dataclass(frozen=True)
class PacketColumns:
    """The packets of one direction, one value per packet, in the order of the capture.

    t_ns: from T0. path: index into `PathNames.names`. new_bytes: payload that this point had never seen before from
    that sender, on any path. retransmission: carries anything seen before; other_path: and that was first sent on
    another path.
    """

    t_ns: Ints
    ip_bytes: Ints
    payload_bytes: Ints
    new_bytes: Ints
    path: Ints
    retransmission: Bools
    other_path: Bools
    acks: Bools
    codepoint: Ints
    """Of ECN: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168 5)."""

    def until(self, end_ns: int | None) -> PacketColumns:
        """Only the packets seen up to that time."""
        return self if end_ns is None else kept(self, by(self.t_ns, end_ns))


@dataclasses.dataclass(frozen=True)
class FlowPackets:
    """A flow at one capture point: `data` from the flow's sender, `back` from its receiver.

    data_direction: row of the point's flow table -> the direction (0 or 1) in which its sender sends; only rows of this
    flow. path_index: row of the point's path table -> index into `PathNames.names`. peers: receiver's address -> the
    same.
    """

    point: CapturePoint
    data: PacketColumns
    back: PacketColumns
    data_direction: Mapping[int, int]
    path_index: Mapping[int, int]
    peers: Mapping[str, int]
    t0_realtime_ns: int
    gone_ns: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """Row of the flow table -> when the receiver lost that connection, in times of captures: its host or process was
    killed. What arrives from then on is read by nobody.
    """

    def mask(self, table: Rows, *, back: bool = False) -> Bools:
        """The rows of a table of this point (segments, chunks, SACKs, packets) that the flow's sender sent; back: its
        receiver.
        """
        mine = np.zeros(len(table), dtype=np.bool_)
        for row, sends in self.data_direction.items():
            mine |= (table["flow"] == row) & (table["direction"] == (1 - sends if back else sends))
        return mine

    def rows(self, table: Rows, *, back: bool = False) -> Rows:
        """These rows."""
        return rows_where(table, self.mask(table, back=back))

    @functools.cached_property
    def sent_chunks(self) -> Rows:
        """The SCTP chunks that the flow's sender sent. Shared by all who ask: read-only."""
        return _shared(self.rows(self.point.capture.chunks))

    @functools.cached_property
    def data_chunks(self) -> Rows:
        """Of these, the chunks with user data."""
        kind = self.sent_chunks["type"]
        return _shared(rows_where(self.sent_chunks, (kind == DATA) | (kind == I_DATA)))

    @functools.cached_property
    def sent_segments(self) -> Rows:
        """The TCP segments that the flow's sender sent."""
        return _shared(self.rows(self.point.capture.segments))

    @functools.cached_property
    def data_segments(self) -> Rows:
        """Of these, the segments with payload."""
        return _shared(rows_where(self.sent_segments, self.sent_segments["payload_bytes"] > 0))


def _shared(rows: Rows) -> Rows:
    rows.flags.writeable = False
    return rows


@dataclasses.dataclass
class PathNames:
    """The names of the flow's paths in the spec's order, then those of other paths that were seen (named <sender
    link>><receiver link>).
    """

    flow: Flow
    names: list[str] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.names = [path.name for path in self.flow.paths]

    def index(self, sender_link: str | None, receiver_link: str | None) -> int:
        """The path between two links. None for a link: not captured, or the packet was lost before it arrived; then any
        link fits, if just one does.
        """
        fits = [
            number
            for number, path in enumerate(self.flow.paths)
            if sender_link in (None, path.sender_link) and receiver_link in (None, path.receiver_link)
        ]
        if len(fits) == 1 or (fits and sender_link is not None and receiver_link is not None):
            return fits[0]
        name = f"{sender_link or '?'}>{receiver_link or '?'}"
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def flow_rows(point: CapturePoint, flow: Flow) -> dict[int, int]:
    """Rows of the point's flow table that belong to this flow (by protocol and port, that of the end that listens)
    -> the direction in which its sender sends.
    """
    table = point.capture.flows
    directions: dict[int, int] = {}
    for row in np.flatnonzero(table["protocol"] == IP_PROTOCOLS[flow.protocol]).tolist():
        ports = table["port"][row]
        if ports[1] == flow.port:
            directions[row] = 1 if flow.opener == "receiver" else 0
        elif ports[0] == flow.port:
            directions[row] = 0 if flow.opener == "receiver" else 1
    return directions


def data_rows(point: CapturePoint, flow: Flow) -> dict[int, int]:
    """Those of flow_rows() that carry the flow's data. iperf3 opens a connection for control first: it is none."""
    rows = flow_rows(point, flow)
    if not is_iperf3(flow) or len(rows) < 2:
        return rows
    packets = packets_of(point, rows)
    _, first = np.unique(packets["flow"], return_index=True)
    control = int(packets["flow"][int(first.min())])
    return {row: sends for row, sends in rows.items() if row != control}


def is_iperf3(flow: Flow) -> bool:
    """True of iperf3 over TCP, whose control connection has the protocol and port of its data."""
    ours = flow.program is not None and flow.protocol in ("tcp", "mptcp")
    return ours and flow.program is not None and PurePath(flow.program.sender[0]).name == IPERF3


def links_of_pairs(point: CapturePoint, rows: Rows) -> dict[frozenset[str], str]:
    """Address pair -> the link that most of its packets used at this point."""
    if not len(rows):
        return {}
    keys, counts = np.unique(rows["path"].astype(np.int64) * len(point.links) + rows["source"], return_counts=True)
    most: dict[frozenset[str], tuple[int, str]] = {}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        path, source = divmod(key, len(point.links))
        pair = frozenset(point.addresses[path])
        if pair not in most or count > most[pair][0]:
            most[pair] = (count, point.links[source])
    return {pair: link for pair, (_, link) in most.items()}


def packets_of(point: CapturePoint, rows: Mapping[int, int]) -> Rows:
    """The packets of these flow rows."""
    packets = point.capture.packets
    return rows_where(packets, np.isin(packets["flow"], np.fromiter(rows, np.uint32, len(rows))))


def packets_at_both_ends(
    flow: Flow,
    sender: CapturePoint | None,
    receiver: CapturePoint | None,
    t0_realtime_ns: int,
    killed_ns: Sequence[int] = (),
) -> tuple[FlowPackets | None, FlowPackets | None, list[str]]:
    """The flow's packets at its sender and at its receiver (None without a capture), and the names of the paths.

    A packet belongs to the path between the link it used here and the link that its address pair used at the other end.
    killed_ns: when the receiver's host or process was killed, from T0. Raises CaptureError if two flows have the same
    port.
    """
    names = PathNames(flow)
    points = (sender, receiver)
    rows = [data_rows(point, flow) if point else {} for point in points]
    packets = [packets_of(point, rows[end]) if point else None for end, point in enumerate(points)]
    pairs = [
        links_of_pairs(point, these) if point is not None and these is not None else {}
        for point, these in zip(points, packets, strict=True)
    ]
    ends: list[FlowPackets | None] = []
    for end, point in enumerate(points):
        these = packets[end]
        if point is None or these is None:
            ends.append(None)
            continue
        path = _paths(point, these, names, pairs[1 - end], at_sender=end == 0)
        flow_packets = _flow_packets(point, these, path, rows[end], t0_realtime_ns)
        if flow.protocol == "mptcp":
            flow_packets = _at_data_level(flow_packets, these)
        ends.append(_until_killed(flow_packets, these, killed_ns) if end == 1 and killed_ns else flow_packets)
    return ends[0], ends[1], names.names


def _flow_packets(
    point: CapturePoint, packets: Rows, path: Ints, rows: Mapping[int, int], t0_realtime_ns: int
) -> FlowPackets:
    is_data = packets["direction"] == _direction_of(rows)[packets["flow"]]
    seen, first = np.unique(packets["path"], return_index=True)
    path_index = dict(zip(seen.tolist(), path[first].tolist(), strict=True))
    towards = np.unique(packets["path"][is_data].astype(np.int64) * 2 + packets["path_direction"][is_data])
    return FlowPackets(
        point=point,
        data=_columns(packets, np.flatnonzero(is_data), path, t0_realtime_ns),
        back=_columns(packets, np.flatnonzero(~is_data), path, t0_realtime_ns),
        data_direction=rows,
        path_index=path_index,
        # path direction 0 is towards the path's second address
        peers={point.addresses[key // 2][1 - key % 2]: path_index[key // 2] for key in towards.tolist()},
        t0_realtime_ns=t0_realtime_ns,
    )


def _at_data_level(flow_packets: FlowPackets, packets: Rows) -> FlowPackets:
    """The bytes that are new and those that were sent before, by data sequence number: MPTCP may send a byte on several
    subflows.
    """
    rows = flow_packets.data_segments
    level = data_level(rows)
    # both are in the order of the capture: the packets of a direction and the segments in them
    flows = np.fromiter(flow_packets.data_direction, np.uint32)
    numbers = np.flatnonzero(np.isin(flow_packets.point.capture.packets["flow"], flows))
    is_data = packets["direction"] == _direction_of(flow_packets.data_direction)[packets["flow"]]
    data = flow_packets.data
    index = np.searchsorted(numbers[is_data], rows["packet"][level.known])
    new_bytes, seen, elsewhere = data.new_bytes.copy(), data.retransmission.copy(), data.other_path.copy()
    new_bytes[index] = level.new_bytes[level.known]
    seen[index] |= level.seen[level.known]
    elsewhere[index] |= level.elsewhere[level.known]
    data = dataclasses.replace(data, new_bytes=new_bytes, retransmission=seen, other_path=elsewhere)
    return dataclasses.replace(flow_packets, data=data)


def _until_killed(flow_packets: FlowPackets, packets: Rows, killed_ns: Sequence[int]) -> FlowPackets:
    """No new payload of connections that were lost before it arrived."""
    is_data = packets["direction"] == _direction_of(flow_packets.data_direction)[packets["flow"]]
    rows, new_bytes, gone = packets["flow"][is_data], flow_packets.data.new_bytes.copy(), dict[int, int]()
    for row in flow_packets.data_direction:
        times = packets["time_ns"][packets["flow"] == row] - flow_packets.t0_realtime_ns
        at_ns = min((at_ns for at_ns in killed_ns if len(times) and times[0] < at_ns), default=None)
        if at_ns is not None:
            gone[row] = at_ns + flow_packets.t0_realtime_ns
            new_bytes[(rows == row) & (flow_packets.data.t_ns >= at_ns)] = 0
    data = dataclasses.replace(flow_packets.data, new_bytes=new_bytes)
    return dataclasses.replace(flow_packets, data=data, gone_ns=gone)


def _direction_of(rows: Mapping[int, int]) -> npt.NDArray[np.uint8]:
    direction = np.zeros(max(rows, default=0) + 1, dtype=np.uint8)
    for row, sends in rows.items():
        direction[row] = sends
    return direction


def _paths(
    point: CapturePoint, packets: Rows, names: PathNames, other_end: Mapping[frozenset[str], str], *, at_sender: bool
) -> Ints:
    key = packets["path"].astype(np.int64) * len(point.links) + packets["source"]
    keys, inverse = np.unique(key, return_inverse=True)
    index = np.zeros(len(keys), dtype=np.int64)
    for number, value in enumerate(keys.tolist()):
        pair, source = divmod(value, len(point.links))
        here, there = point.links[source], other_end.get(frozenset(point.addresses[pair]))
        index[number] = names.index(here, there) if at_sender else names.index(there, here)
    return index[inverse] if len(keys) else np.zeros(0, dtype=np.int64)


COLUMNS = {
    **dict.fromkeys(("time_ns", "ip_bytes", "payload_bytes", "new_bytes"), np.int64),
    **dict.fromkeys(("is_retransmission", "on_other_path", "acks"), np.bool_),
    "tos": np.uint8,
}


def _columns(packets: Rows, places: Ints, path: Ints, t0_realtime_ns: int) -> PacketColumns:
    columns = columns_of(packets, COLUMNS, places)
    return PacketColumns(
        t_ns=columns["time_ns"] - t0_realtime_ns,
        ip_bytes=columns["ip_bytes"],
        payload_bytes=columns["payload_bytes"],
        new_bytes=columns["new_bytes"],
        path=path[places],
        retransmission=columns["is_retransmission"],
        other_path=columns["on_other_path"],
        acks=columns["acks"],
        codepoint=(columns["tos"] & ECN_MASK).astype(np.int64),
    )


def tcp_directions(packets: FlowPackets, *, at_sender: bool = True) -> list[Direction]:
    """The data direction of each TCP connection or subflow. at_sender: captured there, else at the receiver."""
    return [
        analyze_tcp(packets.point.capture, row, at=sends if at_sender else 1 - sends).directions[sends]
        for row, sends in packets.data_direction.items()
    ]


def associations_at(packets: FlowPackets) -> list[Association]:
    """The SCTP associations, in the direction of the flow's data."""
    return [Association(packets.point.capture, row, direction=sends) for row, sends in packets.data_direction.items()]


def check_ports(flows: tuple[Flow, ...]) -> None:
    """Raises CaptureError if two flows have the same protocol, port and hosts: captures could not tell them apart."""
    seen: dict[tuple[int, int, str], str] = {}
    for flow in flows:
        for node in (flow.sender, flow.receiver):
            key = (IP_PROTOCOLS[flow.protocol], flow.port, node)
            if key in seen and seen[key] != flow.name:
                raise CaptureError(f"flows {seen[key]} and {flow.name} share port {flow.port} at {node}")
            seen[key] = flow.name
