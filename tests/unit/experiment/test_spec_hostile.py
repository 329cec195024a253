"""Specs written to do harm are refused: with the reason, fast, in little memory, without a word a terminal obeys."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from netwarp.core.errors import CaptureError, SpecError
from netwarp.core.metrics.expressions import evaluate
from netwarp.core.outputs import looks_like_a_formula
from netwarp.experiment import load_spec
from netwarp.experiment.toml_positions import LARGEST_FILE_BYTES
from netwarp.results.rows import Rows
from netwarp.results.write import csv_bytes, csv_text
from support import hostile
from support.checkout import ROOT
from support.specs import BASE, plan_of, problems_of, replaced, spec_of

CPU_S = 5
"""Nothing here takes a second of an idle machine."""


def refused(text: str) -> list[str]:
    """The reasons; asserts that they came within CPU_S of CPU time and are harmless to print."""
    started = time.process_time()
    said = problems_of(text)
    assert time.process_time() - started < CPU_S
    assert said
    for line in said:
        assert line.isprintable(), line
        assert len(line) < 2000
    return said


@pytest.mark.parametrize("place", hostile.PLACES)
@pytest.mark.parametrize("name", hostile.NAMES, ids=ascii)
def test_a_name_that_is_more_than_a_name(place: str, name: str) -> None:
    """Names become files, interfaces, arguments and parts of pages: a-z 0-9 _ - and nothing else."""
    old, new = hostile.PLACES[place]
    refused(replaced(old, new.format(name)))


@pytest.mark.parametrize("number", hostile.NUMBERS, ids=lambda text: text[:20])
def test_a_number_that_is_none(number: str) -> None:
    refused(replaced('rate = "1 Mbit/s"', f'rate = "{number}"'))


@pytest.mark.parametrize("what", hostile.WHOLE)
def test_a_document_above_the_limits_is_refused(what: str) -> None:
    text = hostile.WHOLE[what].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    started = time.process_time()
    with pytest.raises(SpecError) as caught:
        if "\udcff" in text:
            from netwarp.experiment import parse_spec

            parse_spec(text.encode("utf-8", "surrogateescape"), Path("spec.toml"), sets={})
        plan_of(text)
    assert time.process_time() - started < CPU_S
    assert str(caught.value).isprintable() or "\n" in str(caught.value)


@pytest.mark.parametrize(
    "level", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-cmd|x", "-2+x|y", "\\tx", "\\u001b[31mred"]
)
def test_a_level_that_is_a_formula_or_an_escape_sequence(level: str) -> None:
    refused(BASE + f'[factor.x]\nlevels = ["{level}"]\n')


def test_levels_with_signs_are_no_formulas() -> None:
    for level in ("-5 ms", "+1", "-.5", "a=b", "x@y"):
        assert not looks_like_a_formula(level)
        spec_of(BASE + f'[factor.x]\nlevels = ["{level}", "other"]\n')


def test_text_in_a_table_is_no_formula() -> None:
    """Claims' words come from a file that may be somebody else's."""
    text = csv_text(Rows("t", ("claim", "text", "value"), [("=1+1", "it's, fine", -1.5), ("+x", None, "-")]))
    assert text.splitlines() == ["claim,text,value", "'=1+1,\"it's, fine\",-1.5", "'+x,,-"]


def test_the_report_s_figures_have_the_same_guard() -> None:
    text = csv_bytes(["=x", "y"], [("=1+1", -1.5), ("-2+cmd|x", None), ("-5 ms", np.float64(0.1)), (3, "-")]).decode()
    assert text.splitlines() == ["'=x,y", "'=1+1,-1.5", "'-2+cmd|x,", "-5 ms,0.1", "3,-"]


@pytest.mark.parametrize("expression", ["9**9**9**9", "((9**64)**64)**64", "10" * 400, "packets" + "**64" * 30])
def test_an_expression_that_would_never_end(expression: str) -> None:
    started = time.process_time()
    with pytest.raises(CaptureError, match="cannot be computed"):
        evaluate("m", expression, {"packets": 10**6})
    assert time.process_time() - started < 1


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """netwarp with half a gigabyte of address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "netwarp", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "orchestrator")},
        capture_output=True, text=True, check=False, timeout=300, preexec_fn=limit,
    )  # fmt: skip


def test_a_file_of_100_gigabytes(tmp_path: Path) -> None:
    """Sparse, so that it costs nothing; it is not read beyond what a spec may have."""
    with open(tmp_path / "spec.toml", "wb") as file:
        file.truncate(100 << 30)
    done = command(tmp_path, "run", "spec.toml", "--out", "x")
    assert done.returncode == 2, done
    assert f"larger than {LARGEST_FILE_BYTES} bytes" in done.stderr
    assert os.listdir(tmp_path) == ["spec.toml"]


def test_a_pipe_and_a_directory_are_no_specs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "spec.toml")
    (tmp_path / "folder").mkdir()
    for name in ("spec.toml", "folder", "/dev/zero", "../../../../etc/passwd\n"):
        with pytest.raises(SpecError, match="there is no spec file"):
            load_spec(tmp_path / name)


def test_a_hostile_specs_escapes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(replaced('name = "test"', 'name = "\\u001b]0;pwned\\u0007\\u001b[2J"'))
    done = command(tmp_path, "plan", "spec.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr
    assert "\\x1b]0;pwned" in done.stderr


READS_A_FILE = 'program = { sender = ["cat", "{files}/own.cfg"], files = ["own.cfg"] }'


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("own.cfg", "x\n", replaced("[flow.f]", f"[flow.f]\n{READS_A_FILE}")),
        ("pages.har", "{}", BASE + '[flow.f.page]\nhar = "pages.har"\n'),
        ("own.trace", "1\n", replaced('rate = "1 Mbit/s"', 'trace = "own.trace"')),
        ("claims.toml", "", replaced('duration = "10 s"', 'duration = "10 s"\nexpected = "claims.toml"')),
        ("numbers.csv", "", replaced('duration = "10 s"', 'duration = "10 s"\npublished = "numbers.csv"')),
    ],
)  # fmt: skip
def test_no_file_beside_a_spec_is_a_link(name: str, content: str, text: str, linked: bool, tmp_path: Path) -> None:
    """It would put a file from elsewhere into the plan, and so into the bundle."""
    (tmp_path / "secret").write_text(content)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "spec.toml").write_text(text)
    if linked:
        os.symlink("../secret", tmp_path / "beside" / name)
    else:
        (tmp_path / "beside" / name).write_text(content)
    try:
        spec = load_spec(tmp_path / "beside" / "spec.toml")
    except SpecError as error:
        assert (f'"{name}" is a symbolic link' in str(error)) == linked
    else:
        assert not linked and name in spec.files
