"""The metrics of flows by docs/metrics.md, from the packets at both ends. Every name here is a metric's.

A metric that is not in the result is not judged; one that is None has no value by its definition.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from .cell import CellFiles
from .data import Row, Unjudged, acknowledges, option, protocol_number, rows_of
from .packets import ACK, CE, COOKIE_ACK, INIT, INIT_ACK, RST, SACK, SCTP, SYN, Packet

S = 1e9
Json = dict[str, Any]
Numbers = dict[str, float | None]
NAMES = {0: "not_ect", 2: "ect0", 1: "ect1"}


@dataclass
class End:
    """A flow's packets at one of its hosts, times from T0."""

    data: list[Row]
    back: list[Packet]


@dataclass
class FlowSeen:
    """A flow at both ends, and its window (ns from T0)."""

    flow: Json
    name: str
    protocol: str
    sender: End
    receiver: End
    first: int | None = None
    end: int | None = None
    complete: bool = False
    numbers: Numbers = field(default_factory=dict)
    unjudged: str = ""

    @property
    def arrived(self) -> list[Row]:
        """At the receiver, in the window."""
        return [row for row in self.receiver.data if self.end is None or row.packet.t <= self.end]

    @property
    def sent(self) -> list[Row]:
        """At the sender, in the window."""
        return [row for row in self.sender.data if self.end is None or row.packet.t <= self.end]

    def new_within(self, after: int, until: int) -> int:
        """New payload that arrives in (after, until]."""
        return sum(row.new_bytes for row in self.receiver.data if after < row.packet.t <= until)


def own(flow: Json) -> bool:
    """True of netwarp's own senders."""
    return flow.get("program") is None and "pages" not in flow["receiver_options"]


def listens_at_sender(flow: Json) -> bool:
    """True if the receiver connects."""
    program = flow.get("program")
    return "pages" in flow["receiver_options"] or (program is not None and program["listens"] == "sender")


def reversed_json(flow: Json) -> Json | None:
    """The other direction of a flow with `reverse`, as a flow of its own."""
    back = flow.get("reverse")
    if back is None:
        return None
    turned = dict(flow)
    turned |= {"name": f"{flow['name']}.back", "sender": flow["receiver"], "receiver": flow["sender"],
               "total_bytes": back.get("total_bytes"), "turned": True}  # fmt: skip
    turned.pop("reverse")
    return turned


def seen_flow(files: CellFiles, flow: Json) -> FlowSeen:
    """The packets of a flow at both ends, and its window."""
    protocol = flow["protocol"]
    kind = protocol_number(protocol)
    port = flow["port"]
    from_port = listens_at_sender(flow) or flow.get("turned", False)
    pairs = _pairs(files, flow)
    ends = []
    for node in (flow["sender"], flow["receiver"]):
        there, back = [], []
        for packet in files.at(node):
            if packet.protocol != kind or not packet.good:
                continue
            if packet.fragment:
                return FlowSeen(flow, flow["name"], protocol, End([], []), End([], []), unjudged="fragments")
            ways = (packet.source, packet.destination)
            near, far = (packet.sport, packet.dport) if from_port else (packet.dport, packet.sport)
            if files.corrupting and protocol == "sctp" and port in (near, far) and not {*ways} <= pairs[0] | pairs[1]:
                altered = "an altered address of SCTP over IPv6"  # docs/limitations.md
                return FlowSeen(flow, flow["name"], protocol, End([], []), End([], []), unjudged=altered)
            if near == port and ways[0] in pairs[0] and ways[1] in pairs[1]:
                there.append(packet)
            elif far == port and ways[1] in pairs[0] and ways[0] in pairs[1] and kind != 17:
                back.append(packet)
        ends.append((there, back))
    try:
        (sent, sent_back), (came, came_back) = ends
        found = FlowSeen(flow, flow["name"], protocol, End(rows_of(sent, protocol), sent_back),
                         End(rows_of(came, protocol), came_back))  # fmt: skip
    except Unjudged as why:
        return FlowSeen(flow, flow["name"], protocol, End([], []), End([], []), unjudged=str(why))
    _forget(files, found)
    _window(found, broke_at(files, flow), files.cell["duration_ns"])
    return found


def _forget(files: CellFiles, seen: FlowSeen) -> None:
    """Nothing new comes to a connection that its receiver lost: its host or its processes were killed."""
    killed = [event["at_ns"] for event in files.cell["timeline"]
              if event["action"] == "restart" and event.get("node") == seen.flow["receiver"]]  # fmt: skip
    begun: dict[tuple[int, int, int], int] = {}
    for row in seen.receiver.data if killed else ():
        packet = row.packet
        first = begun.setdefault((packet.sport, packet.dport, packet.tag if packet.protocol == SCTP else 0), packet.t)
        if any(first < at <= packet.t for at in killed):
            row.new_bytes = 0


