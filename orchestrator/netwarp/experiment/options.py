"""Options of the apps: `receiver = { rcvbuf = "64 KiB" }` becomes receiver_options {"rcvbuf_bytes": 65536}.

One row per option (docs/formats.md, The apps). The key in the spec has no unit, since its value has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.types import OptionValue
from .fields import Field, quantity, read_integer, read_quantity, read_text
from .problems import Problems, nearest
from .schedule import LONGEST_LIST, SCHEDULE, SCHEDULE_KEYS
from .toml_positions import Item

MS, S = 10**6, 10**9
BUFFER_MAX = (1 << 30) - 1
"""The kernel's buffer sizes are 31-bit ints, and it doubles what SO_RCVBUF asks for."""
WINDOW_MAX = 65535
"""Largest TCP window without scaling (RFC 9293, 3.1)."""
_ALL, _TCP = ("tcp", "sctp", "mptcp"), ("tcp", "mptcp")
_BOTH = ("sender", "receiver")
_BUFFER = quantity("data", "bdp", example='"65536 B" or "1 bdp"', low=2048, high=BUFFER_MAX)
_DEADLINE = quantity("time", example='"30 s"', low=MS, high=86400 * S)
_RTO = quantity("time", example='"1 s"', low=MS, high=86400 * S)
_SCTP, _SENDER = ("sctp",), ("sender",)


def _count(example: str, low: int = 0, high: int = 65535) -> Field:
    return Field("integer", example, low=low, high=high)


STEPS: dict[str, tuple[int, str]] = {
    **dict.fromkeys(
        (
            "rto_initial_ns", "rto_min_ns", "rto_max_ns", "heartbeat_interval_ns", "sack_delay_ns",
            "init_max_timeout_ns", "lifetime_ns",
        ),
        (MS, "whole milliseconds"),
    ),
    "path_mtu_bytes": (4, "multiples of 4 B"),
    "pacing_rate_bit_s": (8, "multiples of 8 bit/s"),
}  # fmt: skip
"""The number that a value must be a multiple of (cell key -> number, words)."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its place in a Cell, the kind of its value, and the protocols and roles that have it."""

    cell_key: str
    field: Field
    protocols: tuple[str, ...] = _ALL
    roles: tuple[str, ...] = _BOTH
    off: str | None = None
    """The switch in the Cell that the word "off" stands for."""


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
    "initial_window": Option(
        "initial_window_packets", quantity("packets", example='"4 packets"', low=1, high=1000), _TCP, _SENDER
    ),
    "quick_ack": Option("quick_ack", Field("switch", "true"), _TCP, ("receiver",)),
    "separate_sends": Option("separate_sends", Field("switch", "true"), _TCP, _SENDER),
    "streams": Option("streams", Field("integer", "4", low=1, high=65535), ("sctp",)),
    "rto_initial": Option("rto_initial_ns", _RTO, _SCTP),
    "rto_min": Option("rto_min_ns", _RTO, _SCTP),
    "rto_max": Option("rto_max_ns", _RTO, _SCTP),
    "path_max_retrans": Option("path_max_retrans", _count("5", 1), _SCTP),
    "association_max_retrans": Option("association_max_retrans", _count("10", 1), _SCTP),
    "pf_retrans": Option("pf_retrans", _count("0"), _SCTP),
    "ps_retrans": Option("ps_retrans", _count("2"), _SCTP),
    "heartbeat_interval": Option(
        "heartbeat_interval_ns",
        quantity("time", example='"5 s"', high=86400 * S),
        _SCTP,
        off="no_heartbeats",
    ),
    "sack_delay": Option("sack_delay_ns", quantity("time", example='"200 ms"', low=MS, high=500 * MS), _SCTP),
    "sack_frequency": Option("sack_frequency", _count("2", 1), _SCTP),
    "max_burst": Option("max_burst", _count("4"), _SCTP),
    "path_mtu": Option("path_mtu_bytes", quantity("data", example='"1280 B"', low=512, high=65532), _SCTP),
    "init_attempts": Option("init_attempts", _count("4", 1), _SCTP, _SENDER),
    "init_max_timeout": Option(
        "init_max_timeout_ns", quantity("time", example='"8 s"', low=MS, high=65535 * MS), _SCTP, _SENDER
    ),
    "no_fragments": Option("no_fragments", Field("switch", "true"), _SCTP, _SENDER),
    "scheduler": Option(
        "scheduler", Field("choice", '"rr"', choices=("fcfs", "prio", "rr", "fc", "wfq")), _SCTP, _SENDER
    ),
    "stream_values": Option("stream_values", Field("open", "[0, 1]", low=0, high=65535), _SCTP, _SENDER),
    "unordered": Option("unordered", Field("switch", "true"), _SCTP, _SENDER),
    "ppid": Option("ppid", _count("60", high=2**32 - 1), _SCTP, _SENDER),
    "lifetime": Option("lifetime_ns", quantity("time", example='"500 ms"', low=MS, high=86400 * S), _SCTP, _SENDER),
    "max_retransmissions": Option("max_retransmissions", _count("3"), _SCTP, _SENDER),
    "connect": Option("connect", Field("choice", '"connectx"', choices=("connect", "connectx")), _SCTP, _SENDER),
    "pacing_rate": Option(
        "pacing_rate_bit_s", quantity("rate", example='"2 Mbit/s"', low=8, high=10**12), ("tcp",), _SENDER
    ),
    **{name: Option(cell_key, SCHEDULE[name], _ALL, _SENDER) for name, cell_key in SCHEDULE_KEYS.items()},
    "sample_interval": Option(
        "sample_interval_ns", quantity("time", example='"10 ms"', high=3600 * S), _ALL, ("sender",)
    ),
    "tracepoints": Option("tracepoints", Field("switch", "true"), _ALL, _SENDER),
    "arch": Option("arch", Field("choice", '"arm64"', choices=("arm64",)), _ALL, _SENDER),
    "bare": Option("bare", Field("switch", "true"), _SCTP, _SENDER),
    "connect_deadline": Option("connect_deadline_ns", _DEADLINE),
    "stall_deadline": Option("stall_deadline_ns", _DEADLINE),
    "close": Option("close", Field("choice", '"abort"', choices=("abort", "graceful")), _ALL, ("sender",)),
}


