"""The reader of apps/drill, sanitised: it reads what the compiler writes, and refuses what is damaged."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.selftests.packetdrill.addresses import VERSIONS, Version
from netwarp.selftests.packetdrill.compile import compile_script
from netwarp.selftests.packetdrill.parser import parse_script
from support.checkout import BUILD, make_apps

DRIVER = BUILD / "san" / "drill-test-driver"
SCRIPT = """\
--mss=1000
`true`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 listen(3, 1) = 0
   +0 < S 5:5(0) win 1 <mss 1460,sackOK,TS val 5 ecr 0,nop,wscale 7>
   +0 > S. 0:0(0) ack 6 <mss 1460,sackOK,TS val 9 ecr 5,nop,wscale 7>
+.1...2 accept(3, ..., ...) = 4
 +.01 < . 1:1001(1000) ack 1 win 1 <sack 1:2 3:4,nop,nop>
   +0 recvmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 40}, {..., 0}], msg_flags=0, msg_control=[]}, 0) = 40
   +0 poll([{fd=4, events=POLLIN, revents=0}], 1, 0) = 0
   +0 pipe([5, 6]) = 0
   +0 %{ assert tcpi_state == 1 }%
    * > . 1:1(0) ack 1001 <...>
  +.1 `true`
`true`
"""


class Driver:
    """The program, with one pipe to it and one from it."""

    def __init__(self, folder: Path) -> None:
        self.file, self.errors = folder / "steps.txt", folder / "errors.txt"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
            )  # fmt: skip

    def read(self, text: bytes) -> str:
        """The answer for a file of this content; an error of the sanitisers is shown."""
        self.file.write_bytes(text)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{self.file}\n".encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().strip()
        assert answer, self.errors.read_text()
        return answer


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    make_apps("../build/san/drill-test-driver")
    driver = Driver(tmp_path_factory.mktemp("drill"))
    try:
        yield driver
    finally:
        driver.process.kill()
        driver.process.communicate()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_compiler_writes_is_read(driver: Driver, version: Version) -> None:
    program = compile_script(parse_script(SCRIPT), version)
    assert driver.read(program.text.encode()) == f"{len(program.steps)} {len(program.connections)}"


GOOD = compile_script(parse_script(SCRIPT), "ipv4").text.encode()
LINES = GOOD.splitlines(keepends=True)


@pytest.mark.parametrize("number", range(len(LINES)))
def test_a_line_with_a_word_less_or_more_is_refused(driver: Driver, number: int) -> None:
    words = LINES[number].split()
    for line in (b" ".join(words[:-1]), b" ".join([*words, b"1"])):
        assert driver.read(b"".join(LINES[:number]) + line + b"\n" + b"".join(LINES[number + 1 :])) == "refused"


@settings(max_examples=300)
@given(
    st.integers(0, len(GOOD) - 1), st.integers(0, 30),
    st.one_of(st.binary(max_size=4), st.integers(-(2**70), 2**70).map(lambda value: str(value).encode())),
)  # fmt: skip
def test_damaged_steps_are_read_or_refused(driver: Driver, start: int, length: int, new: bytes) -> None:
    answer = driver.read(GOOD[:start] + new + GOOD[start + length :])
    assert answer == "refused" or len(answer.split()) == 2
