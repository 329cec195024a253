"""Self-checks of a cell; one that fails makes the cell INVALID. The detail of each says what was compared with what.

Also the limits of two machines' clocks: metrics that compare them have no value where they say too little. On one
machine there is one clock, and nothing changes. Times of two machines may be wrong against each other by what was
measured before and after the cell (record `ready`: clock_error_ns); the moment of a fault that a command of the user's
made, by how long that took (event_error_ns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ..core.ip_families import IPV6
from ..core.types import Cell, Check, Flow
from ..core.types import Path as FlowPath
from ..core.wire import ETHERNET_HEADER_BYTES
from ..store.app_records import AppRecord, Options, Summary
from ..store.init_records import Capture, Ready
from ..store.ndjson import last
from .capture_point import CapturePoint
from .datagram_flows import DatagramFlow
from .delivery import Delivery
from .flow_packets import FlowPackets


def capture_checks(cell: Cell, points: list[CapturePoint], records: dict[str, Capture]) -> list[Check]:
    """Checks of each capture: read to its end, as many packets as cell-init recorded, no losses, no packet of anybody
    else.
    """
    checks = []
    mtu = {link.name: link.mtu_bytes for link in cell.links}
    # what is nobody's traffic, by the family of the link: IPv6's kernel is kept from talking by itself
    foreign_kinds = {
        link.name: ("arp", "other", *(("ipv4", "discovery") if link.ip_family == IPV6 else ("ipv6",)))
        for link in cell.links
    }
    # a router fragments what its next link does not carry, where the sender allows it; one of them may be lost
    fragmenting = len(set(mtu.values())) > 1 or any(event.action == "mtu" for event in cell.timeline)
    corrupting = cell.corrupts
    for point in points:
        for number, link in enumerate(point.links):
            source = point.capture.sources[number]
            name = f"{point.node}-{link}"
            trouble = point.capture.trouble[number]
            checks.append(Check(f"capture whole {name}", not trouble, trouble or "read to its end"))
            checks.append(_against_record(name, records.get(f"capture/{name}.pcap"), source))
            longest, allowed = int(source["max_frame_bytes"]), mtu[link] + ETHERNET_HEADER_BYTES
            checks.append(
                Check(f"frame length {name}", longest <= allowed, f"longest {longest} B, allowed {allowed} B")
            )
            foreign = {kind: int(source[kind]) for kind in foreign_kinds[link] if source[kind]}
            # a bit that netem flips may be one of the EtherType, of the IP version or of the fragment's place
            checks.append(
                Check(f"foreign packets {name}", not foreign or corrupting, f"{foreign}" if foreign else "none")
            )
            wrong = {
                kind: int(source[kind])
                for kind in ("truncated", "backwards")
                + (() if corrupting else ("fragments", "malformed", "bad_checksum"))
                if source[kind]
            }
            if fragmenting:
                wrong.pop("fragments", None)
            checks.append(Check(f"packets readable {name}", not wrong, f"{wrong}" if wrong else "all"))
    return checks


def _against_record(name: str, record: Capture | None, source: msgspec.Struct | object) -> Check:
    check = f"capture record {name}"
    if record is None:
        return Check(check, False, "init.ndjson has no end record of this capture")
    wrong = [
        f"{key} {getattr(record, key)}"
        for key in ("dropped", "truncated", "errno", "fsync_errno")
        if getattr(record, key)
    ]
    for key, column in (("packets", "packets"), ("bytes", "file_bytes")):
        recorded, read = getattr(record, key), int(source[column])  # type: ignore[index]
        if recorded != read:
            wrong.append(f"{key}: {recorded} recorded, {read} in the file")
    return Check(check, not wrong, "; ".join(wrong) or f"{record.packets} packets, {record.bytes} B, none dropped")


def memory_check(counters: Mapping[str, Mapping[str, int]]) -> Check:
    """Checks that no host's TCP came under memory pressure. Under pressure the kernel announces windows that fit its
    free memory and not the receive buffer: the wire then shows the sandbox's memory. SCTP has no such counter.

    counters: of each host's kernel (kernel_counters()).
    """
    pressed = sorted(node for node, counts in counters.items() if counts.get("TcpExt.TCPMemoryPressures"))
    detail = f"in {', '.join(pressed)}: smaller buffers (sndbuf, rcvbuf, net.ipv4.tcp_wmem, tcp_rmem) or fewer flows"
    return Check(
        "memory for TCP's buffers", not pressed, f"the kernel ran short of it {detail}" if pressed else "enough"
    )


PARTIAL = ("lifetime_ns", "max_retransmissions")
"""Options with which an SCTP sender gives messages up (RFC 7496): then some are missing among those that arrive."""


ENDED_EARLY = ("gave_up", "peer_closed", "peer_aborted")
"""Of a program: it ended at the instant of its summary, before its stop."""


ENDING_NS = 100_000
"""In which a program that is told to end (SIGTERM, at the end of the cell) reads no more and writes its summary."""


def payload_check(
    flow: Flow,
    delivery: Delivery | None,
    new_bytes: int,
    app: list[AppRecord],
    t0_monotonic_ns: int,
    gone_ns: int | None = None,
) -> list[Check]:
    """Checks the receiving application's count of payload against the captures at its own interfaces.

    new_bytes: payload never seen before in the receiver's captures, over the whole run. The application must have read
    exactly the payload that could be delivered (in order, whole messages). gone_ns: when the receiver
    first heard no more all that arrives (unheard_ns).
    """
    name = f"payload {flow.name}"
    summary = last(app, Summary)
    if summary is None:
        return [Check(name, False, "the receiver left no summary")]
    counted = summary.arrived or summary
    read = counted.unique_bytes or 0
    partial = any(flow.sender_options.get(key) is not None for key in PARTIAL)
    # unordered messages are delivered as they come: those on their way when the flow ends leave gaps
    loose = partial or bool(flow.sender_options.get("unordered"))
    faults = ("corrupt_bytes",) if loose else ("gap_bytes", "corrupt_bytes")
    faulty = {key: value for key in faults if (value := getattr(counted, key))}
    given_up = f", {counted.gap_bytes} B given up by the sender" if partial else ""
    checks = [
        Check(f"pattern {flow.name}", not faulty, f"{faulty}" if faulty else f"{read} B as sent, in order{given_up}")
    ]
    if delivery is None:
        return [*checks, Check(name, False, "the receiver's interfaces were not captured")]
    deliverable = int(delivery.payload_bytes.sum())
    # a sender that receives too stops reading when it stops sending, at some moment of that instant
    stop_ns = None if summary.arrived is None else flow.stop_ns
    # what comes after the end of the connection meets no socket
    if summary.reason in ("terminated", *(ENDED_EARLY if summary.arrived else ENDED_EARLY[:1])):
        ended_ns = summary.t_ns - t0_monotonic_ns - (ENDING_NS if summary.reason == "terminated" else 0)
        stop_ns = ended_ns if stop_ns is None else min(stop_ns, ended_ns)
    if gone_ns is not None:
        stop_ns = gone_ns if stop_ns is None else min(stop_ns, gone_ns)
    least = deliverable if stop_ns is None else int(delivery.payload_bytes[delivery.delivery_ns <= stop_ns].sum())
    detail = f"application {read} B, deliverable on the wire {deliverable} B, new on the wire {new_bytes} B"
    return [*checks, Check(name, least <= read <= deliverable, detail)]


def datagrams_check(
    flow: Flow,
    datagrams: DatagramFlow,
    sender: list[AppRecord],
    receiver: list[AppRecord],
    gone_ns: int | None = None,
) -> list[Check]:
    """Checks both applications' counts of payload against the captures at their own interfaces. Datagrams may be
    missing; none may be altered, read and not captured, or captured and not read (until gone_ns, when the receiver
    first heard no more all that arrives).
    """
    sent, got = last(sender, Summary), last(receiver, Summary)
    arrived = datagrams.arrived
    wire = int(arrived.payload_bytes[arrived.first].sum())
    heard = arrived.first if gone_ns is None else arrived.first & (arrived.t_ns < gone_ns)
    least = int(arrived.payload_bytes[heard].sum())
    left = int(datagrams.sent.payload_bytes.sum())
    read = None if got is None else got.unique_bytes
    corrupt = 0 if got is None else got.corrupt_bytes
    taken = None if sent is None else sent.sent_bytes
    return [
        Check(f"pattern {flow.name}", not corrupt, f"{corrupt} wrong bytes" if corrupt else f"{read} B as sent"),
        Check(
            f"payload {flow.name}",
            read is not None and least <= read <= wire,
            f"application {read} B, arrived on the wire {wire} B",
        ),
        Check(
            f"sent {flow.name}", taken is not None and left <= taken, f"the kernel took {taken} B, on the wire {left} B"
        ),
    ]


def program_check(flow: Flow) -> list[Check]:
    """A program of the user's own gives no count to compare with the wire: the check says so and passes."""
    detail = "not checked: the flow is a program of the user's own, which gives no account of its payload"
    return [Check(f"payload {flow.name}", True, detail)]


