"""Compares the answer to a script's system call with the expected one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Expected = int | dict[str, int] | None
"""Of a control message: a number, members by name, or anything."""
ERROR_FIELDS = ("ee_errno", "ee_origin", "ee_type", "ee_code", "ee_info", "ee_data")


@dataclass(frozen=True, slots=True)
class Answer:
    """A call's end. memory: piece -> content; start_ns: of the script, for what a kernel's clock says."""

    result: int
    error: int
    memory: Mapping[int, bytes]
    start_ns: int


Check = Callable[[Answer, int], str]
"""(answer, tolerance in ns) -> what differs, "" if nothing does."""


def equals(name: str, piece: int, offset: int, form: str, expected: int) -> Check:
    """At `offset` of a piece of memory stands this value; form: of struct."""

    def check(answer: Answer, tolerance_ns: int) -> str:
        (seen,) = struct.unpack_from(form, answer.memory[piece], offset)
        return "" if seen == expected else f"{name}: expected {expected}, seen {seen}"

    return check


def events_equal(piece: int, expected: list[bytes]) -> Check:
    """The piece begins with these structs epoll_event."""

    def check(answer: Answer, tolerance_ns: int) -> str:
        for at, wanted in enumerate(expected[: max(answer.result, 1)]):
            seen = answer.memory[piece][12 * at : 12 * at + 12]
            if seen != wanted:
                texts = ["events=0x{:x} fd={}".format(*struct.unpack("<IQ", event)) for event in (wanted, seen)]
                return f"event {at + 1}: expected {texts[0]}, seen {texts[1]}"
        return ""

    return check


def controls_equal(header: int, control: int, expected: list[tuple[int, int, Expected]]) -> Check:
    """A message's struct msghdr (header) and its control messages (control) say these: level, type and data of each."""

    def check(answer: Answer, tolerance_ns: int) -> str:
        (length,) = struct.unpack_from("<Q", answer.memory[header], 40)
        seen = _parted(answer.memory[control][:length])
        names = [f"level {level} type {kind}" for level, kind, _ in expected]
        found = [f"level {level} type {kind}" for level, kind, _ in seen]
        if names != found:
            return f"control messages: expected {', '.join(names) or 'none'}; seen {', '.join(found) or 'none'}"
        for (_, _, wanted), (_, _, data) in zip(expected, seen, strict=True):
            if difference := _control_difference(wanted, data, answer.start_ns, tolerance_ns):
                return difference
        return ""

    return check


def _parted(data: bytes) -> list[tuple[int, int, bytes]]:
    """The control messages (CMSG_NXTHDR)."""
    found, at = [], 0
    while at + 16 <= len(data):
        length, level, kind = struct.unpack_from("<Qii", data, at)
        if length < 16:
            break
        found.append((level, kind, data[at + 16 : at + length]))
        at += (length + 7) & ~7
    return found


def _control_difference(wanted: Expected, data: bytes, start_ns: int, tolerance_ns: int) -> str:
    if wanted is None:
        return ""
    if isinstance(wanted, int):
        seen = int.from_bytes(data[:4], "little", signed=True)
        return "" if seen == wanted else f"cmsg_data: expected {wanted}, seen {seen}"
    if "scm_sec" in wanted or "scm_nsec" in wanted:
        seconds, nanoseconds = struct.unpack_from("<qq", data.ljust(16, b"\0"))
        at = wanted.get("scm_sec", 0) * 1_000_000_000 + wanted.get("scm_nsec", 0)
        off = seconds * 1_000_000_000 + nanoseconds - start_ns - at
        return "" if abs(off) <= tolerance_ns else f"time stamp: expected {at} ns, {off:+d} ns off"
    values = dict(zip(ERROR_FIELDS, struct.unpack_from("<IBBBxII", data.ljust(16, b"\0")), strict=True))
    for name, value in wanted.items():
        if values[name] != value & 0xFFFFFFFF:
            return f"{name}: expected {value}, seen {values[name]}"
    return ""
