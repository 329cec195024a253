"""The ladder of a connection: each packet in one row, times that never fall, names as tshark has them, one set of rows
as text and as SVG.
"""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
from html import unescape
from pathlib import Path

import pytest
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.ladder import MOST_ROWS, Ladder, ladder
from netwarp.captures.native import NONE
from netwarp.captures.sctp import message_names
from netwarp.cli.explain import LEAST_ROWS
from netwarp.core.executables import find_executable
from netwarp.core.lines import lines_text
from netwarp.present.captures.ladder_picture import ladder_lines, ladder_svg, row_times
from support.captures import ISN, T, association, chunk, data_chunk, pcap, sack_chunk, sctp
from support.tshark import tshark

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = sorted(path.name.removesuffix(".pcap.zst") for path in (DATA / "cases").glob("*.pcap.zst"))
RECORDED = ["tcp-a-p1", "sctp-a-p1", "osmo-a-p1", "usrsctp-a-p1", "mptcp-a-p1", "bundle-b-p1"]
needs_tshark = pytest.mark.skipif(find_executable("tshark") is None, reason="tshark is not installed")


def summary(*files: Path) -> FileSummary:
    (file,) = summarise_points([files])
    return file


def drawn(file: FileSummary, most: int | None = MOST_ROWS) -> Ladder:
    return ladder(file, file.connections[0], most)


def of(name: str) -> Path:
    return DATA / ("cases" if name in CASES else "captures") / f"{name}.pcap.zst"


@pytest.mark.parametrize("name", [*CASES, *RECORDED])
@pytest.mark.parametrize("most", [LEAST_ROWS, MOST_ROWS, None])
def test_each_packet_is_in_one_row_and_times_never_fall(name: str, most: int | None) -> None:
    file = summary(of(name))
    found = drawn(file, most)
    packets = file.capture.packets
    mine = packets["flow"] == file.connections[0].row
    copies = int((mine & (packets["marks"] & 64 != 0)).sum())
    assert found.packets == int(mine.sum()) - copies
    frames = [row.frames for row in found.rows if row.frames is not None]
    assert all(first <= last for first, last in frames)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(frames))
    assert all(a.until_s <= b.t_s + 1e-9 for a, b in itertools.pairwise(found.rows))
    assert all(sum(row.counts.values()) == row.packets for row in found.rows if row.frames is not None)
    if most is not None:
        assert len(found.rows) <= most


@needs_tshark
def test_tshark_counts_the_same_packets(tmp_path: Path) -> None:
    for name in ("2-two-paths-pf1", "pmtu-a", "tcp-a-p1", "one-way-client"):
        file = summary(of(name))
        condition = "sctp" if file.connections[0].protocol == "sctp" else "tcp"
        rows = tshark([of(name)], tmp_path, ["frame.number"], f"{condition} and not icmp")
        assert len(file.connections) == 1
        assert drawn(file).packets == len(rows)


@pytest.mark.parametrize("name", CASES)
def test_text_and_svg_have_the_same_rows(name: str) -> None:
    found = drawn(summary(of(name)))
    text = lines_text(ladder_lines(found))
    svg = str(ladder_svg(found, alone=True))
    words = " ".join(unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)</text>", svg)).replace("\u00a0", " ")
    for row, time in zip(found.rows, row_times(found), strict=True):
        assert f"{time}" in text and row.text in text
        assert time.replace(" ", "") in words.replace(" ", "")
        assert row.text.replace(" ", "") in words.replace(" ", "")
    assert svg.startswith("<svg xmlns=")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_what_matters_stands_alone_where_there_is_room() -> None:
    """Of a failover: handshake, timers, retransmissions, both moves; and in whatever room, their number."""
    file = summary(of("2-two-paths-pf1"))
    (connection,) = file.connections
    expiries = sum(event["what"] == "T3 expiry" for event in connection.events)
    moves = sum(event["what"].startswith("new data") for event in connection.events)
    for most in (MOST_ROWS, None):
        rows = drawn(file, most).rows
        assert [row.text for row in rows[:4]] == ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"]
        assert sum(row.kind == "note" and row.what == "timer" for row in rows) == expiries > 0
        assert sum(row.what == "path" for row in rows) == moves > 0
        again = sum(row.counts.get("again", 0) for row in rows if row.kind == "packet")
        assert again == len(
            {int(row["packet"]) for row in file.capture.chunks[file.capture.chunks["is_retransmission"]]}
        )
    for most in range(LEAST_ROWS, 60):
        rows = drawn(file, most).rows
        said = sum(int(count) for row in rows for count in re.findall(r"(\d+) timers? expires?", row.text))
        alone = sum(row.kind == "note" and row.what == "timer" for row in rows if "timer" not in row.text)
        assert said + alone == expiries
        assert sum(row.counts.get("again", 0) for row in rows) == again


