"""A cell's derived files from recorded captures, against plain loops over what tshark reads from the same files."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
import zstandard
from netwarp.core.errors import CaptureError
from netwarp.core.link_types import Link
from netwarp.core.metrics.catalogue import METRICS
from netwarp.core.types import BACK, Event, Program
from netwarp.measure.cell import analyze_cell
from netwarp.measure.delivery import SentMessages
from netwarp.measure.observation import is_break
from netwarp.measure.timetable import NEVER
from netwarp.store.app_records import (
    Connected,
    Summary,
)
from netwarp.store.init_records import Exit
from support.captures import DATA, READ_BYTES
from support.recorded_cell import (
    FAULT,
    MONOTONIC,
    REPAIR,
    SHAPE,
    START,
    STOP,
    T0,
    S,
    derive,
    make_cell,
    make_directory,
    write,
)


@dataclass
class Seen:
    """A packet as tshark reads it."""

    t: float
    ip: int
    link: str
    units: list[tuple[int, int]]
    """(TSN, payload) or (first byte, payload) of each piece of data."""
    acks: bool


def tshark(name: str, node: str, link: str, tmp_path: Path, forward: bool = True) -> list[Seen]:
    plain = tmp_path / f"{name}-{node}-{link}.pcap"
    plain.write_bytes(
        zstandard.ZstdDecompressor().stream_reader((DATA / f"{name}-{node}-{link}.pcap.zst").read_bytes()).read()
    )
    tcp = name == "tcp"
    fields = ["frame.time_epoch", "ip.len"]
    fields += (
        ["tcp.seq", "tcp.len", "tcp.flags.ack"]
        if tcp
        else ["sctp.data_tsn_raw", "sctp.chunk_length", "sctp.chunk_type"]
    )
    command = ["tshark", "-n", "-r", str(plain), "-T", "fields", "-E", "separator=;", "-o", "sctp.relative_tsns:FALSE"]
    command += [word for field in fields for word in ("-e", field)]
    command += ["-Y", f"{'tcp' if tcp else 'sctp'}.{'dstport' if forward else 'srcport'} == 5001"]
    found = []
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        time, length, *rest = line.split(";")
        if tcp:
            units = [(int(rest[0]), int(rest[1]))] if int(rest[1]) else []
            acks = rest[2] not in ("0", "False")
        else:
            lengths = [int(one) for one in rest[1].split(",")]
            kinds = rest[2].split(",")
            tsns = iter(rest[0].split(","))
            units = [(int(next(tsns)), size - 16) for kind, size in zip(kinds, lengths, strict=True) if int(kind) == 0]
            acks = "3" in kinds
        seconds, _, fraction = time.partition(".")
        found.append(Seen((int(seconds) - T0 // S) + int(fraction) / 1e9, int(length), link, units, acks))
    return found


def both_paths(node: str, tmp_path: Path) -> list[Seen]:
    """What a host sees of the recorded SCTP association, in the order of time."""
    return sorted((one for link in ("p1", "p2") for one in tshark("sctp", node, link, tmp_path)), key=lambda one: one.t)


def with_new(packets: list[Seen]) -> list[tuple[Seen, int]]:
    """Each with its payload never seen before; whole pieces, which is what the recorded senders repeat."""
    seen: set[int] = set()
    found = []
    for packet in packets:
        found.append((packet, sum(size for number, size in packet.units if number not in seen)))
        seen |= {number for number, _ in packet.units}
    return found


@pytest.mark.parametrize("name", ["sctp", "tcp", "bundle"])
def test_metrics_are_what_plain_loops_make_of_tsharks_words(name: str, tmp_path: Path) -> None:
    cell = make_cell(name)
    derived = derive(cell, make_directory(cell, name, tmp_path / "cell"))
    links = [path.name for path in cell.flows[0].paths]
    sent = sorted((one for link in links for one in tshark(name, "a", link, tmp_path)), key=lambda one: one.t)
    arrived = sorted((one for link in links for one in tshark(name, "b", link, tmp_path)), key=lambda one: one.t)
    back = [one for link in links for one in tshark(name, "b", link, tmp_path, forward=False) if one.t <= STOP]
    arrived = [one for one in arrived if one.t <= STOP]
    fresh = [(one, size) for one, size in with_new(arrived) if size]
    first = fresh[0][0].t
    span = STOP - first
    metrics = derived.metrics
    assert metrics["payload_bytes"] == sum(size for _, size in fresh)
    assert metrics["wire_bytes"] == sum(one.ip for one in arrived)
    assert metrics["packets"] == len(arrived)
    assert metrics["data_packets"] == sum(bool(one.units) for one in arrived)
    assert metrics["unique_data_packets"] == len(fresh)
    assert metrics["ack_packets"] == sum(one.acks and not one.units for one in back)
    goodput = sum(size for one, size in fresh if one.t > first) * 8 / span
    throughput = sum(one.ip for one in arrived if one.t > first) * 8 / span
    assert metrics["goodput_bit_s"] == pytest.approx(goodput, rel=1e-9)
    assert metrics["throughput_bit_s"] == pytest.approx(throughput, rel=1e-9)
    assert metrics["utilization_ratio"] == pytest.approx(throughput / (10_000_000 * len(links)), rel=1e-9)
    again = [(one, size) for one, size in with_new(sent) if one.units and size < sum(part for _, part in one.units)]
    assert metrics["retransmitted_packets"] == sum(one.t <= STOP for one, _ in again)
    repeated = [sum(part for _, part in one.units) - size for one, size in with_new(sent) if one.t <= STOP]
    assert metrics["retransmitted_bytes"] == sum(repeated) > 0
    assert metrics["mine"] == pytest.approx(len(fresh) * 1500 / 10.5)
    assert metrics["again"] == pytest.approx(len(fresh) * 1500 / 10.5 / 1e6)
    assert metrics["absent"] is None
    assert metrics["completion_time_s"] is None
    always = {name for name, metric in METRICS.items() if metric.flows in ("every", "TCP", "connection", "messages")}
    others = {name for name, metric in METRICS.items() if metric.flows in ("SCTP", "MPTCP", "several")}
    assert set(metrics) - others == always | set(cell.metrics)
    assert ("spurious_retransmissions" in metrics) == (cell.flows[0].protocol == "sctp")
    assert derived.units["goodput_bit_s"] == "bit/s"
    assert derived.failed() == []
    gaps = [
        (later.t - one.t) for (one, _), (later, _) in itertools.pairwise(fresh) if one.t <= REPAIR and later.t >= FAULT
    ]
    if name == "sctp":
        assert metrics["outage_s"] == pytest.approx(max(gaps), abs=1e-9)
        assert max(gaps) > 0.5
        other = [one.t for one, size in with_new(sent) if size and one.t >= FAULT and one.link == "p2"]
        assert metrics["first_new_data_other_path_s"] == pytest.approx(min(other) - FAULT, abs=1e-9)
        over = [one.t for one, _ in fresh if one.t >= FAULT and one.link == "p2"]
        assert metrics["first_useful_arrival_other_path_s"] == pytest.approx(min(over) - FAULT, abs=1e-9)
        assert min(over) < min(other)  # what was lost comes over p2 before anything never sent does
        elsewhere = [one.t for one, _ in again if one.t >= FAULT and one.link == "p2"]
        assert metrics["first_retransmission_other_path_s"] == pytest.approx(min(elsewhere) - FAULT, abs=1e-9)
        after = [one.t for one, _ in fresh if one.t > REPAIR]
        assert metrics["recovery_time_s"] == pytest.approx(min(after) - REPAIR, abs=1e-9)
        assert 0.08 < (metrics["setup_time_s"] or 0) < 0.1
    else:  # over before the fault begins
        assert metrics["outage_s"] is metrics["recovery_time_s"] is metrics["first_useful_arrival_other_path_s"] is None
        assert metrics["first_new_data_other_path_s"] is None


def test_late_and_spurious_are_what_plain_loops_find(tmp_path: Path) -> None:
    cell = make_cell("sctp", parameters={"late": "100 ms"}, metrics={})
    metrics = derive(cell, make_directory(cell, "sctp", tmp_path / "cell")).metrics
    sent = both_paths("a", tmp_path)
    arrived = both_paths("b", tmp_path)
    due: dict[int, float] = {}
    came: dict[int, float] = {}
    for one in arrived:
        for tsn, _ in one.units:
            came.setdefault(tsn, one.t)
    spurious = 0
    for one in sent:
        for tsn, _ in one.units:
            spurious += tsn in due and one.t <= STOP and came.get(tsn, one.t) < one.t
            due.setdefault(tsn, one.t)
    # one stream, in order: a message waits for all before it
    delivered: dict[int, float] = {}
    latest = 0.0
    for tsn in sorted(due):
        if tsn in came:
            latest = max(latest, came[tsn])
            delivered[tsn] = latest
    late = sum(min(delivered.get(tsn, 1e9), STOP) - at > 0.1 for tsn, at in due.items())
    assert metrics["spurious_retransmissions"] == spurious > 0
    assert metrics["late_messages"] == late > 0
    assert metrics["undelivered_messages"] == len(due) - len(delivered)
    delays = [at - due[tsn] for tsn, at in delivered.items()]
    assert metrics["longest_message_delay_s"] == pytest.approx(max(delays), abs=1e-8)
    # the recorded kernel ran at HZ = 100: its timers' slots are wider, so only the early end is the theory's
    assert (metrics["theory_first_retransmission_low_s"] or 0) < (metrics["first_retransmission_other_path_s"] or 0)


def test_the_longest_wait_is_what_a_plain_loop_finds_for_tcp(tmp_path: Path) -> None:
    """And the first message after the fault is the first segment of new data that left then: a retransmission, which
    may be new to the receiver, is not it.
    """
    sent, arrived = tshark("tcp", "a", "p1", tmp_path), tshark("tcp", "b", "p1", tmp_path)
    first: dict[int, tuple[int, float]] = {}
    for one in sent:
        for number, size in one.units:
            first.setdefault(number, (size, one.t))
    reach, come, delivered = 1, dict[int, int](), dict[int, float]()
    for one in arrived:
        come |= dict(one.units)
        while reach in come:
            delivered[reach] = one.t
            reach += come.pop(reach)
    waits = {number: delivered[number] - left for number, (_, left) in first.items()}
    latest = max(waits, key=lambda number: waits[number])
    fault_ns = round(first[latest][1] * S) - 1
    cell = make_cell("tcp", timeline=(Event(fault_ns, "outage", "cut", "p1"),))
    root = make_directory(cell, "tcp", tmp_path / "cell")
    metrics = derive(cell, root).metrics
    assert metrics["longest_message_delay_s"] == pytest.approx(waits[latest], abs=1e-8)
    assert metrics["first_message_after_fault_s"] == pytest.approx(waits[latest], abs=1e-8)
    # due by a schedule, all messages at once: they wait for their turn too
    at_once = msgspec.structs.replace(
        cell.flows[0], message_bytes=10, sender_options={"interval_ns": 10**12, "burst_bytes": ",".join(["10"] * 3000)}
    )
    write(root / "apps" / "ftp.sender.ndjson", [Connected(MONOTONIC)])
    planned = derive(msgspec.structs.replace(cell, flows=(at_once,)), root).metrics
    end = next(at for number, at in sorted(delivered.items()) if number + first[number][0] > 30_000)
    assert planned["longest_message_delay_s"] == pytest.approx(end, abs=1e-8)


def test_what_was_never_delivered_has_waited_longest() -> None:
    """Its wait had no end: a number would be that of the messages that were lucky."""
    messages = SentMessages(np.array([0, 5, 10]) * S, np.array([1 * S, NEVER, 11 * S]))
    assert messages.longest_s(until_ns=6 * S) == 1.0
    assert messages.longest_s(until_ns=7 * S) is None
    assert messages.first_since(S) is None
    assert messages.first_since(6 * S) == 11 * S
    assert SentMessages(None, messages.delivered_ns).longest_s(S) is None


def test_head_of_line_delay_is_what_a_plain_loop_finds(tmp_path: Path) -> None:
    cell = make_cell("tcp")
    derived = derive(cell, make_directory(cell, "tcp", tmp_path / "cell"))
    arrived = tshark("tcp", "b", "p1", tmp_path)
    waiting: dict[int, tuple[int, float]] = {}
    reach, delays = 1, []
    for one in arrived:
        for number, size in one.units:
            if number >= reach and number not in waiting:
                waiting[number] = (size, one.t)
        while reach in waiting:
            size, since = waiting.pop(reach)
            reach += size
            delays.append(one.t - since)
    assert derived.metrics["hol_blocking_s"] == pytest.approx(sum(delays) / len(delays), abs=1e-8)
    assert (derived.metrics["hol_blocking_s"] or 0) > 0.001


def test_mptcp_counts_a_byte_once(tmp_path: Path) -> None:
    cell = make_cell("mptcp", flow={"total_bytes": READ_BYTES["mptcp"], "stop_ns": None})
    derived = derive(cell, make_directory(cell, "mptcp", tmp_path / "cell"))
    assert derived.metrics["payload_bytes"] == READ_BYTES["mptcp"]
    assert derived.failed() == ["foreign packets a-p2"]  # the recorded guest had ARP there
    assert set(derived.series["flows"]["ftp"]["paths"]) == {"p1", "p2"}


def test_a_flow_by_bytes_ends_with_its_last_new_payload(tmp_path: Path) -> None:
    total = READ_BYTES["sctp"]
    cell = make_cell("sctp", flow={"total_bytes": total, "stop_ns": None, "start_ns": S // 2})
    metrics = derive(cell, make_directory(cell, "sctp", tmp_path / "cell")).metrics
    arrived = both_paths("b", tmp_path)
    fresh = [(one, size) for one, size in with_new(arrived) if size]
    assert metrics["payload_bytes"] == total
    assert metrics["completion_time_s"] == pytest.approx(fresh[-1][0].t - 0.5, abs=1e-9)
    span = fresh[-1][0].t - fresh[0][0].t
    assert metrics["goodput_bit_s"] == pytest.approx((total - fresh[0][1]) * 8 / span, rel=1e-9)
    # asked for more than came: never completed, and it lasts until the cell ends
    more = make_cell("sctp", flow={"total_bytes": total + 1, "stop_ns": None})
    incomplete = derive(more, tmp_path / "cell").metrics
    assert incomplete["completion_time_s"] is None
    assert incomplete["goodput_bit_s"] == pytest.approx((total - fresh[0][1]) * 8 / (12 - fresh[0][0].t), rel=1e-9)
    # or until its connection broke: what came is then over the time until its sender was told
    for reason, end_s in (("gave_up", 11.5), ("peer_aborted", 11.5), ("terminated", 12.0)):
        taken(tmp_path / "cell", total + 1, reason, int(11.5 * S))
        broken = derive(more, tmp_path / "cell").metrics
        span = end_s - fresh[0][0].t
        assert broken["goodput_bit_s"] == pytest.approx((total - fresh[0][1]) * 8 / span, rel=1e-9)
        assert broken["broken_connections"] == (reason != "terminated")
        assert broken["undelivered_bytes"] == 1


def taken(root: Path, sent_bytes: int, reason: str, at_ns: int) -> None:
    """The sender's last word: what its kernel took, and how it ended."""
    summary = Summary(MONOTONIC + at_ns, reason=reason, status=0, sent_bytes=sent_bytes)
    write(root / "apps" / "ftp.sender.ndjson", [summary])


