"""The table `quic` (apps/analyzer/quic.c): against tshark on captures of real programs, and on any bytes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import read_captures
from netwarp.captures.native import Rows
from netwarp.captures.quic import CID_UNKNOWN, Kind, connection_id
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw
from support.captures import DATA, ether, pcap
from support.quic_kit import assert_headers_are_tsharks, quic_rows

SERVER = {"v1": 4442, "retry": 5001, "vn": 5001}
"""The recorded captures that tshark 4.0 reads, and the server's port. (Of `v2`, a draft of version 2, it takes types
for those of version 1.)"""


@pytest.mark.parametrize(("name", "port"), SERVER.items())
def test_headers_are_as_tshark_reads_them(name: str, port: int) -> None:
    assert_headers_are_tsharks(DATA / f"quic-{name}.pcap.zst", port)


def test_packets_of_version_2_have_its_types() -> None:
    rows = quic_rows(DATA / "quic-v2.pcap.zst", 5001)
    first = rows[rows["version"] == 0x709A50C4]
    assert first["kind"].tolist() == [Kind.INITIAL]
    assert first["bytes"].tolist() == [1200]


def test_a_retry_and_a_version_negotiation_are_told() -> None:
    kinds = {name: set(quic_rows(DATA / f"quic-{name}.pcap.zst", 5001)["kind"].tolist()) for name in ("retry", "vn")}
    assert kinds["retry"] == {Kind.INITIAL, Kind.HANDSHAKE, Kind.RETRY, Kind.SHORT}
    assert kinds["vn"] == {Kind.OTHER_VERSION, Kind.VERSION_NEGOTIATION}


def payload_rows(tmp_path: Path, payload: bytes, cut: int | None = None) -> Rows:
    frame = ether(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=443, dport=9) / Raw(payload))
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap([(0, frame if cut is None else frame[:cut], len(frame))]))
    return read_captures([path], ("packets", "quic")).quic


LONG = st.tuples(
    st.sampled_from([b"\xc0", b"\xd3", b"\xe1", b"\xff", b"\x80"]),
    st.sampled_from([b"\0\0\0\1", b"\0\0\0\0", b"\x6b\x33\x43\xcf", b"\xff\0\0\x1d", b"abcd"]),
    st.binary(max_size=60),
).map(b"".join)


@settings(max_examples=200)
@given(st.one_of(LONG, st.binary(max_size=80)), st.one_of(st.none(), st.integers(0, 120)))
def test_any_bytes_give_packets_that_fill_their_datagram_from_its_beginning(
    tmp_path_factory: pytest.TempPathFactory, payload: bytes, cut: int | None
) -> None:
    rows = payload_rows(tmp_path_factory.mktemp("any"), payload, cut)
    offsets = rows["offset"].tolist()
    ends = [offset + size for offset, size in zip(offsets, rows["bytes"].tolist(), strict=True)]
    assert offsets == [0, *ends][: len(offsets)]
    assert all(end <= len(payload) for end in ends)
    assert all(begin < end for begin, end in itertools.pairwise([*offsets, *ends[-1:]]))
    for row in rows:
        assert row["kind"] in list(Kind)
        shown = connection_id(row, "dcid")
        assert (row["dcid_bytes"] == CID_UNKNOWN) == (row["kind"] == Kind.SHORT)
        assert shown == b"" or shown in payload or row["kind"] == Kind.SHORT


def test_what_follows_the_packets_of_a_datagram_as_padding_is_none(tmp_path: Path) -> None:
    handshake = b"\xe0\0\0\0\1\x01a\x01b\x14" + bytes(20)
    assert len(payload_rows(tmp_path, handshake + bytes(40))) == 1
    assert payload_rows(tmp_path, handshake + b"\x60" + bytes(40))["kind"].tolist() == [Kind.HANDSHAKE, Kind.SHORT]
    assert len(payload_rows(tmp_path, handshake[:-1])) == 0  # it says to be longer than its datagram
