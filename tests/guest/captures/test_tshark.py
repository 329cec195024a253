"""The analyser against tshark, tcptrace and the kernel on whole captures of guests, tens of thousands of packets each.

The senders' captures are before the qdisc that drops. Where definitions differ, the test says how.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from netwarp.captures import Capture, read_captures
from netwarp.captures.capture import TOTAL_TABLES
from netwarp.captures.stream import read_stream
from support.chain_kit import Checkout, two_hosts
from support.run_files import CellFiles

SPEC = two_hosts(
    """
[factor.kind]
levels = ["tcp", "sctp", "bundled"]
[factor.kind.level.sctp]
flow.bulk = { protocol = "sctp", paths = ["p1", "p2"], bytes = "10 MB" }
[factor.kind.level.bundled]
flow.bulk = { protocol = "sctp", paths = ["p1", "p2"], bytes = "3 MB", message_size = "100 B", sender.streams = 5 }
""",
    name="oracles",
    duration="60 s",
    top="seed = 5",
    rate="20 Mbit/s",
    queue="60 packets",
    delay="15 ms",
    link='loss = "0.5 %"',
    links=2,
    flow='start = "0.5 s"\nbytes = "20 MB"\nsender = { sndbuf = "1 MiB" }\nreceiver = { rcvbuf = "1 MiB" }',
)
POINTS = [(kind, node) for kind in ("tcp", "sctp", "bundled") for node in "ab"]
SCTP = [point for point in POINTS if point[0] != "tcp"]


@dataclasses.dataclass(frozen=True)
class Point:
    """One node's captures, as stored and as one plain file for other tools."""

    stored: list[Path]
    plain: Path
    capture: Capture
    files: CellFiles

    def tshark(self, *fields: str, condition: str = "") -> list[list[list[str]]]:
        """One row a packet, one list of values a field."""
        command = ["tshark", "-n", "-r", str(self.plain), "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]
        command += ["-o", "sctp.relative_tsns:FALSE", *(word for one in fields for word in ("-e", one))]
        done = subprocess.run(
            [*command, *(["-Y", condition] if condition else [])], check=True, capture_output=True, text=True
        )
        return [[value.split(",") if value else [] for value in line.split(";")] for line in done.stdout.splitlines()]

    def raw_tsns(self, rows: Any) -> list[tuple[int, int]]:
        """(receiver's port, TSN as on the wire) of DATA chunks."""
        base = self.capture.flows["base"][rows["flow"], rows["direction"]].astype(np.int64)
        port = self.capture.flows["port"][rows["flow"], 1 - rows["direction"]]
        return list(zip(port.tolist(), ((base + rows["tsn"]) % 2**32).tolist(), strict=True))


@pytest.fixture(scope="module")
def points(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Point]:
    base = tmp_path_factory.mktemp("oracles")
    found = {}
    for cell_id, cell in checkout.run_spec(base, SPEC).cells.items():
        for node in "ab":
            stored = cell.captures(node)
            parts = []
            for file in stored:
                parts.append(base / f"{cell_id}-{file.stem}")
                with file.open("rb") as source, parts[-1].open("wb") as target:
                    zstandard.ZstdDecompressor().copy_stream(source, target)
            plain = base / f"{cell_id}-{node}.pcap"
            subprocess.run(["mergecap", "-F", "nsecpcap", "-w", plain, *parts], check=True, capture_output=True)
            kind = str(cell.cell.factors["kind"])
            found[kind, node] = Point(stored, plain, read_captures(stored, checksums=True), cell)
    assert sorted(found) == sorted(POINTS)
    return found


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_packets_and_bytes_of_every_address_pair(points: dict[tuple[str, str], Point], point: tuple[str, str]) -> None:
    one = points[point]
    theirs: collections.Counter[tuple[str, str]] = collections.Counter()
    their_bytes: collections.Counter[tuple[str, str]] = collections.Counter()
    for source, target, length in one.tshark("ip.src", "ip.dst", "ip.len", condition="ip"):
        theirs[source[0], target[0]] += 1
        their_bytes[source[0], target[0]] += int(length[0])
    ours = {}
    for number, path in enumerate(one.capture.paths):
        for side in (0, 1):
            pair = (one.capture.address(number, side), one.capture.address(number, 1 - side))
            ours[pair] = (int(path["packets"][side]), int(path["ip_bytes"][side]))
    assert ours == {pair: (theirs[pair], their_bytes[pair]) for pair in theirs}
    assert sum(theirs.values()) > 4000


@pytest.mark.parametrize("point", SCTP, ids=str)
def test_chunks_tsns_and_retransmissions(points: dict[tuple[str, str], Point], point: tuple[str, str]) -> None:
    """Chunks by type; the TSNs sent, each as often as it was sent; the TSNs sent again.

    tshark's `sctp.retransmission` stands at every DATA chunk whose TSN it saw before, as `is_retransmission` does.
    """
    one = points[point]
    chunks = one.capture.chunks
    kinds: collections.Counter[int] = collections.Counter()
    sent: collections.Counter[tuple[int, int]] = collections.Counter()
    again = 0
    rows = one.tshark("sctp.chunk_type", "sctp.dstport", "sctp.data_tsn_raw", "sctp.retransmission", condition="sctp")
    for types, port, tsns, marks in rows:
        kinds.update(int(value) for value in types)
        sent.update((int(port[0]), int(tsn, 0)) for tsn in tsns)
        again += len(marks)
    assert collections.Counter(chunks["type"].tolist()) == kinds
    data = chunks[chunks["type"] == 0]
    assert collections.Counter(one.raw_tsns(data)) == sent
    repeated = data[data["is_retransmission"]]
    assert collections.Counter(one.raw_tsns(repeated)) == collections.Counter(
        {key: count - 1 for key, count in sent.items() if count > 1}
    )
    assert len(repeated) == again
    # at the receiver only what was sent again without need comes twice
    assert again > 50 or point[1] == "b"
    assert kinds[0] > 5000
    assert kinds[3] > 1000


@pytest.mark.parametrize("node", "ab")
def test_tcp_streams(points: dict[tuple[str, str], Point], node: str) -> None:
    """tshark's bytes by stream and direction, retransmitted ones included."""
    one = points["tcp", node]
    theirs: collections.Counter[tuple[int, str]] = collections.Counter()
    for stream, port, length in one.tshark("tcp.stream", "tcp.srcport", "tcp.len", condition="tcp.len > 0"):
        theirs[int(stream[0]), port[0]] += int(length[0])
    ours = {
        (int(row["flow"]), str(one.capture.flows["port"][row["flow"]][side])): int(row["payload_bytes"][side])
        for row in one.capture.flow_paths
        for side in (0, 1)
    }
    assert {key: value for key, value in ours.items() if value} == dict(theirs)


@pytest.mark.parametrize("node", "ab")
def test_tcptrace(points: dict[tuple[str, str], Point], node: str) -> None:
    """tcptrace's packets, unique bytes, retransmissions, pure ACKs, SACKs, MSS of both directions.

    At the receiver tcptrace calls some late first copies `outoforder`; retransmissions it too knows by the numbers.
    """
    one = points["tcp", node]
    done = subprocess.run(["tcptrace", "-l", "-n", one.plain], check=True, capture_output=True, text=True)
    told: dict[str, list[int]] = {}
    for name, first, second in re.findall(r"^\s+([\w/ ]+):\s+(\d+)(?: \w+)?\s+\1:\s+(\d+)", done.stdout, re.MULTILINE):
        told[name] = [int(first), int(second)]
    segments, total = one.capture.segments, one.capture.flow_paths[0]
    assert len(one.capture.flow_paths) == 1
    ours: dict[str, list[int]] = {name: [] for name in ("pure acks sent", "sack pkts sent", "rexmt data bytes")}
    for side in (0, 1):
        mine = segments[segments["direction"] == side]
        control = mine["flags"] & 0x7
        ours["pure acks sent"].append(int(((mine["payload_bytes"] == 0) & (control == 0)).sum()))
        ours["sack pkts sent"].append(int((mine["sack_blocks"] > 0).sum()))
        ours["rexmt data bytes"].append(int((mine["payload_bytes"].astype(np.int64) - mine["new_bytes"]).sum()))
    ours |= {
        "total packets": total["packets"].tolist(),
        "unique bytes sent": total["new_bytes"].tolist(),
        "actual data pkts": total["data_packets"].tolist(),
        "actual data bytes": total["payload_bytes"].tolist(),
        "rexmt data pkts": total["retransmitted_packets"].tolist(),
        "mss requested": one.capture.flows["mss"][0].tolist(),
    }
    assert {name: told[name] for name in ours} == ours
    assert told["rexmt data pkts"][0] > 20 or node == "b"


def test_the_kernel_delivered_what_was_acknowledged(points: dict[tuple[str, str], Point]) -> None:
    """TCP_INFO of the sender at its end: `delivered` counts the segments acknowledged, and the SYN."""
    one = points["tcp", "a"]
    summary = one.files.summary("bulk.sender")
    info = summary["kernel"]["tcp_info"]
    (ready,) = one.files.init("ready")
    until = summary["t_ns"] - ready["t0_monotonic_ns"] + ready["t0_realtime_ns"]
    segments = one.capture.segments[one.capture.segments["time_ns"] <= until]
    sent = segments[segments["direction"] == 0]
    acks = segments[(segments["direction"] == 1) & (segments["ack"] >= 0)]
    acked = int(acks["ack"].max())
    first = sent[(sent["payload_bytes"] > 0) & ~sent["is_retransmission"]]
    again = sent[sent["is_retransmission"]]
    assert info["bytes_retrans"] == again["payload_bytes"].sum()
    assert info["total_retrans_packets"] == len(again)
    assert info["bytes_acked"] == acked
    assert info["delivered_packets"] == 1 + (first["seq"] + first["payload_bytes"] <= acked).sum()


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_reading_in_parts(points: dict[tuple[str, str], Point], point: tuple[str, str]) -> None:
    one = points[point]
    stream = read_stream(one.stored, checksums=True, part_packets=777)
    for table in TOTAL_TABLES:
        assert getattr(stream.capture, table).tobytes() == getattr(one.capture, table).tobytes()
    new_bytes = sum(int(flow.new_bytes.sum()) for flow in stream.flows.values())
    assert new_bytes == int(one.capture.flow_paths["new_bytes"].sum())
