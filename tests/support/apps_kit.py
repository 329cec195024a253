"""Runs the apps on the host for tests: built with ASan and UBSan, used through their command lines, records and
sockets.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from netwarp.store.app_records import DECODER

from support.checkout import BUILD, make_apps

PROGRAMS = ("sender", "receiver", "web-server", "web-client", "traffic-test-driver")
WALL_LIMIT_S = 300
"""What hangs must not hang the tests; a busy machine may take long."""
Record = dict[str, Any]


@functools.cache
def sanitised() -> Path:
    """build/san, made up to date."""
    make_apps(*(f"../build/san/{name}" for name in PROGRAMS))
    return BUILD / "san"


def run(program: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run an app to its end."""
    return subprocess.run(
        [str(sanitised() / program), *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=WALL_LIMIT_S,
        check=False,
    )


def records(text: str) -> list[Record]:
    """Every line of an app's output; each has to be a record as netwarp.store has its type."""
    assert not text or text.endswith("\n")
    DECODER.decode_lines(text)
    return [json.loads(line) for line in text.splitlines()]


HELD: deque[int] = deque()
"""Sockets bound to the ports that were given last, which never listen: nobody else is given these, by bind() or
connect(), but an app, which sets SO_REUSEADDR, can have them.
"""
MOST_HELD = 200


def free_ports(count: int) -> list[int]:
    """TCP ports, each another, that are this process's alone."""
    ports = []
    for _ in range(count):
        holds = socket.socket()
        holds.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holds.bind(("127.0.0.1", 0))
        ports.append(int(holds.getsockname()[1]))
        HELD.append(holds.detach())
    while len(HELD) > MOST_HELD:
        os.close(HELD.popleft())
    return ports


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


class Receiver:
    """A receiver on this machine that listens once entered."""

    def __init__(self, protocol: str, *arguments: str, host: str = "127.0.0.1") -> None:
        self.port = free_port()
        command = [str(sanitised() / "receiver"), "--protocol", protocol, "--bind", host]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self.until("listening")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def until(self, record: str) -> None:
        """Read on until it has printed such a record."""
        assert self.comes_to(record), self.process.communicate()

    def comes_to(self, record: str) -> bool:
        """Likewise; False if it ended before."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line)
            if f'"{record}"' in line:
                return True
        return False

    def stop(self) -> None:
        """Ask it to end, as cell-init does."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> tuple[int, list[Record]]:
        """Its exit status and everything it printed; asserts that the sanitisers kept silent."""
        assert self.process.stdout is not None
        # communicate() would pass over lines that until() has read ahead
        self.lines += self.process.stdout.readlines()
        _, err = self.process.communicate(timeout=WALL_LIMIT_S)
        assert err == "", err
        return self.process.returncode, records("".join(self.lines))


class Check:
    """A running traffic-test-driver."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(sanitised() / "traffic-test-driver")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: str | int | bytes) -> str:
        """One command, one answer."""
        texts = [(word.hex() or "-") if isinstance(word, bytes) else str(word) for word in words]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(" ".join(texts) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._process.communicate()
        return answer.rstrip("\n")

    def numbers(self, *words: str | int | bytes) -> list[int]:
        """The answer as numbers."""
        return [int(word) for word in self.ask(*words).split()]

    def fill(self, stream: int, message: int, offset: int, length: int) -> bytes:
        """The pattern as the program makes it."""
        answer = self.ask("fill", stream, message, offset, length)
        return b"" if answer == "-" else bytes.fromhex(answer)

    def summary(self) -> Record:
        """The accounting, which then begins anew."""
        found: Record = json.loads(self.ask("summary"))
        return found

    def close(self) -> None:
        """End it; asserts that the sanitisers kept silent."""
        _, err = self._process.communicate(timeout=WALL_LIMIT_S)
        assert (self._process.returncode, err) == (0, "")


def pattern(stream: int, message: int, offset: int, length: int) -> bytes:
    """The pattern as docs/formats.md describes it, written a second time."""

    def byte(at: int) -> int:
        block, position = divmod(at, 256)
        head = message.to_bytes(8, "little")[:4] + (block % 65536).to_bytes(2, "little") + stream.to_bytes(2, "little")
        return head[position] if position < 8 else position

    return bytes(byte(at) for at in range(offset, offset + length))


def with_token(payload: bytes, token: int, position: int = 0) -> bytes:
    """The same payload as a run with that token sends it; `position`: where it begins in its message or flow."""
    key = token.to_bytes(8, "little")
    return bytes(byte ^ key[(position + at) % 8] for at, byte in enumerate(payload))


def flow_pattern(position: int, length: int) -> bytes:
    """The pattern of a byte stream."""
    out = b""
    while len(out) < length:
        message, offset = divmod(position + len(out), 1 << 24)
        out += pattern(0, message, offset, min(length - len(out), (1 << 24) - offset))
    return out


def summary_of(found: Sequence[Record]) -> Record:
    """The summary; asserts that it is the last record."""
    assert found[-1]["record"] == "summary"
    return found[-1]
