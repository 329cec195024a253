"""`netwarp analyze`: analyses a run directory again, or captures of any origin (docs/analyze.md)."""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import CaptureError, SpecError
from . import EXIT_INTERRUPTED
from .escaped_streams import escaped_json
from .places import new_file, new_folder

MOST_NAMED = 5
"""Cells that are named when their raw files are missing."""
JSON_DEPTH = 4
"""Levels of the object down to a file's list of connections."""
JSON_INDENTED = 50
"""Connections of a file that are written as indented JSON; of the others each is one line, half as long."""
JSON_TOGETHER = 1024
"""Lines that are made at once."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "analyze",
        example="netwarp analyze sender.pcap receiver.pcap --join",
        description="RUN_DIR: derive its measurements, tables and report's data again. CAPTURE: what is in pcap files "
        "of any origin (also compressed; - is standard input, where Ctrl-C ends the reading; a directory stands for "
        "the captures in it). "
        "docs/analyze.md explains what is printed.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="RUN_DIR | CAPTURE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--csv", type=new_folder, metavar="DIR", help="write tidy tables into a new directory, or one of ours"
    )
    parser.add_argument("--html", type=new_file, metavar="FILE", help="write one self-contained page with charts")
    parser.add_argument("--join", action="store_true", help="the captures are of one run: loss and delay of each hop")
    parser.add_argument("--one-clock", action="store_true", help="with --join: all captures' times are of one clock")
    parser.add_argument("--merge", action="store_true", help="the captures are the interfaces of one node: one summary")
    parser.add_argument("--full", action="store_true", help="look at everything, however large the capture is")
    parser.add_argument("--filter", metavar="EXPRESSION", help="only packets that match, in libpcap's language")
    parser.add_argument(
        "--captured-at",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="the host that captured, where no handshake shows it; several times for several addresses",
    )
    parser.add_argument("--flow", type=int, metavar="N", help="only the connection of this number in the summary")
    parser.add_argument(
        "--spec", type=Path, metavar="SPEC", help="RUN_DIR: make the tables, claims and answers of this spec instead"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="RUN_DIR: cells at a time")
    parser.add_argument(
        "--parquet", action="store_true", help="RUN_DIR: write the tables as Parquet too (needs polars)"
    )
    parser.add_argument(
        "--with-invalid", action="store_true",
        help="RUN_DIR: write the numbers of INVALID cells to tables/invalid.csv, apart from all others, each with the "
        "reason",
    )  # fmt: skip
    parser.set_defaults(run=run_analyze)


def run_analyze(args: argparse.Namespace) -> int:
    """`netwarp analyze`."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here multiplies matrices: NumPy need start no threads
    if len(args.paths) == 1 and args.paths[0].is_dir():
        from ..store.run_dir import RunDir

        if RunDir(args.paths[0]).plan.is_file():
            return _run_directory(args.paths[0], args.spec, args.jobs, args.parquet, with_invalid=args.with_invalid)
    if args.with_invalid:
        raise SpecError(f"--with-invalid: is of a run's cells, and {args.paths[0]} is no run directory")
    if args.parquet:
        raise SpecError(f"--parquet: writes the tables of a run, and {args.paths[0]} is no run directory")
    if args.spec:
        raise SpecError(f"--spec: asks for outputs of a run, and {args.paths[0]} is no run directory")
    if args.one_clock and not args.join:
        raise SpecError("--one-clock says something about joined captures: give --join too")
    if args.csv:
        from ..present.captures.csv_files import claim, write_tables

        claim(args.csv)  # refused at once, not after minutes of reading
    if args.html:
        from ..present.captures.page_sections import claim_page, write_page

        claim_page(args.html)
    from ..engine.captures import analyze_captures
    from .stop_reading import stop_reading_on_interrupt

    live = any(str(path) == "-" or path.is_fifo() for path in args.paths)
    with stop_reading_on_interrupt() if live else contextlib.nullcontext() as stop:
        try:
            analyzed = analyze_captures(
                args.paths,
                join=args.join,
                one_clock=args.one_clock,
                merge=args.merge,
                full=args.full,
                packet_filter=args.filter,
                captured_at=args.captured_at,
                flow=args.flow,
                stop_fd=stop.fd if stop else None,
            )
        except CaptureError as error:
            if not (stop and stop.stopped):
                raise
            print(f"netwarp: stopped by Ctrl-C before there was anything to analyse ({error})", file=sys.stderr)
            return EXIT_INTERRUPTED
    if args.csv:
        write_tables(args.csv, analyzed.files, analyzed.join)
    if args.html:
        write_page(args.html, analyzed.files, analyzed.join)
    for reason in analyzed.refused:
        print(f"netwarp: {reason}", file=sys.stderr)
    status = 1 if analyzed.refused else 0
    if stop and stop.stopped:
        print("netwarp: stopped by Ctrl-C: this is of what was read until then", file=sys.stderr)
        status = EXIT_INTERRUPTED
    if args.json:
        _write_json(analyzed.as_json(flows_in_parts=True))
        return status
    from .analyze_text import print_captures

    print_captures(analyzed.files, analyzed.join)
    if args.csv:
        print(f"tables: {args.csv}")
    if args.html:
        print(f"page: {args.html}")
    return status


