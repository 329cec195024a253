"""Windows, probes and keep-alives of a connection written by hand, frame by frame against tshark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from netwarp.captures.tcp import analyze_tcp
from netwarp.core.executables import find_executable
from support.captures import pcap
from support.tcp_story import Story

NAMES = ("zero_window", "window_update", "zero_window_probe", "keep_alive", "duplicate_ack")
pytestmark = pytest.mark.skipif(find_executable("tshark") is None, reason="no tshark")


def tshark(tmp_path: Path, story: Story) -> dict[str, set[int]]:
    file = tmp_path / "told.pcap"
    file.write_bytes(pcap(story.packets))
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "separator=/t"]
    for name in NAMES:
        command += ["-e", f"tcp.analysis.{name}"]
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: {place for place, row in enumerate(rows) if row[column]} for column, name in enumerate(NAMES)}


def test_windows_and_probes(tmp_path: Path) -> None:
    """tshark knows a probe by its one byte; Linux probes with none, at SND.UNA - 1, and tshark calls that a keep-alive.

    An answer that does not take a probe's byte is a duplicate ACK by RFC 5681's words; tshark has none of zero windows.
    """
    story = Story().handshake().data(40, 1).ack(80, 1001, echo=40).data(81, 1001).ack(121, 2001, echo=81, window=0)
    story.data(300, 2000, 0).ack(340, 2001, window=0).data(700, 2001, 1).ack(740, 2001, window=0)
    story.ack(900, 2001).data(900, 2001).ack(940, 3001, echo=900, window=400).ack(950, 3001, window=502)
    story.data(5000, 3000, 0).ack(5040, 3001).data(9000, 3000, 1).ack(9040, 3001)
    theirs = tshark(tmp_path, story)
    one = analyze_tcp(story.capture(tmp_path), 0).directions[0]
    probes, alive = (set(one.data.row[np.flatnonzero(mask)].tolist()) for mask in one.probes)
    assert set(one.acks.row[one.windows.zero].tolist()) == theirs["zero_window"]
    assert set(one.acks.row[one.windows.update].tolist()) == theirs["window_update"]
    assert set(one.acks.row[one.reports.duplicate & ~one.windows.zero].tolist()) == theirs["duplicate_ack"]
    assert set(one.acks.row[one.reports.duplicate & one.windows.zero].tolist()) == {10}
    linux = {row for row in probes if one.data.payload_bytes[one.data.row == row] == 0}
    assert probes - linux == theirs["zero_window_probe"]
    assert alive | linux == theirs["keep_alive"]
    assert [len(each) for each in (probes, linux, alive)] == [2, 1, 2]
