"""The work for a capture grows as its packets and as its connections do, not as their square.

Python's work is counted: calls, and the elements of arrays that it hands to NumPy. The core's is a ratio of CPU times
within one run, with a wide bound: a square would be far beyond it. No time is a bound.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from netwarp.captures import read_captures, summarise_points
from netwarp.captures.native import CoreHandle
from netwarp.engine.captures import AnalyzedCaptures
from support import mptcp_packets
from support.captures import T, pcap, segment

FEW, TIMES = 200, 8
MOST = 1.5 * TIMES
"""Sorting n things is a little more than n times the work of sorting one."""
CORE_FEW, CORE_TIMES, CORE_MOST = 10_000, 16, 6 * 16
"""More connections than the caches hold cost more each."""
ROUNDS = 3


class Counted(np.ndarray[Any, Any]):
    """An array that counts the elements of what NumPy does with it and with what comes of it."""

    work = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        Counted.work += max(np.size(each) for each in inputs)
        options = {
            name: tuple(map(_plain, value)) if isinstance(value, tuple) else _plain(value)
            for name, value in options.items()
        }
        return _counted(getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        Counted.work += self.size
        return super().__array_function__(function, types, args, options)

    def __getitem__(self, key: Any) -> Any:
        Counted.work += np.size(key) if isinstance(key, np.ndarray | list) else 1
        return super().__getitem__(key)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _counted(value: Any) -> Any:
    return value.view(Counted) if isinstance(value, np.ndarray) else value


def syns(count: int) -> bytes:
    """A SYN for each of so many connections, each from another end."""
    frame = bytearray(segment(1, flags="S"))
    packets = []
    for number in range(count):
        frame[26:30] = struct.pack("!I", 0x0A000000 + number // 50)
        frame[34:36] = struct.pack("!H", 1024 + number % 60_000)
        packets.append((T + number * 1000, bytes(frame)))
    return pcap(packets)


def mptcp_connections(count: int) -> bytes:
    """A handshake with MP_CAPABLE and 100 bytes for each."""
    packets = []
    for number in range(count):
        keys = [int.from_bytes(hashlib.sha256(b"%d %d" % (number, end)).digest()[:8], "big") for end in (0, 1)]
        first = mptcp_packets.first_number(keys[0]) + 1
        opened = [
            mptcp_packets.segment(0, 0, mptcp_packets.capable(), flags=mptcp_packets.SYN),
            mptcp_packets.segment(
                0, 0, mptcp_packets.capable(keys[1]), flags=mptcp_packets.SYN | mptcp_packets.ACK, back=True
            ),
            mptcp_packets.segment(1, 0, mptcp_packets.capable(*keys)),
            mptcp_packets.segment(1, 100, mptcp_packets.dss(first, 1, 100)),
        ]
        for place, packet in enumerate(opened):
            frame, at = bytearray(packet), 34 + 2 * (place == 1)
            frame[at : at + 2] = struct.pack("!H", 1024 + number)
            packets.append((T + len(packets) * 1000, bytes(frame)))
    return pcap(packets)


def one_connection(count: int) -> bytes:
    """Data, every 50th segment lost and sent again, and as many acknowledgements."""
    there, back = bytearray(segment(1, 100, ack=1)), bytearray(segment(1, back=True, ack=1))
    packets = []
    for number in range(count * 2):
        again = number % 50 == 40
        there[38:42] = struct.pack("!I", 1 + 100 * (number - 30 * again))
        back[42:46] = struct.pack("!I", 1 + 100 * max(0, number - 20))
        packets += [(T + number * 200_000, bytes(there)), (T + number * 200_000 + 100_000, bytes(back))]
    return pcap(packets)


def subflows(count: int) -> bytes:
    """One MPTCP connection, so many subflows of it with 100 bytes each."""
    number = mptcp_packets.first_number(mptcp_packets.KEYS[0]) + 1
    packets = [(T + place, packet) for place, packet in enumerate(mptcp_packets.opened())]
    for port in range(count):
        data = mptcp_packets.segment(1, 100, mptcp_packets.dss(number + 100 * port, 1, 100), path=2)
        for packet in (*mptcp_packets.joined(), data):
            frame = bytearray(packet)
            at = 34 if struct.unpack_from("!H", frame, 34) == (1000,) else 36
            frame[at : at + 2] = struct.pack("!H", 1024 + port)
            packets.append((T + len(packets) * 1000, bytes(frame)))
    return pcap(packets)


def work_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """What a summary with everything that --json writes takes: calls, and elements of arrays."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    rows = CoreHandle.rows
    Counted.work = 0
    with monkeypatch.context() as patch:
        patch.setattr(CoreHandle, "rows", lambda handle, table: _counted(rows(handle, table)))
        sys.setprofile(count)
        try:
            files = summarise_points([[path]])
            written = AnalyzedCaptures(files).as_json()["files"][0]["flows"]
        finally:
            sys.setprofile(None)
    assert len(written) == len(files[0].connections)
    return calls + Counted.work


@pytest.mark.parametrize("make", [syns, mptcp_connections, subflows, one_connection])
def test_the_work_is_linear(make: Callable[[int], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.pcap"
    works = []
    for count in (1, FEW, FEW * TIMES):  # the first time imports
        path.write_bytes(make(count))
        works.append(work_of(path, monkeypatch))
    _, few, many = works
    print(f"{make.__name__}: {few}, {many}: {many / few:.2f} times the work for {TIMES} times as much")
    assert few > FEW
    assert many <= MOST * few


@pytest.mark.parametrize("make", [syns, one_connection])
def test_the_work_of_the_core_is_linear(make: Callable[[int], bytes], tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    least = []
    for count in (CORE_FEW, CORE_FEW * CORE_TIMES):
        path.write_bytes(make(count))
        rounds = []
        for _ in range(ROUNDS):
            before = time.process_time()
            read_captures([path])
            rounds.append(time.process_time() - before)
        least.append(min(rounds))
    few, many = least
    print(f"{make.__name__}: {many / few:.1f} times the CPU time for {CORE_TIMES} times as much")
    assert CORE_MOST < CORE_TIMES**2
    assert many <= CORE_MOST * few
