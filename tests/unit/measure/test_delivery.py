"""The bytes that the receiver's application could read, also of flows that end by a reset or a shutdown."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from netwarp.measure.delivery import delivered
from support.captures import ISN, T, association, chunk, data_chunk, init_chunk, sack_chunk, sctp
from support.mptcp_packets import (
    ACK,
    KEYS,
    MS,
    RST,
    SYN,
    capable,
    first_number,
    joined,
    opened,
    option,
    segment,
    sent,
)
from support.observed import at_end, flow_of

REASON = option(8, b"\0")
"""MP_TCPRST (RFC 8684 3.6)."""
SACK = b"\4\2"
"""SACK permitted (RFC 2018 2)."""


def fastclose(seq: int, path: int) -> bytes:
    """The sender's abort: RST with MP_FASTCLOSE, with the receiver's key (RFC 8684 3.5)."""
    return segment(seq, 0, option(7, struct.pack("!Q", KEYS[1])), REASON, flags=RST | ACK, path=path)


def closed(path: int) -> bytes:
    """The receiver's reset of another subflow, which it closes because of the abort."""
    return segment(1, 0, REASON, flags=RST | ACK, path=path, back=True)


def readable(tmp_path: Path, protocol: str, packets: Sequence[bytes]) -> int:
    """Bytes that the receiving application could read, from one packet a millisecond at its interface."""
    timed = [(T + at * MS, packet) for at, packet in enumerate(packets)]
    receiver = at_end(flow_of(protocol, ("p1", "p2")), tmp_path, timed, "b")
    return int(delivered(receiver, protocol).payload_bytes.sum())


def data_ack(dsn: int, path: int) -> bytes:
    """The receiver acknowledges the connection's bytes before number `dsn`, on the subflow of that path."""
    return segment(
        1, 0, option(2, struct.pack("!BQ", 3, (first_number(KEYS[0]) + 1 + dsn) % 2**64)), path=path, back=True
    )


def test_nothing_is_read_before_the_first_byte_came(tmp_path: Path) -> None:
    """It went over the other subflow, and was lost: what came is not the beginning."""
    begun = [*opened(SACK), *joined()]
    assert readable(tmp_path, "mptcp", [*begun, sent(100, 1, 2), sent(200, 101, 2)]) == 0
    assert readable(tmp_path, "mptcp", [*begun, sent(100, 1, 2), sent(200, 101, 2), sent(0, 1, 1)]) == 300


def test_no_data_are_read_behind_the_shutdown_ack(tmp_path: Path) -> None:
    """RFC 9260 9.2: a SHUTDOWN came over the faster path; what its sender has given up is still on the slower one."""
    begun = [*association(), sctp(22, data_chunk(ISN))]
    late = sctp(22, data_chunk(ISN + 1, ssn=1), path=2)
    shut = [sctp(22, chunk(7, bytes(4))), sctp(11, chunk(8), back=True)]
    assert readable(tmp_path, "sctp", [*begun, *shut, late]) == 100
    assert readable(tmp_path, "sctp", [*begun, late, *shut]) == 200


def message(number: int, *, path: int = 1) -> bytes:
    """The sender's message of 100 B with this number."""
    return sctp(22, data_chunk(ISN + number, ssn=number), path=path)


def reported(upto: int, *gaps: tuple[int, int]) -> bytes:
    """The receiver has all messages before number `upto` (gaps: further ones, counted from it)."""
    return sctp(11, sack_chunk(ISN + upto - 1, gaps), back=True)


MANY_GAPS = [(2 * n, 2 * n) for n in range(1, 17)]


