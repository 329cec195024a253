"""`netwarp doctor`: what can run here, and what is missing for the rest, each thing with its remedy."""

from __future__ import annotations

import argparse
import json

from ..backends import netns_backend
from ..doctor import Finding, examine
from .programs import build_directory


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser("doctor", help="can this machine run netwarp? what is missing, and its remedy")
    parser.add_argument("--json", action="store_true", help="one JSON value on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 if any back end can run here, else 1."""
    findings = examine()
    guests = not any(finding.state == "missing" for finding in findings)
    findings.append(_netns())
    can = {"virtual": guests, "guest": guests, "netns": findings[-1].state == "ok"}
    if args.json:
        rows = [{name: getattr(f, name) for name in Finding.__struct_fields__} for f in findings]
        print(json.dumps({**can, "findings": rows}, indent=1))
    else:
        _print(findings, can)
    return 0 if any(can.values()) else 1


def _netns() -> Finding:
    """The netns back end, tried: a shaped link set up and read back on this machine's own kernel."""
    backend, problems = netns_backend(build_directory())
    if not problems:
        found = "a shaped link can be set up" + (", as root" if backend.root else ", without root")
        return Finding(what="netns", state="ok", found=found)
    return Finding(what="netns", state="note", found=problems[0].what, remedy=problems[0].remedy)


def _print(findings: list[Finding], can: dict[str, bool]) -> None:
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.what:{width}}  {finding.state:7}  {finding.found}")
        if finding.remedy:
            print(f"{'':{width}}  {'':7}  -> {finding.remedy}")
    able = [name for name, works in can.items() if works]
    unable = [name for name, works in can.items() if not works]
    cannot = f" Cannot: {', '.join(unable)}." if unable else ""
    print(f"Can run here: {', '.join(able) or 'nothing yet'}.{cannot}")
