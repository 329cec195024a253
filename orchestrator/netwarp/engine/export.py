"""Writes captures as plain files, which any program can read, and pages as HAR 1.2, which a browser's tools show."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from ..core.errors import CaptureError, SpecError, StoreError, os_words
from ..core.invocation import command
from ..core.limits import limits
from ..core.types import Cell, Flow
from ..core.version import __version__
from ..measure.cell_records import read_cell_records
from ..store.compressed import LARGEST_WINDOW
from ..store.derived import PageObject, Pages
from ..store.run_dir import RunDir, read_json, write_atomic
from .captures import captures_of
from .run_directory import open_run

PACKED = (".zst", ".gz")
COPY = 1 << 20
HEADER_BYTES = 18
"""Of a Zstandard frame, at most (RFC 8878 3.1.1): the size of its content is in it, -1 where that is not said."""


def export_captures(paths: Sequence[str | Path], out: str | Path) -> Iterator[Path]:
    """Write captures (.zst and .gz decompressed, others copied), or those in directories, into `out`; yields each new
    file.

    All sources and targets are checked before the first file is written. Raises SpecError, CaptureError, StoreError.
    """
    folder = Path(out)
    targets = _targets([source for path in paths for source in _sources(Path(path))], folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, source in targets.items():
            expand(source, target)
            yield target
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # not empty: what is whole stays
                folder.rmdir()
        raise


def _sources(path: Path) -> list[Path]:
    """A capture, or the captures in a directory."""
    if not path.is_dir():
        if not path.is_file():
            if path.name in RunDir(path.parent.parent).finished():
                raise SpecError(
                    f"{path}: that cell is packed; `{command('archive', 'unpack', path.parent.parent)}` opens it"
                )
            raise CaptureError(f"{path}: no such capture")
        return [path]
    if RunDir(path).plan.is_file():
        raise SpecError(f"{path}: is a whole run; name cells of it: {path / 'cells' / 'CELL_ID'}")
    captures = captures_of(path)
    if not captures:
        raise CaptureError(f"{path}: there is no capture in it")
    return captures


def _targets(sources: Sequence[Path], out: Path) -> dict[Path, Path]:
    """The target file of each source. Raises StoreError if a file exists, or if two sources have the same name."""
    targets: dict[Path, Path] = {}
    for source in sources:
        target = out / (source.stem if source.suffix in PACKED else source.name)
        if target in targets:
            raise StoreError(f"{source} and {targets[target]} would both be {target}; export them one by one")
        if target.exists():
            same = target.samefile(source)
            why = "is plain already" if same else "exists; remove it or choose another --out"
            raise StoreError(f"{target}: {why}")
        targets[target] = source
    return targets


def expand(capture: Path, target: Path) -> None:
    """Write a capture's plain bytes into a file, completely or not at all. Raises CaptureError."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with capture.open("rb") as source, temporary.open("wb") as sink:
            size = 0
            if capture.suffix == ".zst":
                size = zstandard.frame_content_size(source.read(HEADER_BYTES))
                source.seek(0)
            with _plain(capture, source) as plain:
                written = _copy(capture, plain, sink, size)
            if written < size:  # the library takes the end of a cut file for that of the frame
                raise CaptureError(f"{capture}: is cut off: {written} of {size} bytes are in it")
        temporary.replace(target)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        said = os_words(error) if isinstance(error, OSError) else error
        raise CaptureError(f"{capture}: cannot be exported: {said}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _plain(capture: Path, source: IO[bytes]) -> contextlib.AbstractContextManager[Any]:
    if capture.suffix == ".zst":
        expanding = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        return expanding.stream_reader(source, read_across_frames=True, closefd=False)
    return gzip.open(source) if capture.suffix == ".gz" else contextlib.nullcontext(source)


def _copy(capture: Path, plain: IO[bytes], sink: IO[bytes], size: int) -> int:
    """Copy at most as many bytes as the limit; how many. size: that many are expected. Raises CaptureError."""
    written, most = 0, limits().capture_bytes
    while size <= most and (data := plain.read(COPY)):
        written += len(data)
        if written > most:
            break
        sink.write(data)
    if max(written, size) > most:
        raise CaptureError(f"{capture}: expands to {limits().beyond('capture_bytes')}")
    return written


UNKNOWN = -1
"""HAR's number for a size or a timing that is not known or does not apply."""


def export_har(run_dir: str | Path, cell_id: str, out: str | Path) -> list[Path]:
    """Write `<cell>.<flow>.har` for each flow of a cell that is pages into the directory `out`; returns the files.

    Times are the wire's (derived/pages.json); the set-up of a connection is in the entry of its first request.
    SpecError: no such cell, or none of its flows is pages. StoreError: the cell was not analysed, or a file exists.
    """
    run = open_run(run_dir)
    cell = next((cell for cell in run.plan.cells if cell.id == cell_id), None)
    if cell is None:
        raise SpecError(f"{run.path}: has no cell {cell_id}; tables/cells.csv names them")
    flows = [flow for flow in cell.flows if flow.is_page]
    if not flows:
        raise SpecError(f"{cell_id}: none of its flows has a page, which is what a HAR holds")
    directory = run.directory.cell(cell_id)
    pages = read_json(directory.pages, Pages)
    folder = Path(out)
    targets = {folder / f"{cell_id}.{flow.name}.har": flow for flow in flows}
    for target in targets:
        if target.exists():
            raise StoreError(f"{target}: exists already; give another --out")
    folder.mkdir(parents=True, exist_ok=True)
    t0_ns = read_cell_records(directory.init_log).ready.t0_realtime_ns
    for target, flow in targets.items():
        archive = har_of(cell, flow, pages[flow.name], t0_ns)
        write_atomic(target, msgspec.json.format(msgspec.json.encode(archive), indent=1) + b"\n")
    return list(targets)


def har_of(cell: Cell, flow: Flow, objects: Iterable[PageObject], t0_realtime_ns: int) -> dict[str, Any]:
    """The archive of a flow's pages."""
    pages, entries = [], []
    opened: set[tuple[int, float]] = set()
    for page, of_page in itertools.groupby(objects, key=lambda each: each.page):
        whole = [each for each in of_page if each.requested_s is not None and each.delivered_s is not None]
        if not whole:
            continue
        begun = min(_begin(each, opened) for each in whole)
        html = [each.delivered_s for each in whole if each.object == 0]
        ends = [each.delivered_s for each in whole if each.delivered_s is not None]
        pages.append(
            {
                "startedDateTime": _date(begun, t0_realtime_ns),
                "id": f"page_{page}",
                "title": f"{cell.id}, {flow.name}, page {page + 1}",
                "pageTimings": {
                    "onContentLoad": UNKNOWN if not html or html[0] is None else _ms(html[0] - begun),
                    "onLoad": _ms(max(ends) - begun),
                },
            }
        )
        for each in sorted(whole, key=lambda item: (item.requested_s or 0.0, item.object)):
            entries.append(_entry(each, flow, opened, t0_realtime_ns))
    creator = {"name": "netwarp", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "pages": pages, "entries": entries}}