@pytest.mark.parametrize(
    ("exit_s", "status", "end_s", "completed"),
    [(5.0, 0, 5.0, True), (1.0, 0, 0.0, True), (5.0, 1, 5.0, False), (STOP + 1.0, 0, STOP, False)],
)
def test_a_program_is_measured_while_it_runs(
    exit_s: float, status: int, end_s: float, completed: bool, tmp_path: Path
) -> None:
    """Not to the end of the cell. 0.0: to its last data, which the kernel sent after it had gone."""
    arrived = [one for one, size in with_new(tshark("tcp", "b", "p1", tmp_path)) if size]
    end_s = end_s or arrived[-1].t
    cell = make_cell("tcp", flow={"program": Program(("theirs",), ("theirs", "-l"))})
    root = make_directory(cell, "tcp", tmp_path / "cell")
    ended = Exit("ftp.sender", status, None, False, int(exit_s * S))
    with (root / "init.ndjson").open("ab") as file:
        file.write(msgspec.json.Encoder().encode_lines([ended]))
    metrics = derive(cell, root).metrics
    assert metrics["completion_time_s"] == (pytest.approx(end_s, abs=1e-6) if completed else None)
    came = sum(size for one in arrived[1:] for _, size in one.units)
    assert metrics["goodput_bit_s"] == pytest.approx(came * 8 / (end_s - arrived[0].t), rel=1e-6)