def _pairs(files: CellFiles, flow: Json) -> tuple[set[str], set[str]]:
    """Addresses of the sender and of the receiver: of every link of theirs."""
    addresses: list[set[str]] = []
    for node in (flow["sender"], flow["receiver"]):
        own_links = [name for name, link in files.links.items() if node in (link["a"], link["b"])]
        addresses.append({files.address(node, name) for name in own_links})
    if any(event["action"] == "address" for event in files.cell["timeline"]):
        addresses[0].add("0:0:0:0:0:0:0:1")  # the source that Linux takes for a subflow where none is left
    return addresses[0], addresses[1]


def broke_at(files: CellFiles, flow: Json) -> int | None:
    """When the sender's connection ended before its own end, by its own word; None: it did not."""
    name = flow["name"].removesuffix(".back")
    summary = files.summary(name, "receiver" if flow.get("turned") else "sender")
    if summary is None or summary.get("reason") not in ("gave_up", "stalled", "peer_closed", "peer_aborted", "failed"):
        return None
    return int(summary["t_ns"]) - files.t0_monotonic


def _window(seen: FlowSeen, broke: int | None, duration: int) -> None:
    """docs/metrics.md, Words: window and first arrival."""
    total, stop = seen.flow["total_bytes"], seen.flow["stop_ns"]
    seen.end = stop
    sofar, last_new = 0, stop
    for row in seen.receiver.data:
        if row.new_bytes <= 0:
            continue
        if stop is not None and row.packet.t > stop:
            last_new = stop
            continue
        if seen.first is None:
            seen.first = row.packet.t
        last_new = row.packet.t
        sofar += row.new_bytes
        if total is not None and sofar >= total:
            seen.complete, seen.end = True, row.packet.t
            break
    if total is not None and not seen.complete and seen.protocol == "udp" and own(seen.flow):
        seen.end = last_new  # nothing is sent again
    elif total is not None and not seen.complete:
        gone = duration if broke is None else broke
        seen.end = gone if stop is None else min(stop, gone)


def flow_numbers(files: CellFiles, seen: FlowSeen, capacity: float | None) -> Numbers:
    """The metrics of one flow that the oracle knows. capacity: sum of the bottlenecks in bit/s; None: unlimited."""
    flow, arrived, sent = seen.flow, seen.arrived, seen.sent
    back = [packet for packet in seen.receiver.back if seen.end is None or packet.t <= seen.end]
    wire = sum(row.packet.ip_bytes for row in arrived)
    new = sum(row.new_bytes for row in arrived)
    numbers: Numbers = {
        "packets": len(arrived),
        "wire_bytes": wire,
    }
    if True:
        goodput = throughput = None
        if seen.first is not None and seen.end is not None and seen.end > seen.first:
            span = seen.end - seen.first
            goodput = seen.new_within(seen.first, seen.end) * 8 * S / span
            throughput = sum(r.packet.ip_bytes for r in arrived if seen.first < r.packet.t <= seen.end) * 8 * S / span
        numbers |= {
            "goodput_bit_s": goodput,
            "throughput_bit_s": throughput,
            "utilization_ratio": None if throughput is None or not capacity else throughput / capacity,
            "completion_time_s": (seen.end - flow["start_ns"]) / S if seen.complete and seen.end is not None else None,
            "payload_bytes": new,
        }
    if seen.protocol == "udp" and len(arrived) < 2:  # docs/metrics.md, Datagrams
        numbers |= {"throughput_bit_s": None, "utilization_ratio": None}
    if flow.get("turned") or (capacity is not None and capacity < 0):
        numbers.pop("utilization_ratio")
    if seen.protocol == "udp":
        return numbers
    both = wire + sum(packet.ip_bytes for packet in back)
    numbers |= {
        "data_packets": sum(1 for row in arrived if row.packet.payload_bytes > 0),
        "unique_data_packets": sum(1 for row in arrived if row.new_bytes > 0),
        "ack_packets": sum(1 for packet in back if acknowledges(packet) and packet.payload_bytes == 0),
        "packets_both_ways": len(arrived) + len(back),
        "wire_bytes_both_ways": both,
        "payload_share_ratio": new / both if both else None,
        "ecn_marked_packets": sum(1 for row in arrived if row.packet.ecn == CE),
        "retransmitted_packets": sum(1 for row in sent if row.repeats),
        "retransmitted_bytes": sum(row.packet.payload_bytes - row.new_bytes for row in sent),
    }
    for codepoint, name in NAMES.items():
        numbers[f"arrived_{name}_packets"] = sum(1 for row in arrived if row.packet.ecn == codepoint)
        numbers[f"sent_{name}_packets"] = sum(1 for row in sent if row.packet.ecn == codepoint)
    numbers["sent_ce_packets"] = sum(1 for row in sent if row.packet.ecn == CE)
    if not listens_at_sender(flow) and not flow.get("turned"):
        numbers["setup_time_s"] = _setup(seen)
    if flow.get("turned"):
        return numbers
    if seen.protocol == "tcp" and own(flow):
        window = _peer_window(seen)
        ports = {(row.packet.sport, row.packet.seq) for row in seen.sender.data if row.packet.flags & SYN}
        if any(row.packet.payload_bytes for row in seen.sender.data) and len(ports) < 2:
            numbers["peer_window_bytes"] = window
    numbers |= _faults(files, seen)
    return numbers


