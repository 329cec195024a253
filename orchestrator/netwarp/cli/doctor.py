"""`netwarp doctor`: what can run here, and what is missing for the rest, each thing with its remedy."""

from __future__ import annotations

import argparse
import json

from ..core.built_programs import BUILD
from ..doctor import Finding, check_guest, examine, findings_text
from ..sandbox import netns_backend


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser("doctor", example="netwarp doctor")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 if any back end can run here, else 1."""
    findings = examine()
    guests = not any(finding.state == "missing" for finding in findings)
    findings.append(_netns())
    can = {"virtual": guests, "guest": guests or not check_guest(), "netns": findings[-1].state == "ok"}
    if args.json:
        print(json.dumps({**can, "findings": [vars(finding) for finding in findings]}, indent=1))
    else:
        print(findings_text(findings, can))
    return 0 if any(can.values()) else 1


def _netns() -> Finding:
    """The netns back end, tried: a shaped link set up and read back on this machine's own kernel."""
    backend, problems = netns_backend(BUILD)
    if not problems:
        detail = "a shaped link can be set up" + (", as root" if backend.root else ", without root")
        return Finding("netns", "ok", detail)
    return Finding("netns", "note", problems[0].what, problems[0].remedy)
