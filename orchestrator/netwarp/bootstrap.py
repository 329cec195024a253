"""Answers before `make setup`: what this machine lacks, and the command to type.

Standard library only; read by old Pythons too.
"""

from __future__ import annotations

import json
import sys

EXIT_CANNOT = 77


def bootstrap(arguments: list[str]) -> int:
    """`doctor [--json]`: every finding; anything else: that nothing is set up yet, 77."""
    from .doctor import distribution

    if sys.version_info < (3, 11):
        version = ".".join(str(number) for number in sys.version_info[:3])
        print(f"netwarp needs Python 3.11 or newer; this is {version} on {distribution.name()}", file=sys.stderr)
        print(f"  {distribution.python_remedy()}", file=sys.stderr)
        return EXIT_CANNOT
    if arguments[:1] != ["doctor"] or arguments[1:] not in ([], ["--json"]):
        print("netwarp is not set up yet: type `make setup`, or `make doctor` to see what it needs", file=sys.stderr)
        return EXIT_CANNOT
    return _doctor("--json" in arguments)


def _doctor(as_json: bool) -> int:
    from .core.executables import find_executable
    from .doctor import distribution, examine, findings_text

    findings = examine()
    can = {"virtual": False, "guest": False, "netns": False}
    if as_json:
        print(json.dumps({**can, "findings": [vars(finding) for finding in findings]}, indent=1))
        return 1
    print(findings_text(findings, can))
    first = "" if find_executable("make") else distribution.install(["make"]) + " && "
    print(f"Next: {first}make setup   (packages with root or sudo, .venv, guest kernel, programs; then: make choi2009)")
    return 1
