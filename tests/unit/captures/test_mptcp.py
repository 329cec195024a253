"""MPTCP's analysis: connections put together by hand, and the recorded one against tshark."""

from __future__ import annotations

import collections
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.mptcp import MptcpConnection, analyze_mptcp
from netwarp.captures.mptcp.subflows import token_of
from netwarp.captures.native import UNKNOWN
from support.captures import READ_BYTES, T, has, pcap, read, recorded, summary
from support.mptcp_packets import (
    ACK,
    KEYS,
    MS,
    RST,
    SYN,
    capable,
    dss,
    first_number,
    joined,
    opened,
    option,
    segment,
    sent,
)
from support.tshark import tshark


def analyze(tmp_path: Path, packets: Sequence[bytes], **options: object) -> tuple[MptcpConnection, ...]:
    capture = read(tmp_path, pcap([(T + at * MS, packet) for at, packet in enumerate(packets)]))
    return analyze_mptcp(capture, **options)  # type: ignore[arg-type]


def test_two_subflows_and_a_reinjection(tmp_path: Path) -> None:
    packets = [
        *opened(),
        *joined(),
        sent(0, 1, 1), sent(100, 101, 1), sent(200, 1, 2),
        sent(100, 101, 2),  # what path 1 had carried, and lost
        sent(300, 201, 2), sent(300, 201, 2),
        segment(201, 0, flags=RST, path=1),
    ]  # fmt: skip
    (found,) = analyze(tmp_path, packets)
    assert (found.flows, found.direction, found.complete, found.version) == ((0, 1), 0, True, 1)
    has(
        found.totals,
        subflows=2,
        subflows_with_data=2,
        payload_bytes=600,
        new_bytes=400,
        unmapped_bytes=0,
        retransmitted_segments=1,
        reinjected_segments=1,
        reinjected_bytes=100,
        subflow_changes=1,
        goodput_bit_s=pytest.approx(300 * 8 / 0.004),
    )
    one, two = found.tables["subflows"]
    assert (one["subflow"], one["new_bytes"], one["new_ratio"]) == ("10.1.0.1:1000>10.1.0.2:80", 200, 0.5)
    assert (two["new_bytes"], two["reinjected_bytes"], two["address_ids"]) == (200, 100, [7, 0])
    told = [(event["what"], event["subflow"][:6], round(event["t_s"] * 1000)) for event in found.events]
    assert told == [
        ("MP_CAPABLE", "10.1.0", 0),
        ("MP_CAPABLE", "10.1.0", 1),
        ("MP_JOIN", "10.2.0", 3),
        ("MP_JOIN", "10.2.0", 4),
        ("first new data", "10.1.0", 6),
        ("last new data", "10.1.0", 7),
        ("first new data", "10.2.0", 8),
        ("first reinjection", "10.2.0", 9),
        ("last new data", "10.2.0", 10),
        ("RST", "10.1.0", 12),
    ]
    assert found.series["new_bytes"][1].tolist() == [100, 200, 300, 400]


ANSWERED = segment(1, back=True)
FOURTH = segment(1, path=2, back=True)
"""The acknowledgement that makes a joined subflow usable (RFC 8684 3.2)."""


def lives(tmp_path: Path, packets: Sequence[bytes]) -> tuple[dict[str, object], list[tuple[object, ...]]]:
    """(opened, joined, lost), and of each subflow when it was asked for, established and lost, ms."""
    (found,) = analyze(tmp_path, packets)
    totals = {name.removeprefix("subflows_"): found.totals[name] for name in
              ("subflows_opened", "subflows_joined", "subflows_lost")}  # fmt: skip
    rows = [
        tuple(None if row[name] is None else round(row[name] * 1000) for name in ("asked_s", "joined_s", "lost_s"))
        for row in found.tables["subflows"]
    ]
    return totals, rows


