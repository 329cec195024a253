"""Times of any value in a pcapng end in a summary: no number leaves 64 bits, nothing is as large as they are."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import zstandard
from netwarp.engine.captures import analyze_captures, explain_captures
from netwarp.present.captures.explanation_words import explanation_text
from support.captures import DATA

TIMES = (0, 1, 2**31, 2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(name: str, odd: dict[int, int], most: int = 60) -> bytes:
    """The first packets of a recorded pcap; some with other times (ticks of 1 ns)."""
    plain = zstandard.ZstdDecompressor().stream_reader((DATA / name).read_bytes()).read()
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    out = section + block(1, struct.pack("<HHI", struct.unpack_from("<I", plain, 20)[0], 0, 0) + options)
    at = 24
    for number in range(most):
        second, fraction, captured, length = struct.unpack_from("<IIII", plain, at)
        time = odd.get(number, second * 10**9 + fraction)
        data = plain[at + 16 : at + 16 + captured]
        out += block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, captured, length) + data)
        at += 16 + captured
    return out


@pytest.mark.parametrize("name", ["tcp-a-p1.pcap.zst", "sctp-a-p1.pcap.zst"])
@pytest.mark.parametrize("time", TIMES)
def test_any_time(tmp_path: Path, name: str, time: int) -> None:
    path = tmp_path / "x.pcapng"
    for odd in ({0: time}, {5: time}, {59: time}, {4: time, 5: 0, 6: 2**64 - 1}, dict.fromkeys(range(60), time)):
        path.write_bytes(pcapng(name, odd))
        assert analyze_captures([path], full=True).as_json()["files"]
        for each in explain_captures([path]).connections:
            assert explanation_text(each)
