"""Self-checks of a cell; one that fails makes the cell INVALID. The detail of each check says what was compared with
what.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..core.numbers import fixed
from ..core.types import Cell, Check, Flow
from ..store.app_records import AppRecord, Options, Summary
from ..store.init_records import Capture
from ..store.ndjson import last
from .capacity import rates_change
from .capture_point import CapturePoint
from .delivery import Delivery
from .flow_packets import FlowPackets

ETHERNET_HEADER = 14
UTILIZATION_MAX = 1.0005


def capture_checks(cell: Cell, points: list[CapturePoint], records: dict[str, Capture]) -> list[Check]:
    """Checks of each capture: read to its end, as many packets as cell-init recorded, no losses, no packet of anybody
    else.
    """
    checks = []
    mtu = {link.name: link.mtu_bytes for link in cell.links}
    # a router fragments what its next link does not carry, where the sender allows it; one of them may be lost
    fragmenting = len(set(mtu.values())) > 1
    corrupting = any(shape.corrupt_ratio for link in cell.links for shape in (link.forward, link.backward))
    for point in points:
        for number, link in enumerate(point.links):
            source = point.capture.sources[number]
            name = f"{point.node}-{link}"
            trouble = point.capture.trouble[number]
            checks.append(Check(f"capture whole {name}", not trouble, trouble or "read to its end"))
            checks.append(_against_record(name, records.get(f"capture/{name}.pcap"), source))
            longest, allowed = int(source["max_frame_bytes"]), mtu[link] + ETHERNET_HEADER
            checks.append(
                Check(f"frame length {name}", longest <= allowed, f"longest {longest} B, allowed {allowed} B")
            )
            foreign = {kind: int(source[kind]) for kind in ("arp", "ipv6", "other") if source[kind]}
            # a bit that netem flips may be one of the EtherType or of the IP version
            checks.append(
                Check(f"foreign packets {name}", not foreign or corrupting, f"{foreign}" if foreign else "none")
            )
            wrong = {
                kind: int(source[kind])
                for kind in ("truncated", "fragments", "backwards")
                + (() if corrupting else ("malformed", "bad_checksum"))
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


def payload_check(flow: Flow, delivery: Delivery | None, new_bytes: int, app: list[AppRecord]) -> list[Check]:
    """Checks the receiving application's count of payload against the captures at its own interfaces.

    new_bytes: payload never seen before in the receiver's captures, over the whole run. The application must have read
    exactly the payload that could be delivered (in order, whole messages).
    """
    name = f"payload {flow.name}"
    summary = last(app, Summary)
    if summary is None:
        return [Check(name, False, "the receiver left no summary")]
    read = summary.unique_bytes or 0
    partial = any(flow.sender_options.get(key) is not None for key in PARTIAL)
    faults = ("corrupt_bytes",) if partial else ("gap_bytes", "corrupt_bytes")
    faulty = {key: value for key in faults if (value := getattr(summary, key))}
    given_up = f", {summary.gap_bytes} B given up by the sender" if partial else ""
    checks = [
        Check(f"pattern {flow.name}", not faulty, f"{faulty}" if faulty else f"{read} B as sent, in order{given_up}")
    ]
    if delivery is None:
        return [*checks, Check(name, False, "the receiver's interfaces were not captured")]
    deliverable = int(delivery.payload_bytes.sum())
    detail = f"application {read} B, deliverable on the wire {deliverable} B, new on the wire {new_bytes} B"
    return [*checks, Check(name, read == deliverable, detail)]


def program_check(flow: Flow) -> list[Check]:
    """A program of the user's own gives no count to compare with the wire: the check says so and passes."""
    detail = "not checked: the flow is a program of the user's own, which gives no account of its payload"
    return [Check(f"payload {flow.name}", True, detail)]


def sent_check(flow: Flow, sender: FlowPackets | None, app: list[AppRecord]) -> list[Check]:
    """Checks the sending application's count of payload against the captures at its own interfaces.

    If the flow was closed gracefully and ended well, each byte that the kernel accepted must have been sent at least
    once. If it was aborted or failed, some bytes may be missing. In no case may anything else be sent.
    """
    summary = last(app, Summary)
    if sender is None or summary is None or summary.sent_bytes is None:
        return []
    taken, wire = summary.sent_bytes, int(sender.data.new_bytes.sum())
    options = last(app, Options)
    exact = (
        options is not None
        and options.close == "graceful"
        and summary.status == 0
        and summary.reason not in ("terminated", "gave_up")
    )
    ok = wire == taken if exact else wire <= taken
    detail = f"the kernel took {taken} B, sent on the wire {wire} B, {'equal' if exact else 'at most that'} wanted"
    return [Check(f"sent {flow.name}", ok, detail)]


def utilization_check(cell: Cell, flow: Flow, utilization: float | None) -> list[Check]:
    """Checks that no link carried more than its rate; not where it changes: the packet being sent keeps its own."""
    if utilization is None or rates_change(cell):
        return []
    ok = utilization <= UTILIZATION_MAX
    return [Check(f"utilization {flow.name}", ok, f"{fixed(utilization, 6)}, at most {UTILIZATION_MAX}")]


def missing_check(node: str, why: str) -> Check:
    """The failed check of a capture point that could not be read."""
    return Check(f"captures of {node}", False, why)


def relative(text: str, cell_dir: Path) -> str:
    """A message without this machine's path, so that the derived files of equal runs are equal."""
    return text.replace(f"{cell_dir}/", "")