@pytest.mark.parametrize(
    ("ending", "wanted"),
    [
        # no room: the SACKs behind it report it missing (RFC 9260 6.2)
        ([message(0), message(1), reported(1)], 100),
        ([message(0), message(1), reported(1), message(2), reported(1, (2, 2))], 100),
        # ... and it came again, whether that is reported or not
        ([message(0), message(1), reported(1), message(2), message(1)], 300),
        ([message(0), message(1), reported(1), message(1), reported(1), message(1), reported(2)], 200),
        # a SACK before it tells nothing of it, nor one that reports it in a gap
        ([message(0), reported(1), message(1)], 200),
        ([message(0), message(2), reported(1, (2, 2)), message(1)], 300),
        # taken out of the buffer again
        ([message(0), message(2), reported(1, (2, 2)), reported(1), message(1), reported(2)], 200),
        # what a FORWARD TSN covers counts as come (RFC 3758 3.6)
        ([message(0), message(1), reported(1), sctp(22, chunk(192, struct.pack("!I", (ISN + 1) % 2**32))), reported(2)],
         100),
        # more gaps than a SACK holds: it tells nothing of what is above them
        ([*(message(n) for n in (0, *range(2, 36, 2), 34)), reported(1, *MANY_GAPS), *map(message, range(1, 34, 2))],
         3500),
    ],
)  # fmt: skip
def test_what_an_sctp_receiver_reports_missing_was_not_taken(
    ending: Sequence[bytes], wanted: int, tmp_path: Path
) -> None:
    assert readable(tmp_path, "sctp", [*association(), *ending]) == wanted


def test_a_receiver_that_closed_the_association_takes_nothing(tmp_path: Path) -> None:
    """Its program went on with another association of its peer, which had begun anew: it answers by ABORTs (8.4)."""
    begun = [*association(), message(0), message(1)]
    answer = sctp(22, chunk(6, flags=1), back=True)
    assert readable(tmp_path, "sctp", [*begun, answer, message(2), answer]) == 100
    assert readable(tmp_path, "sctp", [*begun, sctp(11, chunk(6), back=True), message(2), answer]) == 200
    assert readable(tmp_path, "sctp", [*begun, message(2)]) == 300


def test_an_association_that_opens_takes_no_data_before_its_cookie_ack(tmp_path: Path) -> None:
    """RFC 9260 5.1 step D: jitter lets DATA overtake the COOKIE ACK, and they are sent again. The receiver opens."""
    begun = [
        sctp(0, init_chunk(22, 9000), back=True),
        sctp(22, init_chunk(11, ISN, ack=True)),
        sctp(11, chunk(10, b"cookie"), back=True),
    ]
    assert readable(tmp_path, "sctp", [*begun, message(0), sctp(22, chunk(11))]) == 0
    assert readable(tmp_path, "sctp", [*begun, message(0), sctp(22, chunk(11)), message(0)]) == 100
    assert readable(tmp_path, "sctp", [*begun, sctp(22, chunk(11), data_chunk(ISN))]) == 100
    assert readable(tmp_path, "sctp", [*begun, message(0)]) == 0


START = [*opened(SACK), *joined(), sent(0, 1, 1), sent(100, 1, 2)]


