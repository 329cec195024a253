"""The Python of %{ }% blocks, of which this host runs none: assertions are read as a syntax tree, and evaluated over
the fields of struct tcp_info and of SO_MEMINFO.
"""

from __future__ import annotations

import ast
import operator
import struct
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from .script import Unsupported
from .symbols import CODE

_FIELDS = (
    "B:state ca_state retransmits probes backoff options wscales flags "
    "I:rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv "
    "last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space "
    "total_retrans "
    "Q:pacing_rate max_pacing_rate bytes_acked bytes_received I:segs_out segs_in notsent_bytes min_rtt data_segs_in "
    "data_segs_out Q:delivery_rate busy_time rwnd_limited sndbuf_limited I:delivered delivered_ce Q:bytes_sent "
    "bytes_retrans I:dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash H:total_rto total_rto_recoveries "
    "I:total_rto_time received_ce delivered_e1_bytes delivered_e0_bytes delivered_ce_bytes received_e1_bytes "
    "received_e0_bytes received_ce_bytes"
)
"""struct tcp_info (include/uapi/linux/tcp.h of 7.3): a format, and the fields of that size, in order."""
_MEMORY = ("RMEM_ALLOC", "RCVBUF", "WMEM_ALLOC", "SNDBUF", "FWD_ALLOC", "WMEM_QUEUED", "OPTMEM", "BACKLOG", "DROPS")
MAX_TEXT = 10_000
DEEPEST = 40
INFO_BYTES = 512
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.Not: lambda value: int(not value), ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


def tcp_info(data: bytes) -> dict[str, int]:
    """The fields that a kernel filled in, under the names that scripts use."""
    values: dict[str, int] = {}
    at, form = 0, "B"
    for word in _FIELDS.split():
        kind, _, name = word.rpartition(":")
        form = kind or form
        size = struct.calcsize(form)
        if at + size > len(data):
            break
        (values[f"tcpi_{name}"],) = struct.unpack_from(f"<{form}", data, at)
        at += size
    if "tcpi_flags" in values:
        scales, flags = values.pop("tcpi_wscales"), values.pop("tcpi_flags")
        values |= {"tcpi_snd_wscale": scales & 15, "tcpi_rcv_wscale": scales >> 4}
        values |= {"tcpi_delivery_rate_app_limited": flags & 1, "tcpi_fastopen_client_fail": flags >> 1 & 3}
    return values


def memory_info(data: bytes) -> dict[str, int]:
    """SO_MEMINFO's values, under the names that scripts use."""
    numbers = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    return {f"SK_MEMINFO_{name}": value for name, value in zip(_MEMORY, numbers, strict=False)}


def read_code(text: str, line: int) -> list[ast.Assert]:
    """The assertions of a block. Raises Unsupported: it is too long, no Python, or more than assertions."""
    if len(text) > MAX_TEXT:
        raise Unsupported(line, f"code of more than {MAX_TEXT} characters")
    try:
        tree = ast.parse(_laid_out(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unsupported(line, "code that is no Python") from None
    asserts = []
    for statement in tree.body:
        if not isinstance(statement, ast.Assert):
            raise Unsupported(line, f"Python's {type(statement).__name__.lower()}")
        _check(statement.test, line, 0)
        asserts.append(statement)
    return asserts


def _laid_out(text: str) -> str:
    """A block without its common margin; its first line stands behind the %{."""
    first, _, rest = (text.strip("\n") + "\n\n").partition("\n")
    return first.strip() + "\n" + textwrap.dedent(rest) if first.strip() else textwrap.dedent(rest)


def _check(node: ast.expr, line: int, depth: int) -> None:
    if depth > DEEPEST:
        raise Unsupported(line, "code that is nested too deeply")
    match node:
        case ast.Constant(value=bool() | int()) | ast.Name():
            return
        case ast.Compare(left, operators, comparators) if all(type(one) in _COMPARE for one in operators):
            parts = [left, *comparators]
        case ast.BoolOp(_, values):
            parts = values
        case ast.BinOp(left, one, right) if type(one) in _BINARY:
            parts = [left, right]
        case ast.UnaryOp(_, operand):
            parts = [operand]
        case _:
            raise Unsupported(line, f"Python's {type(node).__name__.lower()} in an assertion")
    for part in parts:
        _check(part, line, depth + 1)


def failed(asserts: list[ast.Assert], values: Mapping[str, int]) -> str:
    """The first assertion that does not hold, with what its names stood for; "" if all hold. As in Python, an operand
    counts only if it is reached: `tcpi_state == 7 or tcpi_new` needs no tcpi_new in that state.
    """
    for statement in asserts:
        try:
            held = _value(statement.test, values)
        except _UnknownName as error:
            return f"{error}: this kernel does not say it"
        except ZeroDivisionError:
            held = 0
        if not held:
            names = sorted({node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)})
            shown = ", ".join(f"{name} is {values[name]}" for name in names if name in values)
            return f"assert {ast.unparse(statement.test)}: {shown}"
    return ""


class _UnknownName(Exception):
    """A name that neither the kernel's answer nor the constants have."""


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=number):
            return int(number)  # type: ignore[arg-type]  # _check() let no others pass
        case ast.Name(name):
            known = values[name] if name in values else CODE.get(name)
            if known is None:
                raise _UnknownName(name)
            return known
        case ast.Compare(left, operators, comparators):
            last = _value(left, values)
            for one, part in zip(operators, comparators, strict=True):  # a chain ends at its first false link
                former, last = last, _value(part, values)
                if not _COMPARE[type(one)](former, last):
                    return 0
            return 1
        case ast.BoolOp(one, nodes):
            result = 0
            for part in nodes:  # the value that decides, as Python has it
                result = _value(part, values)
                if bool(result) == isinstance(one, ast.Or):
                    break
            return result
        case ast.BinOp(left, one, right):
            return _BINARY[type(one)](_value(left, values), _value(right, values))
        case ast.UnaryOp(one, operand):
            return _UNARY[type(one)](_value(operand, values))
    raise AssertionError(node)
