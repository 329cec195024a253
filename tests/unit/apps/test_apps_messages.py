"""Files of messages and connections on which both ends send, in C under ASan and UBSan."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.apps_kit import Check, Receiver, Record, records, run, summary_of

LARGEST = 1 << 24
ROW = re.compile(rb"([0-9]{1,19}) ([0-9]{1,19}) ([0-9]{1,19})")
TIMES = st.sampled_from(["due", "all", "answers", "asks"])
ROWS = st.lists(
    st.tuples(st.integers(0, 10**12), st.one_of(st.integers(0, 3000), st.just(LARGEST)), st.integers(0, 65536)),
    max_size=20,
)


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """One traffic-test-driver for the module."""
    program = Check()
    yield program
    program.close()


def expected(content: bytes) -> tuple[int, int, int] | None:
    """Number of messages, their bytes and the largest, by the rules of docs/formats.md; None: it is no such file."""
    if not content.endswith(b"\n"):
        return None
    first, *lines = content[:-1].split(b"\n")
    if first not in (b"due", b"all", b"answers", b"asks"):
        return None
    matches = [ROW.fullmatch(line) for line in lines]
    if None in matches:
        return None
    rows = [tuple(int(number) for number in match.groups()) for match in matches if match]
    if any(size == 0 or size > LARGEST or stream > 65535 or at > 3_162_240_000 * 10**9 for at, size, stream in rows):
        return None
    if first in (b"due", b"all") and any(one[0] > two[0] for one, two in itertools.pairwise(rows)):
        return None
    sizes = [row[1] for row in rows]
    return len(sizes), sum(sizes), max(sizes, default=0)


def answer(check: Check, path: Path, content: bytes) -> tuple[int, int, int] | None:
    path.write_bytes(content)
    words = check.ask("list", str(path)).split()
    return None if str(path) in words[0] else (int(words[0]), int(words[1]), int(words[2]))


@given(TIMES, ROWS, st.booleans())
def test_a_list_is_taken_as_the_formats_say(
    check: Check, tmp_path: Path, times: str, rows: list[tuple[int, int, int]], sort: bool
) -> None:
    content = "\n".join(
        [times, *(f"{at} {size} {stream}" for at, size, stream in (sorted(rows) if sort else rows)), ""]
    )
    assert answer(check, tmp_path / "m", content.encode()) == expected(content.encode())


@given(st.binary(max_size=200))
@example(b"due\n1 1 1\n1 1 1 \n")
@example(b"due\n+1 1 1\n")
@example(b"due\n1 1 1\0\n")
@example(b"due\n99999999999999999999 1 1\n")
def test_no_bytes_confuse_it(check: Check, tmp_path: Path, content: bytes) -> None:
    assert answer(check, tmp_path / "m", content) == expected(content)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(0, 1200))
def test_the_messages_that_are_whole(check: Check, tmp_path: Path, sizes: list[int], have: int) -> None:
    (tmp_path / "m").write_text("due\n" + "".join(f"0 {size} 0\n" for size in sizes))
    whole = sum(end <= have for end in itertools.accumulate(sizes))
    assert check.numbers("whole", str(tmp_path / "m"), have) == [whole]


def both(tmp_path: Path, protocol: str, *ends: str, sender: list[str], receiver: list[str]) -> tuple[Record, Record]:
    """The summaries of a sender and a receiver that both send. ends: the two files of messages, where there are any."""
    files = [tmp_path / name for name in ("sender.messages", "receiver.messages")]
    given: list[list[str]] = [[], []]
    for file, text, words in zip(files, ends, given, strict=False):
        file.write_text(text)
        words += ["--messages", str(file)]
    with Receiver(protocol, "--token=5", "--duplex", "--message-bytes=1000", *given[1], *receiver) as listening:
        done = run(
            "sender", "--protocol", protocol, "--to", "127.0.0.1", f"--port={listening.port}", "--token=5", "--duplex",
            "--message-bytes=1000", *given[0], *sender,
        )  # fmt: skip
        status, there = listening.wait()
    assert (done.stderr, status) == ("", 0)
    return summary_of(records(done.stdout)), summary_of(there)


@pytest.mark.parametrize("protocol", ["tcp", "mptcp"])
def test_both_directions_arrive_whole(tmp_path: Path, protocol: str) -> None:
    """And the sender closes only when it has got what it was told to expect."""
    sent, there = both(
        tmp_path, protocol, sender=["--total-bytes=3000000", "--peer-total-bytes=5000000"],
        receiver=["--total-bytes=5000000"],
    )  # fmt: skip
    assert (there["unique_bytes"], there["corrupt_bytes"], there["reason"]) == (3_000_000, 0, "closed")
    assert (sent["arrived"]["unique_bytes"], sent["arrived"]["corrupt_bytes"]) == (5_000_000, 0)
    assert (sent["sent_bytes"], there["sent_bytes"], sent["reason"]) == (3_000_000, 5_000_000, "total")


def test_requests_and_answers_take_turns(tmp_path: Path) -> None:
    """Each message waits for the one before it: three round trips with 10 + 20 ms of thinking take 80 ms or more."""
    asks = "asks\n" + "10000000 500 0\n" * 3
    answers = "answers\n" + "20000000 70000 0\n" * 3
    files = [tmp_path / name for name in ("sender.messages", "receiver.messages")]
    sent, there = both(
        tmp_path, "tcp", asks, answers,
        sender=["--total-bytes=1500", "--peer-total-bytes=210000", "--peer-messages", str(files[1])],
        receiver=["--total-bytes=210000", "--peer-messages", str(files[0])],
    )  # fmt: skip
    assert (there["unique_bytes"], sent["arrived"]["unique_bytes"]) == (1500, 210_000)
    assert there["last_t_ns"] - there["first_t_ns"] >= 2 * 30_000_000
    assert sent["arrived"]["last_t_ns"] - there["first_t_ns"] >= 3 * 20_000_000 + 2 * 10_000_000


def test_a_broken_list_is_said_and_ends_the_flow(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("due\n0 1 0\n5 0 0\n")
    with Receiver("tcp") as listening:
        done = run(
            "sender", "--protocol=tcp", "--to=127.0.0.1", f"--port={listening.port}", "--message-bytes=5",
            "--stop-ns=1000000000", "--messages", str(tmp_path / "m"),
        )  # fmt: skip
    assert done.returncode == 1
    errors = [record for record in records(done.stdout) if record["record"] == "error"]
    assert errors[0]["message"] == f"messages: {tmp_path / 'm'}: line 3 is not TIME_NS BYTES STREAM"
