"""The table of commands: what they declare, the homes of --help, and that a command imports only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from netwarp.cli import COMMANDS, HOMES, main, make_parser
from support.captures import recorded

SAYS_MODULES = """
import atexit, sys
from netwarp.cli import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.exit(main(sys.argv[1:]))
"""
OTHERS = ("rich", "pyroute2", "jinja2", "plotly", "matplotlib", "tree_sitter", "zstandard", "asyncio", "hashlib")
ROOMS = ("present", "results", "measure", "sandbox", "store", "testbed", "plan", "experiment", "doctor", "guestkernel")


def modules(*arguments: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SAYS_MODULES, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return set(done.stderr.split())


def test_a_capture_as_json_needs_its_own_protocol_only() -> None:
    tcp = modules("analyze", *recorded("tcp", "a", ["p1"]), "--json")
    assert not tcp & {*OTHERS, *(f"netwarp.{room}" for room in ROOMS)}
    assert {name.split(".")[2] for name in tcp if name.startswith("netwarp.captures.")}.isdisjoint(
        {"sctp", "mptcp", "join"}
    )
    sctp = modules("analyze", *recorded("sctp", "a", ["p1"]), "--json")
    assert "netwarp.captures.sctp" in sctp and "netwarp.captures.tcp" not in sctp


def test_a_capture_as_text_needs_no_report() -> None:
    text = modules("analyze", *recorded("tcp", "a", ["p1"]))
    assert not text & {"jinja2", "plotly", "numpy.ma", "netwarp.results", "netwarp.store", "netwarp.plan"}
    assert "netwarp.captures.mptcp" not in text


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_netwarp_is_needs_no_command(option: str) -> None:
    found = modules(option)
    assert not found & {"rich", "numpy", "pyroute2", "jinja2", "plotly", "matplotlib", "tree_sitter", "netwarp.engine"}


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("plan", ', did you mean "--where"?'),
        ("archive verify", "; there is: --help, --limit, --shard, --jobs, --allow-programs;"),
    ],
)
def test_an_unknown_option_names_the_help_that_lists_them(
    capsys: pytest.CaptureFixture[str], command: str, near: str
) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "x.toml", "--were", "a=b"])
    assert f"there is no option --were{near} see netwarp {command} --help" in capsys.readouterr().err


def test_the_table_of_commands_is_what_they_declare() -> None:
    """All together, and each alone."""
    declared = make_parser()._subparsers
    assert declared is not None
    (choices,) = (action.choices for action in declared._group_actions)
    assert choices is not None and set(choices) == set(COMMANDS)
    for command in COMMANDS:
        make_parser(command).format_help()


def test_help_lists_every_command_in_its_home_on_one_screen() -> None:
    """24 lines of 80 columns."""
    lines = make_parser("doctor").format_help().splitlines()
    listed = [line.split() for line in lines if line.startswith("  ") and not line.startswith("  -")]
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert [words[0] for words in listed if words[0] in HOMES and words[1] in HOMES[words[0]]] == list(HOMES)
    assert {word for words in listed for word in words[:2]} >= set(COMMANDS) and len(COMMANDS) <= 17


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("compare a b", "compare runs a b"), ("compare --json a b", "compare runs --json a b")],
)
def test_a_command_without_a_verb_is_its_usual_one(typed: str, meant: str) -> None:
    assert make_parser("compare").parse_args(typed.split()) == make_parser("compare").parse_args(meant.split())


def test_an_unknown_command_is_an_error_that_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        make_parser().parse_args(["agree", "a", "b"])
    said = capsys.readouterr().err
    assert [word for word in COMMANDS if word not in said] == []