# Payload protocol, first bytes of a message, our name, and the fields that tshark must have of it
FIELDS = ["ngap.procedureCode", "s1ap.procedureCode", "m3ua.message_class", "m3ua.message_type"]
MESSAGES: list[tuple[int, bytes, str, dict[str, int]]] = [
    (60, b"\x00\x15\x00\x33\x00\x00\x04", "NGAP NGSetup", {FIELDS[0]: 21}),
    (60, b"\x20\x15\x00\x33\x00\x00\x04", "NGAP NGSetup, successful outcome", {FIELDS[0]: 21}),
    (60, b"\x00\x0f\x40\x48\x00\x00\x05", "NGAP InitialUEMessage", {FIELDS[0]: 15}),
    (18, b"\x00\x11\x00\x2d\x00\x00\x04", "S1AP S1Setup", {FIELDS[1]: 17}),
    (18, b"\x40\x11\x00\x2d\x00\x00\x04", "S1AP S1Setup, unsuccessful outcome", {FIELDS[1]: 17}),
    (3, b"\x01\x00\x03\x01\x00\x00\x00\x08", "M3UA ASP Up", {FIELDS[2]: 3, FIELDS[3]: 1}),
    (3, b"\x01\x00\x04\x03\x00\x00\x00\x08", "M3UA ASP Active Ack", {FIELDS[2]: 4, FIELDS[3]: 3}),
    (46, b"\x01\x00\x00\x14\x80\x00\x01\x18" + bytes(12), "Diameter Device-Watchdog request", {}),
    (46, b"\x01\x00\x00\x14\x00\x00\x01\x01" + bytes(12), "Diameter Capabilities-Exchange answer", {}),
    (0, b"no protocol", "", {}),
    (60, b"\x00", "NGAP", {}),
    (60, b"\x93\x15\x00\x00", "NGAP", {}),
]


def message_capture(folder: Path) -> Path:
    packets = association()
    for tsn, (ppid, payload, _, _) in enumerate(MESSAGES):
        value = struct.pack("!IHHI", (ISN + tsn) % 2**32, 0, tsn, ppid) + payload
        packets += [sctp(22, chunk(0, value, 3)), sctp(11, sack_chunk(ISN + tsn), back=True)]
    capture = folder / "messages.pcap"
    capture.write_bytes(pcap([(T + number * 1_000_000, packet) for number, packet in enumerate(packets)]))
    return capture


def test_messages_have_their_names(tmp_path: Path) -> None:
    texts = [row.text for row in drawn(summary(message_capture(tmp_path)), 60).rows]
    data = [text for text in texts if "DATA" in text]
    assert len(data) == len(MESSAGES)
    for text, (_, _, name, _) in zip(data, MESSAGES, strict=True):
        assert text.partition(": DATA" if name else "DATA")[0] == name


@needs_tshark
def test_names_agree_with_tsharks(tmp_path: Path) -> None:
    rows = tshark([message_capture(tmp_path)], tmp_path, FIELDS, "sctp.chunk_type == 0")
    assert len(rows) == len(MESSAGES)
    for row, (_, _, _, fields) in zip(rows, MESSAGES, strict=True):
        assert {name: int(value[0]) for name, value in zip(FIELDS, row, strict=True) if name in fields} == fields


