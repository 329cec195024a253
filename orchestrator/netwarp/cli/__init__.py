"""The command line: `netwarp COMMAND`. Only this room prints."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from ..core.errors import NetwarpError

EXIT_UNAVAILABLE = 77
EXIT_INTERRUPTED = 130
COMMANDS = {
    "run": "run",
    "analyze": "analyze",
    "plan": "commands",
    "report": "commands",
    "unpack": "commands",
    "profiles": "commands",
    "claims": "claims",
    "export": "export",
    "clean": "clean",
    "compare": "compare",
    "merge": "merge",
    "verify": "verify",
    "replay": "verify",
    "bundle": "verify",
    "agree": "agree",
    "calibrate": "calibrate",
    "shell": "shell",
    "doctor": "doctor",
    "kernel": "kernel",
    "selftest": "selftest",
}
"""Command -> the module here that declares it, in the order of --help."""


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status (0 done, 1 some cells did not complete, 2 bad spec or arguments,
    3 a kernel's source does not build, 77 the back end cannot run here, 130 interrupted)."""
    try:
        with terminable():
            return _run(argv)
    except KeyboardInterrupt:
        print("netwarp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The named command with its arguments; by default every command. Importing all of them takes a second, so a typed
    command imports only its own module.
    """
    from .version import Version

    parser = argparse.ArgumentParser(
        prog="netwarp", description="Transport-protocol experiments on unmodified Linux kernels, in virtual time."
    )
    parser.add_argument("--version", action=Version, nargs=0, help="netwarp, its commit, the guest kernel; exit")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more on stderr; errors with their traceback")
    # prog: without it argparse formats a usage message to find it, which imports shutil and all that unpacks files
    commands = parser.add_subparsers(prog=parser.prog, dest="command", required=True, metavar="COMMAND")
    for module in dict.fromkeys([COMMANDS[command]] if command else COMMANDS.values()):
        importlib.import_module(f".{module}", __name__).add_parser(commands)
    return parser


def _command(argv: Sequence[str]) -> str | None:
    """The command that was typed; None if there is none or it is unknown: then the complete parser answers."""
    word = next((word for word in argv if not word.startswith("-")), "")
    return word if word in COMMANDS else None


def _run(argv: list[str] | None) -> int:
    typed = tuple(sys.argv[1:] if argv is None else argv)
    args = make_parser(_command(typed)).parse_args(typed)
    args.typed = typed
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
def terminable() -> Iterator[None]:
    """Makes SIGTERM act like Ctrl-C everywhere (while cells run, execute() handles both)."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
