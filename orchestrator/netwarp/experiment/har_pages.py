"""Reads pages from a HAR file (HTTP Archive 1.2), as browsers' tools and `netwarp export --har` write them:
`page = { har = "today.har" }`.

Of every page: the size of its first response (the HTML), those of the others, and how long its reader then took. When
each request was made is not used: here all objects are asked for when the HTML is there.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from .fields import NAME
from .problems import Problems
from .toml_positions import Item

LARGEST_FILE_BYTES = 64 << 20
NOT_KNOWN = -1
"""HAR's number for a size that is not known."""
Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
"""ISO 8601 with its zone, as HAR demands."""


class _Content(msgspec.Struct):
    size: int = NOT_KNOWN


class _Response(msgspec.Struct, rename="camel"):
    content: _Content = msgspec.field(default_factory=_Content)
    body_size: int = NOT_KNOWN
    headers_size: int = NOT_KNOWN
    transferred: int = msgspec.field(default=NOT_KNOWN, name="_transferSize")
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


@dataclass(frozen=True, slots=True)
class HarPage:
    """Sizes of whole responses in bytes; think_ns: from this page's end to the start of the next one in the file."""

    html_bytes: int
    object_bytes: tuple[int, ...]
    think_ns: int | None


def read_har(text: bytes) -> list[HarPage]:
    """The pages of an archive in the order of time. Raises ValueError: no HAR, or no page with a response in it.

    A response without a byte (from a cache, or not finished) is no object. An archive without pages is one page.
    """
    try:
        log = msgspec.json.decode(text, type=_Archive).log
    except msgspec.DecodeError as error:
        raise ValueError(f"is no HAR 1.2: {error}") from error
    pages = sorted(log.pages, key=lambda page: page.started_date_time)
    by_page = [_sizes(entry for entry in log.entries if entry.pageref == page.id) for page in pages]
    if not pages:
        by_page = [_sizes(log.entries)]
    thinks = [*(_think_ns(*pair) for pair in itertools.pairwise(pages)), None]
    whole = [HarPage(sizes[0], sizes[1:], think) for sizes, think in zip(by_page, thinks, strict=True) if sizes]
    if not whole:
        raise ValueError("has no page with a response of known size")
    return whole


def _sizes(entries: Iterable[_Entry]) -> tuple[int, ...]:
    ordered = sorted(entries, key=lambda entry: entry.started_date_time)
    return tuple(size for size in (_size(entry.response) for entry in ordered) if size > 0)


def _size(response: _Response) -> int:
    """The bytes that came over the network: a body's size may be unknown where its content's is not."""
    if response.transferred > 0:
        return response.transferred
    body = response.body_size if response.body_size != NOT_KNOWN else response.content.size
    return max(body, 0) + max(response.headers_size, 0) if body > 0 else 0


def _think_ns(page: _Page, after: _Page) -> int:
    passed = (after.started_date_time - page.started_date_time) / datetime.timedelta(microseconds=1)
    return max(0, round(passed * 1000 - max(page.page_timings.on_load or 0, 0) * 1e6))  # -1: not known


def with_archives(document: Item, folder: Path, files: dict[str, bytes], problems: Problems) -> Item:
    """The document with every `page.har`, a file beside the spec, read into a table; `files` gets their bytes."""
    if isinstance(document.value, list):
        return document.with_value([with_archives(child, folder, files, problems) for child in document.items()])
    if not isinstance(document.value, dict):
        return document
    page = document.key.rpartition(".")[2] == "page"
    return document.with_value(
        {
            key: _read(child, folder, files, problems)
            if page and key == "har" and isinstance(child.value, str)
            else with_archives(child, folder, files, problems)
            for key, child in document.table().items()
        }
    )


def _read(item: Item, folder: Path, files: dict[str, bytes], problems: Problems) -> Item:
    """A list with one [HTML, objects..., think_ns or -1] a page, at the file's position in the spec."""
    name = str(item.value)
    stem, _, kind = name.rpartition(".")
    path = folder / name
    if kind != "har" or not NAME.fullmatch(stem) or not path.is_file():
        problems.add(item, f'"{name[:60]}" is no .har file beside the spec; for example har = "today.har"')
        return item
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise ValueError(f"is larger than {LARGEST_FILE_BYTES} bytes")
        files[name] = path.read_bytes()
        pages = read_har(files[name])
    except ValueError as error:
        problems.add(item, f"{name} {error}")
        return item
    return item.with_value([_row(page, item) for page in pages])


def _row(page: HarPage, item: Item) -> Item:
    numbers = (page.html_bytes, *page.object_bytes, NOT_KNOWN if page.think_ns is None else page.think_ns)
    return item.with_value([item.with_value(number) for number in numbers])


def pages_of(item: Item) -> list[HarPage]:
    """The pages that with_archives() put in place of a file's name; [] if it could not."""
    rows = [[int(str(number.value)) for number in row.items()] for row in item.items()]
    return [HarPage(row[0], tuple(row[1:-1]), None if row[-1] == NOT_KNOWN else row[-1]) for row in rows]
