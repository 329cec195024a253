"""A script and a set of addresses to steps for the player in the guest (apps/drill), as a cell is compiled to steps."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .addresses import FIRST_REMOTE_PORT, PORT, Addresses, Version, addresses_of
from .asserts import INFO_BYTES, read_code
from .calls import MSG_FASTOPEN, CallCompiler, Request
from .packets import Inbound, inbound, options_bytes
from .script import Call, Code, Command, Event, Icmp, Name, Packet, Script, Tcp, Unsupported, When

START_NS = 1_700_000_000_000_250_000
"""Time 0 of a script on the guest's clock: 250 us into a tick of its timers, as packetdrill chooses it."""
LIMIT_NS = 300_000_000_000
"""A script that has not ended after this much of the guest's time is stopped."""
_PATIENCE_NS = 10_000_000_000
_TCP_INFO = (6, 11)
_SO_MEMINFO = (1, 55)
_GETSOCKOPT = 55
_KNOWN = {
    "tolerance_usecs", "tolerance_percent", "mss", "tcp_ts_tick_usecs", "send_omit_free", "ip_version",
    "code_command", "code_format", "code_sockopt",
}  # fmt: skip


@dataclass(slots=True)
class Connection:
    """A connection of a script. isn: of the kernel's end, as the script has it; remote_isn: of the other end."""

    active: bool
    remote_port: int
    isn: int = 0
    isn_known: bool = False
    remote_isn: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One event, compiled. options: bytes expected of a packet sent, None: any."""

    event: Event
    connection: int = 0
    request: Request | None = None
    inject: Inbound | None = None
    options: bytes | None = None
    asserts: tuple[ast.Assert, ...] = ()
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled script. text: steps.txt for the guest. tick_us: of the kernel's time stamps, 0: they are not compared;
    tolerance_us, tolerance_percent: the script's own.
    """

    text: str
    steps: tuple[Step, ...]
    connections: tuple[Connection, ...]
    tolerance_us: int
    tolerance_percent: float
    tick_us: int


@dataclass(slots=True)
class _Sockets:
    """The socket under test, which packets belong to: the last that was made, or that a SYN made."""

    state: str = "none"
    connection: int | None = None
    fd: int | None = None
    connections: list[Connection] = field(default_factory=list)

    def new(self, *, active: bool) -> int:
        passive = sum(not one.active for one in self.connections)
        port = PORT if active else FIRST_REMOTE_PORT + passive
        self.connections.append(Connection(active, port))
        self.connection = len(self.connections) - 1
        return self.connection


def versions_of(script: Script, default: tuple[Version, ...]) -> tuple[Version, ...]:
    """The versions of IP that a script is for: its own --ip_version, or the runner's. Raises Unsupported."""
    match script.options.get("ip_version"):
        case None:
            return default
        case "ipv4" | "ipv6" | "ipv4-mapped-ipv6" as version:
            return (version,)
        case other:
            raise Unsupported(1, f"--ip_version={other}")


def compile_script(script: Script, version: Version) -> Program:
    """Compile a script for one version of IP. Raises Unsupported."""
    for name in script.options:
        if name not in _KNOWN:
            raise Unsupported(1, f"the option --{name}")
    addresses = addresses_of(version)
    calls = CallCompiler(addresses, addresses.defines)
    sockets = _Sockets()
    steps = tuple(_step(event, sockets, calls, addresses) for event in script.events)
    tick_us = _option(script, "tcp_ts_tick_usecs", 0)
    tolerance_us, percent = _option(script, "tolerance_usecs", 4000), script.options.get("tolerance_percent", "12.5")
    try:
        share = float(percent)
    except ValueError:
        raise Unsupported(1, f"--tolerance_percent={percent}") from None
    text = _text(script, addresses, steps, sockets.connections)
    return Program(text, steps, tuple(sockets.connections), tolerance_us, share, tick_us)


def _option(script: Script, name: str, default: int) -> int:
    value = script.options.get(name)
    if value is None:
        return default
    if not value.isdigit() or len(value) > 9:
        raise Unsupported(1, f"--{name}={value}")
    return int(value)


def _step(event: Event, sockets: _Sockets, calls: CallCompiler, addresses: Addresses) -> Step:
    match event.what:
        case Command():
            return Step(event)
        case Code(text):
            return _code(event, text, sockets)
        case Call():
            request = calls.compile(event.what, event.line)
            _follow_call(event.what, event.line, sockets, calls)
            return Step(event, request=request)
    return _packet(event, event.what, sockets, addresses)


def _code(event: Event, text: str, sockets: _Sockets) -> Step:
    asserts = tuple(read_code(text, event.line))
    memory = "SK_MEMINFO" in text
    if memory and "tcpi_" in text:
        raise Unsupported(event.line, "code that reads both TCP_INFO and SO_MEMINFO")
    if sockets.fd is None:
        raise Unsupported(event.line, "code without a socket")
    request = Request(_GETSOCKOPT)
    level, option = _SO_MEMINFO if memory else _TCP_INFO
    request.arguments = [("f", sockets.fd), ("i", level), ("i", option)]
    request.arguments.append(("m", request.piece(bytes(INFO_BYTES), out=True)))
    request.arguments.append(("m", request.piece(INFO_BYTES.to_bytes(4, "little"), out=True)))
    return Step(event, request=request, asserts=asserts, memory=memory)


