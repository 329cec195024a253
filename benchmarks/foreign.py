"""Any folder of captures against tshark: `python benchmarks/foreign.py DIR` prints what is equal, refused, different.

Hard numbers, that need no judgement: records, TCP segments, bytes of their payload, SCTP DATA chunks. What ICMP
errors quote of other packets is in none of them. A file that tshark cannot read either is no capture.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from netwarp.captures import read_captures
from netwarp.core.errors import CaptureError
from netwarp.core.wire import DATA, I_DATA

NAMES = ("records", "TCP segments", "TCP payload bytes", "DATA chunks")
FIELDS = ("frame.number", "tcp.len", "sctp.data_tsn", "icmp.type", "icmpv6.type")
PLAIN = (b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zX", b"BZh", b"\x04\x22\x4d\x18")
"""gzip, zstd, xz, bzip2, lz4; tshark may know fewer of them."""
Numbers = tuple[int, int, int, int]
LIMIT_S = 600


def captures_in(folder: Path) -> list[Path]:
    """Files that begin as pcap or pcapng do, whatever their names, and packed ones that are named so."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as file:
            begin = file.read(4)
        named = any(word in path.name for word in (".pcap", ".cap", ".dmp"))
        if begin.startswith(PLAIN) or (begin.startswith(PACKED) and named):
            found.append(path)
    return found


def by_tshark(path: Path) -> Numbers | None:
    """None: it cannot read the file, or not to its end."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=;", *fields]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    records = segments = payload = chunks = 0
    for line in done.stdout.splitlines():
        _, lengths, numbers, *quoted = line.split(";")
        records += 1
        if any(quoted):
            continue
        sizes = [int(size) for size in lengths.split(",") if size]
        segments += len(sizes)
        payload += sum(sizes)
        chunks += len([number for number in numbers.split(",") if number])
    return (records, segments, payload, chunks) if records or not done.returncode else None


def by_netwarp(path: Path) -> Numbers:
    """Raises CaptureError."""
    capture = read_captures([path], ("segments", "chunks"))
    return (
        int(capture.sources["packets"].sum()),
        len(capture.segments),
        int(capture.segments["payload_bytes"].sum()),
        int(np.isin(capture.chunks["type"], (DATA, I_DATA)).sum()),
    )


def compared(path: Path) -> tuple[str, str]:
    """("equal", "refused", "different" or "no capture", what and why)."""
    try:
        theirs = by_tshark(path)
    except subprocess.TimeoutExpired:
        return "no capture", f"tshark took longer than {LIMIT_S} s"
    try:
        ours = by_netwarp(path)
    except CaptureError as error:
        why = str(error).removeprefix(f"{path}: ")
        return ("refused" if theirs else "no capture"), why
    if theirs is None:
        return "different", "tshark cannot read it"
    pairs = zip(NAMES, ours, theirs, strict=True)
    differing = [f"{name} {mine} (tshark {other})" for name, mine, other in pairs if mine != other]
    return ("different", ", ".join(differing)) if differing else ("equal", "")


def main() -> int:
    """Print a line for each file that is not equal, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for path in captures_in(folder):
        outcome, why = compared(path)
        outcomes[outcome] += 1
        if outcome == "refused":
            reasons[why] += 1
        if outcome != "equal":
            print(f"{outcome}: {path.relative_to(folder)}: {why}", flush=True)
    print(
        f"\n{outcomes.total()} files: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    )
    for why, count in reasons.most_common():
        print(f"  refused {count}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
