"""Every self-check of a cell fails when the thing it checks is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard
from netwarp.core.link_types import Link
from netwarp.core.types import CapturePoint
from netwarp.measure.checks import datagrams_check, payload_check, sent_check
from netwarp.store.app_records import Options, Summary
from netwarp.store.init_records import Capture as CaptureRecord
from netwarp.store.init_records import Proc, read_init_log
from netwarp.store.ndjson import Record
from support.captures import READ_BYTES, cut, pcap, segment
from support.recorded_cell import SHAPE, T0, S, derive, make_cell, make_directory, write


def change_record(root: Path, capture: str, **changes: Any) -> None:
    write(
        root / "init.ndjson",
        [
            msgspec.structs.replace(record, **changes)
            if isinstance(record, CaptureRecord) and record.file == f"capture/{capture}.pcap"
            else record
            for record in read_init_log(root / "init.ndjson")
        ],
    )


def add_record(root: Path, record: Record) -> None:
    with (root / "init.ndjson").open("ab") as log:
        log.write(msgspec.json.encode(record) + b"\n")


FAULTS: dict[str, tuple[Any, str]] = {
    "drops": (lambda root: change_record(root, "b-p1", dropped=1), "capture record b-p1"),
    "truncated": (lambda root: change_record(root, "b-p1", truncated=2), "capture record b-p1"),
    "failed write": (lambda root: change_record(root, "a-p2", errno=28), "capture record a-p2"),
    "fewer packets than recorded": (lambda root: change_record(root, "a-p1", packets=9), "capture record a-p1"),
    "shorter than recorded": (lambda root: change_record(root, "a-p1", bytes=9), "capture record a-p1"),
    "a record that is missing": (
        lambda root: change_record(root, "a-p1", file="capture/x.pcap"),
        "capture record a-p1",
    ),
    "a byte the application never read": (
        lambda root: write(root / "apps" / "ftp.receiver.ndjson", [Summary(0, unique_bytes=1_201_199)]),
        "payload ftp",
    ),
    "a gap in the pattern": (
        lambda root: write(root / "apps" / "ftp.receiver.ndjson", [Summary(0, unique_bytes=1_201_200, gap_bytes=1)]),
        "pattern ftp",
    ),
    "memory pressure": (
        lambda root: add_record(root, Proc(9, 1, "net/netstat", "TcpExt: TCPMemoryPressures\nTcpExt: 3\n")),
        "memory for TCP's buffers",
    ),
    "no summary": (lambda root: write(root / "apps" / "ftp.receiver.ndjson", []), "payload ftp"),
    "no receiver log": (lambda root: (root / "apps" / "ftp.receiver.ndjson").unlink(), "payload ftp"),
    "a missing capture": (lambda root: (root / "capture" / "b-p2.pcap.zst").unlink(), "captures of b"),
    "a capture that is none": (
        lambda root: (root / "capture" / "b-p2.pcap.zst").write_bytes(b"x" * 99),
        "captures of b",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_self_check_fails_when_its_thing_is_wrong(fault: str, tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")
    damage, check = FAULTS[fault]
    damage(root)
    derived = derive(cell, root)
    assert check in derived.failed()
    assert str(tmp_path) not in (root / "derived" / "checks.json").read_text()


def replace_capture(root: Path, data: bytes, packets: int) -> None:
    (root / "capture" / "b-p2.pcap.zst").unlink()
    (root / "capture" / "b-p2.pcap").write_bytes(data)
    change_record(root, "b-p2", bytes=len(data), packets=packets)


@pytest.mark.parametrize(
    ("frames", "check"),
    [
        ([segment(1, 1461)], "frame length b-p2"),
        ([b"\xff" * 12 + b"\x08\x06" + b"\0" * 28], "foreign packets b-p2"),
        ([b"\0" * 12 + b"\x86\xdd" + b"\x60" + b"\0" * 40], "foreign packets b-p2"),
        ([segment(1, 10)[:-3] + b"bad"], "packets readable b-p2"),
    ],
)
def test_foreign_or_wrong_packets_are_found(frames: list[bytes], check: str, tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")
    replace_capture(root, pcap([(T0 + S, frame) for frame in frames]), len(frames))
    assert check in derive(cell, root).failed()


def fragmented(tmp_path: Path, frames: list[bytes], mtu_bytes: int) -> set[str]:
    """Failed checks of path p2's capture at b, which holds these frames; path p1 carries 1500 bytes, p2 mtu_bytes."""
    cell = make_cell("sctp")
    links = (cell.links[0], msgspec.structs.replace(cell.links[1], mtu_bytes=mtu_bytes))
    cell = msgspec.structs.replace(cell, links=links)
    root = make_directory(cell, "sctp", tmp_path / "cell")
    replace_capture(root, pcap([(T0 + S + number, frame) for number, frame in enumerate(frames)]), len(frames))
    return {check for check in derive(cell, root).failed() if check.endswith("b-p2")}