def sent_check(flow: Flow, sender: FlowPackets | None, app: list[AppRecord], *, removed: bool = False) -> list[Check]:
    """Checks the sending application's count of payload against the captures at its own interfaces.

    If the flow was closed gracefully and ended well, each byte that the kernel accepted must have been sent at least
    once. Some bytes may be missing if it was aborted or failed, gave messages up (PARTIAL), lost an address of the
    sender's, or is `bare`, which does not wait for its end. In no case may anything else be sent.
    """
    summary = last(app, Summary)
    if sender is None or summary is None or summary.sent_bytes is None:
        return []
    taken, wire = summary.sent_bytes, int(sender.data.new_bytes.sum())
    options = last(app, Options)
    leaves = any(flow.sender_options.get(key) is not None for key in (*PARTIAL, "bare"))
    exact = (
        options is not None
        and options.close == "graceful"
        and summary.status == 0
        and summary.reason not in ("terminated", "gave_up")
        and not removed
        and not leaves
    )
    ok = wire == taken if exact else wire <= taken
    detail = f"the kernel took {taken} B, sent on the wire {wire} B, {'equal' if exact else 'at most that'} wanted"
    return [Check(f"sent {flow.name}", ok, detail)]


def missing_check(node: str, why: str) -> Check:
    """The failed check of a capture point that could not be read."""
    return Check(f"captures of {node}", False, why)


