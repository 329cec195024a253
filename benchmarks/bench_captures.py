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
FILE_HEADER, RECORD_HEADER, ETHERNET, IPV4 = 24, 16, 14, 20
SNAPLEN = 128


@dataclasses.dataclass(frozen=True)
class Captures:
    """Plain pcap files at the sender of each transfer, and the bytes that runs of 100 MB keep."""

    root: Path
    tcp_full: Path
    tcp_short: Path
    sctp: Path
    stored_bytes: dict[str, int]


def make_captures(build: Path) -> Captures:
    """Run captures.toml if this kernel has not yet run it; unpack."""
    kernel = choose("virtual").kernel
    key = hashlib.sha256(SPEC.read_bytes() + kernel.binary.read_bytes()).hexdigest()[:12]
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
        (root / "complete").touch()
    stored = {name: sum(file.stat().st_size for file in captures_of(run, name)) for name in ("tcp100mb", "sctp100mb")}
    return Captures(root, root / "tcp.pcap", root / f"tcp-{SNAPLEN}.pcap", root / "sctp.pcap", stored)


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
    """Where each record begins."""
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
