"""Pages as flows: `page = { html = "13.5 kB", objects = { count = 5, size = "13.5 kB" } }` -> options of its programs.

The programs are apps/web: web-server at the flow's `from`, web-client at its `to`. Sizes are those of whole responses,
with their heads.

A page may be a HAR file (HTTP Archive 1.2), as browsers' tools and `netwarp export --har` write them: `page = { har =
"today.har" }`. Of every page: the size of its first response (the HTML), those of the others, and how long its reader
then took. When each request was made is not used: here all objects are asked for when the HTML is there.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from ..core.frozen import from_json
from ..core.types import OptionValue, Protocol
from .fields import Field, Reader, check_keys, quantity, read_quantity
from .options import LONGEST_LIST
from .problems import Problems
from .side_files import SideFile
from .toml_positions import Item

S = 10**9
LARGEST_FILE_BYTES = 64 << 20
LARGEST_OBJECT = (16 << 20) - 1
_SIZE = quantity("data", example='"13.5 kB"', low=1, high=LARGEST_OBJECT)
_SWITCH = Field("switch", "true")
FRAME_BYTES = 16384
"""HTTP/2's SETTINGS_MAX_FRAME_SIZE unless a client says else (RFC 9113 6.5.2)."""
OBJECTS: dict[str, Field] = {
    "count": Field("integer", "5", low=1, high=LONGEST_LIST),
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
    "keep": _SWITCH,
    "connections": Field("integer", "6", low=1, high=32),
    "pipelined": _SWITCH,
    "multiplexed": _SWITCH,
    "frame": quantity("data", example='"16 KiB"', low=1, high=LARGEST_OBJECT),
    "streams": Field("integer", "6", low=1, high=1000),
    "order": Field("choice", '"rr"', choices=("fcfs", "rr", "prio")),
    "message": quantity("data", example='"488 B"', low=1, high=LARGEST_OBJECT),
    "interleave": _SWITCH,
    "nodelay": _SWITCH,
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
NOT_KNOWN = -1
"""HAR's number for a size that is not known."""
Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
"""ISO 8601 with its zone, as HAR demands."""
Options = dict[str, OptionValue]


@dataclass(frozen=True, slots=True)
class PageSizes:
    """Sizes of whole responses in bytes; think_ns: from this page's end to the start of the next one in a HAR file."""

    html_bytes: int | None
    object_bytes: tuple[int, ...]
    think_ns: int | None = None


def read_page(
    item: Item, flow: str, protocol: Protocol, message_bytes: int, problems: Problems
) -> tuple[Options, Options]:
    """Options of the server and of the client; both empty after saying what is wrong.

    message_bytes: what fills a packet. Sizes by `median` and `sigma` follow from the flow's name, so that every
    repetition and every variant fetches the same page.
    """
    before, page = len(problems), Reader(item, PAGE, problems)
    check_keys(item, PAGE, problems)
    if len(problems) > before:
        return {}, {}
    for key in OF_SCTP if protocol == "tcp" else OF_TCP:
        if page.has(key):
            page.wrong(key, f"is of {'sctp' if protocol == 'tcp' else 'tcp'} only; leave it out")
    kinds = _kinds(page, flow)
    if len(problems) > before:
        return {}, {}
    counts = [len(kind.object_bytes) for kind in kinds]
    pages = page.integer("pages") or len(kinds)
    wanted = page.integer("connections") or 1
    keep = page.switch("keep")
    shared: Options = {"request_bytes": page.whole("request") or 300}
    # the HTML comes over the first connection; each further connection carries at least one object
    used = [max(1, min(wanted, counts[number % len(kinds)])) for number in range(pages)]
    server: Options = {**shared, "expected": max(used) if keep else sum(used)}
    client: Options = {**shared, "pages": pages, "think_ns": _thinks(page, kinds)}
    if kinds[0].html_bytes is not None:
        client["html_bytes"] = _list(kind.html_bytes for kind in kinds)
    if any(counts):
        client["object_bytes"] = _list(size for kind in kinds for size in kind.object_bytes)
    if len(kinds) > 1:
        client["page_objects"] = _list(counts)
    if keep:
        client["keep"] = True
    if protocol == "tcp":
        _connections(page, wanted, server, client)
    else:
        _streams(page, max(counts), message_bytes, server, client)
    if page.switch("nodelay") is not False:
        server["nodelay"] = client["nodelay"] = True
    return server, client


def _connections(page: Reader, wanted: int, server: Options, client: Options) -> None:
    client["connections"] = wanted
    multiplexed, frame, pipelined = page.switch("multiplexed"), page.whole("frame"), page.switch("pipelined")
    if frame is not None and not multiplexed:
        page.wrong("frame", "is of objects in turn; for example multiplexed = true")
    if multiplexed and wanted > 1:
        page.wrong("connections", "multiplexed objects share one connection; leave it out")
    if multiplexed:
        server["frame_bytes"] = client["frame_bytes"] = frame or FRAME_BYTES
    # browsers send one request at a time on each of several connections
    if pipelined is False or (pipelined is None and wanted > 1):
        client["serial"] = True


def _streams(page: Reader, objects: int, message_bytes: int, server: Options, client: Options) -> None:
    streams = page.integer("streams") or objects + 1
    order = page.text("order") or "fcfs"
    key = "streams" if page.has("streams") else "order"
    if order == "rr" and streams < objects:
        said = f"objects take turns, and a stream's bytes would be mixed; for example streams = {objects}"
        page.wrong(key, said)
    if order == "prio" and streams <= objects:
        page.wrong(key, f"late objects would share the streams that go first; for example streams = {objects + 1}")
    client["streams"] = server["streams"] = streams
    server["order"] = order
    server["message_bytes"] = page.whole("message") or message_bytes
    if page.switch("interleave"):
        server["interleave"] = client["interleave"] = True


def _kinds(page: Reader, flow: str) -> list[PageSizes]:
    """The kinds of pages, which take turns: one, or those of the HAR file that a factor's level puts in its place."""
    har = page.item.get("har")
    if har is None:
        html, sizes = page.whole("html"), tuple(_sizes(page.item.get("objects"), flow, page.problems))
        if html is None and not sizes:
            page.wrong("", f"has neither html nor objects; for example objects = {OBJECTS_EXAMPLE}")
        return [PageSizes(html, sizes)]
    if not _are_pages(har):
        page.wrong("har", 'has to stand where the page is written; for example page.har = "today.har"')
        return []
    kinds = pages_of(har)
    objects = sum(len(kind.object_bytes) for kind in kinds)
    largest = max((size for kind in kinds for size in (kind.html_bytes or 0, *kind.object_bytes)), default=0)
    if objects > LONGEST_LIST or len(kinds) > LONGEST_LIST:
        page.wrong("har", f"has {objects} objects on {len(kinds)} pages; of all its pages at most {LONGEST_LIST}")
    if largest > LARGEST_OBJECT:
        page.wrong("har", f"has an object of {largest} B; at most {LARGEST_OBJECT} B")
    return kinds


def _are_pages(har: Item) -> bool:
    """True of what a HAR file became: for each page a list of the HTML, its objects, and the time after it."""
    rows = [child.value for child in har.items()]
    return bool(rows) and all(
        isinstance(row, list) and len(row) > 1 and all(isinstance(part.value, int) for part in row) for row in rows
    )


def _thinks(page: Reader, kinds: Sequence[PageSizes]) -> OptionValue:
    """One time for all pages, or what the HAR file says for each kind; after its last page as long as on the mean."""
    given = page.whole("think")
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
        if len(item.value) > LONGEST_LIST:
            problems.add(item, f"has {len(item.value)} objects; a page has at most {LONGEST_LIST}")
            return []
        read = [read_quantity(child, _SIZE, problems) for child in item.value]
        return [int(quantity.value) for quantity in read if quantity is not None]
    if not isinstance(item.value, dict):
        problems.add(item, f"must be sizes, or how many of which size; for example {OBJECTS_EXAMPLE}")
        return []
    before, objects = len(problems), Reader(item, OBJECTS, problems)
    check_keys(item, OBJECTS, problems)
    count, size, median = objects.integer("count"), objects.whole("size"), objects.whole("median")
    if len(problems) == before and (count is None or (size is None) == (median is None)):
        problems.add(item, f"needs count, and size or median and sigma; for example {OBJECTS_EXAMPLE}")
    try:
        spread = float(item.text("sigma", "0"))
    except ValueError:
        spread = math.nan
    if not 0 <= spread <= 4 or objects.has("sigma") != objects.has("median"):
        objects.wrong("sigma", 'sigma goes with median and is a number from 0 to 4; for example sigma = "1.4"')
    if len(problems) > before or count is None:
        return []
    if median is None:
        return [size or 1] * count
    draw = random.Random(int.from_bytes(hashlib.sha256(flow.encode()).digest()[:8]))
    return [min(LARGEST_OBJECT, max(1, round(draw.lognormvariate(math.log(median), spread)))) for _ in range(count)]


Size = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Content(msgspec.Struct):
    size: Size = NOT_KNOWN


class _Response(msgspec.Struct, rename="camel"):
    content: _Content = msgspec.field(default_factory=_Content)
    body_size: Size = NOT_KNOWN
    headers_size: Size = NOT_KNOWN
    transferred: Size = msgspec.field(default=NOT_KNOWN, name="_transferSize")
    """Chromium's own: head and body as they came, HTTP/2 too."""


class _Entry(msgspec.Struct, rename="camel"):
    started_date_time: Time
    response: _Response
    pageref: str = ""


class _Timings(msgspec.Struct, rename="camel"):
    on_load: float | None = None


class _Page(msgspec.Struct, rename="camel"):
    id: str
    started_date_time: Time
    page_timings: _Timings = msgspec.field(default_factory=_Timings)


class _Log(msgspec.Struct):
    entries: list[_Entry]
    pages: list[_Page] = []


class _Archive(msgspec.Struct):
    log: _Log


def read_har(text: bytes) -> list[PageSizes]:
    """The pages of an archive in the order of time. Raises ValueError: no HAR, or no page with a response in it.

    A response without a byte (from a cache, or not finished) is no object. An archive without pages is one page.
    """
    try:
        log = from_json(text, _Archive).log
    except msgspec.DecodeError as error:
        raise ValueError(f"is no HAR 1.2: {error}") from error
    pages = sorted(log.pages, key=lambda page: page.started_date_time)
    by_page = [_sizes_of(entry for entry in log.entries if entry.pageref == page.id) for page in pages]
    thinks = [*(_think_ns(*pair) for pair in itertools.pairwise(pages)), None]
    by_page = by_page or [_sizes_of(log.entries)]
    whole = [PageSizes(sizes[0], sizes[1:], think) for sizes, think in zip(by_page, thinks, strict=True) if sizes]
    if not whole:
        raise ValueError("has no page with a response of known size")
    return whole


def _sizes_of(entries: Iterable[_Entry]) -> tuple[int, ...]:
    ordered = sorted(entries, key=lambda entry: entry.started_date_time)
    return tuple(size for size in (_size(entry.response) for entry in ordered) if size > 0)


def _size(response: _Response) -> int:
    """The bytes that came over the network: a body's size may be unknown where its content's is not."""
    if response.transferred > 0:
        return response.transferred
    body = response.body_size if response.body_size != NOT_KNOWN else response.content.size
    return max(body, 0) + max(response.headers_size, 0) if body > 0 else 0


def _think_ns(page: _Page, after: _Page) -> int:
    # onLoad is -1 where it is not known, and may be larger than all times
    passed = (after.started_date_time - page.started_date_time) / datetime.timedelta(microseconds=1)
    return round(max(0.0, passed * 1000 - max(page.page_timings.on_load or 0, 0) * 1e6))


def _rows_of_har(content: bytes) -> list[tuple[int, ...]]:
    """Of each page: HTML, objects..., think_ns or -1."""
    pages = read_har(content)
    thinks = (NOT_KNOWN if page.think_ns is None else page.think_ns for page in pages)
    return [(page.html_bytes or 0, *page.object_bytes, think) for page, think in zip(pages, thinks, strict=True)]


HAR_FILE = SideFile(("page",), "har", ("har",), "today.har", LARGEST_FILE_BYTES, _rows_of_har)


def pages_of(item: Item) -> list[PageSizes]:
    """The pages that stand in place of a file's name."""
    rows = [[int(str(number.value)) for number in row.items()] for row in item.items()]
    return [PageSizes(row[0], tuple(row[1:-1]), None if row[-1] == NOT_KNOWN else row[-1]) for row in rows]
