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
from netwarp.core.outside_text import markdown, markdown_code, one_line, visible, visible_json
from netwarp.selftests.guest import Result
from netwarp.selftests.packetdrill.cases import CaseResult, ScriptResult
from netwarp.selftests.packetdrill.counts import rows as script_rows
from netwarp.selftests.table import rows as table_rows
from netwarp.selftests.tree import Selftest
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


def test_causes_of_an_sctp_association_say_nothing_that_acts(tmp_path: Path) -> None:
    """A cause's text is a stranger's (RFC 9260 3.3.10.12), and so are cookies, unknown parameters and heartbeats."""
    attack = ATTACK.encode()

    def part(code: int, content: bytes) -> bytes:
        return struct.pack("!HH", code, len(content) + 4) + content + bytes(-len(content) % 4)

    def chunk(kind: int, content: bytes) -> bytes:
        return struct.pack("!BBH", kind, 0, len(content) + 4) + content + bytes(-len(content) % 4)

    causes = part(12, attack) + part(13, attack) + part(8, attack) + part(6, attack) + part(65535, attack)
    init = struct.pack("!IIHHI", 1, 9999, 5, 5, 7) + part(11, attack) + part(0x8000 + 77, attack)
    frames = []
    for number, body in enumerate(
        (chunk(1, init), chunk(2, init), chunk(4, part(1, attack)), chunk(9, causes), chunk(10, attack),
         chunk(63, attack), chunk(6, causes))
    ):  # fmt: skip
        ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
        ends = ends if number % 2 == 0 else ends[::-1]
        sctp = struct.pack("!HHII", 9, 9, 0 if number == 0 else 1, 0) + body
        frames.append(struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(sctp), number, 0, 64, 132, 0) + b"".join(ends) + sctp)
    records = [struct.pack("<IIII", 1, number, len(frame), len(frame)) + frame for number, frame in enumerate(frames)]
    path = tmp_path / "a.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 228) + b"".join(records))
    for words in (("analyze",), ("analyze", "--json"), ("analyze", "--full", "--csv", tmp_path / "csv"), ("explain",),
                  ("explain", "--json"), ("analyze", "--html", tmp_path / "page.html")):  # fmt: skip
        printed = netwarp(*words, path, cwd=tmp_path)
        harmless(printed)
        assert "sctp" in printed.lower() or "--html" in words or "--csv" in words
    for file in (tmp_path / "csv").rglob("*.csv"):
        harmless(file.read_bytes().decode())


SPEC = """
format = 1
name = "x"
title = TEXT
description = TEXT
duration = "1 s"
[node.a]
title = TEXT
[node.b]
[link.p1]
between = ["a", "b"]
queue = "5 packets"
one_way_delay = "1 ms"
rate = "1 Mbit/s"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
[factor.k]
title = TEXT
sets = "flow.f.protocol"
levels = [LEVEL]
"""


@pytest.mark.parametrize("level", ['"tcp"', "TEXT"])
def test_texts_of_a_spec_are_escaped(level: str, tmp_path: Path) -> None:
    text = json.dumps(ATTACK.replace("\0", ""), ensure_ascii=True).replace("\\u001b", "\\u001B")
    (tmp_path / "x.toml").write_text(SPEC.replace("LEVEL", level).replace("TEXT", text))
    for words in (
        (),
        ("--json",),
        ("--steps",),
        ("--backend", ATTACK.replace("\0", "")),
        ("--where", f"k={FORGED}\x1b[2J"),
    ):
        harmless(netwarp("plan", "x.toml", *words, cwd=tmp_path))


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
def test_code_in_a_field_of_markdown_is_one_field(text: str) -> None:
    field = markdown_code(text)
    assert "\n" not in field and not re.search(r"(?<!\\)(\\\\)*[|]", field.replace("\\\\", ""))
    ticks = re.match("`+", field)
    assert ticks is not None and field.endswith(ticks[0]) and ticks[0] not in field[len(ticks[0]) : -len(ticks[0])]


def test_writers_of_markdown_escape() -> None:
    """Tables of selftests and of packetdrill's scripts: a test's name, the reason it gave."""
    reason = "a | b <script>alert(1)</script> [x](javascript:y) `z`"
    of = Result(Selftest("net", "a|b`c.sh"), "fail", None, None, 1.0, reason, "", ())
    script = ScriptResult("tcp_x|y", (CaseResult("ipv4", "fail", reason),))
    (first,), (second, *_) = table_rows([of], "7.2").values(), list(script_rows([script], "7.2").values())[::-1]
    for line in (first, second):
        assert line.count("|") - line.count("\\|") == 8 + (line is second) * 2
        assert "<script>" not in line.replace("\\<", "") and "](" not in line.replace("\\]", "")


@given(st.text())
def test_an_attribute_of_xml(text: str) -> None:
    from netwarp.present.junit import _text

    element = ElementTree.Element("x", message=_text(text))
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8")).get("message") is not None
