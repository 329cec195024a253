"""The analyser's numbers from the wire against the kernel's own counters, in real guests.

The sender's capture is before the qdisc that drops (hosts have none; the hop shapes), so both must agree exactly. The
kernel's counters are read when the sender stops; the wire is counted up to that instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from netwarp.captures import Capture, read_captures
from netwarp.measure.cell import analyze_cell
from support.chain_kit import Checkout, two_hosts
from support.run_files import CellFiles

SPEC = two_hosts(
    """
[event]
outage = { action = "cut", link = "p1", at = "4 s", for = "{outage}" }
[factor.protocol]
levels = ["tcp", "sctp", "mptcp"]
[factor.protocol.level.sctp]
flow.bulk.paths = ["p1", "p2"]
[factor.protocol.level.mptcp]
flow.bulk.paths = ["p1", "p2"]
[factor]
loss = { levels = ["0 %", "2 %"] }
size = { levels = ["1400 B", "100 B"] }
outage = { levels = ["0 s", "1 s"] }
""",
    name="lens",
    duration="12 s",
    top="seed = 3",
    queue="40 packets",
    link='loss = "{loss}"',
    links=2,
    flow='protocol = "{protocol}"\nstart = "0.5 s"\nstop = "9 s"\nmessage_size = "{size}"',
)
CELLS = 3 * 2 * 2 * 2
DATA, SACK, INIT = 0, 3, 1


@dataclass(frozen=True)
class Ran:
    """A cell that ran, the sender's capture up to the sender's summary, and the kernel's counters in that."""

    files: CellFiles
    capture: Capture
    until_ns: int
    kernel: dict[str, Any]

    @property
    def protocol(self) -> str:
        return self.files.cell.flows[0].protocol

    def cut(self, rows: Any, direction: int) -> Any:
        return rows[(rows["time_ns"] <= self.until_ns) & (rows["direction"] == direction)]


def look(files: CellFiles) -> Ran:
    summary = files.summary("bulk.sender")
    (ready,) = files.init("ready")
    until = summary["t_ns"] - ready["t0_monotonic_ns"] + ready["t0_realtime_ns"]
    capture = read_captures(files.captures("a"), checksums=True)
    return Ran(files, capture, until, summary["kernel"])


