"""The parts of apps/agents that read packets, sanitised: conversations, whole and damaged, and the fuzzer's corpus.

fuzz.c checks what must hold of every answer: a packet that passes is as it was, one that is changed is still whole,
what an agent sends is a whole segment, and no timer runs twice at once.
"""

from __future__ import annotations

import random
import socket
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from support.checkout import ROOT

REPLAY = ROOT / "build" / "san" / "agents-replay"
CORPUS = ROOT / "tests" / "data" / "agents"
SNOOP, MTCP, HIDE = 0, 1, 2
DOWN, UP, WAIT, LEAVES, RETURNS, MESSAGE = range(6)
SYN, ACK, FIN, RST = 2, 16, 1, 4
FIXED, MOBILE = "10.0.0.1", "10.0.1.2"


def checksum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(
    action: int, seq: int, ack: int, *, payload: int = 0, flags: int = ACK, window: int = 500, sacks: int = 0,
    twice: int | None = None,
) -> bytes:  # fmt: skip
    """An action of fuzz.c: a packet of one side. sacks: blocks, of the bytes behind `ack`. twice: a first block of 100
    bytes that came twice (RFC 2883), so far behind `ack`.
    """
    ends = (FIXED, MOBILE) if action == DOWN else (MOBILE, FIXED)
    ports = (1000, 5001) if action == DOWN else (5001, 1000)
    options = b""
    lefts = [*([] if twice is None else [twice]), *(200 * n + 100 for n in range(sacks))]
    if lefts:
        blocks = b"".join(struct.pack("!II", *((ack + left + more) % 2**32 for more in (0, 100))) for left in lefts)
        options = bytes((1, 1, 5, 2 + len(blocks))) + blocks
    offset = (20 + len(options)) // 4 << 4
    tcp = (
        struct.pack("!HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, offset, flags, window, 0, 0)
        + options
        + bytes(payload)
    )
    pseudo = socket.inet_aton(ends[0]) + socket.inet_aton(ends[1]) + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    total = 20 + len(tcp)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, total, 1, 0x4000, 63, 6, 0) + pseudo[:8]
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return bytes((action, total >> 8, total & 255)) + ip + tcp


def conversation(seed: int, kind: int) -> list[bytes]:
    """Data with losses, duplicate acknowledgements, silences and handovers; sequence numbers wrap in the middle."""
    chance = random.Random(seed)
    first = 2**32 - 3000
    actions = [bytes((kind,)), packet(DOWN, first - 1, 0, flags=SYN), packet(UP, 99, first, flags=SYN | ACK)]
    sent, acknowledged = first, first
    for _ in range(120):
        match chance.randrange(9):
            case 0 | 1 | 2:
                actions.append(packet(DOWN, sent, 100, payload=100))
                sent += 100
            case 3:
                actions.append(packet(DOWN, acknowledged, 100, payload=100))
            case 4:
                acknowledged = min(sent, acknowledged + 100 * chance.randrange(4))
                actions.append(packet(UP, 100, acknowledged, sacks=chance.randrange(3)))
            case 5:
                twice = chance.choice((None, -100, -50, 100, 300))
                again = packet(UP, 100, acknowledged, sacks=chance.randrange(3), twice=twice)
                actions.append(again * chance.randrange(1, 5))
            case 6:
                actions.append(bytes((WAIT, chance.randrange(200))))
            case 7:
                actions.append(bytes((chance.choice((LEAVES, RETURNS)), 0)))
            case 8:
                actions.append(packet(UP, 100, sent - 100 * chance.randrange(5), payload=chance.randrange(2) * 30))
    return [*actions, packet(DOWN, sent, 100, flags=FIN | ACK), packet(UP, 100, sent + 1, flags=FIN | ACK)]


def replay(paths: list[Path]) -> None:
    done = subprocess.run([REPLAY, *paths], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{len(paths)} files\n"), done.stderr[-3000:]


@pytest.mark.parametrize("kind", [SNOOP, MTCP, SNOOP | HIDE])
def test_conversations_whole_and_damaged(kind: int, tmp_path: Path) -> None:
    paths = []
    for seed in range(60):
        chance = random.Random(seed)
        data = bytearray(b"".join(conversation(seed, kind)))
        for _ in range(seed % 4 * 20):  # a quarter of them whole
            data[chance.randrange(1, len(data))] = chance.randrange(256)
        if seed % 5 == 4:
            del data[chance.randrange(len(data)) :]
        paths.append(tmp_path / f"{seed}")
        paths[-1].write_bytes(data)
    replay(paths)


def test_messages_of_the_kernel(tmp_path: Path) -> None:
    """A packet of the queue as the kernel sends it, cut at every byte, with every length field off."""
    inner = packet(DOWN, 1, 1, payload=10)[3:]
    attributes = b""
    for kind, value in ((1, struct.pack("!IHBB", 7, 0x800, 2, 0)), (5, struct.pack("!I", 3)), (10, inner)):
        attributes += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    body = struct.pack("=BBH", 2, 0, 256) + attributes
    whole = struct.pack("=IHHII", 16 + len(body), 3 << 8, 0, 0, 0) + body
    damaged = [whole[:cut] for cut in range(len(whole))]
    damaged += [whole[:at] + bytes((whole[at] ^ bit,)) + whole[at + 1 :] for at in range(60) for bit in (1, 4, 255)]
    actions = b"".join(
        bytes((MESSAGE, len(data) >> 8, len(data) & 255)) + data for data in [whole, whole * 2, *damaged]
    )
    path = tmp_path / "messages"
    path.write_bytes(bytes((SNOOP,)) + actions)
    replay([path])


def test_corpus() -> None:
    """A part of what the fuzzer covered; what it trips over is to be added."""
    paths = sorted(CORPUS.iterdir())
    assert paths
    replay(paths)


def test_conversations_are_not_alike() -> None:
    assert all(a != b for a, b in pairwise(conversation(seed, SNOOP) for seed in range(5)))
