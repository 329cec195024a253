"""`netwarp explain`: what happened in captures of any origin, and what the ends were set to (docs/signalling.md)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..core.errors import SpecError
from ..core.lines import Line
from .output import print_json, print_lines, run_lines, terminal_width
from .places import new_folder

LEAST_ROWS = 5


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        description="The course of each SCTP association and TCP connection in words, what its packets say of each "
        "end's settings, and the network's part. CAPTURE: pcap files of any origin (also compressed), or a cell's "
        "directory; captures of one connection at several points are explained together.",
        example="netwarp explain gnb.pcap amf.pcap --what-if 'b.rto_min=300 ms'",
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="CAPTURE | CELL_DIR")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--merge", action="store_true", help="the captures are the interfaces of one node")
    parser.add_argument("--filter", metavar="EXPRESSION", help="only packets that match, in libpcap's language")
    parser.add_argument(
        "--captured-at",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="the host that captured, where no handshake shows it; several times for several addresses",
    )
    parser.add_argument(
        "--ladder",
        nargs="?",
        const="",
        metavar="FILE.svg",
        help="draw each connection's sequence diagram beside its words; with a file's name the largest one's as SVG "
        "(of another name: a capture)",
    )
    parser.add_argument(
        "--rows", type=int, metavar="N", help="with --ladder: its rows at most (default: 40; what is left is folded)"
    )
    parser.add_argument(
        "--what-if",
        action="append",
        metavar="CHANGE",
        help='play the largest SCTP association again, then with other settings: "b.rto_min=300 ms" (a asked for it, b '
        "answered; several with commas between)",
    )
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="with --what-if: its directory (default: results/what-if/<time>)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="with --what-if: cells at once (default: cores)")
    parser.set_defaults(run=run_explain)


def run_explain(args: argparse.Namespace) -> int:
    """`netwarp explain`: 1 if a capture was not read, or if --what-if has no answer."""
    from ..engine.captures import explain_captures

    if args.ladder and not args.ladder.endswith(".svg"):
        args.paths, args.ladder = [Path(args.ladder), *args.paths], ""
    if not args.paths:
        raise SpecError("explain: name a CAPTURE or a CELL_DIR; see netwarp explain --help")
    _check_ladder(args)
    if args.what_if:
        return _run_what_if(args)
    if args.out is not None or args.jobs is not None:
        raise SpecError("explain: --out and --jobs belong to --what-if, which runs cells")
    explained = explain_captures(args.paths, merge=args.merge, packet_filter=args.filter, captured_at=args.captured_at)
    for reason in explained.refused:
        print(f"netwarp: {reason}", file=sys.stderr)
    if args.json:
        print_json(explained.as_json())
    else:
        from ..present.captures.explanation_words import explanation_text

        texts = [explanation_text(each, terminal_width()) for each in explained.connections]
        if args.ladder is not None:
            from ..captures.ladder import MOST_ROWS, ladder
            from ..core.lines import lines_text
            from ..present.captures.ladder_picture import ladder_lines, ladder_svg
            from ..store.run_dir import write_atomic

            drawn = [ladder(*each.views[0], args.rows or MOST_ROWS) for each in explained.connections]
            if args.ladder and drawn:
                write_atomic(Path(args.ladder), ladder_svg(drawn[0], alone=True).encode())
            elif not args.ladder:
                texts = [f"{text}\n\n{lines_text(ladder_lines(each), terminal_width())}"
                         for text, each in zip(texts, drawn, strict=True)]  # fmt: skip
        print("\n\n".join(texts) or "no TCP connection or SCTP association is in there")
    return 1 if explained.refused else 0


def _check_ladder(args: argparse.Namespace) -> None:
    if args.ladder is None:
        if args.rows is not None:
            raise SpecError("explain: --rows belongs to --ladder")
        return
    if args.json or args.what_if:
        raise SpecError("explain: --ladder is a picture: without --json and --what-if")
    if args.rows is not None and args.rows < LEAST_ROWS:
        raise SpecError(f"explain: --rows {args.rows}: at least {LEAST_ROWS}")


def _run_what_if(args: argparse.Namespace) -> int:
    from ..engine.what_if import what_if
    from ..engine.what_if_words import what_if_conclusion
    from ..present.captures.explanation_words import explanation_lines
    from ..present.conclusion_words import conclusion_lines
    from .progress import TerminalProgress

    with TerminalProgress() as progress:
        found = what_if(
            args.paths, args.what_if, merge=args.merge, packet_filter=args.filter, captured_at=args.captured_at,
            out=args.out, jobs=args.jobs, progress=progress, arguments=args.typed,
        )  # fmt: skip
    if args.json:
        print_json(found.explanation.as_json() | {"what_if": found.as_json()})
    else:
        print_lines(
            [
                *explanation_lines(found.explanation), Line(""), *conclusion_lines(what_if_conclusion(found)), Line(""),
                Line("the cell: ", str(found.spec)), *run_lines(found.run),
            ]
        )  # fmt: skip
    return 0 if found.answered else 1