def test_a_subflow_is_joined_once_the_other_end_has_answered_its_third_packet(tmp_path: Path) -> None:
    found = lives(tmp_path, [*opened(), ANSWERED, *joined(), FOURTH])
    assert found == ({"opened": 2, "joined": 1, "lost": 0}, [(0, 3, None), (4, 7, None)])
    found = lives(tmp_path, [*opened(), ANSWERED, *joined()])
    assert found == ({"opened": 2, "joined": 0, "lost": 0}, [(0, 3, None), (4, None, None)])


def test_a_join_that_nothing_answers_is_asked_again_and_never_joined(tmp_path: Path) -> None:
    asked = joined()[0]
    packets = [*opened(), ANSWERED, asked, asked]
    assert lives(tmp_path, packets)[0] == {"opened": 2, "joined": 0, "lost": 0}
    (found,) = analyze(tmp_path, packets)
    assert [row["syns"] for row in found.tables["subflows"]] == [1, 2]


def test_a_reset_before_the_end_is_a_lost_subflow(tmp_path: Path) -> None:
    both = [*opened(), ANSWERED, *joined(), FOURTH, sent(0, 1, 2), segment(1, path=2, back=True)]
    reset = segment(101, flags=RST, path=2)
    assert lives(tmp_path, [*both, reset])[1][1] == (4, 7, 10)
    last = segment(1, 0, dss(first_number(KEYS[0]) + 101, 0, 1, flags=0x1C))  # DATA_FIN
    assert lives(tmp_path, [*both, last, reset])[0]["lost"] == 0, "the connection had ended"
    fastclose = segment(1, 0, option(7, KEYS[1].to_bytes(8, "big")), flags=RST)
    assert lives(tmp_path, [*both, fastclose, reset])[0]["lost"] == 0, "the connection was aborted"


def test_a_subflow_that_nothing_answers_any_more_is_lost_when_it_was_last_heard(tmp_path: Path) -> None:
    both = [*opened(), ANSWERED, *joined(), FOURTH, sent(0, 1, 2)]
    once = [*both, sent(0, 1, 2)]
    assert lives(tmp_path, once)[0]["lost"] == 0, "its answer may be on its way"
    assert lives(tmp_path, [*once, sent(0, 1, 2)])[1][1] == (4, 7, 7)
    heard = [*once, sent(0, 1, 2), segment(101, path=2, back=True)]
    assert lives(tmp_path, heard)[0]["lost"] == 0


def test_unanswered_add_addr_and_mp_join_are_findings(tmp_path: Path) -> None:
    told = segment(1, 0, option(3, b"\x02" + socket.inet_aton("10.9.0.2") + bytes(8)), back=True)
    packets = [*opened(), told, joined()[0], joined()[0]]
    found = summary(tmp_path, [(T + at * MS, packet) for at, packet in enumerate(packets)])
    said = " | ".join(found.findings)
    assert "address 10.9.0.2 was told at 0.003 s (ADD_ADDR), and no subflow to it is in this capture" in said
    assert "subflow 10.2.0.1:1000>10.2.0.2:80 was asked for at 0.004 s and never established" in said


@pytest.mark.parametrize("version", [0, 1])
def test_the_other_host_may_open_a_subflow(version: int, tmp_path: Path) -> None:
    """Its direction 0 is then the connection's direction 1; version 0 hashes keys with SHA-1 (RFC 6824)."""
    packets = [*opened(version=version), *joined(back=True, version=version, backup=1)]
    packets += [sent(0, 1, 1), sent(100, 1, 2)]
    (found,) = analyze(tmp_path, packets)
    assert found.totals["new_bytes"] == 200
    two = found.tables["subflows"][1]
    has(two, opened_by="other", backup=True, new_bytes=100, subflow="10.2.0.2:80>10.2.0.1:1000")


def test_data_the_other_way(tmp_path: Path) -> None:
    packets = [
        *opened(),
        *joined(),
        sent(0, 1, 1),
        *(sent(n * 100, 1 + n * 100, 2, back=True, host=1) for n in range(3)),
    ]
    (found,) = analyze(tmp_path, packets)
    assert (found.direction, found.totals["new_bytes"], found.totals["new_bytes_other_direction"]) == (1, 300, 100)
    (other,) = analyze(tmp_path, packets, direction=0)
    assert other.totals["new_bytes"] == 100


