"""A robot that puts what acts on a reader's screen into every text of a run directory and of a capture, and reads all
that netwarp prints and writes for people: no character of it comes out as it went in, and no line is forged.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.outside_text import markdown, one_line, visible, visible_json
from netwarp.store.run_dir import RunDir
from support.checkout import ROOT
from support.report_kit import small_run

FORGED = "netwarp forged this line"
ATTACK = f"\x1b]0;x\x07\x1b[2J\r\x00\x7f\x9b31m\u202e\u2066\u200b\u2028|=1+1\n{FORGED}"
ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""Beside line ends and tabs."""
FREE = {
    "reason", "console_tail", "detail", "check", "host_cpu", "host_kernel", "spec_path", "kernel_release",
    "netwarp_version", "git_commit", "arguments", "kernel_source", "other_programs", "tools", "programs", "software",
}  # fmt: skip
"""Texts of a run's records that have no rule: what a machine or a program said."""


def attacked(value: Any, inside: bool = False) -> Any:
    """Every free text replaced."""
    if isinstance(value, dict):
        return {key: attacked(child, inside or key in FREE) for key, child in value.items()}
    if isinstance(value, list):
        return [attacked(child, inside) for child in value]
    return ATTACK + value if inside and isinstance(value, str) else value


@pytest.fixture
def runs(made: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Copies, which a command may change."""
    good, bad = (Path(shutil.copytree(run, tmp_path / run.name)) for run in made)
    return good, bad


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and the same with attacks in every free text, of which some cells ended otherwise."""
    place = tmp_path_factory.mktemp("runs")
    good, bad = small_run(place / "good").root, RunDir(small_run(place / "bad").root)
    for path in (bad.manifest, *bad.root.glob("cells/*/outcome.json"), *bad.root.glob("cells/*/derived/checks.json")):
        path.write_text(json.dumps(attacked(json.loads(path.read_bytes()))))
    for path in sorted(bad.root.glob("cells/*/outcome.json"))[:2]:
        outcome = json.loads(path.read_bytes()) | {"outcome": "FAILED", "reason": ATTACK, "console_tail": [ATTACK]}
        path.write_text(json.dumps(outcome))
    return good, bad.root


def netwarp(*arguments: object, cwd: Path) -> str:
    """What a command prints; it may refuse, but not with a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "netwarp", *map(str, arguments)], cwd=cwd, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'orchestrator'}"},
    )  # fmt: skip
    printed = (done.stdout + done.stderr).decode()
    assert "Traceback" not in printed, printed
    return printed


def harmless(text: str) -> None:
    """Nothing in it acts, and no line is the attack's."""
    found = ACTS.search(text)
    assert found is None, text[max(0, found.start() - 200) : found.end() + 50]
    assert not [line for line in text.splitlines() if line.startswith(FORGED)], text


COMMANDS: dict[str, Callable[[Path, Path, Path], tuple[object, ...]]] = {
    "compare": lambda good, bad, out: ("compare", good, bad, "--csv", out / "numbers.csv"),
    "compare, the other way": lambda good, bad, out: ("compare", bad, good),
    "compare --json": lambda good, bad, out: ("compare", good, bad, "--json"),
    "compare --exact": lambda good, bad, out: ("compare", good, bad, "--exact"),
    "analyze": lambda good, bad, out: ("analyze", bad),
    "report": lambda good, bad, out: ("report", bad),
    "verify": lambda good, bad, out: ("archive", "verify", bad, good),
    "merge": lambda good, bad, out: ("archive", "merge", bad, bad, "--out", out / "all", "--junit", out / "j.xml"),
    "clean": lambda good, bad, out: ("clean", bad),
    "bundle": lambda good, bad, out: ("archive", "bundle", bad, "--out", out / "bad.tar.xz"),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_or_writes_what_acts(runs: tuple[Path, Path], tmp_path: Path, command: str) -> None:
    good, bad = runs
    harmless(netwarp(*COMMANDS[command](good, bad, tmp_path), cwd=tmp_path))
    for path in (*tmp_path.rglob("*.csv"), *tmp_path.rglob("j.xml")):
        harmless(path.read_bytes().decode())


def test_outcomes_that_changed_are_a_table(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """The kind of ../shared/cases/bundles/ex0.toml and ex3.toml."""
    printed = netwarp("compare", *runs, cwd=tmp_path)
    assert "Outcomes that changed" in printed and "FAILED" in printed


def test_a_capture_says_nothing_that_acts(tmp_path: Path) -> None:
    """The names of a pcapng's interface, its comments and its file."""
    path = tmp_path / "a\x1b[2J\nb.pcapng"

    def option(code: int, value: bytes) -> bytes:
        return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    attack = ATTACK.encode()
    header = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(1, attack) + option(0, b""))
    interface = block(
        1, struct.pack("<HHI", 147, 0, 0) + option(2, b"\x1b[2J\r\n\x9b") + option(3, attack) + option(0, b"")
    )
    path.write_bytes(header + interface + block(6, struct.pack("<IIIII", 0, 0, 1, 4, 4) + b"abcd"))
    for arguments in ((), ("--json",)):
        harmless(netwarp("analyze", path, *arguments, cwd=tmp_path))
    harmless(netwarp("explain", path, cwd=tmp_path))


def test_names_of_files_are_escaped(tmp_path: Path) -> None:
    """Also those that no encoding has."""
    for name in (ATTACK.replace("\0", "").replace("/", ""), b"x\xff\xfe".decode(errors="surrogateescape")):
        for command in ("analyze", "explain", "report"):
            harmless(netwarp(command, tmp_path / name, cwd=tmp_path))


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    escaped = one_line(text)
    assert len(escaped.splitlines()) <= 1 and ACTS.search(escaped) is None
    assert escaped.encode() or not text, "it can be written in UTF-8"
    assert one_line(escaped) == escaped, "a text that was escaped stays"
    assert visible(text).count("\n") == text.count("\n") and ACTS.search(visible(text)) is None
    assert len(list(csv.reader(io.StringIO(escaped)))) <= 1


@given(st.recursive(st.text(st.characters(codec="utf-8")), lambda child: st.lists(child) | st.dictionaries(st.text(
    st.characters(codec="utf-8")), child)))  # fmt: skip
def test_json_keeps_its_values(value: Any) -> None:
    escaped = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(escaped) == value and ACTS.search(escaped) is None


@given(st.text())
def test_a_field_of_markdown_is_one_field(text: str) -> None:
    field = markdown(text)
    assert "\n" not in field and not re.search(r"(?<!\\)(\\\\)*[|<]", field)


@given(st.text())
def test_an_attribute_of_xml(text: str) -> None:
    from netwarp.present.junit import _text

    element = ElementTree.Element("x", message=_text(text))
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8")).get("message") is not None
