"""Hostile captures through the sanitised build: nothing is read that is not there, whatever the bytes say.

analyzer-replay is the fuzzer's entry (apps/analyzer/fuzz.c, which also checks what must hold of every table) with
ASan and UBSan. `make -C apps fuzz-analyzer` builds the libFuzzer program of the same entry, for long runs, and its
seeds (tests/fuzz/seeds.py), which are read here too.
"""

from __future__ import annotations

import gzip
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
import zstandard
from fuzz import seeds as fuzz_seeds
from support.captures import chunk, data_chunk, init_chunk, pcap, recorded, sack_chunk, sctp, segment
from support.checkout import ROOT

REPLAY = ROOT / "build" / "san" / "analyzer-replay"
EACH = 400


def seeds() -> dict[str, bytes]:
    """Captures that reach every part of the core."""
    plain = {
        "sctp": pcap(
            [
                (1, sctp(0, init_chunk(1, 2**32 - 3, parameters=struct.pack("!HH4s", 5, 8, b"\x0a\0\0\1")))),
                (2, sctp(1, init_chunk(2, 7, ack=True), back=True)),
                *(
                    (3 + i, sctp(2, data_chunk(2**32 - 3 + tsn, 9), data_chunk(tsn), path=1 + tsn % 2))
                    for i, tsn in enumerate((0, 1, 5, 3, 1, 9, 2))
                ),
                (20, sctp(1, sack_chunk(3, [(2, 4), (6, 6)], [1, 2]), back=True)),
                (21, sctp(2, chunk(64, b"\0" * 24), chunk(192, b"\0" * 8), chunk(7, b"\0" * 4), chunk(6, flags=1))),
                (22, sctp(2, chunk(9, b"\0\1\0\x08\0\7\0\0\0\x08\0\7abc\0\0\x0c\0\4"), chunk(6, b"\0\x0c\0\4"))),
            ]
        ),
        "tcp": pcap(
            [
                (1, segment(2**32 - 9, flags="S", options=[("MSS", 1460), ("WScale", 14), ("SAckOK", b"")])),
                (2, segment(5, back=True, flags="SA", ack=2**32 - 8, options=[("WScale", 3)])),
                *((3 + i, segment(2**32 - 8 + seq, 10, ack=6)) for i, seq in enumerate((0, 30, 10, 50, 5, 20, 0))),
                (20, segment(6, back=True, ack=2, options=[("SAck", (20, 30, 40, 50)), ("Timestamp", (1, 2))])),
                (21, segment(60, flags="FA", ack=6)),
            ]
        ),
    }
    for name, node, links in (("mptcp", "a", ["p1"]), ("bundle", "a", ["p1"])):
        whole = zstandard.ZstdDecompressor().stream_reader(recorded(name, node, links)[0].read_bytes()).read(40_000)
        plain[name] = whole
    packed = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in plain.items()}
    packed |= {f"{name}.zst": zstandard.ZstdCompressor().compress(data) for name, data in plain.items()}
    return plain | packed


def mutated(data: bytes, source: random.Random) -> bytes:
    """Bytes flipped, numbers replaced by extremes, pieces cut, repeated or swapped."""
    out = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4, 16))):
        if len(out) < 8:
            break
        place = source.randrange(len(out))
        kind = source.randrange(6)
        if kind == 0:
            out[place] ^= 1 << source.randrange(8)
        elif kind == 1:
            out[place] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            wide = source.choice((0, 1, 3, 4, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
            out[place : place + 4] = struct.pack(source.choice("<>") + "I", wide)
        elif kind == 3:
            del out[place : place + source.randrange(64)]
        elif kind == 4:
            out[place:place] = out[place : place + source.randrange(128)]
        else:
            del out[place:]
    return bytes(out)


WAYS = (0, 1, 2, 4, 6, 8, 10, 0x5A, 0xC9, 0x12, 0x20, 0x32, 0x40)
"""The entry's first byte: checksums 1, in parts 2, totals only 4, two files 8 (cut by the upper half), else sorted 16,
without copies 32, in pieces as from a pipe 64."""


@pytest.fixture(scope="module")
def odd() -> dict[str, bytes]:
    return fuzz_seeds.captures()


def test_every_odd_header_in_every_way(odd: dict[str, bytes], tmp_path: Path) -> None:
    files = []
    for name, data in odd.items():
        for way in WAYS:
            files.append(tmp_path / f"{name}-{way}")
            files[-1].write_bytes(bytes([way]) + data)
    replay(files)


def test_mutated_odd_headers(odd: dict[str, bytes], tmp_path: Path) -> None:
    source = random.Random(5)
    files = []
    for name, data in odd.items():
        for number in range(60):
            files.append(tmp_path / f"{name}-{number}")
            files[-1].write_bytes(bytes([source.choice(WAYS)]) + mutated(data, source))
    replay(files)


def replay(files: list[Path]) -> None:
    done = subprocess.run(
        [REPLAY, *files],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "ASAN_OPTIONS": "abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{len(files)} files\n"


@pytest.mark.parametrize("name", seeds())
def test_mutated_captures(name: str, tmp_path: Path) -> None:
    assert REPLAY.exists(), "make -C apps san"
    source = random.Random(name)
    data = seeds()[name]
    files = []
    for number in range(EACH):
        files.append(tmp_path / f"{number}")
        # the entry's first byte chooses: checksums, in parts, totals only
        files[-1].write_bytes(bytes([number % 16]) + (data if number < 8 else mutated(data, source)))
    replay(files)


def test_every_length_of_every_seed(tmp_path: Path) -> None:
    """Files cut at every byte: the end of the capture falls on every field of every header."""
    for name in ("sctp", "tcp"):
        data = seeds()[name]
        files = []
        for size in range(0, len(data), 3):
            files.append(tmp_path / f"{name}-{size}")
            files[-1].write_bytes(b"\0" + data[:size])
        replay(files)


def test_every_captured_length_of_a_packet(tmp_path: Path) -> None:
    """One packet each captured as far as every one of its bytes, in memory that ends there."""
    packets = {
        "data": sctp(2, data_chunk(5, 30), data_chunk(6, 10)),
        "sack": sctp(1, sack_chunk(3, [(2, 4), (6, 6)], [1, 2])),
        "init": sctp(0, init_chunk(1, 2, parameters=struct.pack("!HH4s", 5, 8, b"\x0a\0\0\1"))),
        "syn": segment(1, flags="S", options=[("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 2)), ("WScale", 7)]),
        "tcp": segment(9, 30, ack=2, options=[("SAck", (20, 30)), ("Timestamp", (1, 2))]),
    }
    files = []
    for name, packet in packets.items():
        for size in range(len(packet) + 1):
            files.append(tmp_path / f"{name}-{size}")
            files[-1].write_bytes(b"\0" + pcap([(1, packet[:size], len(packet))]))
    replay(files)
