"""The words of `netwarp kernel explore`, and what it says at its end."""

import argparse

import pytest
from netwarp.cli.explore import _budget, add_arguments, beside, run, summary
from netwarp.core.errors import BackendUnavailable, SpecError
from netwarp.engine.explore import Explored
from netwarp.exploration.changes import PacketChange
from netwarp.exploration.counters import Function
from netwarp.exploration.found import Finding, Step
from netwarp.exploration.oracles import Wrong

LOST = PacketChange("drop", "p1", "forward", 1, "INIT")


def explored(tmp_path):
    functions = [
        Function("net/sctp/input.c", "sctp_rcv", 10, 5, {10: 5, 11: 5, 12: 0}),
        Function("net/sctp/input.c", "sctp_err", 20, 0, {20: 0}),
    ]
    wrong = Finding(Wrong("leak", "SCTP still has 1 chunk more", "chunk"), 0, (LOST,), ["c"], 7, "01-leak")
    curve = [Step(20, 3.0, 4.5, 100, 2, 1)]
    return Explored(tmp_path, 20, curve, functions, [wrong], {"COMPLETED": 19, "FAILED": 1})


def arguments(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30min", 1800), ("2 h", 7200), ("90 s", 90), ("1.5h", 5400), (None, None)]
)
def test_budget(text, seconds):
    assert _budget(text) == seconds


def test_no_budget():
    with pytest.raises(SpecError, match="--budget 30min"):
        _budget("soon")
    with pytest.raises(SpecError, match="how long"):
        run(arguments("schedules", "--files", "net/sctp/*.c"))
    with pytest.raises(SpecError, match="--cells 0: at least 1"):
        run(arguments("schedules", "--files", "net/sctp/*.c", "--cells", "0"))


def test_files_outside_the_source():
    with pytest.raises(SpecError, match=r"--files: .*no pattern of C files"):
        run(arguments("schedules", "--files", "../../etc/*.c", "--cells", "1", "--kernel", "6.12+gcov-sctp"))


def test_a_kernel_that_is_not_built_is_named_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    with pytest.raises(BackendUnavailable, match=r"6\.12\+gcov-sctp is not built.*--coverage 'net/sctp/\*\.c'"):
        run(arguments("schedules", "--files", "net/sctp/*.c", "--cells", "1"))


def test_summary(tmp_path):
    assert summary(explored(tmp_path)) == [
        "20 cells (19 COMPLETED, 1 FAILED) in 3 s, 4 s of CPU time",
        "lines reached: 2 of 4, functions: 1 of 2",
        "  net/sctp/input.c  2 of 4  50 %",
        "findings: 1",
        "  01-leak: SCTP still has 1 chunk more",
    ]


def test_beside_another(tmp_path):
    rows = "file,function,first_line,calls,lines,lines_reached\nnet/sctp/input.c,sctp_err,20,1,1,1\n"
    (tmp_path / "functions.csv").write_text(rows)
    said = beside(explored(tmp_path), tmp_path)
    assert said == [f"{tmp_path}: 1 lines there, 2 here; 1 function only there, 1 only here:", "  sctp_rcv"]
    with pytest.raises(SpecError, match="is no exploration"):
        beside(explored(tmp_path), tmp_path / "nowhere")