def test_both_directions_of_a_program_are_measured_and_named(tmp_path: Path) -> None:
    """All data of the capture go from a to b; of a flow from b to a they are the other direction's."""
    cell = make_cell("tcp", flow={"program": Program(("theirs",), ("theirs", "-l"))})
    root = make_directory(cell, "tcp", tmp_path / "cell")
    own = derive(cell, root).metrics
    assert "ftp.back" not in (root / "derived" / "measurements.json").read_text(), "it carried no payload"
    turned = Program(("theirs",), ("theirs", "-l"), listens="sender")
    cell = make_cell("tcp", flow={"program": turned, "sender": "b", "receiver": "a"})
    assert derive(cell, root).metrics["payload_bytes"] == 0
    rows = json.loads((root / "derived" / "measurements.json").read_text())
    back = {row["metric"]: row["value"] for row in rows if row["flow"] == "ftp.back"}
    assert back["payload_bytes"] == own["payload_bytes"] == READ_BYTES["tcp"]
    assert {name for name, value in back.items() if value != own[name]} == {"utilization_ratio"}
    assert back["utilization_ratio"] is None


def test_a_fault_that_nothing_survives_has_no_outage(tmp_path: Path) -> None:
    """The longest silence is the one that lasts to the end: how long it would have been is not known."""
    cell = make_cell("tcp", timeline=(Event(S, "outage", "cut", "p1"), Event(2 * S, "outage", "repair", "p1")))
    cell = msgspec.structs.replace(cell, flows=(msgspec.structs.replace(cell.flows[0], stop_ns=int(1.5 * S)),))
    inside = derive(cell, make_directory(cell, "tcp", tmp_path / "cell")).metrics
    assert 0 < (inside["outage_s"] or 0) < 0.3
    late = msgspec.structs.replace(cell, timeline=(Event(2 * S, "outage", "cut", "p1"),))
    late = msgspec.structs.replace(late, flows=(msgspec.structs.replace(cell.flows[0], stop_ns=11 * S),))
    assert derive(late, tmp_path / "cell").metrics["outage_s"] is None


