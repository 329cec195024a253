"""Reads the schedule of a sender: `interval = "1 s"`, `message_rate = "64 kbit/s"`, or `burst = { messages = 3, every =
"1 s" }` -> interval_ns and burst_bytes of the sender (docs/formats.md, The apps).

Without any of them a flow is saturated: it sends as fast as the kernel accepts data. apps/traffic/schedule.h computes
the due times.
"""

from __future__ import annotations

from ..core.types import OptionValue
from .fields import Field, check_keys, quantity, read_integer, read_quantity
from .problems import Problems
from .toml_positions import Item

US, S = 10**3, 10**9
LONGEST_LIST = 256
"""Numbers in a list option of the apps (apps/common/options.h, NUMBER_LIST_MAX)."""
_EVERY = quantity("time", example='"1 s"', low=US, high=86400 * S)
_SIZE = quantity("data", example='"120 B"', low=1, high=16 << 20)
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
SCHEDULE_KEYS = {"interval": "interval_ns", "message_rate": "interval_ns", "burst": "burst_bytes"}
"""Key of the spec -> key of Flow.sender_options."""


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
    messages, sizes, every = (item.get(key) for key in ("messages", "sizes", "every"))
    if every is None:
        problems.add(item, f"every is missing{example}")
    if (messages is None) == (sizes is None):
        problems.add(item, f"needs either messages (how many) or sizes (of each){example}")
    if len(problems) > before or every is None:
        return {}
    if messages is not None:
        burst = [message_bytes] * (read_integer(messages, BURST["messages"], problems) or 0)
    else:
        burst = _sizes(sizes, problems)
    interval = read_quantity(every, _EVERY, problems)
    if interval is None or not burst:
        return {}
    return {"interval_ns": int(interval.value), "burst_bytes": ",".join(str(size) for size in burst)}


def _sizes(item: Item | None, problems: Problems) -> list[int]:
    children = item.items() if item is not None and isinstance(item.value, list) else []
    if item is not None and not 1 <= len(children) <= LONGEST_LIST:
        problems.add(item, f"must be a list of 1 to {LONGEST_LIST} sizes; for example {BURST['sizes'].example}")
    sizes = [read_quantity(child, _SIZE, problems) for child in children]
    return [int(size.value) for size in sizes if size is not None] if None not in sizes else []