def relative(text: str, cell_dir: Path) -> str:
    """A message without this machine's path, so that the derived files of equal runs are equal."""
    return text.replace(f"{cell_dir}/", "")


SHARE = 10
"""A time is worth something if it is this many times what it may be wrong by."""

FROM_AN_EVENT = frozenset({
    "first_retransmission_s", "first_retransmission_other_path_s", "first_new_data_other_path_s",
    "first_arrival_other_path_s", "first_useful_arrival_other_path_s", "recovery_time_s", "data_on_repaired_path_s",
    "arrival_on_repaired_path_s", "heartbeat_answered_s", "notification_time_s", "unreachable_time_s", "return_time_s",
    "refill_time_s", "first_message_after_fault_s", "gave_up_after_fault_s", "loss_noticed_s", "reconnect_time_s",
})  # fmt: skip
"""From a fault or its repair, on the machine that makes it, to something at an end of the flow."""

BETWEEN_ENDS = frozenset({
    "completion_time_s", "longest_message_delay_s", "queue_wait_mean_s", "queue_wait_max_s", "queue_error_s",
    "all_run_s", "silence_s", "message_delay_mean_s", "message_delay_p50_s", "message_delay_p95_s",
    "message_delay_p99_s", "message_delay_p999_s", "one_way_delay_min_s", "one_way_delay_mean_s",
    "one_way_delay_p50_s", "one_way_delay_p95_s", "one_way_delay_p99_s", "one_way_delay_max_s",
    "queue_delay_mean_s", "queue_delay_p95_s", "queue_delay_p99_s", "queue_delay_max_s",
    "low_latency_queue_delay_mean_s", "low_latency_queue_delay_p99_s", "classic_queue_delay_mean_s",
    "classic_queue_delay_p99_s", "span_queue_delay_mean_s", "span_queue_delay_p95_s",
})  # fmt: skip
"""Times between the two ends of a flow or of a link, or from T0 to the end that has not begun it."""

COUNTED = frozenset({
    "undelivered_packets", "spurious_retransmissions", "late_messages", "late_messages_ratio", "queue_drops",
    "queue_drop_errors", "queue_ties",
})  # fmt: skip
"""Counts of what happened before or after something at the other end: wrong clocks put some on the wrong side."""

JUDGED = {
    "first_retransmission_as_theory": "first_retransmission_other_path_s",
    "new_data_as_theory": "first_new_data_other_path_s",
    "notification_as_theory": "notification_time_s",
    "unreachable_as_theory": "unreachable_time_s",
    "return_as_theory": "return_time_s",
}
"""Verdicts over one of these times: without it they have no value either."""


def within_clocks(
    name: str, paths: Sequence[FlowPath], metrics: Mapping[str, float | None], ready: Ready
) -> tuple[dict[str, float | None], list[str], list[Check]]:
    """The metrics of a flow with these paths, or of a direction of a link (none), without the values that need more
    than the clocks give; the names of these; and a check that says so (it never fails).
    """
    clock_s, event_s = ready.clock_error_ns / 1e9, max(ready.clock_error_ns, ready.event_error_ns) / 1e9
    if not event_s:
        return dict(metrics), [], []
    need_s = min((path.base_rtt_ns for path in paths), default=0) / 1e9 / SHARE
    kept, gone = dict(metrics), []
    for metric, value in metrics.items():
        error_s = event_s if metric in FROM_AN_EVENT else clock_s
        if value is None or not (
            (metric in FROM_AN_EVENT | BETWEEN_ENDS and error_s * SHARE > abs(value))
            or (metric in COUNTED and error_s > need_s)
        ):
            continue
        kept[metric] = None
        gone.append(metric)
    for metric, time_name in JUDGED.items():
        if time_name in gone and kept.get(metric) is not None:
            kept[metric] = None
            gone.append(metric)
    words = ", ".join(gone) or "none"
    detail = (
        f"times of two machines may be wrong against each other by {clock_s * 1e3:.3g} ms, a fault's moment by "
        f"{event_s * 1e3:.3g} ms; metrics without a value for that: {words}"
    )
    return kept, gone, [Check(f"clocks of two machines {name}", True, detail)]
