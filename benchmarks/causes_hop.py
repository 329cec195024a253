"""A hop in user space for benchmarks/causes.py: delays, loses and reorders frames between pairs of interfaces.

The host's kernel has no netem. Frames are read with their virtio header (linux/virtio_net.h), so that a super packet of
segmentation offload is known as one; like a network card, the hop cuts it into the segments of the wire.
"""

from __future__ import annotations

import ctypes
import dataclasses
import heapq
import os
import random
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
VNET = struct.Struct("<BBHHHH")
"""flags, gso_type, hdr_len, gso_size, csum_start, csum_offset"""
ETH, IP = 14, 20
TCP_PROTOCOL = 6
FIN_PSH = 0x09


@dataclasses.dataclass(frozen=True)
class Loss:
    """What happens to data segments of TCP, in this order. random: share lost. every, burst: of every so many segments
    the last so many are lost. again: share of retransmissions lost. tail, block: the last segments of every block of
    bytes of the stream are lost when first sent. outage_s: (begin, end) since the first data; nothing passes, either
    way. late, late_s: share held back by so long. acks: share of acknowledgements lost.
    """

    random: float = 0.0
    every: int = 0
    burst: int = 0
    again: float = 0.0
    tail: int = 0
    block: int = 0
    outage_s: tuple[tuple[float, float], ...] = ()
    late: float = 0.0
    late_s: float = 0.0
    acks: float = 0.0


@dataclasses.dataclass
class Way:
    """One direction through the hop: frames leave `out` delay_s after they came; a rate (bit/s) serialises them, and
    frames that would wait behind more than queue_bytes are lost. loss: of data (None: this way carries none to judge).
    """

    out: socket.socket
    delay_s: float
    rate: float = 0.0
    queue_bytes: float = 0.0
    loss: Loss | None = None
    free_at: float = 0.0
    lost: int = 0
    highest: dict[bytes, int] = dataclasses.field(default_factory=dict)
    first: dict[bytes, int] = dataclasses.field(default_factory=dict)
    counted: int = 0