def test_a_subflow_without_its_connection_stands_alone(tmp_path: Path) -> None:
    found = analyze(tmp_path, [*opened(), *joined(token=1)])
    assert [(one.flows, one.complete) for one in found] == [((0,), True), ((1,), False)]


def test_two_connections_are_kept_apart(tmp_path: Path) -> None:
    mine = [packet.replace((1000).to_bytes(2, "big"), (1001).to_bytes(2, "big"), 1) for packet in opened()[:1]]
    packets = [*opened(), *joined(), *mine]
    assert [one.flows for one in analyze(tmp_path, packets)] == [(0, 1), (2,)]


def test_addresses_priorities_and_ends(tmp_path: Path) -> None:
    v6 = b"\xfd" + b"\0" * 14 + b"\2"
    packets = [
        *opened(),
        segment(1, 0, option(3, b"\2" + socket.inet_aton("10.9.0.2") + b"m" * 8), back=True),
        segment(1, 0, option(3, b"\2" + socket.inet_aton("10.9.0.2"), 1)),
        segment(1, 0, option(3, b"\3" + v6 + (443).to_bytes(2, "big") + b"m" * 8), back=True),
        segment(1, 0, option(5, b"\1", 1)),
        segment(1, 0, option(5, b"")),
        segment(1, 0, option(4, b"\3"), back=True),
        segment(1, 0, option(6, b"\0" + (77).to_bytes(8, "big"))),
        segment(1, 0, option(7, b"\0" + KEYS[1].to_bytes(8, "big"))),
        segment(1, 0, option(8, b"\1"), flags=RST),
        segment(1, 0, dss(500, 0, 1, 0x1C)),
    ]
    capture = read(tmp_path, pcap([(T + at * MS, packet) for at, packet in enumerate(packets)]))
    rows = capture.mptcp_options[3:]
    assert rows["subtype"].tolist() == [3, 3, 3, 5, 5, 4, 6, 7, 8, 2]
    assert rows["family"].tolist()[:3] == [4, 4, 6]
    assert rows["port"].tolist()[:3] == [0, 0, 443]
    assert rows["backup"].tolist()[3:5] == [True, False]
    assert rows["address_id"].tolist()[:6] == [2, 2, 3, 1, 0, 3]
    assert rows["dsn"].tolist() == [UNKNOWN] * 6 + [77, UNKNOWN, UNKNOWN, 500]
    assert rows["key"].tolist()[7] == KEYS[1]
    (found,) = analyze_mptcp(capture)
    told = [event["what"] for event in found.events]
    assert told == [
        "MP_CAPABLE", "MP_CAPABLE", "ADD_ADDR", "ADD_ADDR echo", "ADD_ADDR", "MP_PRIO", "MP_PRIO", "REMOVE_ADDR",
        "MP_FAIL", "MP_FASTCLOSE", "MP_TCPRST", "RST", "DATA_FIN",
    ]  # fmt: skip
    assert [event.get("address") for event in found.events if "ADD_ADDR" in event["what"]] == [
        "10.9.0.2",
        "10.9.0.2",
        "fd00::2",
    ]
    assert (found.totals["addresses_told"], found.totals["fails"]) == (2, 1)


def test_the_first_segment_sent_again_with_a_mapping_is_not_new(tmp_path: Path) -> None:
    """MP_CAPABLE maps it without a number (RFC 8684 3.1); Linux sends it again with a DSS."""
    packets = [*opened(), segment(1, 100, capable(*KEYS)), sent(100, 101, 1), sent(0, 1, 1)]
    (found,) = analyze(tmp_path, packets)
    assert (found.totals["new_bytes"], found.totals["payload_bytes"]) == (200, 300)


