"""The command line: `netwarp COMMAND`. Only this room prints."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import logging
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import NetwarpError, os_words
from ..core.lines import columns, lines_text
from ..core.processes import ending_signals
from .escaped_streams import escaped_streams, indented

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:  # it takes no subscript while it runs
    Subparsers = argparse._SubParsersAction

EXIT_UNAVAILABLE = 77
EXIT_INTERRUPTED = 130
HOMES: dict[str, dict[str, tuple[tuple[str, ...], str]]] = {
    "write": {
        "plan": (("commands",), "show the cells of a spec, or print an example of one"),
        "profiles": (("commands",), "list the link profiles, and measurements of them"),
    },
    "run": {
        "run": (("run",), "run an experiment and make its tables and report"),
        "search": (("search",), "find the levels of factors at which a metric is worst"),
        "shell": (("shell",), "open a shell on a node of a cell's network"),
        "sctp": (("sctp",), "check the SCTP settings of two ends, or find good ones"),
        "calibrate": (("calibrate",), "measure links, and compare them with their settings"),
    },
    "read": {
        "analyze": (("analyze",), "analyse a run again, or captures of any origin"),
        "explain": (("explain",), "tell the course of connections, and each end's settings"),
        "report": (("commands",), "make the report of a run again"),
        "export": (("commands",), "write captures as plain pcap files, or pages as HAR"),
    },
    "compare": {
        "compare": (("compare", "agree", "claims"), "compare two runs, two back ends, or claims and sources"),
    },
    "keep": {
        "archive": (("archive",), "merge runs, pack one as a file, verify or replay it"),
        "clean": (("commands",), "remove files of runs that can be made again, or captures"),
    },
    "machine": {
        "doctor": (("doctor",), "check this machine: what can run, what is missing"),
        "kernel": (("kernel",), "build, list and compare guest kernels, explore schedules"),
        "selftest": (("selftest",), "run the kernel's own tests, in guests in virtual time"),
    },
}
"""Question -> command -> the modules here that declare it, and its line of --help."""
COMMANDS = {word: home for words in HOMES.values() for word, home in words.items()}
USUAL_VERB = {"compare": "runs"}
"""Command -> the verb that is meant where none is typed."""


LIMIT_HELP = "read larger files from elsewhere, e.g. 'bytes=4 GiB' (docs/security.md has the names)"


class Words(Subparsers):
    """The commands. What a module declares as "archive merge" is the verb `merge` of the command `archive`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._verbs: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """As argparse has it, with `example`, a command line that --help ends with. The `help` of a command is that of
        HOMES; without a description --help begins with it.
        """
        word, _, verb = name.partition(" ")
        usual = {"help": COMMANDS[word][1]}
        if not verb:
            parser = super().add_parser(word, **explained(usual | options))
        else:
            if word not in self.choices:
                command = super().add_parser(word, **explained(usual | {"example": f"netwarp {word} VERB --help"}))
                self._verbs[word] = command.add_subparsers(prog=command.prog, required=True, metavar="VERB")
            parser = self._verbs[word].add_parser(verb, **explained(options))
        parser.set_defaults(asked=name)
        parser.add_argument("--limit", action="append", default=[], metavar="NAME=VALUE", help=LIMIT_HELP)
        return parser

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Hands what follows to the command that was typed."""
        word, *more = values
        usual = USUAL_VERB.get(word)
        if usual and more and more[0] not in ("-h", "--help", *self._verbs[word].choices):
            values = [word, usual, *more]
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with the nearest word that it knows, and where to read more."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """As argparse calls it, of a command, a verb and a value that is one of some."""
        if action.choices is None or value in action.choices:
            return
        from ..experiment.problems import nearest  # here: the kernel's commands do with the standard library

        known = [*map(str, action.choices)]
        if isinstance(action, Words) or action.metavar == "VERB":
            what = "command" if isinstance(action, Words) else "verb"
            options = [name for name in self._option_string_actions if name == f"--{value}"]
            near = nearest(str(value), options or known)
            raise argparse.ArgumentError(None, f'there is no {what} "{value}"{near}')
        name = "/".join(action.option_strings) or str(action.metavar or action.dest)
        raise argparse.ArgumentError(None, f'{name}: there is no "{value}"{nearest(str(value), known)}')

    def of(self, words: str) -> Parser:
        """The parser of a command, or of a verb: "archive merge"."""
        parser = self
        for word in words.split():
            action = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
            parser = action.choices[word]
        return parser

    def refuse_options(self, unknown: Sequence[str]) -> NoReturn:
        """Ends with an error about options, or words, that nothing here knows."""
        from ..experiment.problems import nearest

        option = unknown[0].partition("=")[0]
        if not option.startswith("-"):
            self.error(f'"{unknown[0]}" is one argument too many')
        known = [name for name in self._option_string_actions if name.startswith("--")]
        self.error(f"there is no option {option}{nearest(option, known)}")

    def error(self, message: str) -> NoReturn:
        """In one sentence on stderr, status 2."""
        message = re.sub(r"^argument (\S+): invalid int value: '(.*)'$", r'\1: "\2" is no whole number', message)
        if message.endswith("required: VERB"):
            verbs = next(action for action in self._actions if action.metavar == "VERB")
            message = f"which verb? There is: {', '.join(verbs.choices or ())}"
        more = f"{'' if message.endswith('?') else ';'} see {self.prog} --help"
        self.exit(2, f"{self.prog.partition(' ')[0]}: {indented(message + more)}\n")


def explained(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a parser: `help` is its description if it has none, `example` the last line of its --help."""
    said: str = options["help"]
    rest = {key: value for key, value in options.items() if key != "example"}
    return {"description": f"{said[0].upper()}{said[1:]}.", "epilog": f"example: {options['example']}"} | rest


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status (0 done, 1 some cells did not complete, 2 bad spec or arguments,
    3 a kernel's source does not build, 77 the back end cannot run here, 130 interrupted)."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads that nothing here uses: 40 ms
    try:
        with escaped_streams(), terminable():
            return _run(argv)
    except KeyboardInterrupt:
        print("netwarp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def make_parser(command: str | None = None) -> Parser:
    """The named command with its arguments ("": none, for --version and --help); by default every command. Importing
    all of them takes a second, so a typed command imports only its own module.
    """
    from .version import Version

    listed = columns(
        [
            (home if word == next(iter(words)) else "", word, said)
            for home, words in HOMES.items()
            for word, (_, said) in words.items()
        ],
        indent="  ",
    )
    parser = Parser(
        prog="netwarp",
        usage="netwarp [-h] [--version] [-v] COMMAND ...",
        description="Transport-protocol experiments on unmodified Linux kernels, in virtual time.\n"
        + lines_text(listed),
        epilog="netwarp COMMAND --help: its options and an example.\n"
        "-v: more on stderr, tracebacks of errors; --version: commit, guest kernel.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,  # a line each of these would not fit 24 lines
    )
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    parser.add_argument("--version", action=Version, nargs=0, help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    # prog: without it argparse formats a usage message to find it, which imports shutil and all that unpacks files
    commands = parser.add_subparsers(
        action=Words, prog=parser.prog, dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    homes = [home for word, (home, _) in COMMANDS.items() if command in (None, word)]
    for module in dict.fromkeys(module for home in homes for module in home):
        importlib.import_module(f".{module}", __name__).add_parser(commands)
    return parser


def _command(argv: Sequence[str]) -> str | None:
    """The command that was typed, "" if there is none; None if it is unknown: then the complete parser answers."""
    word = next((word for word in argv if not word.startswith("-")), "")
    return word if word in ("", *COMMANDS) else None


def _run(argv: list[str] | None) -> int:
    typed = tuple(sys.argv[1:] if argv is None else argv)
    parser = make_parser(_command(typed))
    ours = list(
        itertools.takewhile(lambda word: word.startswith("-"), typed)
    )  # a program after the command has its own
    verbose = not {"-v", "--verbose"}.isdisjoint(ours)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, format="netwarp: %(message)s")
    try:
        if not typed:
            parser.print_help(sys.stderr)
            return 2
        known = parser._option_string_actions
        if strange := [word for word in ours if word not in known and not _abbreviates(word, known)]:
            parser.refuse_options(strange)
        args, unknown = parser.parse_known_args(typed)
        if unknown:
            parser.of(args.asked).refuse_options(unknown)
        args.typed = typed
        with _limits(args.limit):
            status: int = args.run(args)
        sys.stdout.flush()
        return status
    except NetwarpError as error:
        if verbose:
            logging.exception("failed")
        print(f"netwarp: {indented(str(error))}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a directory that cannot be made, a disk that filled up
        if verbose:
            logging.exception("failed")
        print(f"netwarp: {indented(os_words(error))}", file=sys.stderr)
        return 1


def _abbreviates(word: str, known: Iterable[str]) -> bool:
    return word.startswith("--") and any(name.startswith(word) for name in known)


def _limits(texts: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    if not texts:
        return contextlib.nullcontext()
    from ..core.limits import raised

    return raised(texts)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP act like Ctrl-C everywhere (while cells run, execute() handles them)."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