def test_a_fault_elsewhere_is_not_this_flows(tmp_path: Path) -> None:
    cell = make_cell("sctp", timeline=(Event(6 * S, "outage", "cut", "p3"),))
    cell = msgspec.structs.replace(cell, links=(*cell.links, Link("p3", "a", "b", SHAPE, SHAPE)))
    metrics = derive(cell, make_directory(cell, "sctp", tmp_path / "cell")).metrics
    others = ("first_useful_arrival_other_path_s", "first_retransmission_other_path_s")
    assert all(metrics[name] is None for name in ("outage_s", *others))


def test_packets_in_flight_on_the_other_path_are_no_failover(tmp_path: Path) -> None:
    """A fault just after a packet left on p2: its arrival is later than the fault, and no answer to it."""
    sent = both_paths("a", tmp_path)
    arrived = both_paths("b", tmp_path)
    over = [one for one, size in with_new(arrived) if size and one.link == "p2" and one.t > FAULT]
    left = next(one.t for one in sent if one.link == "p2" and one.units == over[0].units)
    fault_ns = round(left * S) + 1_000
    assert left < over[0].t < over[-1].t
    wanted = next(
        one.t
        for one in over
        if any(there.link == "p2" and there.units == one.units and fault_ns / S < there.t <= one.t for there in sent)
    )
    cell = make_cell("sctp", timeline=(Event(fault_ns, "outage", "cut", "p1"),))
    derived = derive(cell, make_directory(cell, "sctp", tmp_path / "cell"))
    assert derived.metrics["first_useful_arrival_other_path_s"] == pytest.approx(wanted - fault_ns / S, abs=1e-9)
    assert wanted > over[0].t > fault_ns / S
    (event,) = (event for event in derived.series["events"] if event["kind"] == "first_useful_arrival_other_path")
    assert event["t_s"] == pytest.approx(wanted, abs=1e-9)