@pytest.fixture(scope="module")
def ran(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    found = [look(cell) for cell in checkout.run_spec(tmp_path_factory.mktemp("lens"), SPEC).cells.values()]
    assert len(found) == CELLS
    return found


def of(ran: list[Ran], protocol: str) -> list[Ran]:
    found = [one for one in ran if one.protocol == protocol]
    assert len(found) == CELLS // 3
    return found


def test_tcp_counters(ran: list[Ran]) -> None:
    again = 0
    for one in of(ran, "tcp"):
        sent = one.cut(one.capture.segments, 0)
        info = one.kernel["tcp_info"]
        rtx = sent[sent["is_retransmission"]]
        wire = {
            "total_retrans_packets": len(rtx),
            "bytes_retrans": int(rtx["payload_bytes"].sum()),
            "data_segs_out": int((sent["payload_bytes"] > 0).sum()),
            "segs_out": len(sent),
            "bytes_sent": int(sent["payload_bytes"].sum()),
            "segs_in": len(one.cut(one.capture.segments, 1)),
            # the handshake's SYN is acknowledged too
            "bytes_acked": int(one.cut(one.capture.segments, 1)["ack"].max()),
        }
        assert wire == {name: info[name] for name in wire}
        again += len(rtx)
    assert again > 50


def test_sctp_counters(ran: list[Ran]) -> None:
    again = gaps = 0
    for one in of(ran, "sctp"):
        chunks = one.cut(one.capture.chunks, 0)
        data = chunks[chunks["type"] == DATA]
        back = one.cut(one.capture.sacks, 1)
        packets = one.capture.packets
        wire = {
            "retransmitted_chunks": int(data["is_retransmission"].sum()),
            "ordered_chunks_out": int((~data["is_retransmission"]).sum()),
            "sacks_in": len(back),
            "gap_acks_in": int(back["gap_blocks"].sum()),
            # the INIT is sent before there is an association to count it
            "packets_out": len(one.cut(packets, 0)) - 1,
            "packets_in": len(one.cut(packets, 1)),
        }
        stats = one.kernel["sctp_stats"]
        assert wire == {name: stats[name] for name in wire}
        assert (chunks["type"][0], len(one.capture.flows)) == (INIT, 1)
        again += wire["retransmitted_chunks"]
        gaps += wire["gap_acks_in"]
    assert again > 100
    assert gaps > 100


def test_mptcp_sends_what_it_says_and_counts_it_once(ran: list[Ran]) -> None:
    for one in of(ran, "mptcp"):
        payload = one.files.checks["payload bulk"]
        assert payload["ok"], payload
        assert one.capture.flows["mptcp"].all()
        assert len(one.capture.flows) == one.kernel["mptcp_info"]["subflows"]


def test_the_receiver_read_what_could_be_delivered(ran: list[Ran]) -> None:
    """Exactly, in every cell: with losses, with an outage, bundled, over one and two paths."""
    for one in ran:
        checks = one.files.checks
        assert [check for check in checks.values() if not check["ok"]] == []
        read = one.files.summary("bulk.receiver")["unique_bytes"]
        assert checks["payload bulk"]["detail"].startswith(f"application {read} B, deliverable on the wire {read} B")
        assert read > 500_000


def test_hop_by_hop_nothing_arrives_that_was_not_sent(ran: list[Ran]) -> None:
    """Every TSN or byte new at the receiver was sent; without loss, fault and full queue every one sent arrives."""
    for one in ran:
        there = read_captures(one.files.captures("b"), checksums=True)
        sent, arrived = one.capture.flow_paths, there.flow_paths
        for column in ("packets", "payload_bytes"):
            assert arrived[column][:, 0].sum() <= sent[column][:, 0].sum()
            assert sent[column][:, 1].sum() <= arrived[column][:, 1].sum()
        if one.protocol == "sctp":
            first = set(there.chunks["tsn"][(there.chunks["type"] == DATA) & (there.chunks["direction"] == 0)].tolist())
            mine = set(one.capture.chunks["tsn"][one.capture.chunks["type"] == DATA].tolist())
            assert first <= mine


def test_failover_and_outage_of_a_cut(ran: list[Ran]) -> None:
    """The times of the derived files against the chunk tables they come from."""
    moved = 0
    for one in of(ran, "sctp"):
        rows = one.files.read("derived/measurements.json")
        metrics = {row["metric"]: row["value"] for row in rows if row["flow"]}
        if one.files.cell.factors["outage"] == "0 s":
            assert metrics["outage_s"] is metrics["first_useful_arrival_other_path_s"] is None
            continue
        fault = 1_700_000_000 * 10**9 + 4 * 10**9
        data = one.cut(one.capture.chunks, 0)
        data = data[data["type"] == DATA]
        before = data[(data["time_ns"] < fault) & ~data["is_retransmission"]]
        assert one.capture.packets["source"][before["packet"][-1]] == 0  # p1, the primary, when it is cut
        elsewhere = data[(data["time_ns"] >= fault) & (data["path"] != before["path"][-1])]
        for name, moments in (
            ("first_retransmission_other_path_s", elsewhere[elsewhere["on_other_path"]]["time_ns"]),
            ("first_new_data_other_path_s", elsewhere[~elsewhere["is_retransmission"]]["time_ns"]),
        ):
            wanted = pytest.approx((moments[0] - fault) / 1e9) if len(moments) else None
            assert metrics[name] == wanted
        there = read_captures(one.files.captures("b"), checksums=True)
        got = there.chunks[(there.chunks["type"] == DATA) & (there.chunks["direction"] == 0)]
        over = (got["time_ns"] >= fault) & ~got["is_retransmission"] & (there.packets["source"][got["packet"]] == 1)
        arrivals = [
            arrival
            for arrival, tsn in zip(got["time_ns"][over].tolist(), got["tsn"][over].tolist(), strict=True)
            # not what was on its way over p2 when p1 was cut
            if ((elsewhere["tsn"] == tsn) & (elsewhere["time_ns"] <= arrival)).any()
        ]
        wanted = pytest.approx((arrivals[0] - fault) / 1e9) if len(arrivals) else None
        assert metrics["first_useful_arrival_other_path_s"] == wanted
        moved += len(elsewhere)
        # the fault lasts 1 s, and what was queued and in flight is lost: nothing new arrives for at least that long,
        # unless the other path takes over before
        assert metrics["outage_s"] > 0.1
    assert moved > 50


def test_deriving_again_gives_the_same_files(ran: list[Ran]) -> None:
    files = ran[0].files
    before = {path.name: path.read_bytes() for path in (files.root / "derived").iterdir()}
    analyze_cell(files.cell, files.root)
    assert {path.name: path.read_bytes() for path in (files.root / "derived").iterdir()} == before
