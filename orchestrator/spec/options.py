"""The options of the apps: `receiver = { rcvbuf = "64 KiB" }` -> receiver_options {"rcvbuf_bytes": 65536}.

One line an option (docs/formats.md, The apps). The key in the spec has no unit: its value carries it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model import OptionValue
from .fields import Field, quantity, read_integer, read_quantity, read_text
from .located import Item
from .problems import Problems, nearest

MS, S = 10**6, 10**9
BUFFER_MAX = (1 << 30) - 1
"""The kernel's buffer sizes are 31-bit ints, and it doubles what SO_RCVBUF asks for."""
WINDOW_MAX = 65535
"""Largest TCP window without scaling (RFC 9293, 3.1)."""
_ALL, _TCP = ("tcp", "sctp", "mptcp"), ("tcp", "mptcp")
_BOTH = ("sender", "receiver")
_BUFFER = quantity("data", "bdp", example='"65536 B" or "1 bdp"', low=2048, high=BUFFER_MAX)
_DEADLINE = quantity("time", example='"30 s"', low=MS, high=86400 * S)


@dataclass(frozen=True, slots=True)
class Option:
    """Where an option goes in a Cell, what its value is, and which protocols and roles have it."""

    cell_key: str
    field: Field
    protocols: tuple[str, ...] = _ALL
    roles: tuple[str, ...] = _BOTH


OPTIONS: dict[str, Option] = {
    "rcvbuf": Option("rcvbuf_bytes", _BUFFER),
    "sndbuf": Option("sndbuf_bytes", _BUFFER),
    "window_clamp": Option(
        "window_clamp_bytes",
        quantity("data", "bdp", example='"65700 B" or "1 bdp"', low=4096, high=BUFFER_MAX // 4),
        ("tcp",),
        ("receiver",),
    ),
    "congestion": Option("congestion", Field("name", '"reno"'), _TCP),
    "mss": Option("mss_bytes", quantity("data", example='"1460 B"', low=88, high=32767), ("tcp", "sctp")),
    "nodelay": Option("nodelay", Field("switch", "true")),
    "streams": Option("streams", Field("integer", "4", low=1, high=65535), ("sctp",)),
    "sample_interval": Option(
        "sample_interval_ns", quantity("time", example='"10 ms"', high=3600 * S), _ALL, ("sender",)
    ),
    "connect_deadline": Option("connect_deadline_ns", _DEADLINE),
    "stall_deadline": Option("stall_deadline_ns", _DEADLINE),
    "close": Option("close", Field("choice", '"abort"', choices=("abort", "graceful")), _ALL, ("sender",)),
}


def read_options(
    item: Item | None, role: str, protocol: str, bdp_bytes: int | None, problems: Problems
) -> dict[str, OptionValue]:
    """Options of one app in the table's order. bdp_bytes: what "1 bdp" is on the flow's first path (None: no rate)."""
    found: dict[str, OptionValue] = {}
    table: Mapping[str, Item] = item.table() if item is not None else {}
    if item is not None and not isinstance(item.value, dict):
        problems.add(item, 'must be a table; for example { rcvbuf = "64 KiB" }')
    valid = {name for name, option in OPTIONS.items() if role in option.roles and protocol in option.protocols}
    for name, child in table.items():
        option = OPTIONS.get(name)
        if option is None or name not in valid:
            why = f"no option of a {protocol} {role}" if option else f'unknown option "{name}"'
            problems.add(child, f"{why}{nearest(name, sorted(valid))}")
            continue
        value = _value(child, option.field, bdp_bytes, problems)
        if name == "window_clamp" and isinstance(value, int):
            value = _window(child, value, problems)
        if value is not None:
            found[option.cell_key] = value
    if "window_clamp" in table and "rcvbuf" in table and "window_clamp_bytes" in found:
        problems.add(table["rcvbuf"], "window_clamp sets the receive buffer too; give one of the two")
    return {option.cell_key: found[option.cell_key] for option in OPTIONS.values() if option.cell_key in found}


def _window(item: Item, value: int, problems: Problems) -> int:
    """A TCP window is offered in steps of 2 to the power of its scale (Linux: tcp_select_initial_window)."""
    step = 2
    while value // step > WINDOW_MAX:
        step *= 2
    if value % step and "bdp" not in str(item.value):
        problems.add(
            item, f'a window of that size is offered in steps of {step} B; for example "{value // step * step} B"'
        )
    return value // step * step


def _value(item: Item, field: Field, bdp_bytes: int | None, problems: Problems) -> OptionValue | None:
    if field.type == "quantity":
        found = read_quantity(item, field, problems)
        if found is None or found.kind != "bdp":
            return None if found is None else int(found.value)
        if bdp_bytes is None:
            problems.add(
                item, f"'{item.value}': the flow's first path has no rate, so no bdp; write for example \"64 KiB\""
            )
            return None
        return max(int(field.low or 1), round(found.value * bdp_bytes))
    if field.type == "integer":
        return read_integer(item, field, problems)
    if field.type == "switch":
        if not isinstance(item.value, bool):
            problems.add(item, f"must be true or false; for example {field.example}")
            return None
        return item.value
    return read_text(item, field, problems)
