"""Judges a run of a script: what happened against what every line expects, at any tolerance, from one recording."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from .answers import Answer
from .asserts import failed, memory_info, tcp_info
from .compile import START_NS, Program, Step
from .packets import ECN, OPTION_NAMES, Seen, flag_bits, options_of, parse, text_of
from .record import Begun, Record
from .script import Call, Code, Command, Packet, Tcp, When

EXACT_NS = 2_000
"""What netwarp calls exact: reading its clock takes a kernel 256 ns of virtual time."""
_SYN, _ACE = 0x02, 0x1C0
_LAST = 0x09
"""PSH and FIN: of several segments, those of the last."""
_FLAG_NAMES = ((0x02, "SYN"), (0x10, "ACK"), (0x04, "RST"), (0x01, "FIN"), (0x08, "PSH"), (0x20, "URG"), (0x40, "ECE"),
               (0x80, "CWR"), (0x100, "AE"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from its time an event may be: the larger of us and of percent of the time since the event before."""

    us: int
    percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The first line that did not hold. expected, seen: packets in the script's words, or ""."""

    line: int
    reason: str
    expected: str = ""
    seen: str = ""
    at_ns: int | None = None

    def text(self) -> str:
        """For people: one line, and the two packets one above the other."""
        at = "" if self.at_ns is None else f" at {self.at_ns / 1e9:.6f} s"
        lines = [f"line {self.line}{at}: {self.reason}"]
        if self.expected:
            lines.append(f"  expected  {self.expected}")
            lines.append(f"  seen      {self.seen or 'no packet'}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Timed:
    """An event's distance from its time: 0 within its window. share_ns: what a percentage is taken of."""

    step: int
    off_ns: int
    share_ns: int


class Judge:
    """One recording. The order of judgement is the script's."""

    def __init__(self, program: Program, record: Record) -> None:
        self.program = program
        self.record = record
        self._isn = self._learnt_isns()
        self._stamps: dict[int, tuple[int, int]] = {}

    def first_failure(self, tolerance: Tolerance) -> Failure | None:
        """The first line that does not hold at this tolerance; None: all hold."""
        self._stamps.clear()
        shell = next((one for one in self.record.shells if one[2] and one[1] in ("setup", "init")), None)
        if shell is not None:
            return Failure(1, f"the {shell[1]} command ended with status {shell[2]}")
        for number, step in enumerate(self.program.steps):
            if (failure := self._failure(number, step, tolerance)) is not None:
                return failure
        if not self.record.ended:
            return Failure(self.program.steps[-1].event.line, "the player did not come to its end")
        cleanup = next((one for one in self.record.shells if one[2] and one[1] == "cleanup"), None)
        if cleanup is not None:
            return Failure(self.program.steps[-1].event.line, f"the last command ended with status {cleanup[2]}")
        return None

    def timed(self) -> Iterator[Timed]:
        """Every event's distance from its time, where it has one."""
        previous_due: int | None = None
        for number, step in enumerate(self.program.steps):
            begun = self.record.begun.get(number)
            if begun is None:
                return
            share = 0 if previous_due is None else begun.due_ns - previous_due
            previous_due = begun.due_ns
            if step.event.when.kind != "any":
                seen = self._moment(number, step, begun)
                if seen is not None and number > 0:
                    yield Timed(number, _off(seen, begun.due_ns, step.event.when), share)
            if step.event.when.returns_ns is not None and number in self.record.returned:
                due = begun.due_ns - step.event.when.start_ns + step.event.when.returns_ns
                since = due - (begun.due_ns - share)
                yield Timed(number, self.record.returned[number].t_ns - due, since)

    def needed_us(self) -> int:
        """The smallest tolerance in us at which no time is wrong (0: all are exact)."""
        worst = max((abs(one.off_ns) for one in self.timed()), default=0)
        return 0 if worst <= EXACT_NS else -(-worst // 1000)

    # --- one event --------------------------------------------------------------------------------

    def _failure(self, number: int, step: Step, tolerance: Tolerance) -> Failure | None:
        begun = self.record.begun.get(number)
        line = step.event.line
        if begun is None:
            return Failure(line, "the script ended before this line")
        what = step.event.what
        if isinstance(what, Packet) and not what.inbound:
            return self._sent(number, step, tolerance)
        if (late := self._time(number, tolerance)) is not None:
            return Failure(line, late, at_ns=begun.t_ns - START_NS)
        if number in self.record.failed:
            return Failure(line, self.record.failed[number])
        match what:
            case Command():
                status = next((one[2] for one in self.record.shells if one[0] == number), None)
                ended = "did not end" if status is None else f"ended with status {status}"
                return Failure(line, f"the command {ended}") if status != 0 else None
            case Call():
                return self._call(number, step, what, tolerance)
            case Code():
                return self._code(number, step)
        return None

    def _time(self, number: int, tolerance: Tolerance) -> str | None:
        for one in self.timed():
            allowed = max(tolerance.us * 1000, int(tolerance.percent / 100 * one.share_ns), EXACT_NS)
            if one.step == number and abs(one.off_ns) > allowed:
                side = "late" if one.off_ns > 0 else "early"
                return f"{abs(one.off_ns) / 1000:.0f} us {side} (tolerance {allowed / 1000:.0f} us)"
        return None

    def _moment(self, number: int, step: Step, begun: Begun) -> int | None:
        """When an event was: of packets that the kernel sent, the time of its own."""
        if isinstance(step.event.what, Packet) and not step.event.what.inbound:
            sent = self.record.sent(number)
            return sent[-1].t_ns if sent else None
        return begun.t_ns

    def _call(self, number: int, step: Step, call: Call, tolerance: Tolerance) -> Failure | None:
        line, returned = step.event.line, self.record.returned.get(number)
        if returned is None:
            return Failure(line, f"{call.name} did not return")
        at_ns = returned.t_ns - START_NS
        name = errno.errorcode.get(returned.error, str(returned.error)) if returned.result < 0 else ""
        said = f"{call.name} returned {returned.result}{' ' + name if name else ''}"
        if isinstance(call.result, int) and returned.result != call.result:
            return Failure(line, f"{said}, expected {call.result} {call.error}".rstrip(), at_ns=at_ns)
        if call.error and returned.result < 0 and name != call.error:
            return Failure(line, f"{said}, expected {call.error}", at_ns=at_ns)
        answer = Answer(returned.result, returned.error, returned.memory, START_NS)
        allowed = max(tolerance.us * 1000, EXACT_NS)
        # a call that failed has written nothing
        for check in step.request.checks if step.request is not None and returned.result >= 0 else ():
            if difference := check(answer, allowed):
                return Failure(line, f"{call.name}: {difference}", at_ns=at_ns)
        return None

    def _code(self, number: int, step: Step) -> Failure | None:
        line, returned = step.event.line, self.record.returned.get(number)
        if returned is None or returned.result < 0:
            return Failure(line, "the kernel says nothing of this socket (getsockopt failed)")
        length = int.from_bytes(returned.memory[1][:4], "little")
        data = returned.memory[0][:length]
        values = memory_info(data) if step.memory else tcp_info(data)
        if difference := failed(list(step.asserts), values):
            return Failure(line, difference, at_ns=returned.t_ns - START_NS)
        return None

    # --- packets that the kernel sent -------------------------------------------------------------

    def _sent(self, number: int, step: Step, tolerance: Tolerance) -> Failure | None:
        packet = step.event.what
        assert isinstance(packet, Packet)
        assert isinstance(packet.body, Tcp)
        line, expected = step.event.line, packet.text
        captured = self.record.sent(number)
        parts = [seen for one in captured if (seen := parse(one.data)) is not None]
        if not parts or len(parts) != len(captured):
            return Failure(line, self.record.failed.get(number, "no packet came"), expected, self._next(number))
        seen = self._in_script_terms(step.connection, _joined(parts), packet.body)
        text = text_of(seen, ace=packet.body.ace is not None, ecn=bool(packet.ecn))
        at_ns = captured[-1].t_ns - START_NS
        reason = _parts_differ(parts) or _differs(packet, step.options, seen)
        if not reason and number in self.record.failed:
            reason = self.record.failed[number]
        if not reason and (stamp := self._stamp_differs(packet.body, seen, tolerance)):
            reason = stamp
        if not reason and (late := self._time(number, tolerance)) is not None:
            reason = late
        return Failure(line, reason, expected, text, at_ns) if reason else None

    def _next(self, number: int) -> str:
        """A packet that no event took, for a line that none came for."""
        begun = self.record.begun[number]
        left = [one for one in self.record.packets if one.event < 0 and one.t_ns >= begun.base_ns]
        seen = next((found for one in left if (found := parse(one.data)) is not None), None)
        return "" if seen is None else f"{text_of(seen)} (of another connection)"

    def _learnt_isns(self) -> dict[int, int]:
        isns: dict[int, int] = {}
        for number, step in enumerate(self.program.steps):
            for captured in self.record.sent(number):
                seen = parse(captured.data)
                if seen is not None and seen.flags & _SYN:
                    isns.setdefault(step.connection, seen.seq)
        return isns

    def _in_script_terms(self, number: int, seen: Seen, expected: Tcp) -> Seen:
        """A captured segment with numbers as the script counts them."""
        connection = self.program.connections[number]
        syn = bool(seen.flags & _SYN)
        isn = self._isn.get(number, 0)
        remote = 0 if syn else connection.remote_isn or 0
        seq = (seen.seq - isn + (connection.isn if syn else 0)) & 0xFFFFFFFF
        ack = (seen.ack - remote) & 0xFFFFFFFF if seen.flags & 0x10 else seen.ack
        wanted = next((option.values for option in expected.options or () if option.kind == "TS"), None)
        options = []
        for kind, data in seen.options:
            if kind == 5 and len(data) % 4 == 0:
                edges = [int.from_bytes(data[at : at + 4], "big") - remote for at in range(0, len(data), 4)]
                options.append((kind, b"".join((edge & 0xFFFFFFFF).to_bytes(4, "big") for edge in edges)))
            elif kind == 8 and len(data) == 8 and wanted is not None:
                value = int.from_bytes(data[:4], "big")
                first = self._stamps.setdefault(number, (wanted[0], value))
                options.append((kind, ((first[0] + value - first[1]) & 0xFFFFFFFF).to_bytes(4, "big") + data[4:]))
            else:
                options.append((kind, data))
        return replace(seen, seq=seq, ack=ack, options=tuple(options))

    def _stamp_differs(self, expected: Tcp, seen: Seen, tolerance: Tolerance) -> str:
        if not self.program.tick_us:
            return ""
        wanted = next((option.values[0] for option in expected.options or () if option.kind == "TS"), None)
        value = next((int.from_bytes(data[:4], "big") for kind, data in seen.options if kind == 8), None)
        if wanted is None or value is None:
            return ""
        off = abs((value - wanted + (1 << 31)) % (1 << 32) - (1 << 31)) * self.program.tick_us
        return f"time stamp: expected {wanted}, seen {value}" if off > tolerance.us else ""


def _off(seen_ns: int, due_ns: int, when: When) -> int:
    end_ns = due_ns if when.end_ns is None else due_ns + when.end_ns - when.start_ns
    return min(seen_ns - due_ns, 0) + max(seen_ns - end_ns, 0)


def _joined(parts: list[Seen]) -> Seen:
    """Segments as the one that the script has in their place."""
    flags = parts[0].flags & ~_LAST | parts[-1].flags & _LAST
    return replace(
        parts[0], flags=flags, length=sum(one.length for one in parts), zeros=all(one.zeros for one in parts),
        ip_ok=all(one.ip_ok for one in parts),
    )  # fmt: skip


def _parts_differ(parts: list[Seen]) -> str:
    for before, part in pairwise(parts):
        if part.seq != (before.seq + before.length) & 0xFFFFFFFF:
            return "the segments that came in its place do not follow each other"
        if part.ack != before.ack or part.options_length != before.options_length:
            return "the segments that came in its place differ in their headers"
        if part is not parts[-1] and part.length != before.length:
            return "the segments that came in its place differ in their length"
    return ""


def _differs(packet: Packet, options: bytes | None, seen: Seen) -> str:
    """The first part of a packet that is not as expected, "" if all is."""
    tcp = packet.body
    assert isinstance(tcp, Tcp)
    if not seen.ip_ok:
        return "the IP header's checksum is wrong"
    if packet.ecn == "ect01":
        if seen.tos & 3 not in (1, 2):
            return "ECN field"
    elif packet.ecn and seen.tos & 3 != ECN[packet.ecn]:
        return "ECN field"
    if packet.tos is not None and seen.tos != packet.tos:
        return f"TOS {seen.tos}"
    if packet.ttl is not None and seen.ttl != packet.ttl:
        return f"TTL {seen.ttl}"
    bits = flag_bits(tcp)
    if tcp.ace is not None and (bits ^ seen.flags) & _ACE:
        return "ACE counter"
    for bit, name in _FLAG_NAMES:
        if (bits ^ seen.flags) & bit:
            return f"flag {name}"
    fields = (
        ("reserved bits", 0, seen.reserved), ("payload", tcp.length, seen.length),
        ("sequence number", tcp.seq, seen.seq),
        ("acknowledgement", tcp.ack or 0, seen.ack if seen.flags & 0x10 else tcp.ack or 0),
        ("window", seen.window if tcp.window is None else tcp.window, seen.window),
        ("urgent pointer", tcp.urgent or 0, seen.urgent),
    )  # fmt: skip
    for name, wanted, value in fields:
        if wanted != value:
            return f"{name}: expected {wanted}, seen {value}"
    if not seen.zeros:
        return "the payload is not the zeros that were written"
    return "" if options is None else _options_differ(options_of(options), seen.options)


def _options_differ(wanted: tuple[tuple[int, bytes], ...], seen: tuple[tuple[int, bytes], ...]) -> str:
    if [kind for kind, _ in wanted] != [kind for kind, _ in seen]:
        return "TCP options"
    for (kind, expected), (_, data) in zip(wanted, seen, strict=True):
        if kind != 8 and expected != data:
            return f"value of the TCP option {OPTION_NAMES.get(kind, kind)}"
    return ""