def _follow_call(call: Call, line: int, sockets: _Sockets, calls: CallCompiler) -> None:
    """What a call makes of the socket under test."""
    calls.line = line
    match call.name:
        case "socket":
            result = call.result
            sockets.state, sockets.fd = "init", result if isinstance(result, int) and result >= 0 else None
        case "listen":
            sockets.state = "listening"
        case "accept" if isinstance(call.result, int) and call.result >= 0:
            sockets.fd = call.result
        case "connect" if Name("AF_UNSPEC") in call.arguments:
            sockets.state = "init"
        case "connect":
            _connects(sockets)
        case "sendto" | "sendmsg":
            flags = call.arguments[3] if call.name == "sendto" else call.arguments[-1]
            if calls.value(flags) & MSG_FASTOPEN:
                _connects(sockets)


def _connects(sockets: _Sockets) -> None:
    if sockets.state not in ("connecting", "active"):
        sockets.state = "connecting"
        sockets.new(active=True)


def _packet(event: Event, packet: Packet, sockets: _Sockets, addresses: Addresses) -> Step:
    tcp = packet.body if isinstance(packet.body, Tcp) else None
    syn = tcp is not None and "S" in tcp.flags
    if tcp is not None and syn and "." not in tcp.flags:
        if packet.inbound and sockets.state in ("none", "init", "listening"):
            sockets.new(active=False)
            sockets.state, sockets.fd = "passive", None
        elif not packet.inbound and sockets.state == "connecting":
            sockets.state = "active"
    if sockets.connection is None:
        raise Unsupported(event.line, "a packet that belongs to no connection")
    connection = sockets.connections[sockets.connection]
    if tcp is not None and syn:
        if packet.inbound and connection.remote_isn is None:
            connection.remote_isn = tcp.seq
        elif not packet.inbound and not connection.isn_known:
            connection.isn, connection.isn_known = tcp.seq, True
    if packet.inbound:
        base = 0 if syn else connection.remote_isn or 0
        made = inbound(packet, addresses, connection.remote_port, addresses.defines, event.line, base)
        return Step(event, sockets.connection, inject=made)
    if isinstance(packet.body, Icmp):
        raise Unsupported(event.line, "icmp packets that the kernel sends")
    expected = packet.body.options
    options = None if expected is None else options_bytes(expected, addresses.defines, event.line)
    return Step(event, sockets.connection, options=options)


# --- steps.txt ----------------------------------------------------------------------------------------------


def _text(script: Script, addresses: Addresses, steps: tuple[Step, ...], connections: list[Connection]) -> str:
    mss = _option(script, "mss", 0)
    if mss > 0xFFFF:
        raise Unsupported(1, f"--mss={mss}")
    lines = [f"start {START_NS}", f"limit {LIMIT_NS}", f"mss {mss}"]
    lines.append(f"setup {_hex(' && '.join(addresses.set_up()).encode())}")
    for name, command in (("init", script.init), ("cleanup", script.cleanup)):
        if command is not None and command.text:
            lines.append(f"{name} {_hex(command.text.encode())}")
    for one in connections or [Connection(active=False, remote_port=FIRST_REMOTE_PORT)]:
        lines.append(f"connection {int(one.active)} {0 if one.active else PORT} {one.remote_port}")
    previous: Event | None = None
    for step in steps:
        lines.append(f"event {_anchor(step.event, previous)} {step.event.when.start_ns} {_what(step, connections)}")
        previous = step.event
    return "\n".join(lines) + "\n"


def _anchor(event: Event, previous: Event | None) -> str:
    """s: counts from the start; p: from the time that the script gives the event before, as two packets in a row that
    come in do; n: from the end of that event; *: any time.
    """
    if event.when.kind == "any":
        return "*"
    if event.when.kind == "absolute":
        return "s"
    both = previous is not None and all(isinstance(e.what, Packet) and e.what.inbound for e in (event, previous))
    return "p" if both else "n"


def _what(step: Step, connections: list[Connection]) -> str:
    what = step.event.what
    if isinstance(what, Command):
        return f"shell {_hex(what.text.encode())}"
    if step.request is not None:
        return f"call {_call(step.request, blocks=step.event.when.returns_ns is not None)}"
    assert isinstance(what, Packet)
    if step.inject is not None:
        made, connection = step.inject, connections[step.connection]
        syn = isinstance(what.body, Tcp) and "S" in what.body.flags
        counts = " ".join(str(offset) for offset in (len(made.isn_at), *made.isn_at))
        return (
            f"in {step.connection} {_hex(made.header)} {made.zeros} {made.sum_from} {made.sum_at} {made.pseudo} "
            f"{made.local_port_at} {made.ecr_at} {made.ecr} {connection.isn if syn else 0} {counts}"
        )
    assert isinstance(what.body, Tcp)
    stamp = next((option.values[0] for option in what.body.options or () if option.kind == "TS"), None)
    stamped = "0 0" if stamp is None else f"1 {stamp}"
    return f"out {step.connection} {what.body.length} {stamped} {_patience_ns(step.event.when)}"


def _patience_ns(when: When) -> int:
    """How long after the beginning of its time a packet is waited for."""
    return _PATIENCE_NS if when.end_ns is None else when.end_ns - when.start_ns + _PATIENCE_NS


def _call(request: Request, *, blocks: bool) -> str:
    words: list[int | str] = [request.number, int(blocks), len(request.arguments)]
    for kind, value in request.arguments:
        words += [kind, (value + 2**63) % 2**64 - 2**63]  # 64 bits, as the kernel has them
    words += [len(request.gives), *request.gives, -1 if request.gives_in is None else request.gives_in]
    words.append(len(request.memory))
    for piece in request.memory:
        words += [len(piece.data), _hex(piece.data.rstrip(b"\0")), int(piece.out)]
        for links in (piece.pointers, piece.fds):
            words += [len(links), *(word for link in links.items() for word in link)]
    return " ".join(str(word) for word in words)


def _hex(data: bytes) -> str:
    return data.hex() or "-"