PARTS = cut(segment(1, 1400), [120])
"""A datagram in fragments of 980 and 480 bytes."""


@pytest.mark.parametrize("frames", [PARTS, PARTS[::-1], PARTS[:1], PARTS[1:]], ids=["whole", "late", "first", "rest"])
def test_fragments_are_readable_only_where_a_link_carries_less(frames: list[bytes], tmp_path: Path) -> None:
    """Also those of a datagram that never comes whole: a fragment can be lost behind the router that made it."""
    assert fragmented(tmp_path / "less", frames, 1000) == set()
    assert fragmented(tmp_path / "equal", frames, 1500) == {"packets readable b-p2"}


@pytest.mark.parametrize(
    ("frames", "check"),
    [
        ([*PARTS, segment(1, 10)[:-3] + b"bad"], "packets readable b-p2"),
        (cut(segment(1, 1400)[:-3] + b"bad", [120]), "packets readable b-p2"),
        (cut(segment(1, 1400), [126]), "frame length b-p2"),
    ],
    ids=["wrong checksum beside them", "wrong checksum of the whole", "longer than the link's MTU"],
)
def test_where_fragments_may_be_nothing_else_is_let_through(frames: list[bytes], check: str, tmp_path: Path) -> None:
    assert fragmented(tmp_path, frames, 1000) == {check}


def test_a_metric_that_cannot_be_computed_fails_its_check_alone(tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", metrics={"bad": "1 / (1.5 - 1.5)", "unheard": "nothing", "after": "bad + 1", "good": "packets"}
    )
    derived = derive(cell, make_directory(cell, "sctp", tmp_path / "cell"))
    assert derived.failed() == ["metric bad ftp", "metric unheard ftp"]
    assert "division by zero" in derived.checks["metric bad ftp"]["detail"]
    assert derived.metrics["bad"] is derived.metrics["after"] is None
    assert derived.metrics["good"] == derived.metrics["packets"]


@pytest.mark.parametrize("option", ["lifetime_ns", "max_retransmissions"])
def test_messages_that_are_given_up_are_no_gap(option: str, tmp_path: Path) -> None:
    """With partial reliability messages are missing among those that arrive; a wrong byte is one as ever."""
    cell = make_cell("sctp", flow={"sender_options": {option: 0}})
    root = make_directory(cell, "sctp", tmp_path / "cell", gap_bytes=500)
    derived = derive(cell, root)
    assert derived.failed() == []
    assert "500 B given up" in derived.checks["pattern ftp"]["detail"]
    root = make_directory(cell, "sctp", tmp_path / "other", gap_bytes=500, corrupt_bytes=1)
    assert derive(cell, root).failed() == ["pattern ftp"]


