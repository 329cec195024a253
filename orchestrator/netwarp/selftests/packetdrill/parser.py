"""Reads packetdrill's language (google/packetdrill, syntax.md). Bytes of a script are never trusted: whatever they are,
the result is a Script or a ScriptError.
"""

from __future__ import annotations

import re
from pathlib import Path

from .script import (
    Call,
    Code,
    Command,
    Event,
    Expression,
    Icmp,
    Member,
    Name,
    Operation,
    Option,
    Packet,
    Script,
    ScriptError,
    Structure,
    Tcp,
    Unsupported,
    Usual,
    When,
)

DEEPEST = 40
"""Expressions nested deeper are an error."""
LONGEST = 2_000_000
"""Of a script, in characters."""
LATEST_S = 100_000
MAX_PAYLOAD = 1_000_000
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_OPTION = re.compile(r"--([a-z_]+)(?:=(\S+))?")
_TIME = re.compile(r"(\+?)\s*(\d+(?:\.(?!\.)\d*)?|\.\d+)")
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_BYTE = re.compile(r"\\x([0-9a-fA-F]{1,2})")
_FLAGS = re.compile(r"(-|[FSRPUEWCA.0-7]+)(?=\s+\d+:)")
_SPAN = re.compile(r"(\d+):(\d+)\((\d+)\)")
_PREFIX = re.compile(r"\[([^\]\n]*)\]")
_BLOCK = re.compile(r"\[\s*(\d+):(\d+)\((\d+)\)\s*\]")
_RANGE = re.compile(r"(\d+):(\d+)")
_HEX = re.compile(r"[0-9a-fA-F]+(?![0-9A-Za-z_])")
_NOTE = re.compile(r"\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_ECN = ("noecn", "ect0", "ect1", "ect01", "ce")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, '"': 34}
_ICMP = ("unreachable", "packet_too_big", "time_exceeded", "parameter_problem", "source_quench", "redirect")
NS = 1_000_000_000


def read_text(file: Path) -> str:
    """The text of a script, but no more than makes it too long. Raises OSError."""
    with file.open(errors="replace") as opened:
        return opened.read(LONGEST + 1)


def parse_script(text: str) -> Script:
    """Read a script. Raises ScriptError (Unsupported for words of the language that this player has no means for)."""
    if len(text) > LONGEST:
        raise ScriptError(1, f"the script has more than {LONGEST} characters")
    return _Reader(text).script()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)

    # --- places -----------------------------------------------------------------------------------

    @property
    def line(self) -> int:
        """Counted on from where it was asked for last."""
        at, line = self.counted if self.counted[0] <= self.at else (0, 1)
        self.counted = self.at, line + self.text.count("\n", at, self.at)
        return self.counted[1]

    def fail(self, expected: str) -> ScriptError:
        rest = self.text[self.at : self.at + 40].split("\n")[0]
        return ScriptError(self.line, f"expected {expected}, found '{rest}'" if rest else f"expected {expected}")

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def need(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        match = self.take(pattern)
        if match is None:
            raise self.fail(expected)
        return match

    def has(self, literal: str) -> bool:
        self.skip()
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.has(literal):
            raise self.fail(f"'{literal}'")

    def word(self, literal: str) -> bool:
        """Takes a whole word."""
        self.skip()
        match = _WORD.match(self.text, self.at)
        if match is None or match[0] != literal:
            return False
        self.at = match.end()
        return True

    # --- the script -------------------------------------------------------------------------------

    def script(self) -> Script:
        options: dict[str, str] = {}
        while (option := self.take(_OPTION)) is not None:
            options[option[1]] = option[2] or ""
        self.skip()
        init = self.command() if self.text.startswith("`", self.at) else None
        events: list[Event] = []
        cleanup = None
        self.skip()
        while self.at < len(self.text):
            line = self.line
            if self.text.startswith("`", self.at):
                cleanup = self.command()
                self.skip()
                if self.at < len(self.text):
                    raise ScriptError(line, "a command without a time may stand first or last only")
                break
            when = self.when()
            events.append(Event(line, when, self.what()))
            self.skip()
        if not events:
            raise ScriptError(self.line, "the script has no event")
        first = events[0]
        if first.when.start_ns != 0 or first.when.kind == "any":
            raise ScriptError(first.line, "the first event must be at time 0")
        return Script(options, tuple(events), init, cleanup)

    def command(self) -> Command:
        self.expect("`")
        end = self.text.find("`", self.at)
        if end < 0:
            raise self.fail("the ` that ends the command")
        text, self.at = self.text[self.at : end], end + 1
        return Command(text.strip())

    def code(self) -> Code:
        end = self.text.find("}%", self.at)
        if end < 0:
            raise self.fail("the }% that ends the code")
        text, self.at = self.text[self.at : end], end + 2
        return Code(text)

    def when(self) -> When:
        if self.has("*"):
            return When("any")
        relative, start = self.time()
        kind = "relative" if relative else "absolute"
        if self.has("..."):
            end_relative, end = self.time()
            if end_relative:
                raise ScriptError(self.line, "the end of a blocking call has no '+'")
            if end < start and not relative:
                raise ScriptError(self.line, "a call ends before it begins")
            return When("relative", start, None, end) if relative else When("absolute", start, None, end)
        if self.has("~"):
            end_relative, end = self.time()
            if end_relative != relative:
                raise ScriptError(self.line, "both ends of a window must be relative, or none")
            if end < start:
                raise ScriptError(self.line, "a window ends before it begins")
            return When("relative", start, end) if relative else When("absolute", start, end)
        return When("relative", start) if kind == "relative" else When("absolute", start)

    def time(self) -> tuple[bool, int]:
        match = self.need(_TIME, "a time such as +.1 or 0.100")
        if len(match[2]) > 12:
            raise ScriptError(self.line, f"'{match[2]}' is no time of this script")
        whole, _, part = match[2].partition(".")
        if int(whole or 0) > LATEST_S:
            raise ScriptError(self.line, f"'{match[2]}': a script lasts at most {LATEST_S} s")
        return bool(match[1]), int(whole or 0) * NS + int((part + "0" * 9)[:9])

    def what(self) -> Packet | Call | Command | Code:
        self.skip()
        start = self.at
        if self.text.startswith("`", self.at):
            return self.command()
        if self.has("%{"):
            return self.code()
        if self.text.startswith(("<", ">"), self.at):
            inbound = self.text[self.at] == "<"
            self.at += 1
            return self.packet(inbound, start)
        if _WORD.match(self.text, self.at):
            return self.call(start)
        raise self.fail("a packet (< or >), a system call, `a command` or %{ code }%")

    # --- packets ----------------------------------------------------------------------------------

    def packet(self, inbound: bool, start: int) -> Packet:
        ecn, tos, ttl = "", None, None
        if (prefix := self.take(_PREFIX)) is not None:
            words = prefix[1].replace(",", " ").split()
            while words:
                word = words.pop(0)
                if word in _ECN:
                    ecn = word
                elif word in ("tos", "ttl") and words and _NUMBER.fullmatch(words[0]):
                    value = int(words.pop(0), 0) & 0xFF
                    tos, ttl = (value, ttl) if word == "tos" else (tos, value)
                else:
                    raise Unsupported(self.line, f"the packet's prefix [{prefix[1]}]")
        body: Tcp | Icmp
        if self.word("icmp"):
            body = self.icmp()
        elif (flags := self.take(_FLAGS)) is not None:
            body = self.tcp(flags[1])
        elif (other := self.take(_WORD)) is not None:
            raise Unsupported(self.line, f"packets of {other[0]}")
        else:
            raise self.fail("a segment's flags and numbers, such as 'S 0:0(0)' or '. 1:1(0) ack 1'")
        text = re.sub(r"\s+", " ", self.text[start : self.at]).strip()
        return Packet(inbound, body, ecn, tos, ttl, text)

    def tcp(self, flags: str) -> Tcp:
        letters = "" if flags == "-" else flags
        digits = [letter for letter in letters if letter.isdigit()]
        if len(digits) > 1 or len(set(letters)) != len(letters):
            raise ScriptError(self.line, f"'{flags}' are no flags of a segment")
        ace = int(digits[0]) if digits else None
        if ace is not None and set(letters) & set("EWCA"):
            raise ScriptError(self.line, f"'{flags}': a number in place of A, W and E, or these")
        seq, length = self.span(_SPAN)
        ack = self.number_after("ack")
        window = self.number_after("win", 0xFFFF)
        urgent = self.number_after("urg", 0xFFFF)
        options: tuple[Option, ...] | None = ()
        if self.has("<"):
            if self.has("..."):
                options = None
                self.expect(">")
            else:
                options = self.options()
        kept = "".join(letter for letter in letters if not letter.isdigit())
        return Tcp(kept, seq, length, ack, window, urgent, options, ace)

    def span(self, pattern: re.Pattern[str]) -> tuple[int, int]:
        match = self.need(pattern, "first:end(length), such as 1:1001(1000)")
        if max(map(len, match.groups())) > 10:
            raise ScriptError(self.line, f"{match[0]}: a sequence number has 32 bits")
        seq, end, length = (int(part) for part in match.groups())
        if (seq + length) & 0xFFFFFFFF != end or length > MAX_PAYLOAD:
            raise ScriptError(self.line, f"{match[0]}: the numbers do not agree")
        return seq, length

    def number_after(self, literal: str, top: int = 0xFFFFFFFF) -> int | None:
        return self.number(top, 0) if self.word(literal) else None

    def number(self, top: int = 0xFFFFFFFFFFFFFFFF, least: int = -(1 << 63)) -> int:
        match = self.need(_NUMBER, "a number")
        if len(match[0]) > 21:
            raise ScriptError(self.line, f"{match[0]}: the number has more than 64 bits")
        value = int(match[0], 0) if "x" in match[0].lower() else int(match[0])
        if not least <= value <= top:
            raise ScriptError(self.line, f"{match[0]}: the number must be from {least} to {top}")
        return value

    def options(self) -> tuple[Option, ...]:
        options = []
        while not self.has(">"):
            options.append(self.option())
            if not self.has(","):
                self.expect(">")
                break
        return tuple(options)

    def option(self) -> Option:
        name = self.need(_WORD, "a TCP option")[0]
        match name:
            case "nop" | "eol" | "sackOK":
                return Option(name)
            case "mss":
                return Option(name, (self.number(0xFFFF, 0),))
            case "wscale":
                return Option(name, (self.number(0xFF, 0),))
            case "TS":
                values = []
                for part in ("val", "ecr"):
                    if not self.word(part):
                        raise self.fail(f"'{part}'")
                    values.append(self.number(0xFFFFFFFF, 0))
                return Option(name, tuple(values))
            case "sack":
                edges: list[int] = []
                while (match := self.take(_RANGE)) is not None:
                    if max(map(len, match.groups())) > 10:
                        raise ScriptError(self.line, f"{match[0]}: a sequence number has 32 bits")
                    edges += [int(match[1]) & 0xFFFFFFFF, int(match[2]) & 0xFFFFFFFF]
                if not 0 < len(edges) <= 8:
                    raise self.fail("one to four blocks, such as 1001:2001")
                return Option(name, tuple(edges))
            case "md5" | "FO" | "FOEXP":
                return Option(name, (), self.cookie())
            case "ECN":
                counters, numbers = [], []
                while (counter := self.take(re.compile(r"e0b|e1b|ceb"))) is not None:
                    counters.append(counter[0])
                    numbers.append(self.number(0xFFFFFF, 0))
                if len(counters) > 3 or len(set(counters)) != len(counters):
                    raise ScriptError(self.line, "an ECN option counts e0b, ceb and e1b, each once")
                return Option(name, tuple(numbers), "", tuple(counters))
        raise Unsupported(self.line, f"the TCP option {name}")

    def cookie(self) -> str:
        if (digits := self.take(_HEX)) is not None:
            if len(digits[0]) % 2 or len(digits[0]) > 32:
                raise ScriptError(self.line, f"{digits[0]}: a cookie or digest has at most 16 bytes")
            return digits[0].lower()
        symbol = self.take(_WORD)
        return symbol[0] if symbol is not None else ""

    def icmp(self) -> Icmp:
        kind = self.need(_WORD, "an ICMP error, such as unreachable")[0]
        if kind not in _ICMP:
            raise Unsupported(self.line, f"icmp {kind}")
        code, mtu = "", None
        while (match := self.take(_WORD)) is not None:
            if match[0] == "mtu":
                mtu = self.number(0xFFFFFFFF, 0)
            else:
                code = match[0]
        self.skip()
        echoed = self.span(_BLOCK) if self.text.startswith("[", self.at) else None
        return Icmp(kind, code, mtu, echoed)

    # --- system calls -----------------------------------------------------------------------------

    def call(self, start: int) -> Call:
        name = self.need(_WORD, "a system call")[0]
        self.expect("(")
        arguments: list[Expression] = []
        if not self.has(")"):
            arguments.append(self.expression(0))
            while self.has(","):
                arguments.append(self.expression(0))
            self.expect(")")
        self.expect("=")
        result: Expression | None = self.expression(0)
        if isinstance(result, Usual):
            result = None
        error = ""
        self.blank()
        if (match := _WORD.match(self.text, self.at)) is not None:
            error, self.at = match[0], match.end()
            self.blank()
        if (note := _NOTE.match(self.text, self.at)) is not None:
            self.at = note.end()
        text = re.sub(r"\s+", " ", self.text[start : self.at]).strip()
        return Call(name, tuple(arguments), result, error, text)

    def blank(self) -> None:
        """Skips blanks within a line."""
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def expression(self, depth: int) -> Expression:
        left, joined = self.unary(depth), 0
        while self.has("|"):
            joined += 1
            if joined > DEEPEST:
                raise ScriptError(self.line, f"an expression joins more than {DEEPEST} values")
            left = Operation("|", left, self.unary(depth))
        return left

    def unary(self, depth: int) -> Expression:
        if depth > DEEPEST:
            raise ScriptError(self.line, "an expression is nested too deeply")
        if self.has("~"):
            return Operation("~", 0, self.unary(depth + 1))
        if self.has("..."):
            return Usual()
        if self.has("("):
            inner = self.expression(depth + 1)
            self.expect(")")
            return inner
        if self.has("["):
            return self.items("]", depth)
        if self.has("{"):
            return self.structure(depth)
        if (text := self.take(_TEXT)) is not None:
            return self.bytes_of(text[1])
        self.skip()
        if _NUMBER.match(self.text, self.at):
            return self.number()
        if (word := self.take(_WORD)) is not None:
            return Name(word[0])
        raise self.fail("a value")

    def items(self, end: str, depth: int) -> tuple[Expression, ...]:
        values: list[Expression] = []
        while not self.has(end):
            values.append(self.expression(depth + 1))
            if not self.has(","):
                self.expect(end)
                break
        return tuple(values)

    def structure(self, depth: int) -> Structure:
        members: list[Member] = []
        while not self.has("}"):
            value = self.expression(depth + 1)
            count: Expression | None = None
            if isinstance(value, Name) and self.has("("):
                count = self.expression(depth + 1)
                self.expect(")")
            if isinstance(value, Name) and self.has("="):
                members.append(Member(value.text, self.expression(depth + 1), count))
            else:
                members.append(Member("", value))
            if not self.has(","):
                self.expect("}")
                break
        return Structure(tuple(members))

    def bytes_of(self, text: str) -> bytes:
        result = bytearray()
        at = 0
        while at < len(text):
            if text[at] != "\\":
                result += text[at].encode()
                at += 1
            elif (code := _BYTE.match(text, at)) is not None:
                result.append(int(code[1], 16))
                at = code.end()
            elif text[at + 1] in _ESCAPES:
                result.append(_ESCAPES[text[at + 1]])
                at += 2
            else:
                raise ScriptError(self.line, f"'\\{text[at + 1]}' in a text means nothing")
        return bytes(result)
