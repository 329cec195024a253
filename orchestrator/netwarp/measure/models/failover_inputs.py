"""Collects the inputs of the failover model from a cell: the settings in force, the load, the fault."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import msgspec

from ...core.link_types import Link
from ...core.types import LINK_FAULTS, Cell, Event, Flow
from ..planned_paths import faults_met, links_of, route_of

SYSCTL = "net.sctp."
DEFAULT_RCVBUF_BYTES = 106_496
"""Half of net.core.rmem_default: what SCTP offers as its window (socket.c:sctp_init_sock, associola.c)."""
TSN_MAP = 4096
PACKET_BYTES = 1500
SCTP_BYTES, CHUNK_BYTES = 12, 16
"""Headers of a packet and of a DATA chunk."""

Tail = Literal["none", "backward", "round trip"]


@dataclasses.dataclass(frozen=True)
class FailoverSettings:
    """The sender's settings (net.sctp.*, or the socket's own options), and the receiver's sack_delay_s.

    heartbeat_interval_s: infinite if heartbeats are off. peer_rto_initial_s: the receiver's rto_initial. connectx: all
    of the peer's addresses were given to sctp_connectx, so they are confirmed at once.
    """

    rto_initial_s: float = 3.0
    rto_min_s: float = 1.0
    rto_max_s: float = 60.0
    path_max_retrans: int = 5
    pf_enable: bool = True
    pf_retrans: int = 0
    ps_retrans: int = 65535
    heartbeat_interval_s: float = 30.0
    sack_delay_s: float = 0.2
    peer_rto_initial_s: float = 3.0
    connectx: bool = True


@dataclasses.dataclass(frozen=True)
class FailoverConditions:
    """The paths, the load and the fault; times in seconds.

    rtt_s: base RTT of the path that fails; rtt_other_s: of the other path. queue_s: the longest time a packet can spend
    in queues and being sent. window_packets: the most packets in flight. interval_s: between messages (or bursts);
    None: saturated. next_send_s: from the fault to the first message due after it; None: not known. up_s: how long
    before the fault the connection was established. tail: what of the flow still comes back after the fault: nothing,
    SACKs on their way, or data and then their SACKs. forward: whether the fault stops data. inside: the fault is at the
    sender's own interface, so packets sent there are dropped before the capture. length_s: from fault to repair; None:
    never repaired. nagle: a message that fills no packet waits while anything is unacknowledged (no SCTP_NODELAY).
    sizes: in bytes, of the messages that fall due at once; of a saturated flow without meaning. packet_bytes: room for
    chunks in a packet.
    """

    rtt_s: float
    rtt_other_s: float
    queue_s: float
    window_packets: int
    interval_s: float | None
    up_s: float
    tail: Tail
    forward: bool
    inside: bool = False
    alone: bool = False
    next_send_s: float | None = None
    length_s: float | None = None
    nagle: bool = False
    sizes: tuple[int, ...] = (1,)
    packet_bytes: int = PACKET_BYTES - 20 - SCTP_BYTES


def failover_settings(cell: Cell, flow: Flow) -> FailoverSettings:
    """The kernel's defaults, overridden by the hosts' sysctls, overridden by the apps' own socket options."""
    default = FailoverSettings()
    nodes = {node.name: node for node in cell.nodes}
    ours = {key.removeprefix(SYSCTL): value for key, value in nodes[flow.sender].sysctls.items()}
    peers = {key.removeprefix(SYSCTL): value for key, value in nodes[flow.receiver].sysctls.items()}
    options, peer_options = flow.sender_options, flow.receiver_options

    def seconds(key: str, sysctl: str, value: float) -> float:
        if (given := options.get(f"{key}_ns")) is not None:
            return int(given) / 1e9
        return int(ours[sysctl]) / 1000 if sysctl in ours else value

    def count(key: str, value: int) -> int:
        return int(options.get(key, ours.get(key, value)))

    sack_delay = 0 if peer_options.get("sack_frequency") == 1 else peer_options.get("sack_delay_ns")
    return FailoverSettings(
        rto_initial_s=seconds("rto_initial", "rto_initial", default.rto_initial_s),
        rto_min_s=seconds("rto_min", "rto_min", default.rto_min_s),
        rto_max_s=seconds("rto_max", "rto_max", default.rto_max_s),
        path_max_retrans=count("path_max_retrans", default.path_max_retrans),
        pf_enable=ours.get("pf_enable", "1") != "0",
        pf_retrans=count("pf_retrans", default.pf_retrans),
        ps_retrans=count("ps_retrans", default.ps_retrans),
        heartbeat_interval_s=math.inf
        if options.get("no_heartbeats")
        else seconds("heartbeat_interval", "hb_interval", default.heartbeat_interval_s),
        sack_delay_s=int(sack_delay) / 1e9
        if sack_delay is not None
        else int(peers.get("sack_timeout", default.sack_delay_s * 1000)) / 1000,
        peer_rto_initial_s=int(peer_options["rto_initial_ns"]) / 1e9
        if "rto_initial_ns" in peer_options
        else int(peers.get("rto_initial", default.peer_rto_initial_s * 1000)) / 1000,
        connectx=options.get("connect", "connectx") == "connectx",
    )