@pytest.mark.parametrize(
    ("ending", "wanted"),
    [
        ([sent(200, 101, 2)], 300),
        ([fastclose(101, 1), sent(200, 101, 2)], 200),
        ([fastclose(101, 1), closed(2), sent(200, 101, 2)], 200),
        # the kernel closes the other subflows from a work queue: what arrives before it gets to that is still read
        ([fastclose(101, 1), sent(200, 101, 2), closed(2), sent(300, 201, 2)], 300),
        # the reset of a socket that is no more (no MP_TCPRST) tells nothing of when it was closed
        ([fastclose(101, 1), sent(200, 101, 2), segment(1, 0, flags=RST, path=2, back=True)], 200),
        # a hole before the reset: refused by a challenge ACK (RFC 5961 3.2), and with it the MP_FASTCLOSE
        ([fastclose(201, 1), sent(200, 101, 2)], 300),
        # at the end of what arrived behind a hole: taken (tcp_validate_incoming())
        ([sent(300, 201, 1), fastclose(301, 1), sent(200, 101, 2)], 200),
        # the data level lacks nothing before 250, but what comes next waits behind a hole on its own subflow
        ([sent(250, 151, 2), sent(100, 101, 1), sent(200, 201, 1, 50)], 250),
        ([sent(250, 151, 2), sent(100, 101, 1), sent(200, 201, 1, 50), sent(200, 101, 2, 50)], 350),
        # acknowledged by its subflow, dropped by the connection (NoDSSInWindow): the last DATA_ACK still asks for it
        ([sent(200, 101, 2), data_ack(200, 2), sent(300, 201, 2), data_ack(200, 2)], 200),
        # ... and has come again, whether that is acknowledged or not
        ([sent(200, 101, 2), data_ack(200, 2), sent(200, 101, 1)], 300),
        ([sent(200, 101, 2), data_ack(200, 2), sent(200, 101, 1), data_ack(300, 1)], 300),
        # a DATA_ACK that asks for what has not come, or waits on its subflow, tells of no drop
        ([data_ack(200, 1), sent(200, 101, 2)], 300),
        ([sent(300, 201, 2), data_ack(200, 2), sent(200, 101, 2)], 400),
        # the reset of one subflow ends that one alone
        ([segment(101, 0, REASON, flags=RST | ACK, path=1), sent(200, 101, 2)], 300),
    ],
)
def test_an_mptcp_connection(ending: Sequence[bytes], wanted: int, tmp_path: Path) -> None:
    assert readable(tmp_path, "mptcp", [*START, *ending]) == wanted


BARE = [*opened(SACK), segment(1, 100, capable(*KEYS)), segment(101, 100, capable(*KEYS))]
"""The first data carry MP_CAPABLE, which gives them no number (RFC 8684 3.1)."""


@pytest.mark.parametrize(
    ("ending", "wanted"),
    [
        ([], 200),
        ([sent(200, 201, 1)], 300),
        # the only mapping is that of a segment that came again
        ([sent(100, 101, 1)], 200),
        ([sent(0, 1, 1)], 200),
        ([sent(100, 101, 1), *joined(), sent(200, 1, 2), sent(0, 101, 2)], 300),
    ],
)
def test_first_data_without_a_number(ending: Sequence[bytes], wanted: int, tmp_path: Path) -> None:
    assert readable(tmp_path, "mptcp", [*BARE, *ending]) == wanted


def begun(asked: Sequence[bytes], answered: Sequence[bytes]) -> list[bytes]:
    """A handshake with these options, and the first 100 bytes."""
    syns = [segment(0, 0, *asked, flags=SYN), segment(0, 0, *answered, flags=SYN | ACK, back=True)]
    return [*syns, segment(1), segment(1, 100)]


@pytest.mark.parametrize(
    ("ending", "wanted"),
    [
        ([segment(101, 100), segment(201, 100)], 300),
        ([segment(201, 100), segment(301, flags=RST | ACK), segment(101, 100)], 100),
        ([segment(101, flags=RST | ACK), segment(101, 100)], 100),
        ([segment(201, flags=RST | ACK), segment(101, 100)], 200),  # refused: not the number that is awaited
        # what the kernel answers as unknown came behind the reset; what came before it had been read
        ([segment(101, 100), segment(201, flags=RST), segment(201, 100), segment(1, flags=RST, back=True)], 200),
    ],
)
def test_a_tcp_connection(ending: Sequence[bytes], wanted: int, tmp_path: Path) -> None:
    """A delay that varies lets the reset overtake data."""
    assert readable(tmp_path, "tcp", [*begun((SACK,), (SACK,)), *ending]) == wanted


@pytest.mark.parametrize("options", [((), ()), ((SACK,), ())])
def test_a_reset_behind_a_hole_is_refused_without_sack(options: tuple[Sequence[bytes], ...], tmp_path: Path) -> None:
    """Nothing was acknowledged selectively, so no number behind the hole can be right (tcp_validate_incoming())."""
    late = [segment(201, 100), segment(301, flags=RST | ACK), segment(101, 100)]
    assert readable(tmp_path, "tcp", [*begun(*options), *late]) == 300
