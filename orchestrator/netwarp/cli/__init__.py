"""The command line: `netwarp COMMAND`. Only this layer prints."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator

from ..core.errors import NetwarpError

EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status (0 done, 1 some cells did not complete, 2 bad spec or arguments,
    77 the back end cannot run here, 130 interrupted)."""
    try:
        with _terminable():
            return _run(argv)
    except KeyboardInterrupt:
        print("netwarp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """Every command with its arguments."""
    from .version import Version

    parser = argparse.ArgumentParser(
        prog="netwarp", description="Transport-protocol experiments on unmodified Linux kernels, in virtual time."
    )
    parser.add_argument("--version", action=Version, nargs=0, help="netwarp, its commit, the guest kernel; exit")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more on stderr; errors with their traceback")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    from . import agree, analyze, calibrate, clean, compare, doctor, export, kernel, run, shell
    from . import commands as others

    run.add_parser(commands)
    analyze.add_parser(commands)
    others.add_parsers(commands)
    export.add_parser(commands)
    clean.add_parser(commands)
    compare.add_parser(commands)
    agree.add_parser(commands)
    calibrate.add_parser(commands)
    shell.add_parser(commands)
    doctor.add_parser(commands)
    kernel.add_parser(commands)
    return parser


def _run(argv: list[str] | None) -> int:
    args = make_parser().parse_args(argv)
    args.typed = tuple(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.WARNING, format="netwarp: %(message)s")
    try:
        status: int = args.run(args)
        return status
    except NetwarpError as error:
        if args.verbose:
            logging.exception("failed")
        print(f"netwarp: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a directory that cannot be made, a disk that filled up: the system's own words say it
        if args.verbose:
            logging.exception("failed")
        print(f"netwarp: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is Ctrl-C, whatever is being done (while cells run, execute() takes both for itself)."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