def test_series_add_up_to_the_measurements(tmp_path: Path) -> None:
    cell = make_cell("sctp", flow={"stop_ns": 12 * S})
    derived = derive(cell, make_directory(cell, "sctp", tmp_path / "cell"))
    series = derived.series
    assert (series["bin_s"], series["duration_s"]) == (0.1, 12.0)
    flow = series["flows"]["ftp"]
    assert len(flow["goodput_bit_s"]) == 120
    assert sum(flow["goodput_bit_s"]) * 0.1 / 8 == pytest.approx(READ_BYTES["sctp"])
    wire = sum(sum(path["throughput_bit_s"]) for path in flow["paths"].values()) * 0.1 / 8
    assert wire == pytest.approx(derived.metrics["wire_bytes"])
    assert sum(flow["paths"]["p1"]["throughput_bit_s"][65:88]) == 0
    metrics = derived.metrics
    for name, wanted in (
        ("packets_s", metrics["packets_both_ways"]),
        ("data_packets_s", metrics["data_packets"]),
        ("control_packets_s", metrics["packets_both_ways"] - metrics["data_packets"]),
    ):
        assert sum(flow[name]) * 0.1 == pytest.approx(wanted)
    assert series["faults"] == [{"name": "outage", "action": "blackhole", "link": "p1", "from_s": 6.0, "to_s": 9.0}]
    kinds = [event["kind"] for event in series["events"]]
    assert {
        "blackhole",
        "repair",
        "outage",
        "first_retransmission_other_path",
        "first_new_data_other_path",
        "first_useful_arrival_other_path",
    } <= set(kinds)
    times = [event["t_s"] for event in series["events"]]
    assert times == sorted(times)


