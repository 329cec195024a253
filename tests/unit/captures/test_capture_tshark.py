"""The analyser against tshark on captures of real kernels. Where definitions differ, the test states how."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from netwarp.captures import Capture, read_captures
from netwarp.captures.native import NONE, Rows
from support.captures import POINTS, READ_BYTES, recorded
from support.tcp_story import Story
from support.tshark import KEY, time_ns, tshark

ALL = pytest.mark.parametrize(
    ("name", "node", "links"), POINTS, ids=lambda value: value if isinstance(value, str) else ""
)
SCTP = pytest.mark.parametrize(
    ("name", "node", "links"), [point for point in POINTS if point[0] in ("sctp", "bundle")], ids=str
)
TCP = pytest.mark.parametrize(
    ("name", "node", "links"), [point for point in POINTS if point[0] in ("tcp", "mptcp")], ids=str
)
DATA, SACK = 0, 3


def ends(capture: Capture, packet: Rows) -> list[str]:
    """Source and destination; none if it is not IP."""
    if packet["path"] == NONE:
        return []
    pair = [capture.address(packet["path"], side) for side in (0, 1)]
    return pair if packet["path_direction"] == 0 else pair[::-1]


def read(name: str, node: str, links: tuple[str, ...]) -> Capture:
    """The tables, their rows in the order that `tshark` here gives its own."""
    capture = read_captures(recorded(name, node, links), checksums=True)
    keys = [(int(packet["time_ns"]), *([one] for one in ends(capture, packet))) for packet in capture.packets]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys))
    tables = {
        table: getattr(capture, table)[np.argsort(rank[getattr(capture, table)["packet"]], kind="stable")]
        for table in ("segments", "chunks", "sacks")
    }
    return dataclasses.replace(capture, packets=capture.packets[order], **tables)


@ALL
def test_every_packet_has_tsharks_time_addresses_and_lengths(
    name: str, node: str, links: tuple[str, ...], tmp_path: Path
) -> None:
    capture = read(name, node, links)
    rows = tshark(recorded(name, node, links), tmp_path, [*KEY, "ip.len", "frame.len", "ip.proto"])
    assert len(rows) == len(capture.packets) > 100
    for row, packet in zip(rows, capture.packets, strict=True):
        assert time_ns(row[0][0]) == packet["time_ns"]
        assert row[1] + row[2] == ends(capture, packet)
        assert [int(value[0]) if value else 0 for value in row[3:]] == [
            packet["ip_bytes"],
            packet["frame_bytes"],
            packet["protocol"],
        ]


@ALL
def test_totals_by_address_pair(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    capture = read(name, node, links)
    theirs: collections.Counter[tuple[str, str]] = collections.Counter()
    their_bytes: collections.Counter[tuple[str, str]] = collections.Counter()
    for _, source, target, length in tshark(recorded(name, node, links), tmp_path, [*KEY, "ip.len"], "ip"):
        theirs[source[0], target[0]] += 1
        their_bytes[source[0], target[0]] += int(length[0])
    ours = {}
    for number, path in enumerate(capture.paths):
        a, b = capture.address(number, 0), capture.address(number, 1)
        ours[a, b] = (int(path["packets"][0]), int(path["ip_bytes"][0]))
        ours[b, a] = (int(path["packets"][1]), int(path["ip_bytes"][1]))
    assert {pair: totals for pair, totals in ours.items() if totals[0]} == {
        pair: (theirs[pair], their_bytes[pair]) for pair in theirs
    }


@SCTP
def test_every_chunk(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    """Type, TSN, stream, SSN, PPID of every chunk of every packet; the cumulative TSN and window of every SACK."""
    capture = read(name, node, links)
    fields = ["sctp.chunk_type", "sctp.data_tsn_raw", "sctp.data_sid", "sctp.data_ssn", "sctp.data_payload_proto_id"]
    fields += ["sctp.sack_cumulative_tsn_ack_raw", "sctp.sack_a_rwnd", "sctp.sack_number_of_gap_blocks"]
    rows = tshark(recorded(name, node, links), tmp_path, fields, "sctp")
    kinds: list[int] = []
    data: list[tuple[int, ...]] = []
    sacks: list[tuple[int, ...]] = []
    for kind, tsn, stream, ssn, ppid, cumulative, window, gaps in rows:
        kinds += [int(value) for value in kind]
        data += [tuple(int(value, 0) for value in values) for values in zip(tsn, stream, ssn, ppid, strict=True)]
        sacks += [tuple(int(value, 0) for value in values) for values in zip(cumulative, window, gaps, strict=True)]
    chunks = capture.chunks
    assert chunks["type"].tolist() == kinds
    mine = chunks[chunks["type"] == DATA]
    base = capture.flows["base"][mine["flow"], mine["direction"]]
    raw = (base.astype(np.int64) + mine["tsn"]) % 2**32
    assert (
        list(zip(raw.tolist(), mine["stream"].tolist(), mine["message"].tolist(), mine["ppid"].tolist(), strict=True))
        == data
    )
    table = capture.sacks
    base = capture.flows["base"][table["flow"], 1 - table["direction"]]
    raw = (base.astype(np.int64) + table["cumulative_tsn"]) % 2**32
    assert list(zip(raw.tolist(), table["a_rwnd_bytes"].tolist(), table["gap_blocks"].tolist(), strict=True)) == sacks
    assert len(data) > 100 < len(sacks)
    assert table["gap_blocks"].sum() > 0


@SCTP
def test_gap_blocks(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    capture = read(name, node, links)
    fields = ["sctp.sack_cumulative_tsn_ack_raw", "sctp.sack_gap_block_start", "sctp.sack_gap_block_end"]
    theirs = [
        (int(start), int(end))
        for _, starts, ends in tshark(recorded(name, node, links), tmp_path, fields, "sctp.sack_gap_block_start")
        for start, end in zip(starts, ends, strict=True)
    ]
    ours = []
    for sack in capture.sacks:
        blocks = capture.blocks[sack["first_block"] : sack["first_block"] + sack["gap_blocks"]]
        ours += [
            (int(block["start"] - sack["cumulative_tsn"]), int(block["end"] - 1 - sack["cumulative_tsn"]))
            for block in blocks
        ]
    assert ours == theirs != []


@SCTP
def test_retransmitted_chunks(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    """tshark and we agree on which packets carry chunks whose TSN was seen before, and on how many each carries."""
    capture = read(name, node, links)
    rows = tshark(recorded(name, node, links), tmp_path, ["sctp.retransmission"], "sctp")
    theirs = [len(again) for (again,) in rows]
    again = capture.chunks["packet"][capture.chunks["is_retransmission"]]
    sctp = capture.packets[capture.packets["protocol"] == 132]
    assert sctp["is_retransmission"].tolist() == [count > 0 for count in theirs]
    assert sorted(np.unique(again, return_counts=True)[1].tolist()) == sorted(filter(None, theirs))
    assert (sum(theirs) > 0) == ((name, node) != ("bundle", "b"))


@TCP
def test_every_segment(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    capture = read(name, node, links)
    fields = ["tcp.seq", "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size", "tcp.options.sack.count"]
    fields += ["tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"]
    rows = tshark(recorded(name, node, links), tmp_path, fields, "tcp")
    assert len(rows) == len(capture.segments)
    for row, segment in zip(rows, capture.segments, strict=True):
        seq, ack, length, flags, window, blocks, tsval, tsecr = row
        assert [int(seq[0]), int(length[0]), int(flags[0], 0)] == [
            segment["seq"],
            segment["payload_bytes"],
            segment["flags"],
        ]
        if int(flags[0], 0) & 16:
            assert int(ack[0]) == segment["ack"]
        assert int(window[0]) == segment["window_bytes"]
        assert int(blocks[0] if blocks else 0) == segment["sack_blocks"]
        if tsval:
            assert [int(tsval[0]), int(tsecr[0])] == [segment["ts_val"], segment["ts_ecr"]]


@TCP
def test_stream_bytes(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    """Payload bytes by stream and direction as tshark counts them, retransmitted ones included."""
    capture = read(name, node, links)
    theirs: collections.Counter[tuple[int, str]] = collections.Counter()
    for stream, port, length in tshark(
        recorded(name, node, links), tmp_path, ["tcp.stream", "tcp.srcport", "tcp.len"], "tcp.len > 0"
    ):
        theirs[int(stream[0]), port[0]] += int(length[0])
    ours = {
        (flow, str(capture.flows["port"][flow][d])): int(
            capture.flow_paths["payload_bytes"][capture.flow_paths["flow"] == flow][:, d].sum()
        )
        for flow in range(len(capture.flows))
        for d in (0, 1)
    }
    assert {key: value for key, value in ours.items() if value} == dict(theirs)


@TCP
def test_retransmitted_segments(name: str, node: str, links: tuple[str, ...], tmp_path: Path) -> None:
    """tshark guesses by timing which of the segments below the highest number are retransmissions and which overtook
    each other; we know whether their bytes were seen. At the sender nothing overtakes: there its retransmissions and
    its out-of-order ones together are our retransmissions (2 of 10 in `tcp` it calls retransmissions). At the
    receiver a first copy that comes late is new to us, whatever tshark calls it.
    """
    capture = read(name, node, links)
    kinds = ["retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"]
    fields = [f"tcp.analysis.{kind}" for kind in kinds]
    theirs = [any(row) for row in tshark(recorded(name, node, links), tmp_path, fields, "tcp")]
    segments = capture.segments
    ours = segments["is_retransmission"]
    if node == "a":
        assert ours.tolist() == theirs
        assert ours.any()
    else:
        late = segments[np.array(theirs) & ~ours]
        assert (late["new_bytes"] == late["payload_bytes"]).all()
        assert not (ours & ~np.array(theirs)).any()


@ALL
def test_new_payload_at_the_receiver_is_what_the_application_read(name: str, node: str, links: tuple[str, ...]) -> None:
    capture = read(name, node, links)
    new_bytes = int(capture.flow_paths["new_bytes"][:, 0].sum())
    if name == "mptcp" and node == "a":
        assert new_bytes >= READ_BYTES[name]
    else:
        assert new_bytes == READ_BYTES[name]


def test_windows_and_probes(tmp_path: Path) -> None:
    """tshark knows a probe by its one byte; Linux probes with none, at SND.UNA - 1, and tshark calls that a keep-alive.

    An answer that does not take a probe's byte is a duplicate ACK by RFC 5681's words; tshark has none of zero windows.
    """
    story = Story().handshake().data(40, 1).ack(80, 1001, echo=40).data(81, 1001).ack(121, 2001, echo=81, window=0)
    story.data(300, 2000, 0).ack(340, 2001, window=0).data(700, 2001, 1).ack(740, 2001, window=0)
    story.ack(900, 2001).data(901, 2001).ack(940, 3001, echo=900, window=400).ack(950, 3001, window=502)
    story.data(5000, 3000, 0).ack(5040, 3001).data(9000, 3000, 1).ack(9040, 3001)
    one = story.told(tmp_path).directions[0]
    probes, alive = (set(one.data.row[np.flatnonzero(mask)].tolist()) for mask in one.probes)
    linux = {row for row in probes if one.data.payload_bytes[one.data.row == row] == 0}
    acks = {
        "zero_window": one.windows.zero,
        "window_update": one.windows.update,
        "duplicate_ack": one.reports.duplicate & ~one.windows.zero,
    }
    ours = {name: set(one.acks.row[mask].tolist()) for name, mask in acks.items()}
    ours |= {"zero_window_probe": probes - linux, "keep_alive": alive | linux}
    rows = tshark([tmp_path / "0.pcap"], tmp_path, [f"tcp.analysis.{name}" for name in ours])
    assert ours == {name: {place for place, row in enumerate(rows) if row[n]} for n, name in enumerate(ours)}
    assert set(one.acks.row[one.reports.duplicate & one.windows.zero].tolist()) == {10}
    assert [len(each) for each in (probes, linux, alive)] == [2, 1, 2]
