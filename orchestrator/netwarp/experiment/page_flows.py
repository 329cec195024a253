"""Pages as flows: `page = { html = "13.5 kB", objects = { count = 5, size = "13.5 kB" } }` -> options of its programs.

The programs are apps/web: web-server at the flow's `from`, web-client at its `to`. Sizes are those of whole responses,
with their heads.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.types import OptionValue, Protocol
from .fields import Field, check_keys, quantity, read_quantity
from .har_pages import pages_of
from .problems import Problems
from .reader import Reader
from .schedule import LONGEST_LIST
from .toml_positions import Item

S = 10**9
"""apps/common/options.h, NUMBER_LIST_MAX."""
LARGEST_OBJECT = (16 << 20) - 1
_SIZE = quantity("data", example='"13.5 kB"', low=1, high=LARGEST_OBJECT)
_COUNT = Field("integer", "5", low=1, high=LONGEST_LIST)
FRAME_BYTES = 16384
"""HTTP/2's SETTINGS_MAX_FRAME_SIZE unless a client says else (RFC 9113 6.5.2)."""
OBJECTS: dict[str, Field] = {
    "count": _COUNT,
    "size": _SIZE,
    "median": _SIZE,
    "sigma": Field("text", '"1.2"'),
}
OBJECTS_EXAMPLE = '["8 kB", "30 kB"], { count = 5, size = "13.5 kB" } or { count = 30, median = "9 kB", sigma = "1.4" }'
PAGE: dict[str, Field] = {
    "html": _SIZE,
    "objects": Field("open", OBJECTS_EXAMPLE, fields=OBJECTS),
    "har": Field("open", '"today.har"'),
    "request": quantity("data", example='"300 B"', low=40, high=1000),
    "pages": Field("integer", "10", low=1, high=1_000_000),
    "think": quantity("time", example='"1 s"', high=3600 * S),
    "keep": Field("switch", "true"),
    "connections": Field("integer", "6", low=1, high=32),
    "pipelined": Field("switch", "true"),
    "multiplexed": Field("switch", "true"),
    "frame": quantity("data", example='"16 KiB"', low=1, high=LARGEST_OBJECT),
    "streams": Field("integer", "6", low=1, high=1000),
    "order": Field("choice", '"rr"', choices=("fcfs", "rr", "prio")),
    "message": quantity("data", example='"488 B"', low=1, high=LARGEST_OBJECT),
    "interleave": Field("switch", "true"),
    "nodelay": Field("switch", "true"),
}
OF_SCTP = ("streams", "order", "message", "interleave")
OF_TCP = ("connections", "pipelined", "multiplexed", "frame")
SERVER_OPTIONS = ("request_bytes", "expected", "streams", "message_bytes", "order", "interleave", "frame_bytes")
CLIENT_OPTIONS = (
    "html_bytes", "object_bytes", "page_objects", "request_bytes", "pages", "think_ns", "keep", "connections", "serial",
    "streams", "interleave", "frame_bytes",
)  # fmt: skip
"""The programs' own options; all others of a flow are its transport's (apps/web/web_config.h)."""
NOT_OF_PAGES = frozenset(
    {
        "sample_interval_ns", "tracepoints", "arch", "bare", "interval_ns", "burst_bytes", "close", "stream_values",
        "scheduler", "streams", "lifetime_ns", "max_retransmissions", "unordered", "ppid", "separate_sends",
        "window_clamp_bytes", "connect_deadline_ns", "stall_deadline_ns", "no_fragments", "connect",
        "init_attempts", "init_max_timeout_ns", "pacing_rate_bit_s",
    }
)  # fmt: skip
"""Options of a flow's sender and receiver that a page's programs do not have, or that `page` itself says."""


def read_page(
    item: Item, flow: str, protocol: Protocol, message_bytes: int, problems: Problems
) -> tuple[dict[str, OptionValue], dict[str, OptionValue]]:
    """Options of the server and of the client; both empty after saying what is wrong.

    message_bytes: what fills a packet. Sizes by `median` and `sigma` follow from the flow's name, so that every
    repetition and every variant fetches the same page.
    """
    before, page = len(problems), Reader(item, PAGE, problems)
    check_keys(item, PAGE, problems)
    if len(problems) > before:
        return {}, {}
    for key in OF_SCTP if protocol == "tcp" else OF_TCP:
        child = item.get(key)
        if child is not None:
            problems.add(child, f"is of {'sctp' if protocol == 'tcp' else 'tcp'} only; leave it out")
    kinds = _kinds(item, flow, problems)
    if len(problems) > before:
        return {}, {}
    counts = [len(kind.object_bytes) for kind in kinds]
    pages = page.integer("pages") or len(kinds)
    wanted = page.integer("connections") or 1
    keep = page.switch("keep")
    shared: dict[str, OptionValue] = {"request_bytes": page.whole("request") or 300}
    # the HTML comes over the first connection; each further connection carries at least one object
    used = [max(1, min(wanted, counts[number % len(kinds)])) for number in range(pages)]
    server: dict[str, OptionValue] = {**shared, "expected": max(used) if keep else sum(used)}
    client: dict[str, OptionValue] = {**shared, "pages": pages, "think_ns": _thinks(item, kinds, problems)}
    if kinds[0].html_bytes is not None:
        client["html_bytes"] = _list(kind.html_bytes for kind in kinds)
    if any(counts):
        client["object_bytes"] = _list(size for kind in kinds for size in kind.object_bytes)
    if len(kinds) > 1:
        client["page_objects"] = _list(counts)
    if keep:
        client["keep"] = True
    if protocol == "tcp":
        client["connections"] = wanted
        multiplexed = page.switch("multiplexed")
        frame = page.whole("frame")
        if frame is not None and not multiplexed:
            page.wrong("frame", "is of objects in turn; for example multiplexed = true")
        if multiplexed and wanted > 1:
            page.wrong("connections", "multiplexed objects share one connection; leave it out")
        if multiplexed:
            server["frame_bytes"] = client["frame_bytes"] = frame or FRAME_BYTES
        # browsers send one request at a time on each of several connections
        pipelined = page.switch("pipelined")
        if pipelined is False or (pipelined is None and wanted > 1):
            client["serial"] = True
    else:
        streams = page.integer("streams") or max(counts) + 1
        order = item.get("order")
        if order is not None and order.value == "rr" and streams < max(counts):
            problems.add(
                item.get("streams") or order,
                f"objects take turns, and a stream's bytes would be mixed; for example streams = {max(counts)}",
            )
        if order is not None and order.value == "prio" and streams <= max(counts):
            problems.add(
                item.get("streams") or order,
                f"late objects would share the streams that go first; for example streams = {max(counts) + 1}",
            )
        client["streams"] = server["streams"] = streams
        server["order"] = "fcfs" if order is None else str(order.value)
        server["message_bytes"] = page.whole("message") or message_bytes
        if page.switch("interleave"):
            server["interleave"] = client["interleave"] = True
    if page.switch("nodelay") is not False:
        server["nodelay"] = client["nodelay"] = True
    return server, client


