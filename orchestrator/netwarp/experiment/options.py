"""Options of the apps and of agents, a row each (docs/formats.md, The apps; docs/agents.md).

`receiver = { rcvbuf = "64 KiB" }` becomes receiver_options {"rcvbuf_bytes": 65536}: a key of the spec has no unit,
since its value has one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.types import OptionValue
from ..core.units import Quantity
from .fields import Field, check_keys, decode, quantity, read_integer, read_quantity
from .problems import Problems, nearest
from .toml_positions import Item

US, MS, S = 10**3, 10**6, 10**9
LONGEST_LIST = 256
"""Numbers in a list option of the apps (apps/common/options.h, NUMBER_LIST_MAX)."""
BUFFER_MAX = (1 << 30) - 1
"""The kernel's buffer sizes are 31-bit ints, and it doubles what SO_RCVBUF asks for."""
WINDOW_MAX = 65535
"""Largest TCP window without scaling (RFC 9293, 3.1)."""
RFC3390 = "rfc3390"
"""The initial window that RFC 3390 gives for the flow's segments, in place of a number of packets."""
_ALL, _TCP, _SCTP = ("tcp", "sctp", "mptcp"), ("tcp", "mptcp"), ("sctp",)
_ANY = (*_ALL, "udp")
_BOTH, _SENDER = ("sender", "receiver"), ("sender",)
_BUFFER = quantity("data", "bdp", example='"65536 B" or "1 bdp"', low=2048, high=BUFFER_MAX)
_WINDOW = quantity("data", "bdp", example='"65700 B" or "1 bdp"', low=4096, high=BUFFER_MAX // 4)
_DEADLINE = quantity("time", example='"30 s"', low=MS, high=86400 * S)
_RTO = quantity("time", example='"1 s"', low=MS, high=86400 * S)
_EVERY = quantity("time", example='"1 s"', low=US, high=86400 * S)
_SIZE = quantity("data", example='"120 B"', low=1, high=16 << 20)
_SWITCH = Field("switch", "true")
BURST: dict[str, Field] = {
    "messages": Field("integer", "3", low=1, high=LONGEST_LIST),
    "sizes": Field("open", '["120 B", "80 B"]'),
    "every": _EVERY,
}
SCHEDULE: dict[str, Field] = {
    "interval": _EVERY,
    "message_rate": quantity("rate", example='"64 kbit/s"', low=1, high=10**12),
    "burst": Field("table", '{ messages = 3, every = "1 s" }', fields=BURST),
}
"""When a sender sends (apps/traffic/schedule.h); without any of them it sends as fast as the kernel accepts data."""


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
    """An option: its place in a Cell, the kind of its value, and the protocols (or kinds of agents) and roles that have
    it.
    """

    cell_key: str
    field: Field
    protocols: tuple[str, ...] = _ALL
    roles: tuple[str, ...] = _BOTH
    off: str | None = None
    """The switch in the Cell that the word "off" stands for."""


OPTIONS: dict[str, Option] = {
    "rcvbuf": Option("rcvbuf_bytes", _BUFFER, _ANY),
    "sndbuf": Option("sndbuf_bytes", _BUFFER, _ANY),
    "window_clamp": Option("window_clamp_bytes", _WINDOW, ("tcp",), ("receiver",)),
    "congestion": Option("congestion", Field("name", '"reno"'), (*_TCP, "quic")),
    "mss": Option("mss_bytes", quantity("data", example='"1460 B"', low=88, high=32767), ("tcp", "sctp")),
    "nodelay": Option("nodelay", _SWITCH),
    "initial_window": Option(
        "initial_window_packets",
        dataclasses.replace(quantity("packets", example='"4 packets"', low=1, high=1000), choices=(RFC3390,)),
        _TCP,
        _SENDER,
    ),
    "quick_ack": Option("quick_ack", _SWITCH, _TCP, ("receiver",)),
    "separate_sends": Option("separate_sends", _SWITCH, _TCP, _SENDER),
    "streams": Option("streams", _count("4", 1), _SCTP),
    "rto_initial": Option("rto_initial_ns", _RTO, _SCTP),
    "rto_min": Option("rto_min_ns", _RTO, _SCTP),
    "rto_max": Option("rto_max_ns", _RTO, _SCTP),
    "path_max_retrans": Option("path_max_retrans", _count("5", 1), _SCTP),
    "association_max_retrans": Option("association_max_retrans", _count("10", 1), _SCTP),
    "pf_retrans": Option("pf_retrans", _count("0"), _SCTP),
    "ps_retrans": Option("ps_retrans", _count("2"), _SCTP),
    "heartbeat_interval": Option(
        "heartbeat_interval_ns", quantity("time", example='"5 s"', high=86400 * S), _SCTP, off="no_heartbeats"
    ),
    "sack_delay": Option("sack_delay_ns", quantity("time", example='"200 ms"', low=MS, high=500 * MS), _SCTP),
    "sack_frequency": Option("sack_frequency", _count("2", 1), _SCTP),
    "max_burst": Option("max_burst", _count("4"), _SCTP),
    "path_mtu": Option("path_mtu_bytes", quantity("data", example='"1280 B"', low=512, high=65532), _SCTP),
    "init_attempts": Option("init_attempts", _count("4", 1), _SCTP, _SENDER),
    "init_max_timeout": Option(
        "init_max_timeout_ns", quantity("time", example='"8 s"', low=MS, high=65535 * MS), _SCTP, _SENDER
    ),
    "no_fragments": Option("no_fragments", _SWITCH, _SCTP, _SENDER),
    "scheduler": Option(
        "scheduler", Field("choice", '"rr"', choices=("fcfs", "prio", "rr", "fc", "wfq")), _SCTP, _SENDER
    ),
    "stream_values": Option("stream_values", Field("open", "[0, 1]", low=0, high=65535), _SCTP, _SENDER),
    "unordered": Option("unordered", _SWITCH, _SCTP),
    "ppid": Option("ppid", _count("60", high=2**32 - 1), _SCTP),
    "lifetime": Option("lifetime_ns", quantity("time", example='"500 ms"', low=MS, high=86400 * S), _SCTP, _SENDER),
    "max_retransmissions": Option("max_retransmissions", _count("3"), _SCTP, _SENDER),
    "any_address": Option("any_address", _SWITCH, _SCTP),
    "connect": Option("connect", Field("choice", '"connectx"', choices=("connect", "connectx")), _SCTP, _SENDER),
    "pacing_rate": Option(
        "pacing_rate_bit_s", quantity("rate", example='"2 Mbit/s"', low=8, high=10**12), ("tcp",), _SENDER
    ),
    "interval": Option("interval_ns", SCHEDULE["interval"], _ANY, _SENDER),
    "message_rate": Option("interval_ns", SCHEDULE["message_rate"], _ANY, _SENDER),
    "burst": Option("burst_bytes", SCHEDULE["burst"], _ANY, _SENDER),
    "sample_interval": Option("sample_interval_ns", quantity("time", example='"10 ms"', high=3600 * S), _ALL, _SENDER),
    "tracepoints": Option("tracepoints", _SWITCH, _ALL, _SENDER),
    "arch": Option("arch", Field("choice", '"arm64"', choices=("arm64",)), _ALL, _SENDER),
    "bare": Option("bare", _SWITCH, _SCTP, _SENDER),
    "connect_deadline": Option("connect_deadline_ns", _DEADLINE),
    "reconnect": Option(
        "reconnect_ns", quantity("time", example='"1 s"', high=86400 * S), _ALL, _SENDER, off="loss_ends"
    ),
    "ecn": Option("ecn", Field("choice", '"ect1"', choices=("not-ect", "ect0", "ect1", "ce")), ("udp",), _SENDER),
    "local_port": Option("local_port", _count("2905", 1), _ANY, _SENDER),
    "stall_deadline": Option("stall_deadline_ns", _DEADLINE),
    "close": Option("close", Field("choice", '"abort"', choices=("abort", "graceful")), _ALL, _SENDER),
}
ALIASES = {"cc": "congestion", "congestion_control": "congestion", "buffer": "sndbuf", "interval_s": "interval"}
"""Words of other tools -> the option that is meant."""

AGENT_KINDS = ("snoop", "mtcp", "itcp-proxy")
NO_AGENT = "none"
AGENT_EXAMPLE = '"snoop" or { kind = "snoop", cache = "100 packets" }'
FORWARDING = ("snoop", "mtcp")
"""Kinds that sit on the forwarding path: packets go through their queue."""
_ANY_AGENT = {
    "kind": Field("choice", '"snoop"', choices=(*AGENT_KINDS, NO_AGENT)),
    "link": Field("name", '"air"'),
    "dies_at": quantity("time", example='"10 s"', high=86400 * S),
}
_TOLD = {"told": Field("choice", '"return"', choices=("nothing", "return", "both"))}
_WAIT = quantity("time", example='"100 ms"', low=MS, high=3600 * S)
AGENT_OPTIONS: dict[str, Option] = {
    "cache": Option("cache_packets", quantity("packets", example='"100 packets"', low=1, high=4096), ("snoop", "mtcp")),
    "timeout_min": Option("timeout_min_ns", _WAIT, ("snoop",)),
    "retransmissions": Option("retransmissions", _count("10", 1, 1000), ("snoop",)),
    "away_after": Option("away_after_ns", _WAIT, ("mtcp",)),
    "hold": Option("hold_ns", _WAIT, ("mtcp",)),
    "buffer": Option("buffer_bytes", quantity("data", example='"64 KiB"', low=2048, high=1 << 29), ("itcp-proxy",)),
    "congestion": Option("congestion", Field("name", '"reno"'), ("itcp-proxy",)),
    "sack": Option("sack", Field("choice", '"pass"', choices=("hide", "pass")), ("snoop",)),
}
ALL_AGENTS = _ANY_AGENT | _TOLD | {name: option.field for name, option in AGENT_OPTIONS.items()}


def agent_fields(kind: str) -> dict[str, Field]:
    """The keys of an agent of one kind."""
    own = {name: option.field for name, option in AGENT_OPTIONS.items() if kind in option.protocols}
    return _ANY_AGENT | (_TOLD if kind == "mtcp" else {}) | own


def of_role(role: str) -> dict[str, Field]:
    """The options of a sender or of a receiver, whatever its protocol."""
    return {name: option.field for name, option in OPTIONS.items() if role in option.roles}


def read_options(
    item: Item | None, role: str, protocol: str, bdp_bytes: int | None, problems: Problems
) -> dict[str, OptionValue]:
    """The options of one app. bdp_bytes: value of "1 bdp" on the flow's first path (None: no rate)."""
    if item is not None and not isinstance(item.value, dict):
        problems.add(item, 'must be a table; for example { rcvbuf = "64 KiB" }')
    table: Mapping[str, Item] = item.table() if item is not None else {}
    valid = {name for name, option in OPTIONS.items() if role in option.roles and protocol in option.protocols}
    for name in [name for name in table if name not in valid]:
        option = OPTIONS.get(name)
        if option is None:
            why = f'unknown option "{name}"{nearest(ALIASES.get(name, name), sorted(valid))}'
        else:
            of = f"{' or '.join(option.protocols)} {' or '.join(option.roles)}"
            why = f"no option of a {protocol} {role}; it is one of a {of}"
        problems.add(table[name], why)
    values: dict[str, OptionValue] = {}
    for name, option in OPTIONS.items():
        if name not in table or name not in valid or name in SCHEDULE:  # the size of a message decides a schedule
            continue
        child = table[name]
        if option.off is not None and child.value == "off":
            values[option.off] = True
            continue
        value = read_option(child, option, problems, bdp_bytes)
        if name == "window_clamp" and isinstance(value, int):
            value = _window(child, value, problems)
        if value is not None:
            values[option.cell_key] = value
    if "rcvbuf" in table and "window_clamp_bytes" in values:
        problems.add(table["rcvbuf"], "window_clamp sets the receive buffer too; give one of the two")
    _together(table, values, problems)
    return values


def read_option(item: Item, option: Option, problems: Problems, bdp_bytes: int | None = None) -> OptionValue | None:
    """An option's value in its base unit; None if it is wrong (the problem is collected)."""
    field = option.field
    if field.type == "open":
        return _list(item, field, problems)
    value = decode(item, field, problems)
    if not isinstance(value, Quantity):
        return value if isinstance(value, OptionValue) else None
    if value.kind == "bdp" and bdp_bytes is None:
        said = f"'{item.value}': the flow's first path has no rate, so no bdp; write for example \"64 KiB\""
        problems.add(item, said)
        return None
    whole = max(int(field.low or 1), round(value.value * (bdp_bytes or 0))) if value.kind == "bdp" else int(value.value)
    unit, words = STEPS.get(option.cell_key, (1, ""))
    if whole % unit:
        problems.add(item, f"'{item.value}': the kernel takes {words}; for example {field.example}")
        return None
    return whole


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
    if "stream_values" in values and values.get("scheduler", "fcfs") == "fcfs":
        words = 'fcfs, the default scheduler, has no values of streams; for example scheduler = "prio"'
        problems.add(table["stream_values"], words)


def _window(item: Item, value: int, problems: Problems) -> int:
    """Reports a TCP window that cannot be announced: windows are multiples of 2^scale (Linux:
    tcp_select_initial_window).
    """
    step = 2
    while value // step > WINDOW_MAX:
        step *= 2
    announced = value // step * step
    if value != announced and "bdp" not in str(item.value):
        problems.add(item, f'a window of that size is offered in steps of {step} B; for example "{announced} B"')
    return announced


def _list(item: Item, field: Field, problems: Problems) -> str | None:
    """A list of whole numbers in the form of the apps' options: "0,1"."""
    if not 1 <= len(item.items()) <= LONGEST_LIST:
        problems.add(item, f"must be a list of 1 to {LONGEST_LIST} whole numbers; for example {field.example}")
        return None
    numbers = [read_integer(child, field, problems) for child in item.items()]
    return None if None in numbers else ",".join(str(number) for number in numbers)


def read_schedule(sender: Item | None, message_bytes: int, problems: Problems) -> dict[str, OptionValue]:
    """interval_ns (int) and burst_bytes (sizes separated by commas) of a sender; empty for a saturated one.

    message_bytes: size of a message for which the schedule gives none.
    """
    table = sender.table() if sender is not None else {}
    given = [name for name in SCHEDULE if name in table]
    if len(given) > 1:
        problems.add(table[given[1]], f"{given[0]} says when messages are sent already; leave one of the two out")
    if len(given) != 1:
        return {}
    name, item = given[0], table[given[0]]
    if name == "burst":
        return _burst(item, message_bytes, problems)
    quantity = read_quantity(item, SCHEDULE[name], problems)
    if quantity is None:
        return {}
    interval_ns = int(quantity.value) if name == "interval" else round(message_bytes * 8 * S / quantity.value)
    if interval_ns < US:
        problems.add(item, f"messages of {message_bytes} B would come less than 1 us apart; send larger ones")
    return {"interval_ns": interval_ns}


def _burst(item: Item, message_bytes: int, problems: Problems) -> dict[str, OptionValue]:
    before = len(problems)
    check_keys(item, BURST, problems)
    example = f"; for example {SCHEDULE['burst'].example}"
    messages, sizes, every = (item.get(key) for key in BURST)
    if every is None:
        problems.add(item, f"every is missing{example}")
    if (messages is None) == (sizes is None):
        problems.add(item, f"needs either messages (how many) or sizes (of each){example}")
    if sizes is not None and not 1 <= len(sizes.items()) <= LONGEST_LIST:
        problems.add(sizes, f"must be a list of 1 to {LONGEST_LIST} sizes; for example {BURST['sizes'].example}")
    read = [read_quantity(child, _SIZE, problems) for child in item.listed("sizes")]
    interval = read_quantity(every, _EVERY, problems) if every is not None else None
    if len(problems) > before or interval is None:
        return {}
    burst = [int(size.value) for size in read if size is not None] or [message_bytes] * (item.integer("messages") or 0)
    return {"interval_ns": int(interval.value), "burst_bytes": ",".join(str(size) for size in burst)}
