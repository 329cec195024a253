"""System calls of a script as numbers and memory for the player in the guest, which knows none of them itself."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from .addresses import Addresses
from .answers import ERROR_FIELDS, Check, Expected, controls_equal, equals, events_equal
from .script import Call, Expression, Name, Structure, Unsupported, Usual
from .symbols import number

_NUMBERS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "poll": 7, "ioctl": 16, "readv": 19, "writev": 20, "pipe": 22,
    "sendfile": 40, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "recvfrom": 45, "sendmsg": 46,
    "recvmsg": 47, "shutdown": 48, "bind": 49, "listen": 50, "setsockopt": 54, "getsockopt": 55, "fcntl": 72,
    "epoll_create": 213, "epoll_wait": 232, "epoll_ctl": 233, "splice": 275,
}  # fmt: skip
_ALIAS = {"send": "sendto", "recv": "recvfrom"}
_CONTROL_BYTES = 512
_LARGEST = 16_000_000
MSG_FASTOPEN = 0x20000000


@dataclass(slots=True)
class Memory:
    """A piece of memory. pointers: offset -> the piece whose address stands there; fds: offset -> a script's
    descriptor, whose real number stands there. out: its content afterwards is wanted.
    """

    data: bytes
    pointers: dict[int, int] = field(default_factory=dict)
    fds: dict[int, int] = field(default_factory=dict)
    out: bool = False


@dataclass(slots=True)
class Request:
    """A call to be made. arguments: ("i", number), ("f", descriptor of the script), ("m", piece of memory).

    gives: the script's numbers of new descriptors; from the result, or (gives_in) from a piece of memory. checks: of
    what it answers.
    """

    number: int
    arguments: list[tuple[str, int]] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    gives: tuple[int, ...] = ()
    gives_in: int | None = None
    checks: list[Check] = field(default_factory=list)

    def piece(self, data: bytes, *, out: bool = False) -> int:
        """A new piece of memory."""
        if len(data) > _LARGEST:
            raise ValueError
        self.memory.append(Memory(data, out=out))
        return len(self.memory) - 1


class CallCompiler:
    """Compiles calls for one set of addresses."""

    def __init__(self, addresses: Addresses, defines: Mapping[str, str]) -> None:
        self.addresses = addresses
        self.defines = defines
        self.line = 0

    def compile(self, call: Call, line: int) -> Request:
        """The request of one call. Raises Unsupported."""
        self.line = line
        name = _ALIAS.get(call.name, call.name)
        if name not in _NUMBERS:
            raise Unsupported(line, f"the system call {call.name}")
        request = Request(_NUMBERS[name])
        try:
            getattr(self, f"_{name}")(request, list(call.arguments))
        except (ValueError, IndexError, struct.error, OverflowError):
            raise Unsupported(line, f"these arguments of {call.name}") from None
        if name in ("socket", "accept", "open", "epoll_create") and isinstance(call.result, int) and call.result >= 0:
            request.gives = (call.result,)
        return request

    def value(self, expression: Expression) -> int:
        """A number."""
        return number(expression, self.line, self.defines)

    # --- arguments --------------------------------------------------------------------------------

    def _fd(self, request: Request, expression: Expression) -> None:
        request.arguments.append(("f", self.value(expression)))

    def _int(self, request: Request, *expressions: Expression) -> None:
        request.arguments += [("i", self.value(expression)) for expression in expressions]

    def _buffer(self, request: Request, expression: Expression, size: int) -> None:
        """`...`: memory of zeros; NULL, or a text."""
        if isinstance(expression, Usual):
            request.arguments.append(("m", request.piece(bytes(self._size(size)))))
        elif isinstance(expression, bytes):
            request.arguments.append(("m", request.piece(expression.ljust(self._size(size), b"\0"))))
        else:
            self._int(request, expression)

    @staticmethod
    def _size(size: int) -> int:
        if not 0 <= size <= _LARGEST:
            raise ValueError
        return size

    def _peer(self, request: Request, expression: Expression, data: bytes) -> None:
        """An address and its length."""
        if isinstance(expression, Name) and expression.text == "AF_UNSPEC":
            data = struct.pack("<H", 0).ljust(len(data), b"\0")
        elif not isinstance(expression, Usual):
            raise ValueError
        request.arguments += [("m", request.piece(data)), ("i", len(data))]

    def _room(self, request: Request) -> None:
        """Room for an address, and its length."""
        request.arguments += [("m", request.piece(bytes(128))), ("m", request.piece(struct.pack("<I", 128)))]

    def _listed(self, expression: Expression) -> Expression:
        """The one value of `[value]`."""
        if not isinstance(expression, tuple) or len(expression) != 1:
            raise ValueError
        return expression[0]

    # --- calls ------------------------------------------------------------------------------------

    def _socket(self, request: Request, arguments: list[Expression]) -> None:
        family, kind, protocol = arguments
        if not isinstance(family, Usual):
            raise ValueError
        request.arguments.append(("i", self.addresses.family))
        self._int(request, kind, protocol)

    def _bind(self, request: Request, arguments: list[Expression]) -> None:
        fd, address, _ = arguments
        self._fd(request, fd)
        self._peer(request, address, self.addresses.bound)

    def _connect(self, request: Request, arguments: list[Expression]) -> None:
        fd, address, _ = arguments
        self._fd(request, fd)
        self._peer(request, address, self.addresses.remote)

    def _listen(self, request: Request, arguments: list[Expression]) -> None:
        fd, backlog = arguments
        self._fd(request, fd)
        self._int(request, backlog)

    def _accept(self, request: Request, arguments: list[Expression]) -> None:
        self._fd(request, arguments[0])
        self._room(request)

    def _close(self, request: Request, arguments: list[Expression]) -> None:
        (fd,) = arguments
        self._fd(request, fd)

    def _shutdown(self, request: Request, arguments: list[Expression]) -> None:
        fd, how = arguments
        self._fd(request, fd)
        self._int(request, how)

    def _read(self, request: Request, arguments: list[Expression]) -> None:
        fd, buffer, size = arguments
        self._fd(request, fd)
        self._buffer(request, buffer, self.value(size))
        self._int(request, size)

    _write = _read

    def _sendto(self, request: Request, arguments: list[Expression]) -> None:
        fd, buffer, size, flags, *address = arguments
        self._fd(request, fd)
        self._buffer(request, buffer, self.value(size))
        self._int(request, size, flags)
        if address:
            self._peer(request, address[0], self.addresses.remote)
        else:
            request.arguments += [("i", 0), ("i", 0)]

    def _recvfrom(self, request: Request, arguments: list[Expression]) -> None:
        fd, buffer, size, flags, *address = arguments
        self._fd(request, fd)
        self._buffer(request, buffer, self.value(size))
        self._int(request, size, flags)
        if address:
            self._room(request)
        else:
            request.arguments += [("i", 0), ("i", 0)]

    def _vector(self, request: Request, arguments: list[Expression]) -> None:
        fd, vector, count = arguments
        self._fd(request, fd)
        request.arguments.append(("m", self._iovec(request, vector)))
        self._int(request, count)

    _readv = _writev = _vector

    def _sendmsg(self, request: Request, arguments: list[Expression]) -> None:
        fd, message, flags = arguments
        self._fd(request, fd)
        self._message(request, message, outgoing=True)
        self._int(request, flags)

    def _recvmsg(self, request: Request, arguments: list[Expression]) -> None:
        fd, message, flags = arguments
        self._fd(request, fd)
        self._message(request, message, outgoing=False)
        self._int(request, flags)

    def _iovec(self, request: Request, vector: Expression) -> int:
        if not isinstance(vector, tuple) or len(vector) > 1024:
            raise ValueError
        data, pointers = b"", {}
        for at, part in enumerate(vector):
            if not isinstance(part, Structure) or len(part.members) != 2:
                raise ValueError
            size = self._size(self.value(part.members[1].value))
            # pieces lie apart: each element is a fragment of its own
            pointers[16 * at] = request.piece(bytes(size))
            data += struct.pack("<QQ", 0, size)
        piece = request.piece(data)
        request.memory[piece].pointers = pointers
        return piece

    def _message(self, request: Request, message: Expression, *, outgoing: bool) -> None:
        """A struct msghdr, and (of one received) what must be in it."""
        if not isinstance(message, Structure):
            raise ValueError
        known = {"msg_name", "msg_iov", "msg_flags", "msg_control"}
        if any(member.name not in known for member in message.members):
            raise ValueError
        vector = message.get("msg_iov")
        control = message.get("msg_control")
        pointers: dict[int, int] = {}
        count = 0
        if vector is not None and isinstance(vector, tuple):
            pointers[16] = self._iovec(request, vector)
            count = len(vector)
        elif vector is not None:
            raise ValueError
        room = 0
        if control is not None:
            if outgoing or not isinstance(control, tuple):
                raise ValueError
            room = _CONTROL_BYTES
            pointers[32] = request.piece(bytes(room), out=True)
        header = struct.pack("<QIIQQQQiI", 0, 0, 0, 0, count, 0, room, 0, 0)
        piece = request.piece(header, out=True)
        request.memory[piece].pointers = pointers
        request.arguments.append(("m", piece))
        if outgoing:
            return
        flags = message.get("msg_flags")
        if flags is not None and not isinstance(flags, Usual):
            request.checks.append(equals("msg_flags", piece, 48, "<i", self.value(flags)))
        if isinstance(control, tuple):
            wanted = [self._control(part) for part in control]
            request.checks.append(controls_equal(piece, pointers[32], wanted))

    def _control(self, part: Expression) -> tuple[int, int, Expected]:
        if not isinstance(part, Structure):
            raise ValueError
        level, kind = part.get("cmsg_level"), part.get("cmsg_type")
        data = part.get("cmsg_data")
        if level is None or kind is None:
            raise ValueError
        expected: Expected
        if isinstance(data, Structure):
            expected = {member.name: self.value(member.value) for member in data.members}
            if not expected.keys() <= {*ERROR_FIELDS, "scm_sec", "scm_nsec"}:
                raise ValueError
        elif data is None or isinstance(data, Usual):
            expected = None
        else:
            expected = self.value(data)
        return self.value(level), self.value(kind), expected

    def _setsockopt(self, request: Request, arguments: list[Expression]) -> None:
        fd, level, option, value, size = arguments
        self._fd(request, fd)
        self._int(request, level, option)
        if isinstance(value, tuple):
            data = struct.pack("<q", self.value(self._listed(value)))[:8]
        elif isinstance(value, bytes):
            data = value
        elif isinstance(value, Structure):
            data = b"".join(struct.pack("<i", self.value(member.value)) for member in value.members)
        else:
            self._int(request, value, size)
            return
        request.arguments.append(("m", request.piece(data.ljust(max(len(data), self._size(self.value(size))), b"\0"))))
        self._int(request, size)

    def _getsockopt(self, request: Request, arguments: list[Expression]) -> None:
        fd, level, option, value, size = arguments
        self._fd(request, fd)
        self._int(request, level, option)
        length = self.value(self._listed(size))
        piece = request.piece(bytes(max(8, self._size(length))), out=True)
        room = request.piece(struct.pack("<I", length), out=True)
        request.arguments += [("m", piece), ("m", room)]
        if isinstance(value, tuple):
            request.checks.append(equals("the option", piece, 0, "<i", self.value(self._listed(value))))
        elif not isinstance(value, Usual):
            raise ValueError
        request.checks.append(equals("the option's length", room, 0, "<I", length))

    def _fcntl(self, request: Request, arguments: list[Expression]) -> None:
        fd, command, *value = arguments
        self._fd(request, fd)
        self._int(request, command, *value)

    def _ioctl(self, request: Request, arguments: list[Expression]) -> None:
        fd, command, value = arguments
        self._fd(request, fd)
        self._int(request, command)
        expected = self.value(self._listed(value))
        piece = request.piece(bytes(8), out=True)
        request.arguments.append(("m", piece))
        request.checks.append(equals("the value", piece, 0, "<i", expected))

    def _open(self, request: Request, arguments: list[Expression]) -> None:
        path, flags, *mode = arguments
        if not isinstance(path, bytes):
            raise ValueError
        request.arguments.append(("m", request.piece(path + b"\0")))
        self._int(request, flags, *mode)

    def _pipe(self, request: Request, arguments: list[Expression]) -> None:
        (ends,) = arguments
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise ValueError
        request.gives = (self.value(ends[0]), self.value(ends[1]))
        request.gives_in = request.piece(bytes(8))
        request.arguments.append(("m", request.gives_in))

    def _sendfile(self, request: Request, arguments: list[Expression]) -> None:
        out, source, offset, count = arguments
        self._fd(request, out)
        self._fd(request, source)
        self._offset(request, offset)
        self._int(request, count)

    def _splice(self, request: Request, arguments: list[Expression]) -> None:
        source, source_at, out, out_at, count, flags = arguments
        self._fd(request, source)
        self._offset(request, source_at)
        self._fd(request, out)
        self._offset(request, out_at)
        self._int(request, count, flags)

    def _offset(self, request: Request, value: Expression) -> None:
        if isinstance(value, tuple):
            data = struct.pack("<q", self.value(self._listed(value)))
            request.arguments.append(("m", request.piece(data)))
        else:
            self._int(request, value)

    def _epoll_create(self, request: Request, arguments: list[Expression]) -> None:
        self._int(request, *arguments)

    def _epoll_event(self, value: Expression) -> bytes:
        """A struct epoll_event, whose data is the descriptor's number in the script."""
        if not isinstance(value, Structure):
            raise ValueError
        events = value.get("events")
        data = next((member.value for member in value.members if member.name in ("fd", "ptr", "u32", "u64")), 0)
        if events is None:
            raise ValueError
        return struct.pack("<IQ", self.value(events) & 0xFFFFFFFF, self.value(data) & 0xFFFFFFFFFFFFFFFF)

    def _epoll_ctl(self, request: Request, arguments: list[Expression]) -> None:
        epoll, command, fd, event = arguments
        self._fd(request, epoll)
        self._int(request, command)
        self._fd(request, fd)
        request.arguments.append(("m", request.piece(self._epoll_event(event))))

    def _epoll_wait(self, request: Request, arguments: list[Expression]) -> None:
        epoll, events, count, timeout = arguments
        self._fd(request, epoll)
        most = self.value(count)
        piece = request.piece(bytes(12 * min(max(most, 1), 1024)), out=True)
        request.arguments.append(("m", piece))
        self._int(request, count, timeout)
        if isinstance(events, Usual):
            return
        listed = events if isinstance(events, tuple) else (events,)
        request.checks.append(events_equal(piece, [self._epoll_event(event) for event in listed]))

    def _poll(self, request: Request, arguments: list[Expression]) -> None:
        listed, count, timeout = arguments
        if not isinstance(listed, tuple):
            raise ValueError
        data, fds = b"", {}
        piece = request.piece(bytes(8 * len(listed)), out=True)
        for at, part in enumerate(listed):
            fd, events, revents = (self._part(part, name) for name in ("fd", "events", "revents"))
            fds[8 * at] = fd
            data += struct.pack("<ihh", 0, events, 0)
            request.checks.append(equals("revents", piece, 8 * at + 6, "<h", revents))
        request.memory[piece] = Memory(data, {}, fds, out=True)
        request.arguments.append(("m", piece))
        self._int(request, count, timeout)

    def _part(self, part: Expression, name: str) -> int:
        value = part.get(name) if isinstance(part, Structure) else None
        if value is None:
            raise ValueError
        return self.value(value)
