"""The other pure parts of cell-init: NDJSON text, netlink messages, the pcap writer."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from support.cell_init_driver import Driver

FUZZ = settings(max_examples=300)
WINDOW = 64
"""PCAP_WINDOW: as many records are kept back to sort late ones in."""
WRITE_BYTES = 256 * 1024


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """The sanitised parts."""
    running = Driver()
    yield running
    running.close()


@FUZZ
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_json(driver: Driver, text: str) -> None:
    assert driver.ask("text", text.encode())["text"] == text


@FUZZ
@given(st.binary())
def test_any_bytes_are_json(driver: Driver, data: bytes) -> None:
    """What is not UTF-8 becomes U+FFFD, a byte each; the rest stays."""
    expected = "".join(
        part if not 0xDC80 <= ord(part) <= 0xDCFF else "\ufffd" for part in data.decode("utf-8", "surrogateescape")
    )
    assert driver.ask("text", data)["text"] == expected


def test_requests_are_numbered(driver: Driver) -> None:
    first, second = (
        messages.set_link(Device("x", 1), up=True).data,
        messages.address(Device("x", 1), "10.0.0.1", 24).data,
    )
    answer = driver.ask("request", first + second)
    assert answer["count"] == 2
    numbered = bytes.fromhex(answer["numbered"])
    assert struct.unpack_from("<II", numbered, 8) == (1000, 0)
    assert struct.unpack_from("<II", numbered, len(first) + 8) == (1001, 0)
    assert numbered[16 : len(first)] == first[16:]


def acknowledgement(error: int, message: bytes, *, capped: bool, request: bytes = bytes(16)) -> bytes:
    """NLMSG_ERROR with an extended message (linux/netlink.h, enum nlmsgerr_attrs)."""
    offset = struct.pack("=HHI", 8, 2, 20)
    text = struct.pack("=HH", 4 + len(message), 1) + message + bytes(-len(message) % 4)
    body = struct.pack("=i", -error) + (request[:16] if capped else request) + offset + text
    return struct.pack("=IHHII", 16 + len(body), 2, 0x200 | (0x100 if capped else 0), 1, 1) + body


@pytest.mark.parametrize("capped", [True, False])
def test_extended_messages_are_found(driver: Driver, capped: bool) -> None:
    request = struct.pack("=IHHII", 32, 16, 5, 1, 0) + bytes(16)
    reply = acknowledgement(errno.EBUSY, b"Device is busy\0", capped=capped, request=request)
    assert driver.ask("replies", reply)["messages"] == [
        {"type": 2, "error": errno.EBUSY, "message": "Device is busy", "operstate": -1}
    ]


def test_operstate_of_one_link_only(driver: Driver) -> None:
    def link(index: int, state: int) -> bytes:
        body = struct.pack("=BxHiII", 0, 1, index, 0, 0) + struct.pack("=HHB3x", 5, 16, state)
        return struct.pack("=IHHII", 16 + len(body), 16, 0, 1, 1) + body

    answer = driver.ask("replies", link(7, 6) + link(8, 6) + link(7, 2))
    assert [message["operstate"] for message in answer["messages"]] == [6, -1, 2]


@settings(FUZZ, max_examples=800)
@given(st.binary(max_size=200), st.integers(0, 120), st.binary(max_size=8))
def test_no_reply_breaks_the_reader(driver: Driver, data: bytes, at: int, patch: bytes) -> None:
    driver.ask("replies", data)
    driver.ask("request", data)
    reply = bytearray(acknowledgement(1, b"why\0", capped=False, request=struct.pack("=IHHII", 16, 16, 5, 1, 0)))
    reply[at : at + len(patch)] = patch
    driver.ask("replies", bytes(reply))


def write(driver: Driver, path: Path, records: list[tuple[int, int, int]]) -> dict[str, int]:
    """Have the pcap writer write (t_ns, captured, length)."""
    return driver.ask("pcap", f"{path}\n".encode() + b"".join(struct.pack("=qII", *record) for record in records))


def read(path: Path) -> list[tuple[int, int, int, bytes]]:
    """(t_ns, captured, length, first byte) of every record."""
    raw, at, found = path.read_bytes(), 24, []
    assert struct.unpack_from("<IHHiIII", raw) == (0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    while at < len(raw):
        seconds, nanoseconds, captured, length = struct.unpack_from("<IIII", raw, at)
        found.append((seconds * 10**9 + nanoseconds, captured, length, raw[at + 16 : at + 17]))
        at += 16 + captured
    assert at == len(raw)
    return found


FIRST_NS = 1_700_000_000 * 10**9


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 60, 1500, 9000])), max_size=300))
def test_late_packets_are_put_where_they_belong(
    driver: Driver, tmp_path_factory: pytest.TempPathFactory, spread: list[tuple[int, int]]
) -> None:
    """Up to 40 places late, in any mix of sizes: all there, in time order, equal times in the order of arrival."""
    path = tmp_path_factory.getbasetemp() / "late.pcap"
    records = [(FIRST_NS + i + early, size, size) for i, (early, size) in enumerate(spread)]
    answer = write(driver, path, records)
    found = read(path)
    assert answer == {
        "record": "pcap",
        "packets": len(records),
        "bytes": path.stat().st_size,
        "errno": 0,
        "fsync_errno": 0,
        "first_ns": min((record[0] for record in records), default=0),
        "last_ns": max((record[0] for record in records), default=0),
    }
    assert [record[:3] for record in found] == sorted(records, key=lambda record: record[0])


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0, 60, 9000, 262144])), max_size=200))
def test_never_out_of_order(
    driver: Driver, tmp_path_factory: pytest.TempPathFactory, spread: list[tuple[int, int]]
) -> None:
    """However late and large: in order as far as it goes, and an error if anything is missing."""
    path = tmp_path_factory.getbasetemp() / "order.pcap"
    records = [(FIRST_NS + i + early, size, size) for i, (early, size) in enumerate(spread)]
    answer = write(driver, path, records)
    times = [record[0] for record in read(path)]
    assert times == sorted(times)
    assert len(times) == answer["packets"]
    assert (len(times) == len(records)) == (answer["errno"] == 0)


def test_a_packet_later_than_the_window_is_an_error_not_disorder(driver: Driver, tmp_path: Path) -> None:
    records = [(10**9 + i, 60, 60) for i in range(WINDOW + 1)]
    answer = write(driver, tmp_path / "x.pcap", [*records, (10**9 - 1, 60, 60), (2 * 10**9, 60, 60)])
    assert answer["errno"] == errno.EILSEQ
    times = [record[0] for record in read(tmp_path / "x.pcap")]
    assert times == sorted(times)
    assert len(times) == answer["packets"]


def test_a_packet_as_late_as_the_window_is_placed(driver: Driver, tmp_path: Path) -> None:
    records = [(10**9 + 2 * i, 60, 60) for i in range(WINDOW)]
    answer = write(driver, tmp_path / "x.pcap", [*records, (10**9 + 1, 60, 60), (10**9 + 200, 60, 60)])
    assert answer["errno"] == 0
    times = [record[0] for record in read(tmp_path / "x.pcap")]
    assert times == sorted(times)
    assert len(times) == WINDOW + 2


def test_a_full_disk_is_said(driver: Driver) -> None:
    answer = write(driver, Path("/dev/full"), [(10**9 + i, 1500, 1500) for i in range(1000)])
    assert answer["errno"] == errno.ENOSPC
    assert answer["packets"] == 0


def test_a_truncated_packet_keeps_its_length(driver: Driver, tmp_path: Path) -> None:
    write(driver, tmp_path / "x.pcap", [(1, 100, 9000)])
    assert [record[:3] for record in read(tmp_path / "x.pcap")] == [(1, 100, 9000)]


def test_large_files(driver: Driver, tmp_path: Path) -> None:
    """More than the buffer, so that pieces join without a seam."""
    records = [(10**9 + i * 1000, 1514, 1514) for i in range(5000)]
    answer = write(driver, tmp_path / "x.pcap", records)
    assert answer["bytes"] == 24 + 5000 * (16 + 1514) > 4 * WRITE_BYTES
    assert [record[:3] for record in read(tmp_path / "x.pcap")] == records
    assert answer["first_ns"] == records[0][0]
    assert answer["last_ns"] == records[-1][0]
