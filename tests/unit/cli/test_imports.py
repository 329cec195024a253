"""A command imports only what it uses."""

from __future__ import annotations

import subprocess
import sys

from netwarp.cli import COMMANDS, make_parser
from support.captures import recorded

SAYS_MODULES = """
import sys
from netwarp.cli import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
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


def test_the_table_of_commands_is_what_they_declare() -> None:
    """In the order of --help; each alone too."""
    declared = make_parser()._subparsers
    assert declared is not None
    (choices,) = (action.choices for action in declared._group_actions)
    assert choices is not None and list(choices) == list(COMMANDS)
    for command in COMMANDS:
        make_parser(command).format_help()