def _begin(each: PageObject, opened: set[tuple[int, float]]) -> float:
    """The first packet of its connection, if that is new; else its request."""
    return (each.requested_s or 0.0) if (each.port, each.opened_s) in opened else each.opened_s


def _entry(each: PageObject, flow: Flow, opened: set[tuple[int, float]], t0_realtime_ns: int) -> dict[str, Any]:
    begun, requested = _begin(each, opened), each.requested_s or 0.0
    opened.add((each.port, each.opened_s))
    first, delivered = each.first_s or requested, each.delivered_s or requested
    connect, wait, receive = _ms(requested - begun), _ms(first - requested), _ms(delivered - first)
    version = "HTTP/2" if "frame_bytes" in flow.receiver_options else "HTTP/1.1"
    version += " over SCTP" if flow.protocol == "sctp" else ""
    place = f"{each.port}" + (f" stream {each.stream}" if flow.protocol == "sctp" else "")
    return {
        "pageref": f"page_{each.page}",
        "startedDateTime": _date(begun, t0_realtime_ns),
        "time": round(connect + wait + receive, 6),
        "request": {
            "method": "GET",
            "url": f"http://{flow.sender}/{'index.html' if each.object == 0 else f'object{each.object}'}",
            "httpVersion": version,
            "cookies": [],
            "headers": [],
            "queryString": [],
            "headersSize": int(flow.receiver_options["request_bytes"]),
            "bodySize": 0,
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": version,
            "cookies": [],
            "headers": [],
            "content": {
                "size": each.bytes,
                "mimeType": "text/html" if each.object == 0 else "application/octet-stream",
            },
            "redirectURL": "",
            "headersSize": UNKNOWN,
            "bodySize": each.bytes,
        },
        "cache": {},
        "timings": {"blocked": UNKNOWN, "dns": UNKNOWN, "ssl": UNKNOWN, "send": 0, "connect": connect or UNKNOWN,
                    "wait": wait, "receive": receive},
        "connection": place,
        "comment": f"complete {_ms(delivered - (each.complete_s or delivered)):g} ms before it could be delivered",
    }  # fmt: skip


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 6)


def _date(seconds: float, t0_realtime_ns: int) -> str:
    """ISO 8601, as HAR wants it, in UTC."""
    instant = datetime.datetime.fromtimestamp((t0_realtime_ns + round(seconds * 1e9)) / 1e9, datetime.UTC)
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
