"""tshark's view of captures."""

from __future__ import annotations

import subprocess
from pathlib import Path

KEY = ["frame.time_epoch", "ip.src", "ip.dst"]


def tshark(files: list[Path], tmp_path: Path, fields: list[str], condition: str = "") -> list[list[list[str]]]:
    """One row a packet, one list of values a field (KEY's left out unless asked for). In the order of time, source,
    destination: mergecap and we order packets of two files at the same nanosecond differently.
    """
    merged = tmp_path / "merged.pcap"
    subprocess.run(["mergecap", "-F", "nsecpcap", "-w", merged, *files], check=True, capture_output=True)
    command = ["tshark", "-n", "-r", str(merged), "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]
    command += ["-o", "sctp.relative_tsns:FALSE", "-o", "tcp.relative_sequence_numbers:TRUE"]
    for field in dict.fromkeys([*KEY, *fields]):
        command += ["-e", field]
    if condition:
        command += ["-Y", condition]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [[value.split(",") if value else [] for value in line.split(";")] for line in done.stdout.splitlines()]
    rows.sort(key=lambda row: (time_ns(row[0][0]), row[1], row[2]))
    return rows if fields[: len(KEY)] == KEY else [row[len(KEY) :] for row in rows]


def time_ns(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction)
