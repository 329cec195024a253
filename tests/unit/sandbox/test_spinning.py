"""The program that keeps a guest's CPU is found by its process on the host, and named by the top of its stack.

In place of a guest: a process that sleeps and, below it, one that is busy or not, with such a top in shared memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from netwarp.sandbox.sandbox import _stalled
from netwarp.sandbox.spinning import Spinning, cpu_ticks, spinning_program

STACK = b"\0TMPDIR=/run\0NETWARP_SPUN=/proc/1/cwd/apps/web.receiver.spun\0/opt/bin/client\0" + bytes(8)
GUEST = """
import mmap, os, sys, time
memory = mmap.mmap(-1, 4096)
stack = bytes.fromhex(sys.argv[1])
memory[4096 - len(stack):] = stack
others = mmap.mmap(-1, 4096)  # above or below it
if os.fork() == 0:
    while sys.argv[2] == "spins":
        pass
    time.sleep(600)
print("there", flush=True)
while sys.argv[2] == "busy kernel":
    pass
time.sleep(600)
"""


@contextmanager
def guest(stack: bytes, what: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", GUEST, stack.hex(), what], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        process.stdout.close()


def found(stack: bytes, what: str) -> Spinning | None:
    with guest(stack, what) as pid:
        before = cpu_ticks(pid)
        assert len(before) == 2
        until = time.monotonic() + 300
        while (
            what != "sleeps" and sum(cpu_ticks(pid).values()) < sum(before.values()) + 20 and time.monotonic() < until
        ):
            time.sleep(0.05)
        return spinning_program(pid, before)


def test_the_busy_program_is_named_with_its_end_of_the_flow() -> None:
    assert found(STACK, "spins") == Spinning("/opt/bin/client", "web.receiver")


@pytest.mark.parametrize(
    ("stack", "what"), [(STACK, "sleeps"), (STACK, "busy kernel"), (b"\0EXPF" + bytes(20), "spins")]
)
def test_what_sleeps_a_busy_kernel_and_any_other_memory_name_nothing(stack: bytes, what: str) -> None:
    assert found(stack, what) is None


def test_the_sentence_names_it_and_says_since_when() -> None:
    said = _stalled(3.0, Spinning("/opt/bin/client", "web.receiver"))
    assert said.startswith("web.receiver: /opt/bin/client spins at T0 + 3 s: no virtual second passed in 120 s")
    assert "hung before T0 + 1 s" in _stalled(-1.0, None)
