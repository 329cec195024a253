"""The oracle's own reading of captures, against tshark's: packets, IP bytes, payload of TCP, DATA chunks of SCTP."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import zstandard

from .packets import DATA, I_DATA, TCP, read_packets

Sums = tuple[int, int, int, int]
FIELDS = ("ip.len", "ipv6.plen", "tcp.len", "sctp.data_tsn", "icmp.type", "icmpv6.type")


def differences(run: Path) -> list[str]:
    """A sentence for each capture of a run that tshark reads otherwise."""
    found = []
    for path in sorted(run.glob("cells/*/capture/*.pcap.zst")):
        ours, theirs = _ours(path), _theirs(path)
        if ours != theirs:
            found.append(
                f"{path.parent.parent.name} {path.name}: packets, IP bytes, TCP bytes, chunks {ours}, {theirs}"
            )
    return found


def _ours(path: Path) -> Sums:
    packets = read_packets(path)
    chunks = sum(chunk.kind in (DATA, I_DATA) for packet in packets for chunk in packet.chunks)
    payload = sum(packet.payload_bytes for packet in packets if packet.protocol == TCP)
    return len(packets), sum(packet.ip_bytes for packet in packets), payload, chunks


def _theirs(path: Path) -> Sums:
    with tempfile.NamedTemporaryFile(suffix=".pcap") as plain:
        zstandard.ZstdDecompressor().copy_stream(path.open("rb"), plain)
        plain.flush()
        command = ["tshark", "-n", "-r", plain.name, "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]
        for field in FIELDS:
            command += ["-e", field]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    packets = octets = payload = chunks = 0
    for line in told.splitlines():
        four, six, tcp, tsn, *icmp = line.split(";")
        quoted = any(icmp)  # an ICMP error quotes a packet: its fields stand behind the packet's own
        packets += bool(four or six)
        octets += int(four.split(",")[0]) if four else 40 + int(six.split(",")[0]) if six else 0
        payload += 0 if quoted or not tcp else sum(map(int, tcp.split(",")))
        chunks += 0 if quoted or not tsn else len(tsn.split(","))
    return packets, octets, payload, chunks