def open_end(interface: str) -> socket.socket:
    """A packet socket on an interface of the current namespace."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
    end.bind((interface, 0))
    end.setblocking(False)
    return end


def segments(frame: bytes) -> Iterator[bytes]:
    """The frames that a network card would send for one with a virtio header: itself, or its segments."""
    flags, kind, header, size, start, offset = VNET.unpack_from(frame)
    if not kind:
        yield frame
        return
    at = VNET.size
    tcp = at + ETH + IP
    payload_at = tcp + (frame[tcp + 12] >> 4) * 4
    payload = frame[payload_at:]
    (identity,) = struct.unpack_from(">H", frame, at + ETH + 4)
    (number,) = struct.unpack_from(">I", frame, tcp + 4)
    pseudo = sum(struct.unpack_from(">4H", frame, at + ETH + 12)) + TCP_PROTOCOL
    for count, begin in enumerate(range(0, len(payload), size)):
        part = payload[begin : begin + size]
        out = bytearray(frame[:payload_at])
        length = payload_at - at - ETH + len(part)
        VNET.pack_into(out, 0, flags, 0, header, 0, start, offset)
        struct.pack_into(">H", out, at + ETH + 2, length)
        struct.pack_into(">H", out, at + ETH + 4, (identity + count) & 0xFFFF)
        struct.pack_into(">H", out, at + ETH + 10, 0)
        struct.pack_into(">H", out, at + ETH + 10, 0xFFFF ^ _folded(sum(struct.unpack_from(">10H", out, at + ETH))))
        struct.pack_into(">I", out, tcp + 4, (number + begin) & 0xFFFFFFFF)
        if begin + size < len(payload):
            out[tcp + 13] &= ~FIN_PSH
        struct.pack_into(">H", out, tcp + 16, _folded(pseudo + length - IP))  # the receiver's kernel asks no more
        yield bytes(out) + part


def _folded(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _fate(way: Way, frame: bytes, now: float, begin: list[float], draw: Callable[[], float]) -> float | None:
    """Extra delay of a frame in s; None: lost."""
    loss, at = way.loss, VNET.size
    if loss is None or frame[at + 12 : at + 14] != b"\x08\x00" or frame[at + ETH + 9] != TCP_PROTOCOL:
        return 0.0
    tcp = at + ETH + IP
    (length,) = struct.unpack_from(">H", frame, at + ETH + 2)
    carried = length - IP - (frame[tcp + 12] >> 4) * 4
    if begin and any(low <= now - begin[0] < high for low, high in loss.outage_s):
        return None
    if not carried:
        return None if loss.acks and draw() < loss.acks else 0.0
    if not begin:
        begin.append(now)
    ports = frame[tcp : tcp + 4]
    (number,) = struct.unpack_from(">I", frame, tcp + 4)
    first = way.first.setdefault(ports, number)
    offset = (number - first) & 0xFFFFFFFF
    again = offset + carried <= way.highest.get(ports, 0)
    way.highest[ports] = max(way.highest.get(ports, 0), offset + carried)
    way.counted += 1
    if again and loss.again and draw() < loss.again:
        return None
    if loss.random and draw() < loss.random:
        return None
    if loss.every and way.counted % loss.every >= loss.every - loss.burst:
        return None
    if loss.tail and not again and offset % loss.block >= loss.block - loss.tail * carried:
        return None
    return loss.late_s if loss.late and draw() < loss.late else 0.0


def forward(ways: dict[socket.socket, Way], seed: int, stop_fd: int, lost: Path) -> None:
    """Forward frames until stop_fd is readable; then write the number of frames lost to a file."""
    draw, order = random.Random(seed).random, 0
    held: list[tuple[float, int, socket.socket, bytes]] = []
    begin: list[float] = []
    ends = {end.fileno(): end for end in ways}
    while True:
        wait = max(0.0, held[0][0] - time.monotonic()) if held else None
        ready, _, _ = select.select([*ends, stop_fd], [], [], wait)
        now = time.monotonic()
        if stop_fd in ready:
            lost.write_text(str(sum(way.lost for way in ways.values())))
            return
        for end in map(ends.__getitem__, ready):
            way = ways[end]
            for _ in range(64):
                try:
                    frame = end.recv(1 << 17)
                except BlockingIOError:
                    break
                for part in segments(frame):
                    extra = _fate(way, part, now, begin, draw)
                    sent = now
                    if extra is not None and way.rate:
                        if (way.free_at - now) * way.rate / 8 > way.queue_bytes:
                            extra = None
                        else:
                            way.free_at = max(now, way.free_at) + (len(part) - VNET.size) * 8 / way.rate
                            sent = way.free_at
                    if extra is None:
                        way.lost += 1
                        continue
                    order += 1
                    heapq.heappush(held, (sent + way.delay_s + extra, order, way.out, part))
        now = time.monotonic()
        while held and held[0][0] <= now:
            _, _, out, part = heapq.heappop(held)
            try:
                out.send(part)
            except OSError:  # the interface's queue is full or going: a loss like any other
                continue


def die_with_parent() -> None:
    """Let the kernel end this process when its parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(ways: Callable[[], dict[socket.socket, Way]], seed: int, lost: Path) -> Callable[[], int]:
    """Fork a process that forwards; a function that ends it and gives the number of frames lost, by the file `lost`."""
    read, write = os.pipe()
    table = ways()
    child = os.fork()
    if not child:
        status = 1
        try:
            die_with_parent()
            os.close(write)
            forward(table, seed, read, lost)
            status = 0
        finally:
            os._exit(status)
    os.close(read)
    for end in table:
        end.close()
    ended: list[int] = []

    def stop() -> int:
        if not ended:
            os.close(write)
            os.waitpid(child, 0)
            ended.append(int(lost.read_text()))
            lost.unlink()
        return ended[0]

    return stop