@dataclass(frozen=True, slots=True)
class _Kind:
    """A page's sizes, and the time after it; pages of several kinds (of a HAR file) take turns.

    A HAR file stands for html and objects: a factor's level puts it in their place.
    """

    html_bytes: int | None
    object_bytes: tuple[int, ...]
    think_ns: int | None = None


def _kinds(item: Item, flow: str, problems: Problems) -> list[_Kind]:
    har = item.get("har")
    if har is None:
        html, sizes = Reader(item, PAGE, problems).whole("html"), tuple(_sizes(item.get("objects"), flow, problems))
        if html is None and not sizes:
            problems.add(item, f"has neither html nor objects; for example objects = {OBJECTS_EXAMPLE}")
        return [_Kind(html, sizes)]
    if not isinstance(har.value, list):
        problems.add(har, 'has to stand where the page is written; for example page.har = "today.har"')
        return [_Kind(None, ())]
    kinds = [_Kind(page.html_bytes, page.object_bytes, page.think_ns) for page in pages_of(har)]
    objects = sum(len(kind.object_bytes) for kind in kinds)
    largest = max((size for kind in kinds for size in (kind.html_bytes or 0, *kind.object_bytes)), default=0)
    if objects > LONGEST_LIST or len(kinds) > LONGEST_LIST:
        problems.add(har, f"has {objects} objects on {len(kinds)} pages; of all its pages at most {LONGEST_LIST}")
    if largest > LARGEST_OBJECT:
        problems.add(har, f"has an object of {largest} B; at most {LARGEST_OBJECT} B")
    return kinds


def _thinks(item: Item, kinds: Sequence[_Kind], problems: Problems) -> OptionValue:
    """One time for all pages, or what the HAR file says for each kind; after its last page as long as on the mean."""
    given = Reader(item, PAGE, problems).whole("think")
    known = [kind.think_ns for kind in kinds if kind.think_ns is not None]
    if given is not None or not known:
        return given or 0
    mean = sum(known) // len(known)
    return _list(mean if kind.think_ns is None else kind.think_ns for kind in kinds)


def _list(numbers: Iterable[int | None]) -> str:
    return ",".join(map(str, numbers))


def _sizes(item: Item | None, flow: str, problems: Problems) -> list[int]:
    if item is None:
        return []
    if isinstance(item.value, list):
        children = item.items()
        if len(children) > LONGEST_LIST:
            problems.add(item, f"has {len(children)} objects; a page has at most {LONGEST_LIST}")
            return []
        read = [read_quantity(child, _SIZE, problems) for child in children]
        return [int(quantity.value) for quantity in read if quantity is not None]
    if not isinstance(item.value, dict):
        problems.add(item, f"must be sizes, or how many of which size; for example {OBJECTS_EXAMPLE}")
        return []
    before, objects = len(problems), Reader(item, OBJECTS, problems)
    check_keys(item, OBJECTS, problems)
    count, size, median = objects.integer("count"), objects.whole("size"), objects.whole("median")
    if len(problems) == before and (count is None or (size is None) == (median is None)):
        problems.add(item, f"needs count, and size or median and sigma; for example {OBJECTS_EXAMPLE}")
    sigma = item.get("sigma")
    try:
        spread = 0.0 if sigma is None else float(str(sigma.value))
    except ValueError:
        spread = math.nan
    if not 0 <= spread <= 4 or (sigma is None) != (median is None):
        problems.add(sigma or item, 'sigma goes with median and is a number from 0 to 4; for example sigma = "1.4"')
    if len(problems) > before or count is None:
        return []
    if median is None:
        return [size or 1] * count
    draw = random.Random(int.from_bytes(hashlib.sha256(flow.encode()).digest()[:8]))
    return [min(LARGEST_OBJECT, max(1, round(draw.lognormvariate(math.log(median), spread)))) for _ in range(count)]
