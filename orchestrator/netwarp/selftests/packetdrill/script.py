"""The parts of a packetdrill script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class ScriptError(Exception):
    """A line that is not of the language. line: from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class Unsupported(ScriptError):
    """A line that is of the language, and that this player has no means for."""


@dataclass(frozen=True, slots=True)
class When:
    """The time of an event, in ns: from the script's start, or ("relative") from the end of the event before.

    end_ns: the latest time of a window, None: there is none. returns_ns: counted as start_ns is, the instant at which a
    blocking call returns, None: it does not block.
    """

    kind: Literal["absolute", "relative", "any"]
    start_ns: int = 0
    end_ns: int | None = None
    returns_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol, such as SO_REUSEADDR."""

    text: str


@dataclass(frozen=True, slots=True)
class Member:
    """One part of a structure: `name=value`, `name(count)=value`, or a bare value (name "")."""

    name: str
    value: Expression
    count: Expression | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """`{...}`."""

    members: tuple[Member, ...]

    def get(self, name: str) -> Expression | None:
        """The value of a member."""
        return next((member.value for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class Operation:
    """`left | right`, and `~right` with left 0."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Usual:
    """`...`: the value that is usual there."""


Expression = int | bytes | Name | Structure | Operation | Usual | tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Option:
    """A TCP option. values: of its kind, in the order they are written; text: a cookie or a digest in hex, or a symbol;
    counters: of an AccECN option, by name.
    """

    kind: str
    values: tuple[int, ...] = ()
    text: str = ""
    counters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tcp:
    """A TCP segment. ace: the three bits as one number, None: as flags. options: None: any."""

    flags: str
    seq: int
    length: int
    ack: int | None = None
    window: int | None = None
    urgent: int | None = None
    options: tuple[Option, ...] | None = ()
    ace: int | None = None


@dataclass(frozen=True, slots=True)
class Icmp:
    """An ICMP error about a segment of the connection. echoed: its first sequence number and length."""

    kind: str
    code: str = ""
    mtu: int | None = None
    echoed: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet into the kernel or out of it. ecn: a word of the prefix, "" if there is none; tos, ttl: None: any."""

    inbound: bool
    body: Tcp | Icmp
    ecn: str = ""
    tos: int | None = None
    ttl: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A system call. result: None: any. error: the name of the error, "" if none is written."""

    name: str
    arguments: tuple[Expression, ...]
    result: Expression | None
    error: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Text for the shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Python that looks at the connection's TCP_INFO."""

    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """Anything that happens. line: where it stands, from 1."""

    line: int
    when: When
    what: Packet | Call | Command | Code


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script. options: of its head, name -> value ("" for one without). init, cleanup: the shell's, first and
    last.
    """

    options: dict[str, str]
    events: tuple[Event, ...]
    init: Command | None = None
    cleanup: Command | None = None