@needs_tshark
@pytest.mark.parametrize(("field", "names"), [("ngap", message_names.NGAP), ("s1ap", message_names.S1AP)])
def test_procedures_are_those_of_tshark(field: str, names: str) -> None:
    done = subprocess.run(["tshark", "-G", "values"], check=True, capture_output=True, text=True)
    of_tshark = re.findall(rf"^V\t{field}\.procedureCode\t(\d+)\tid-(\S+)$", done.stdout, re.M)
    ours = names.split()
    known = {int(code): name.lower() for code, name in of_tshark}
    assert len(known) > 60
    # a newer or older tshark knows more or fewer procedures
    assert all(ours[code].lower() == name for code, name in known.items() if code < len(ours))


@needs_tshark
def test_commands_of_diameter_are_those_of_tshark() -> None:
    done = subprocess.run(["tshark", "-G", "values"], check=True, capture_output=True, text=True)
    of_tshark = dict(re.findall(r"^V\tdiameter\.cmd\.code\t(\d+)\t(\S+)$", done.stdout, re.M))
    for code, name in message_names.DIAMETER.items():
        assert of_tshark[str(code)].removeprefix("3GPP-") == name


def test_a_message_cut_off_by_the_snaplen_has_its_protocol_alone(tmp_path: Path) -> None:
    value = struct.pack("!IHHI", ISN % 2**32, 0, 0, 60) + b"\x00\x15\x00\x33"
    whole = sctp(22, chunk(0, value, 3))
    packets = [*association(), whole]
    capture = tmp_path / "cut.pcap"
    for kept, name in ((len(whole), "NGAP NGSetup"), (len(whole) - 1, "NGAP")):
        records = pcap([(T + number * 1_000_000, packet) for number, packet in enumerate(packets)])
        header = len(records) - len(whole) - 8  # the captured length of the last record
        length = records[header : header + 4]
        cut = kept.to_bytes(4, "little" if length[0] else "big")
        capture.write_bytes(records[:header] + cut + records[header + 4 : len(records) - len(whole) + kept])
        (row,) = [row for row in drawn(summary(capture)).rows if "DATA" in row.text]
        assert row.text.startswith(f"{name}: DATA 0")


def test_old_diameter_and_sip_are_known_by_their_ports() -> None:
    assert message_names.message_name(0, 0x80000118, (3868, 40000)) == "Diameter Device-Watchdog request"
    assert message_names.message_name(0, int.from_bytes(b"INVI"), (5060, 5060)) == "SIP INVITE"
    assert message_names.message_name(0, int.from_bytes(b"INVI"), (1, 2)) == ""
    assert message_names.message_name(60, NONE, (1, 2)) == "NGAP"


def test_a_fragmented_message_has_its_name_once(tmp_path: Path) -> None:
    first = chunk(0, struct.pack("!IHHI", ISN % 2**32, 0, 0, 60) + b"\x00\x2e\x40\x33", 2)
    packets = [*association(), sctp(22, first), sctp(22, data_chunk(ISN + 1, 4, flags=1))]
    capture = tmp_path / "two.pcap"
    capture.write_bytes(pcap([(T + number * 1_000_000, packet) for number, packet in enumerate(packets)]))
    texts = [row.text for row in drawn(summary(capture)).rows if "DATA" in row.text]
    assert texts == ["NGAP UplinkNASTransport: DATA 0, stream 0, 4 B", "DATA 1, stream 0, 4 B"]


def test_icmp_and_silence_are_notes() -> None:
    rows = drawn(summary(of("8-init-icmp-protocol-unreachable"))).rows
    assert any(row.what == "icmp" and "protocol unreachable" in row.text for row in rows)
    file = summary(of("6-one-goes-silent"))
    rows = [row for connection in file.connections for row in ladder(file, connection).rows]
    assert any("to the capture's end" in row.text for row in rows)


def test_subflows_of_mptcp_are_lanes_of_one_ladder() -> None:
    file = summary(of("mptcp-a-p1"), of("mptcp-a-p2"))
    found = drawn(file)
    assert len(found.lanes) == 2
    assert found.packets == int((file.capture.packets["flow"] != NONE).sum())
    assert {row.lane for row in found.rows if row.kind == "packet"} == {0, 1}
    assert any("MP_JOIN" in row.text for row in found.rows)
