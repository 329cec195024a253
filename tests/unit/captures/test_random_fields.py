"""Two captures of equal behaviour with other random numbers, and behaviour that differs, in packets written by hand."""

import struct
from collections.abc import Callable

import pytest
from netwarp.captures.first_difference import MAGIC_NS, first_behaviour_difference

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def ip(protocol: int, source: bytes, target: bytes, body: bytes, number: int) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), number & 0xFFFF, 0x4000, 64, protocol, number & 0xFFFF)
    return bytes(12) + b"\x08\x00" + head + source + target + body


def pcap(frames: list[tuple[int, bytes]]) -> bytes:
    file = struct.pack("=IHHiIII", MAGIC_NS, 2, 4, 0, 0, 65535, 1)
    for at_ns, frame in frames:
        file += struct.pack("=IIII", at_ns // 10**9, at_ns % 10**9, len(frame), len(frame)) + frame
    return file


def tcp(drawn: int, *, window: int = 502, late_ns: int = 0) -> bytes:
    """Two SYNs and a segment with SACK and time stamps; `drawn` is added to all that is random."""
    port, ours, theirs, stamp = 40000 + drawn % 999, 77 * drawn, 123 * drawn, 5 * drawn

    def segment(back: bool, seq: int, ack: int, flags: int, options: bytes, payload: bytes = b"") -> bytes:
        ports = (5001, port) if back else (port, 5001)
        options += bytes(-len(options) % 4)
        offset = (20 + len(options)) // 4 << 4
        head = struct.pack("!HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, offset, flags, window, drawn % 65536, 0)
        return ip(6, *((B, A) if back else (A, B)), head + options + payload, drawn)

    def times(own: int, echo: int) -> bytes:
        return b"\x01\x01\x08\x0a" + struct.pack("!II", own % 2**32, echo % 2**32)

    sack = b"\x01\x01\x05\x0a" + struct.pack("!II", (theirs + 1449) % 2**32, (theirs + 2897) % 2**32)
    key = b"\x1e\x0c\x01\x81" + struct.pack("!Q", 99991 * drawn)
    return pcap([
        (10**9, segment(False, ours, 0, 2, times(stamp, 0) + key)),
        (10**9 + 50_000_000, segment(True, theirs, ours + 1, 18, times(9 * stamp, stamp))),
        (10**9 + 50_000_256 + late_ns, segment(False, ours + 1, theirs + 1, 16, times(stamp + 50, 9 * stamp) + sack)),
    ])  # fmt: skip


def sctp(drawn: int, *, window: int = 106496, late_ns: int = 0) -> bytes:
    """INIT, INIT ACK with a cookie, DATA, SACK with a gap, HEARTBEAT."""
    ours, theirs = 31 * drawn, 17 * drawn

    def packet(back: bool, *chunks: tuple[int, int, bytes]) -> bytes:
        body = struct.pack("!HHII", 5001, 5001, drawn, 7 * drawn)
        for kind, flags, value in chunks:
            body += struct.pack("!BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)
        return ip(132, *((B, A) if back else (A, B)), body, drawn)

    def init(tsn: int) -> bytes:
        return struct.pack("!IIHHI", 3 * drawn, window, 10, 65535, tsn)

    cookie = struct.pack("!HH", 7, 4 + 8) + struct.pack("!Q", 991 * drawn)
    data = struct.pack("!IHHI", ours + 5, 0, 5, 0) + struct.pack("!I", drawn) * 50
    sack = struct.pack("!IIHHHHI", ours + 4, window, 1, 1, 2, 3, ours + 2)
    return pcap([
        (10**9, packet(False, (1, 0, init(ours)))),
        (2 * 10**9, packet(True, (2, 0, init(theirs) + cookie))),
        (3 * 10**9 + late_ns, packet(False, (0, 3, data), (4, 0, struct.pack("!Q", drawn)))),
        (4 * 10**9, packet(True, (3, 0, sack))),
    ])  # fmt: skip


@pytest.mark.parametrize("story", [tcp, sctp])
def test_what_is_drawn_makes_no_difference(story: Callable[..., bytes]) -> None:
    assert story(4) != story(4_000_011)
    assert first_behaviour_difference(story(4), story(4_000_011), 2_000) is None


@pytest.mark.parametrize("story", [tcp, sctp])
def test_times_may_differ_by_that_much(story: Callable[..., bytes]) -> None:
    assert first_behaviour_difference(story(4), story(5, late_ns=1_792), 2_000) is None
    difference = first_behaviour_difference(story(4), story(5, late_ns=2_560), 2_000)
    assert difference is not None and difference.number == 3
    assert difference.what.endswith(", 2.56 us apart")


@pytest.mark.parametrize(("story", "field"), [(tcp, ": window 502 in A"), (sctp, ": window and streams ")])
def test_the_field_that_differs_is_named(story: Callable[..., bytes], field: str) -> None:
    difference = first_behaviour_difference(story(4), story(5, window=500), 2_000)
    assert difference is not None and difference.number == 1
    assert field in difference.what
    assert difference.words(0).startswith("packet 1, at 1.000000000 s: ")


def test_a_packet_more_is_a_difference() -> None:
    whole = tcp(4)
    difference = first_behaviour_difference(whole, whole[: whole.index(whole[24:40], 24)] + b"", 0)
    assert difference is not None and (difference.number, difference.b_ns) == (1, None)