def _write_json(value: Any) -> None:
    """To stdout, in parts. Python looks for cycles of references after so many new objects; that would be a fifth of
    the time where connections are many, and connections have none.
    """
    gc.disable()
    try:
        sys.stdout.buffer.writelines(_json_parts(value, b"\n", JSON_DEPTH))
        sys.stdout.buffer.write(b"\n")
    finally:
        gc.enable()


def _json_parts(value: Any, line: bytes, depth: int) -> Iterator[bytes]:
    """Indented JSON, the outer `depth` levels in parts: a capture may have more connections than fit in memory as text.
    line: what begins a line of `value`.
    """
    if depth and isinstance(value, dict):
        comma = b"{"
        for key, item in value.items():
            yield comma + line + b'  "' + key.encode() + b'": '
            yield from _json_parts(item, line + b"  ", depth - 1)
            comma = b","
        yield line + b"}"
    elif depth and isinstance(value, list | Iterator):
        items = iter(value)
        comma = b"["
        for item in itertools.islice(items, JSON_INDENTED):
            yield comma + line + b"  "
            yield from _json_parts(item, line + b"  ", depth - 1)
            comma = b","
        while some := list(itertools.islice(items, JSON_TOGETHER)):
            yield comma + line + b"  " + _json_lines(some, b"," + line + b"  ")
        yield line + b"]" if comma == b"," else b"[]"
    else:
        yield _json(value).replace(b"\n", line)


def _json(value: Any) -> bytes:
    import msgspec

    return escaped_json(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _json_lines(values: Sequence[Any], between: bytes) -> bytes:
    """Each value as one line."""
    import msgspec

    return escaped_json(msgspec.json.Encoder().encode_lines(values).rstrip(b"\n").replace(b"\n", between))


def _run_directory(root: Path, spec: Path | None, jobs: int | None, parquet: bool, *, with_invalid: bool) -> int:
    from ..engine.analysis import analyze
    from ..engine.invalid_cells import write_invalid
    from ..engine.stored_files import not_what_it_wrote
    from .summary import invalid_lines, print_summary

    analyzed = analyze(root, spec=spec, jobs=jobs, parquet=parquet)
    if with_invalid:
        print("\n".join(invalid_lines(analyzed.run, write_invalid(analyzed.run))))
    print_summary(analyzed.run)
    for line in not_what_it_wrote(root, analyzed.changed):
        print(line, file=sys.stderr)
    if analyzed.missing:
        _say_missing(analyzed.missing)
    if analyzed.not_analyzed:
        _say_not_analyzed(analyzed.not_analyzed, len(analyzed.run.plan.cells))
    return 0 if analyzed.complete else 1


def _say_missing(missing: Sequence[Mapping[str, str]]) -> None:
    """Prints the combinations of levels of the spec for which the run has no cell; claims that need them are not
    tested.
    """
    from ..core.units import counted

    print(f"netwarp: the run has no cells of {counted(len(missing), 'combination')} of the spec:", file=sys.stderr)
    for levels in missing[:MOST_NAMED]:
        print(f"  {', '.join(f'{factor}={level}' for factor, level in levels.items())}", file=sys.stderr)
    if len(missing) > MOST_NAMED:
        print(f"  ... and {len(missing) - MOST_NAMED} more", file=sys.stderr)


def _say_not_analyzed(missing: Mapping[str, list[str]], cells: int) -> None:
    """Prints the cells that keep their outcome and derived files, and why."""
    print(
        f"netwarp: {len(missing)} of {cells} cells were not analysed again; their outcomes and derived files stay. "
        "Missing files:",
        file=sys.stderr,
    )
    for cell_id, files in list(missing.items())[:MOST_NAMED]:
        print(f"  {cell_id}: {', '.join(files)}", file=sys.stderr)
    if len(missing) > MOST_NAMED:
        print(f"  ... and {len(missing) - MOST_NAMED} more cells", file=sys.stderr)