def test_no_t0_is_an_error(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")
    write(root / "init.ndjson", [START])
    with pytest.raises(CaptureError, match="no `ready` record"):
        analyze_cell(cell, root)


def test_equal_cells_have_equal_derived_files(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    files = []
    for place in ("one", "two"):
        root = make_directory(cell, "sctp", tmp_path / place)
        analyze_cell(cell, root)
        files.append({path.name: path.read_bytes() for path in sorted((root / "derived").iterdir())})
    assert files[0] == files[1]
    assert set(files[0]) == {"checks.json", "exchange.json.zst", "measurements.json", "packets.json", "series.json.zst"}
    packets = json.loads(files[0]["packets.json"])
    assert set(packets) == {f"{capture.node}-{capture.link}" for capture in cell.captures}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in packets.values())


def test_the_end_that_did_not_open_the_connection_ends_with_its_peer() -> None:
    flow = make_cell("sctp").flows[0]
    other = msgspec.structs.replace(flow, name=flow.name + BACK)
    for reason in ("gave_up", "stalled", "peer_aborted", "failed"):
        assert is_break(flow, reason) and is_break(other, reason)
    assert is_break(flow, "peer_closed") and not is_break(other, "peer_closed")
    assert not is_break(flow, "terminated") and not is_break(flow, None)