def of_role(role: str) -> dict[str, Field]:
    """The options of a sender or of a receiver, whatever its protocol."""
    return {name: option.field for name, option in OPTIONS.items() if role in option.roles}


ALIASES = {"cc": "congestion", "congestion_control": "congestion", "buffer": "sndbuf", "interval_s": "interval"}
"""Words of other tools -> the option that is meant."""


def read_options(
    item: Item | None, role: str, protocol: str, bdp_bytes: int | None, problems: Problems
) -> dict[str, OptionValue]:
    """The options of one app, in the order of its table. bdp_bytes: value of "1 bdp" on the flow's first path (None: no
    rate).
    """
    values: dict[str, OptionValue] = {}
    table: Mapping[str, Item] = item.table() if item is not None else {}
    if item is not None and not isinstance(item.value, dict):
        problems.add(item, 'must be a table; for example { rcvbuf = "64 KiB" }')
    valid = {name for name, option in OPTIONS.items() if role in option.roles and protocol in option.protocols}
    for name, child in table.items():
        option = OPTIONS.get(name)
        if option is None or name not in valid:
            of = f"; it is one of a {' or '.join(option.protocols)} {' or '.join(option.roles)}" if option else ""
            why = f"no option of a {protocol} {role}{of}" if option else f'unknown option "{name}"'
            problems.add(child, f"{why}{nearest(ALIASES.get(name, name), sorted(valid)) if not option else ''}")
            continue
        if name in SCHEDULE:  # read_schedule() does: it has to know the size of a message
            continue
        if option.off is not None and child.value == "off":
            values[option.off] = True
            continue
        value = _value(child, option.field, bdp_bytes, problems)
        if name == "window_clamp" and isinstance(value, int):
            value = _window(child, value, problems)
        if value is not None and _whole(child, option, value, problems):
            values[option.cell_key] = value
    if "window_clamp" in table and "rcvbuf" in table and "window_clamp_bytes" in values:
        problems.add(table["rcvbuf"], "window_clamp sets the receive buffer too; give one of the two")
    _together(table, values, problems)
    keys = [key for option in OPTIONS.values() for key in (option.cell_key, option.off)]
    return {key: values[key] for key in keys if key is not None and key in values}


def _whole(item: Item, option: Option, value: OptionValue, problems: Problems) -> bool:
    """True if the kernel can represent the value exactly; otherwise the problem is collected."""
    unit, words = STEPS.get(option.cell_key, (1, ""))
    if isinstance(value, int) and value % unit:
        problems.add(item, f"'{item.value}': the kernel takes {words}; for example {option.field.example}")
        return False
    return True


def _together(table: Mapping[str, Item], values: Mapping[str, OptionValue], problems: Problems) -> None:
    """Reports options that need each other, or exclude each other."""
    for low, high in (("rto_min", "rto_max"), ("pf_retrans", "ps_retrans")):
        first, second = (values.get(OPTIONS[name].cell_key) for name in (low, high))
        if isinstance(first, int) and isinstance(second, int) and first > second:
            problems.add(table[low], f"is above {high}, which the kernel refuses; give a {low} of at most that")
    if values.get("sack_frequency") == 1 and "sack_delay_ns" in values:
        problems.add(table["sack_delay"], "with sack_frequency = 1 no SACK is put off; leave one of the two out")
    if "lifetime_ns" in values and "max_retransmissions" in values:
        problems.add(table["lifetime"], "a message has one such limit: leave this or max_retransmissions out")
    stream_values, streams = values.get("stream_values"), values.get("streams", 1)
    if isinstance(stream_values, str) and isinstance(streams, int) and len(stream_values.split(",")) > streams:
        problems.add(table["stream_values"], f"has more values than there are streams ({streams})")


def _window(item: Item, value: int, problems: Problems) -> int:
    """Reports a TCP window that cannot be announced: windows are multiples of 2^scale (Linux:
    tcp_select_initial_window).
    """
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
        quantity = read_quantity(item, field, problems)
        if quantity is None or quantity.kind != "bdp":
            return None if quantity is None else int(quantity.value)
        if bdp_bytes is None:
            problems.add(
                item, f"'{item.value}': the flow's first path has no rate, so no bdp; write for example \"64 KiB\""
            )
            return None
        return max(int(field.low or 1), round(quantity.value * bdp_bytes))
    if field.type == "integer":
        return read_integer(item, field, problems)
    if field.type == "switch":
        if not isinstance(item.value, bool):
            problems.add(item, f"must be true or false; for example {field.example}")
            return None
        return item.value
    if field.type == "open":
        return _list(item, field, problems)
    return read_text(item, field, problems)


def _list(item: Item, field: Field, problems: Problems) -> str | None:
    """A list of whole numbers in the form of the apps' options: "0,1"."""
    children = item.items() if isinstance(item.value, list) else []
    if not 1 <= len(children) <= LONGEST_LIST:
        problems.add(item, f"must be a list of 1 to {LONGEST_LIST} whole numbers; for example {field.example}")
        return None
    numbers = [read_integer(child, field, problems) for child in children]
    return None if None in numbers else ",".join(str(number) for number in numbers)
