"""The captures benchmarks/analysis.py reads: made once in guests by netwarp itself, kept below build/bench."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard
from netwarp.captures.native import Ints
from netwarp.sandbox.choose import choose

Bytes = npt.NDArray[np.uint8]

SPEC = Path(__file__).with_name("captures.toml")
TWENTY = """format = 1
name = "twenty"
title = "20 connections at once"
seed = 11
duration = "60 s"
captures = "hosts"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "200 Mbit/s"
queue = "100 packets"
rtt = "20 ms"
"""
FILE_HEADER, RECORD_HEADER, ETHERNET, IPV4 = 24, 16, 14, 20
SNAPLEN = 128


@dataclasses.dataclass(frozen=True)
class Captures:
    """Plain pcap files at the sender of each transfer, and the bytes that runs of 100 MB keep."""

    root: Path
    tcp_full: Path
    tcp_short: Path
    sctp: Path
    tcp_twenty: Path
    stored_bytes: dict[str, int]


def make_captures(build: Path) -> Captures:
    """Run captures.toml if this kernel has not yet run it; unpack."""
    kernel = choose("virtual").kernel
    key = hashlib.sha256(SPEC.read_bytes() + TWENTY.encode() + kernel.binary.read_bytes()).hexdigest()[:12]
    root = build / "bench" / key
    run = root / "run"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        print("making the captures in guests (once) ...", flush=True)
        command = [sys.executable, "-m", "netwarp", "run", str(SPEC), "--out", str(run)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name in ("tcp", "sctp"):
            unpack(captures_of(run, name)[0], root / f"{name}.pcap")
        shorten(root / "tcp.pcap", root / f"tcp-{SNAPLEN}.pcap")
        make_twenty(root)
        (root / "complete").touch()
    stored = {name: sum(file.stat().st_size for file in captures_of(run, name)) for name in ("tcp100mb", "sctp100mb")}
    return Captures(
        root,
        root / "tcp.pcap",
        root / f"tcp-{SNAPLEN}.pcap",
        root / "sctp.pcap",
        root / f"twenty-{SNAPLEN}.pcap",
        stored,
    )


def make_twenty(root: Path) -> None:
    """20 connections at once, each of 15 MB, cut at 128 bytes a packet."""
    flows = [
        f'[flow.f{i:02}]\nfrom = "a"\nto = "b"\nprotocol = "tcp"\npaths = ["p1"]\n'
        # no start at a time when others sample their sockets, which would make it late
        f'start = "{101_300 + 53_700 * i} us"\nbytes = "15 MB"\n'
        for i in range(20)
    ]
    (root / "twenty.toml").write_text(TWENTY + "".join(flows))
    command = [sys.executable, "-m", "netwarp", "run", str(root / "twenty.toml"), "--out", str(root / "twenty")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    unpack(next((root / "twenty").glob("cells/*/capture/a-p1.pcap.zst")), root / "twenty.pcap")
    shorten(root / "twenty.pcap", root / f"twenty-{SNAPLEN}.pcap")


def make_syns(target: Path, count: int) -> None:
    """So many SYNs, each of another address and port: as many connections."""
    number = np.arange(count)
    records = np.zeros((count, RECORD_HEADER + ETHERNET + IPV4 + 20), dtype=np.uint8)

    def put(at: int, values: Ints | int, kind: str) -> None:
        raw = np.broadcast_to(np.asarray(values), count).astype(kind)
        records[:, at : at + raw.itemsize] = raw.view(np.uint8).reshape(count, raw.itemsize)

    ip = RECORD_HEADER + ETHERNET
    put(0, 1_700_000_000 + number // 10_000, "<u4")
    put(4, number % 10_000 * 100, "<u4")
    for at in (8, 12):
        put(at, records.shape[1] - RECORD_HEADER, "<u4")
    for at, values, kind in (
        (ip - 2, 0x0800, ">u2"), (ip, 0x4500, ">u2"), (ip + 2, IPV4 + 20, ">u2"), (ip + 8, 0x4006, ">u2"),
        (ip + 12, 0x0A000000 + number // 100, ">u4"), (ip + 16, 0x0AC80001, ">u4"),
        (ip + IPV4, 1024 + number % 60_000, ">u2"), (ip + IPV4 + 2, 80, ">u2"),
        (ip + IPV4 + 4, number * 7919 % 2**32, ">u4"), (ip + IPV4 + 12, 0x5002, ">u2"),
        (ip + IPV4 + 14, 65_280, ">u2"),
    ):  # fmt: skip
        put(at, values, kind)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    target.write_bytes(header + records.tobytes())


def captures_of(run: Path, cell: str) -> list[Path]:
    """A cell's captures as they are stored, the sender's first."""
    found = sorted(run.glob(f"cells/{cell}_r0_*/capture/*.pcap.zst"))
    if len(found) != 2:
        raise SystemExit(f"{run}: cell {cell} has not completed; remove {run.parent} and try again")
    return found


def unpack(packed: Path, plain: Path) -> None:
    """zstd to plain."""
    with packed.open("rb") as source, plain.open("wb") as target:
        zstandard.ZstdDecompressor().copy_stream(source, target)


def record_offsets(data: bytes) -> list[int]:
    """The offset of each record."""
    found, at = [], FILE_HEADER
    while at < len(data):
        found.append(at)
        at += RECORD_HEADER + struct.unpack_from("<I", data, at + 8)[0]
    return found


def shorten(full: Path, short: Path) -> None:
    """As if captured with a snaplen of 128."""
    data = full.read_bytes()
    parts = [data[:16], struct.pack("<I", SNAPLEN), data[20:FILE_HEADER]]
    for at in record_offsets(data):
        seconds, rest, captured, length = struct.unpack_from("<IIII", data, at)
        kept = min(captured, SNAPLEN)
        parts.append(struct.pack("<IIII", seconds, rest, kept, length))
        parts.append(data[at + RECORD_HEADER : at + RECORD_HEADER + kept])
    short.write_bytes(b"".join(parts))


def repeat(source: Path, target: Path, times: int) -> None:
    """The capture `times` times over, one after another: each later by whole seconds, each from another port."""
    data = np.fromfile(source, dtype=np.uint8)
    body = data[FILE_HEADER:]
    at = np.array(record_offsets(data.tobytes())) - FILE_HEADER
    seconds = word(body, at)
    span_s = int(seconds.max() - seconds.min()) + 1
    ip = at + RECORD_HEADER + ETHERNET
    is_tcp = (body[ip] == 0x45) & (body[np.minimum(ip + 9, len(body) - 1)] == 6)
    # the port that is not 5001: the sender's, as source or as target
    ports = [ip[is_tcp] + IPV4, ip[is_tcp] + IPV4 + 2]
    numbers = [body[place].astype(np.uint32) << 8 | body[place + 1] for place in ports]
    with target.open("wb") as out:
        out.write(data[:FILE_HEADER].tobytes())
        for number in range(times):
            moved = seconds + number * span_s
            for byte in range(4):
                body[at + byte] = (moved >> 8 * byte) & 0xFF
            for place, port in zip(ports, numbers, strict=True):
                shifted = np.where(port == 5001, port, 10_000 + number)
                body[place], body[place + 1] = shifted >> 8, shifted & 0xFF
            out.write(body.tobytes())


def word(body: Bytes, at: Ints) -> Ints:
    """Little-endian 32-bit numbers at these places."""
    found: Ints = np.zeros(len(at), dtype=np.int64)
    for byte in range(4):
        found |= body[at + byte].astype(np.int64) << 8 * byte
    return found