def failover_conditions(cell: Cell, flow: Flow, connected_ns: int | None) -> FailoverConditions | None:
    """The conditions of the fault that hits the flow's primary path. connected_ns: from T0 (None: the flow's start).

    None: no fault, only one path, the fault is not on the primary alone, or the application switches the primary or
    sends the HEARTBEATs. Also where the load is not known: a program of the user's own, pages, messages at drawn or
    listed times; and of the other direction of a flow, whose rates are not.
    """
    met = faults_met(cell, flow)
    if flow.protocol != "sctp" or len(flow.paths) < 2 or not met or flow.switches:
        return None
    if flow.heartbeats is not msgspec.UNSET:
        return None
    if flow.program is not None or flow.is_page or flow.is_back or flow.messages is not msgspec.UNSET:
        return None
    fault = met[0]
    if fault.action not in LINK_FAULTS:
        return None
    first, other = flow.paths[0], flow.paths[1]
    if fault.link not in links_of(cell, flow, first) or fault.link in links_of(cell, flow, other):
        return None
    used = [each for each in cell.links if each.name in links_of(cell, flow, first) | links_of(cell, flow, other)]
    asked = flow.sender_options.get("path_mtu_bytes")
    mtus = [each.mtu_bytes if asked is None else int(asked) for each in used]
    # over both families SCTP counts by its socket, which is then one of IPv6 (net/sctp/output.c: sctp_packet_init)
    headers = max(each.ip_family.header_bytes for each in used) + SCTP_BYTES
    event = next(event for event in cell.timeline if event.name == fault.name and event.action == fault.action)
    link = next(link for link in cell.links if link.name == fault.link)
    there, back = _touches(cell, flow, event, link)
    window = int(flow.receiver_options.get("rcvbuf_bytes", DEFAULT_RCVBUF_BYTES))
    interval = flow.sender_options.get("interval_ns")
    interval_s = None if interval is None else int(interval) / 1e9
    packets = max(1, min(TSN_MAP, math.ceil(window / flow.message_bytes)))
    bottleneck = first.bottleneck_bit_s
    waiting = packets if interval is None else _burst_packets(flow)
    queue_s = 0.0 if bottleneck is None else waiting * PACKET_BYTES * 8 / bottleneck
    begun = flow.start_ns if connected_ns is None else connected_ns
    return FailoverConditions(
        rtt_s=first.base_rtt_ns / 1e9,
        rtt_other_s=other.base_rtt_ns / 1e9,
        queue_s=queue_s,
        window_packets=packets,
        interval_s=interval_s,
        next_send_s=None if interval is None else (flow.start_ns - fault.from_ns) % int(interval) / 1e9,
        up_s=max(0.0, (fault.from_ns - begun) / 1e9),
        tail=_tail(event, back),
        forward=there,
        alone=waiting == 1 and "," not in str(flow.sender_options.get("burst_bytes", "")),
        inside=event.action == "link" and event.end == flow.sender,
        length_s=None if fault.to_ns is None else (fault.to_ns - fault.from_ns) / 1e9,
        nagle=not flow.sender_options.get("nodelay")
        and min(_sizes(flow)) + CHUNK_BYTES <= max(mtus) - headers - CHUNK_BYTES - 4,
        sizes=_sizes(flow),
        packet_bytes=min(mtus) - headers,
    )


def _sizes(flow: Flow) -> tuple[int, ...]:
    """Of the messages that fall due at once."""
    return tuple(int(size) for size in str(flow.sender_options.get("burst_bytes", flow.message_bytes)).split(","))


def _burst_packets(flow: Flow) -> int:
    """Packets that leave at once."""
    return max(1, math.ceil(sum(size + CHUNK_BYTES for size in _sizes(flow)) / (PACKET_BYTES - 32)))


def _touches(cell: Cell, flow: Flow, event: Event, link: Link) -> tuple[bool, bool]:
    """If the fault stops data, and the part that comes back."""
    hops = route_of(cell, flow.sender, flow.receiver, flow.paths[0].receiver_link)
    towards = next((hop.direction for hop in hops if hop.link == link.name), "forward")
    if event.action == "link":
        return True, True
    return towards in event.directions, any(direction != towards for direction in event.directions)


def _tail(event: Event, back: bool) -> Tail:
    """The part of the flow that still comes back; docs/spec.md says what each fault does to packets on their way."""
    if event.action == "cut":
        return "none" if back else "round trip"
    if event.action == "blackhole":
        # queued packets still leave: data arrives, and where only data is stopped its SACKs come back
        return "backward" if back else "round trip"
    return "backward"  # an end that goes down: what is beyond it arrives