def test_output_that_is_no_ndjson_fails_its_check(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")
    (root / "apps" / "ftp.sender.ndjson").write_text("{broken\n")
    derived = derive(cell, root)
    assert derived.failed() == ["output of ftp.sender"]
    (root / "apps" / "ftp.sender.ndjson").write_text('{"record":"options"}\n{"record":"samp')  # cut off: left out
    assert derive(cell, root).failed() == []


def test_corruption_that_was_asked_for_is_no_failure(tmp_path: Path) -> None:
    corrupting = msgspec.structs.replace(SHAPE, corrupt_ratio=0.01)
    cell = make_cell("sctp")
    cell = msgspec.structs.replace(cell, links=(cell.links[0], Link("p2", "a", "b", corrupting, corrupting)))
    root = make_directory(cell, "sctp", tmp_path / "cell")
    flipped = segment(1, 10)[:14] + b"\x55" + segment(1, 10)[15:]  # IP version 5
    part = segment(1, 10)[:20] + b"\x20" + segment(1, 10)[21:]  # more fragments are to follow
    frames = [segment(1, 10)[:-3] + b"bad", flipped, part]
    replace_capture(root, pcap([(T0 + S, frame) for frame in frames]), len(frames))
    failed = derive(cell, root).failed()
    assert not {"packets readable b-p2", "foreign packets b-p2"} & set(failed)
    assert "payload ftp" in failed  # what was on the replaced capture is missing


def test_a_capture_cut_off_fails_its_check_and_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")
    path = root / "capture" / "b-p1.pcap.zst"
    plain = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    path.unlink()
    (root / "capture" / "b-p1.pcap").write_bytes(plain[: len(plain) // 2])
    derived = derive(cell, root)
    assert {"capture whole b-p1", "capture record b-p1", "payload ftp"} <= set(derived.failed())
    assert 0 < (derived.metrics["payload_bytes"] or 0) < READ_BYTES["sctp"]


def test_more_than_the_links_carry_is_invalid(tmp_path: Path) -> None:
    slow = msgspec.structs.replace(SHAPE, rate_bit_s=300_000)
    cell = make_cell("sctp", links=tuple(Link(link, "a", "b", slow, slow) for link in ("p1", "p2")))
    failed = derive(cell, make_directory(cell, "sctp", tmp_path / "cell")).failed()
    assert failed == ["utilization ftp p1", "utilization ftp p2"]


def test_without_the_receivers_captures_nothing_is_made_up(tmp_path: Path) -> None:
    cell = make_cell("sctp", captures=tuple(CapturePoint("a", link) for link in ("p1", "p2")))
    derived = derive(cell, make_directory(cell, "sctp", tmp_path / "cell"))
    assert set(derived.failed()) == {"captures of b", "payload ftp"}
    assert derived.metrics["goodput_bit_s"] is derived.metrics["payload_bytes"] is derived.metrics["mine"] is None
    assert derived.metrics["retransmitted_packets"] == 24


def taken(root: Path, bytes_taken: int, close: str, reason: str, status: int = 0) -> None:
    """What the sender says it handed to the kernel, and how it ended."""
    summary = Summary(0, sent_bytes=bytes_taken, reason=reason, status=status)
    write(root / "apps" / "ftp.sender.ndjson", [Options(close), summary])


@pytest.mark.parametrize("name", ["tcp", "sctp"])
def test_bytes_handed_over_equal_bytes_sent(name: str, tmp_path: Path) -> None:
    cell = make_cell(name)
    root = make_directory(cell, name, tmp_path / "cell")
    taken(root, 0, "abort", "stop")
    derived = derive(cell, root)
    assert "sent ftp" in derived.failed()  # bytes on the wire that nobody handed over
    (sent,) = re.findall(r"sent on the wire (\d+) B", derived.checks["sent ftp"]["detail"])
    wire = int(sent)
    assert wire >= READ_BYTES[name]
    for off, close, reason, status, right in (
        (0, "graceful", "total", 0, True),
        (1, "graceful", "total", 0, False),
        (-1, "graceful", "total", 0, False),
        (0, "abort", "stop", 0, True),
        (1, "abort", "stop", 0, True),
        (-1, "abort", "stop", 0, False),
        (1, "graceful", "terminated", 0, True),
        (1, "graceful", "stalled", 1, True),
        (-1, "graceful", "stalled", 1, False),
    ):
        taken(root, wire + off, close, reason, status)
        assert ("sent ftp" not in derive(cell, root).failed()) is right, (off, close, reason)


@pytest.mark.parametrize(("read", "gone_ns", "ok"), [
    (300, None, True), (200, None, False), (200, 25, True), (100, 25, False), (300, 25, True), (400, 25, False),
])  # fmt: skip
def test_what_comes_for_an_address_that_is_removed_need_not_be_read(read: int, gone_ns: int | None, ok: bool) -> None:
    """A host does not take packets for an address that it has no more, though they arrive."""
    flow = make_cell("tcp").flows[0]
    summary: Any = Summary(t_ns=S, reason="terminated", status=0, unique_bytes=read)
    delivery: Any = SimpleNamespace(payload_bytes=np.array([100, 100, 100]), delivery_ns=np.array([10, 20, 30]))
    checks = {each.check: each.ok for each in payload_check(flow, delivery, 300, [summary], 0, gone_ns)}
    assert checks[f"payload {flow.name}"] is ok
    arrived = SimpleNamespace(payload_bytes=delivery.payload_bytes, first=np.ones(3, bool), t_ns=delivery.delivery_ns)
    datagrams: Any = SimpleNamespace(arrived=arrived, sent=SimpleNamespace(payload_bytes=delivery.payload_bytes))
    sent: Any = Summary(t_ns=99, reason="stop", status=0, sent_bytes=300)
    checks = {each.check: each.ok for each in datagrams_check(flow, datagrams, [sent], [summary], gone_ns)}
    assert checks[f"payload {flow.name}"] is ok


@pytest.mark.parametrize("option", ["lifetime_ns", "max_retransmissions", "bare", None])
def test_what_is_given_up_or_not_waited_for_need_not_have_been_sent(option: str | None) -> None:
    """A message's time may be over in the sender's buffer; nothing else may be sent in its place."""
    (flow,) = make_cell("sctp", flow={"sender_options": {option: 1} if option else {}}).flows
    sender: Any = SimpleNamespace(data=SimpleNamespace(new_bytes=np.array([100, 0, 100])))
    for taken_bytes, right in ((200, True), (300, option is not None), (199, False)):
        summary: Any = Summary(t_ns=99, reason="total", status=0, sent_bytes=taken_bytes)
        (check,) = sent_check(flow, sender, [Options("graceful"), summary])
        assert check.ok is right, (option, taken_bytes)


def test_what_comes_behind_the_end_of_a_receiver_need_not_be_read() -> None:
    """It is told to end two seconds behind the cell's duration; the kernel of a bare sender may go on."""
    (flow,) = make_cell("sctp").flows
    delivery: Any = SimpleNamespace(
        payload_bytes=np.array([100, 100, 100]), delivery_ns=np.array([10, S - 1000, 2 * S])
    )
    for read, ok in ((300, True), (200, True), (100, True), (0, False), (400, False)):
        summary: Any = Summary(t_ns=S, reason="terminated", status=0, unique_bytes=read)
        checks = {each.check: each.ok for each in payload_check(flow, delivery, 300, [summary], 0)}
        assert checks[f"payload {flow.name}"] is ok, read


@pytest.mark.parametrize("unordered", [True, False])
def test_unordered_messages_on_their_way_at_the_stop_are_a_gap(unordered: bool) -> None:
    """What came behind them was read. In order nothing is read behind a gap."""
    (flow,) = make_cell("sctp", flow={"sender_options": {"unordered": True} if unordered else {}}).flows
    summary: Any = Summary(t_ns=99, reason="terminated", status=0, unique_bytes=300, gap_bytes=100)
    delivery: Any = SimpleNamespace(payload_bytes=np.array([100, 100, 100]), delivery_ns=np.array([10, 20, 30]))
    checks = {each.check: each.ok for each in payload_check(flow, delivery, 300, [summary], 0)}
    assert checks == {f"pattern {flow.name}": unordered, f"payload {flow.name}": True}
