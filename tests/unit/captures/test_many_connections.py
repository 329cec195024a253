"""Captures of very many connections: within the limit they are read, beyond it they are refused early."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from netwarp import CaptureError, analyze_captures, explain_captures
from netwarp.captures.summary import DETAILED_FLOWS
from netwarp.core.limits import raised


def _connections(path: Path, count: int) -> Path:
    """A SYN of each of so many connections."""
    records = []
    for number in range(count):
        ip = struct.pack("!BBHHHBBH4sI", 0x45, 0, 40, 0, 0, 64, 6, 0, b"\x0a\0\0\1", 0x0B000000 + (number >> 16))
        frame = ip + struct.pack("!HHIIBBHHH", number & 0xFFFF, 80, 1, 0, 0x50, 2, 100, 0, 0)
        records.append(struct.pack("<IIII", 1, number, len(frame), len(frame)) + frame)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 228) + b"".join(records))
    return path


def test_connections_without_end_are_refused(tmp_path: Path) -> None:
    """Each takes memory, whatever little it sent; with another limit all of them are read."""
    path = _connections(tmp_path / "a.pcap", 400)
    for read in (
        lambda: analyze_captures([path]), lambda: analyze_captures([path], full=True),
        lambda: explain_captures([path]), lambda: analyze_captures([path, _copied(path)], join=True),
    ):  # fmt: skip
        with raised(["connections=300"]), pytest.raises(CaptureError, match=r"more than 300 connections; .*--limit"):
            read()
    with raised(["connections=400"]):
        assert len(analyze_captures([path]).files[0].connections) == 400


def _copied(path: Path) -> Path:
    return Path(shutil.copy(path, path.with_name("b.pcap")))


def test_explain_looks_into_those_it_explains_and_no_others(tmp_path: Path) -> None:
    """Of half a million connections the largest ten."""
    path = _connections(tmp_path / "a.pcap", 400)
    explained = explain_captures([path], most=3)
    assert len(explained.connections) == 3
    assert {view.connections.detailed for each in explained.connections for view, _ in each.views} == {DETAILED_FLOWS}
    assert len(explain_captures([path], most=70).connections) == 70
