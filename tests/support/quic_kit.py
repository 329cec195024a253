"""Headers of QUIC as tshark 4.0 and as the analyser read them, without keys."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from netwarp.captures import read_captures
from netwarp.captures.native import Rows
from netwarp.captures.quic import Kind, connection_id

FIELDS = [
    "frame.number", "quic.header_form", "quic.version", "quic.long.packet_type", "quic.dcid", "quic.scid",
    "quic.spin_bit", "quic.packet_length",
]  # fmt: skip


def quic_rows(path: Path, port: int) -> Rows:
    """The analyser's rows of packets to and from a port."""
    rows = read_captures([path], ("packets", "quic")).quic
    return rows[(rows["source_port"] == port) | (rows["destination_port"] == port)]


def by_tshark(path: Path, port: int, fields: list[str]) -> list[dict[str, list[str]]]:
    """A dictionary a datagram to or from a port: the values of its packets behind each other."""
    mine = f"udp.port=={port} && !icmp && !icmpv6"
    command = ["tshark", "-n", "-r", str(path), "-d", f"udp.port=={port},quic", "-Y", mine]
    command += ["-T", "fields", "-E", "separator=;", *(part for field in fields for part in ("-e", field))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [[text.split(",") if text else [] for text in line.split(";")] for line in done.stdout.splitlines()]
    return [dict(zip(fields, line, strict=True)) for line in lines]


def assert_headers_are_tsharks(path: Path, port: int) -> None:
    """Kinds, versions, types, lengths, connection ids and spin bits of all packets to and from a port."""
    theirs = by_tshark(path, port, FIELDS)
    ours = _as_tshark(quic_rows(path, port))
    assert len(ours) == len(theirs) > 0
    for mine, its in zip(ours, theirs, strict=True):
        # of a short header only its ends know how long the connection id is: tshark learnt it
        known = [ours.startswith(its) for ours, its in zip(mine.pop("quic.dcid"), its.pop("quic.dcid"), strict=True)]
        assert all(known)
        # the type of a version that is not known is not known
        if mine["quic.version"] and not mine["quic.long.packet_type"]:
            its.pop("quic.long.packet_type"), mine.pop("quic.long.packet_type")
        assert mine == its


def _as_tshark(rows: Rows) -> list[dict[str, Any]]:
    found = []
    for packet in np.unique(rows["packet"]).tolist():
        mine = rows[rows["packet"] == packet]
        long = mine[mine["kind"] != Kind.SHORT]
        found.append(
            {
                "frame.number": [str(packet + 1)],
                "quic.header_form": ["0" if kind == Kind.SHORT else "1" for kind in mine["kind"].tolist()],
                "quic.version": [f"0x{version:08x}" for version in long["version"].tolist()],
                "quic.long.packet_type": [str(kind) for kind in long["kind"].tolist() if kind <= Kind.RETRY],
                "quic.scid": [connection_id(row, "scid").hex() for row in long],
                "quic.spin_bit": [str(int(row["spin"])) for row in mine if row["kind"] == Kind.SHORT],
                "quic.packet_length": [str(size) for size in mine["bytes"].tolist()],
                "quic.dcid": [connection_id(row, "dcid").hex() for row in mine],
            }
        )
    return found