def _setup(seen: FlowSeen) -> float | None:
    """RFC 9293 3.5, RFC 9260 5.1: both at the sender."""
    if seen.protocol == "sctp":
        asked = [row.packet.t for row in seen.sender.data if any(c.kind == INIT for c in row.packet.chunks)]
        told = [packet.t for packet in seen.sender.back if any(c.kind == COOKIE_ACK for c in packet.chunks)]
    else:
        asked = [row.packet.t for row in seen.sender.data if row.packet.flags & (SYN | ACK) == SYN]
        told = [packet.t for packet in seen.sender.back if packet.flags & (SYN | ACK) == SYN | ACK]
    return (told[0] - asked[0]) / S if asked and told else None


def _peer_window(seen: FlowSeen) -> float | None:
    """The largest window that the receiver announces, scaled as both SYNs of the connection agreed (RFC 7323 2.2)."""
    scales: dict[int, int] = {}
    offered: dict[int, bool] = {}
    largest: int | None = None
    for row in seen.sender.data:
        if row.packet.flags & SYN:
            offered[row.packet.sport] = option(row.packet, 3) is not None
    for packet in seen.sender.back:
        if packet.flags & RST:
            continue
        scale = 0
        if packet.flags & SYN:
            told = option(packet, 3)
            scales[packet.dport] = min(told[0], 14) if told and offered.get(packet.dport) else 0
        else:
            scale = scales.get(packet.dport, 0)
        if packet.flags & ACK:
            largest = max(largest or 0, packet.window << scale)
    return largest


def _faults(files: CellFiles, seen: FlowSeen) -> Numbers:
    """outage_s and recovery_time_s of a flow over links without a choice of ways."""
    faults: list[tuple[int, int | None]] = []
    events = files.cell["timeline"]
    mine = files.ways(seen.flow)
    for number, event in enumerate(events):
        if event["action"] in ("cut", "blackhole", "link") and "." not in event["name"] and event["link"] in mine:
            if event.get("longer_than_bytes"):
                return {}
            until = next((other["at_ns"] for other in events[number + 1 :]
                          if other["action"] == "repair" and other["name"] == event["name"]), None)  # fmt: skip
            faults.append((event["at_ns"], until))
    if any(event["action"] in ("restart", "address", "mtu", "forget", "stop_reading") for event in events):
        return {}
    if not faults:
        return {"outage_s": None, "recovery_time_s": None}
    times = [row.packet.t for row in seen.arrived if row.new_bytes > 0]
    gaps = [
        (later - earlier) / S
        for earlier, later in itertools.pairwise(times)
        if any(earlier <= (until if until is not None else later) and later >= at for at, until in faults)
    ]
    numbers: Numbers = {}
    if times and seen.end is not None:
        silent = (seen.end - times[-1]) / S
        longest = max(gaps, default=None)
        if longest is not None and longest > silent:
            numbers["outage_s"] = longest
    until = faults[0][1]
    if until is not None:
        after = next((t for t in times if t > until), None)
        numbers["recovery_time_s"] = None if after is None else (after - until) / S
    return numbers


def initial_sctp_window(seen: FlowSeen) -> int | None:
    """a_rwnd of the receiver's INIT ACK (RFC 9260 3.3.3)."""
    for packet in seen.sender.back:
        for chunk in packet.chunks:
            if chunk.kind == INIT_ACK:
                return int.from_bytes(chunk.value[4:8], "big")
    return None


def has_sack(packet: Packet) -> bool:
    """True of SCTP's packets with a SACK."""
    return packet.protocol == SCTP and any(chunk.kind == SACK for chunk in packet.chunks)