def test_the_first_data_have_their_number_by_the_key(tmp_path: Path) -> None:
    """RFC 8684 3.1: MP_CAPABLE with data maps them from the number that the initiator's key gives on."""
    first = option(0, b"\x81" + b"".join(key.to_bytes(8, "big") for key in KEYS) + struct.pack("!H", 200), 1)
    begun = [*opened(), segment(1, 100, first), segment(101, 100, first)]
    # the only subflow carries nothing more: all else comes over the other, with a copy of the second half of the first
    (found,) = analyze(tmp_path, [*begun, ANSWERED, *joined(), FOURTH, sent(50, 1, 2), sent(200, 101, 2)])
    has(found.totals, unmapped_bytes=0, new_bytes=300, reinjected_bytes=100)
    # sent again with less room, so from another byte on, as after the options of the handshake
    (found,) = analyze(tmp_path, [*begun, segment(97, 104, dss(first_number(KEYS[0]) + 1, 1, 200))])
    has(found.totals, unmapped_bytes=0, new_bytes=200)


def test_first_segments_in_another_order_have_their_numbers(tmp_path: Path) -> None:
    """Two of one MP_CAPABLE, the first of them lost and sent again with its mapping."""
    packets = [*opened(), segment(101, 100, capable(*KEYS)), sent(200, 201, 1), sent(0, 1, 1)]
    (found,) = analyze(tmp_path, packets)
    assert (found.totals["new_bytes"], found.totals["unmapped_bytes"]) == (300, 0)


def test_the_number_of_a_data_fin_is_not_payload(tmp_path: Path) -> None:
    """Its mapping is one longer than the segment; the next segment of the subflow begins where this one ends."""
    number = first_number(KEYS[0]) + 1
    last = segment(101, 100, dss(number + 100, 101, 101, 0x1C))
    again = segment(201, 100, dss(number + 100, 201, 101, 0x1C))
    (found,) = analyze(tmp_path, [*opened(), sent(0, 1, 1), last, again])
    assert (found.totals["new_bytes"], found.totals["unmapped_bytes"]) == (200, 0)


def test_a_fallback_has_no_mapped_bytes(tmp_path: Path) -> None:
    packets = [segment(0, 0, capable(), flags=SYN), segment(0, 0, flags=SYN | ACK, back=True), segment(1, 100)]
    (found,) = analyze(tmp_path, packets)
    assert (found.totals["unmapped_bytes"], found.totals["new_bytes"], found.complete) == (100, 0, False)


def test_a_capture_without_mptcp_has_none() -> None:
    assert analyze_mptcp(read_captures(recorded("tcp", "a", ["p1"]))) == ()


@pytest.mark.parametrize("node", ["a", "b"])
def test_the_recorded_connection(node: str, tmp_path: Path) -> None:
    """Keys, tokens and subtypes are tshark's; what is new is what the application read."""
    files = recorded("mptcp", node, ["p1", "p2"])
    capture = read_captures(files)
    (found,) = analyze_mptcp(capture)
    assert (found.flows, found.complete) == ((0, 1), True)
    assert found.totals["new_bytes"] == READ_BYTES["mptcp"]
    assert sum(row["new_bytes"] for row in found.tables["subflows"]) == READ_BYTES["mptcp"]
    prefix = "tcp.options.mptcp."
    rows = tshark(
        files, tmp_path, [prefix + name for name in ("subtype", "sendkey", "recvtok")], "tcp.options.mptcp.subtype"
    )
    theirs = [int(kind) for kinds, *_ in rows for kind in kinds if int(kind) != 2]
    ours = capture.mptcp_options["subtype"]
    assert collections.Counter(ours[ours != 2].tolist()) == collections.Counter(theirs)
    keys = {int(key, 0) for _, sent_keys, _ in rows for key in sent_keys}
    told = set(capture.mptcp_options["key"].tolist()) - {0}
    assert told == keys
    tokens = {int(token, 0) for *_, received in rows for token in received}
    assert set(capture.mptcp_options["token"].tolist()) - {0} == tokens
    assert {token_of(key, 1) for key in keys} >= tokens
