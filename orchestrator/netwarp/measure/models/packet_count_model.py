"""The number of packets that a transfer must take: header arithmetic from sizes alone, no capture is looked at.

A packet of SCTP has 20 B of IPv4 or 40 B of IPv6 and 12 B of SCTP header, then chunks of 16 B header each, padded to
4 B (RFC 9260 3, 3.3.1). A message longer than a packet's room is cut into fragments that fill it and a rest (RFC 9260
6.9). Chunks leave in order; two of them share a packet only where both fit (6.10). So where no two neighbours fit
into one packet the number of packets is the number of chunks, exactly, whatever windows, timers and Nagle's algorithm
do; where some do, it lies between packing each packet as full as it gets and one chunk a packet.

TCP has no boundaries to keep: at least the bytes over what a segment holds, at most one short segment a write.
"""

from __future__ import annotations

import dataclasses

from ...core.ip_families import IPV4
from ...core.types import Cell, Flow
from ..planned_paths import links_of

TCP_BYTES, TIMESTAMPS_BYTES = 20, 12
SCTP_BYTES, CHUNK_BYTES = 12, 16
SACK_FREQUENCY = 2
TIMESTAMPS = "net.ipv4.tcp_timestamps"


@dataclasses.dataclass(frozen=True)
class Count:
    """The possible number of packets, from low to high; equal if the number is exact."""

    low: int
    high: int


def chunk_bytes(user_bytes: int) -> int:
    """Bytes of a DATA chunk on the wire: header, user data, padding to 4 B."""
    return CHUNK_BYTES + -(-user_bytes // 4) * 4


def largest_fragment(mtu_bytes: int, mss_bytes: int | None = None, ip_bytes: int = IPV4.header_bytes) -> int:
    """User data of the largest chunk that fits a packet: the MTU rounded down to 4 B minus all headers, or
    SCTP_MAXSEG.
    """
    room = mtu_bytes // 4 * 4 - ip_bytes - SCTP_BYTES - CHUNK_BYTES
    return room if mss_bytes is None else min(room, mss_bytes)


def fragments(message_bytes: int, fragment_bytes: int) -> list[int]:
    """The user bytes of each chunk of a message, in order."""
    full, rest = divmod(message_bytes, fragment_bytes)
    return [fragment_bytes] * full + ([rest] if rest else [])


def sctp_packets(
    total_bytes: int, message_bytes: int, mtu_bytes: int, fragment_bytes: int, ip_bytes: int = IPV4.header_bytes
) -> Count:
    """Packets with DATA of a transfer in messages of one size, the last one with what is left."""
    count, last = divmod(total_bytes, message_bytes)
    room = mtu_bytes // 4 * 4 - ip_bytes - SCTP_BYTES
    whole, rest = (
        [chunk_bytes(size) for size in fragments(message, fragment_bytes)] if message else []
        for message in (message_bytes, last)
    )
    packets, left = _repeated(whole, count, room)
    more, _ = _packed(rest, left, room)
    return Count(packets + more, count * len(whole) + len(rest))


def _packed(chunks: list[int], left: int, room: int) -> tuple[int, int]:
    """Chunks put in order into packets, each as full as it gets: (packets begun, bytes left in the last one).

    left: what is left in the packet before. No order-keeping division needs fewer.
    """
    packets = 0
    for size in chunks:
        if size > left:
            packets, left = packets + 1, room
        left -= size
    return packets, left


def _repeated(chunks: list[int], times: int, room: int) -> tuple[int, int]:
    """The same chunks many times over: what is left over from one time to the next soon repeats itself."""
    seen: dict[int, tuple[int, int]] = {}
    packets, left, done = 0, 0, 0
    while done < times:
        if left in seen:
            before, then = seen[left]
            cycles = (times - done) // (done - before)
            packets, done = packets + cycles * (packets - then), done + cycles * (done - before)
            seen = {}
            if done == times:
                break
        seen[left] = (done, packets)
        more, left = _packed(chunks, left, room)
        packets, done = packets + more, done + 1
    return packets, left


def tcp_segments(total_bytes: int, write_bytes: int, segment_bytes: int) -> Count:
    """Segments with data of a transfer in writes of one size."""
    writes, last = divmod(total_bytes, write_bytes)
    return Count(
        -(-total_bytes // segment_bytes), writes * -(-write_bytes // segment_bytes) + -(-last // segment_bytes)
    )


def packets_of(cell: Cell, flow: Flow) -> Count | None:
    """Number of packets with data of a flow that sends a given number of bytes as fast as it can.

    None if sizes alone do not determine it: MPTCP, programs of the user's own, flows with a schedule, and SCTP that
    abandons messages.
    """
    options = flow.sender_options
    scheduled = {"interval_ns", "burst_bytes", "lifetime_ns", "max_retransmissions"} & options.keys()
    if flow.total_bytes is None or flow.program is not None or flow.protocol not in ("tcp", "sctp") or scheduled:
        return None
    used = frozenset[str]().union(*(links_of(cell, flow, path) for path in flow.paths))
    mtu = min(link.mtu_bytes for link in cell.links if link.name in used)
    # over both families SCTP counts by its socket, which is then one of IPv6 (net/sctp/sctp.h: sctp_mtu_payload)
    ip_bytes = max(link.ip_family.header_bytes for link in cell.links if link.name in used)
    if flow.protocol == "sctp":
        mtu = min(mtu, int(options.get("path_mtu_bytes", mtu)))
        mss = options.get("mss_bytes")
        largest = largest_fragment(mtu, None if mss is None else int(mss), ip_bytes)
        return sctp_packets(flow.total_bytes, flow.message_bytes, mtu, largest, ip_bytes)
    stamped = all(
        node.sysctls.get(TIMESTAMPS, "1") != "0" for node in cell.nodes if node.name in (flow.sender, flow.receiver)
    )
    asked = [int(given["mss_bytes"]) for given in (options, flow.receiver_options) if "mss_bytes" in given]
    segment = min([mtu - ip_bytes - TCP_BYTES, *asked])
    return tcp_segments(flow.total_bytes, flow.message_bytes, segment - (TIMESTAMPS_BYTES if stamped else 0))


def acknowledgements(flow: Flow, data: Count) -> Count:
    """Packets that only acknowledge, up to the arrival of the last byte.

    SCTP: the first packet at once, then one SACK for every `sack_frequency` packets (RFC 9260 6.2; Linux counts
    packets, sm_sideeffect.c:sctp_gen_sack), at most one a packet where timers or windows add some. TCP: at least one
    for every second full segment (RFC 9293 3.8.6.3), and the SYN+ACK.
    """
    if flow.protocol == "sctp":
        every = int(flow.receiver_options.get("sack_frequency", SACK_FREQUENCY))
        return Count((data.low - 1) // every + 1, data.high)
    return Count(data.low // 2, data.high + 1)
