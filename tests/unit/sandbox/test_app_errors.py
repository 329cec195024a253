"""Errors of the apps in the words of a spec."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Outcome
from netwarp.sandbox.cell_verdict import congestion_controls, in_words_of_the_spec, judge
from netwarp.store.app_records import Error
from netwarp.store.console import console_tail
from netwarp.store.init_records import End, Exit
from netwarp.store.run_dir import CellDir
from support.cells import two_path_cell
from support.recorded_cell import write


def test_a_congestion_control_that_the_kernel_lacks(tmp_path: Path) -> None:
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    write(directory.apps / "ftp.sender.ndjson", [Error("TCP_CONGESTION: No such file or directory: bbr3")])
    records = [Exit("ftp.sender", 77, None, killed=False, t_ns=1), End("completed", None, None, 2)]
    verdict = judge(two_path_cell(), directory, records, "exit status 0")
    assert verdict.outcome is Outcome.UNSUPPORTED
    assert 'no congestion control "bbr3"' in verdict.reason and "cubic" in verdict.reason
    assert {"reno", "cubic", "bbr", "westwood"} <= set(congestion_controls())
    assert "advanced" not in congestion_controls()


def test_a_connection_that_is_not_set_up_in_time() -> None:
    message = "connect: Connection timed out: not connected before --stop-ns"
    said = in_words_of_the_spec(two_path_cell(), "ftp.sender", message)
    assert said.startswith("the connection was not up at its stop") and "loss 100 %" in said and "duration" in said
    assert in_words_of_the_spec(two_path_cell(), "ftp.sender", "anything else") == "anything else"


IN_FORCE = '{"record":"window_clamp","t_ns":10025174528,"window_clamp_bytes":5840,"found_bytes":5840}\n'
LOST = '{"record":"window_clamp_lost","t_ns":11518588416,"window_clamp_bytes":5840,"found_bytes":14600}\n'
END = '{"record":"summary","t_ns":30009128960,"reason":"closed","status":1,"kernel":{"window_clamp_bytes":5840}}\n'
"""Records of a receiver (kim2002's small_snoop, seed 2006; the summary cut short). Its sender filled the window with
segments of 1448 B and one of 48 B, now and then with several of those in a row.
"""


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (IN_FORCE + LOST + END, "window_clamp of 5840 B with 14600 B, as it does when"),
        (IN_FORCE + 2 * LOST + END, "window_clamp of 5840 B with 14600 B, 2 times, as it does when"),
        (IN_FORCE + END.replace("5840", "8880"), "window_clamp of 5840 B with 8880 B, as it does when"),
    ],
    ids=["once", "twice", "after the receiver's last look"],
)
def test_a_window_clamp_that_the_kernel_overwrote(records: str, said: str, tmp_path: Path) -> None:
    """FAILED, since another window was offered for a while than the one asked for, and the reason says so."""
    cell = two_path_cell()
    flow = msgspec.structs.replace(cell.flows[0], receiver_options={"window_clamp_bytes": 5840})
    cell = msgspec.structs.replace(cell, flows=(flow,))
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    (directory.apps / "ftp.receiver.ndjson").write_text(records)
    exits = [
        Exit(f"ftp.{role}", status, None, killed=False, t_ns=1) for role, status in (("sender", 0), ("receiver", 1))
    ]
    verdict = judge(cell, directory, [*exits, End("completed", None, None, 2)], "exit status 0")
    assert verdict.outcome is Outcome.FAILED
    assert verdict.reason.startswith("ftp.receiver ended with status 1: Linux overwrote the receiver's ")
    assert said in verdict.reason and "another seed may not lead there" in verdict.reason
    (directory.apps / "ftp.receiver.ndjson").write_text(IN_FORCE + END)
    assert judge(cell, directory, [*exits, End("completed", None, None, 2)], "").reason.endswith(
        "status 1 (it wrote no error)"
    )


@pytest.mark.parametrize(
    ("stderr", "stdout", "end"),
    [
        ("usage: x\nno such host\n", "progress\n", "status 1: no such host"),
        (" \n", "progress\ncannot resolve b\n\n", "status 1: cannot resolve b"),
        ("", "", "status 1 (it wrote no error)"),
        (None, None, "status 1 (it wrote no error)"),
    ],
)
def test_a_failed_program_has_a_reason_wherever_it_wrote_one(
    stderr: str | None, stdout: str | None, end: str, tmp_path: Path
) -> None:
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    for suffix, text in (("stderr", stderr), ("stdout", stdout)):
        if text is not None:
            (directory.apps / f"ftp.sender.{suffix}").write_text(text)
    records = [Exit("ftp.sender", 1, None, killed=False, t_ns=1)]
    died = [End("failed", None, "a step failed", 2)]
    for more in ([End("completed", None, None, 2)], died):
        reason = judge(two_path_cell(), directory, [*records, *more], "exit status 0").reason
        assert not reason.rstrip().endswith(":")
        assert more is died or reason.endswith(end)


def test_the_last_line_of_every_guest_is_no_news(tmp_path: Path) -> None:
    console = tmp_path / "console.txt"
    console.write_text("a line\nreboot: Power down\n")
    assert console_tail(console) == ("a line",)


def test_a_program_that_never_gets_ready_is_named(tmp_path: Path) -> None:
    """web.sender was to write "Serving HTTP"; the set-up waited for that to its deadline."""
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    directory.steps.write_text("ready\noutput id=web.sender text=Serving%20HTTP timeout_ns=30000000000\n")
    records = [End("timed_out", 2, "the set-up was not over at its deadline", 3)]
    verdict = judge(two_path_cell(), directory, records, "exit status 0")
    assert verdict.outcome is Outcome.TIMED_OUT
    assert 'web.sender had not written "Serving HTTP" to its stdout (it wrote nothing' in verdict.reason
    (directory.apps / "web.sender.stderr").write_text("one\nSyntaxError: no\n")
    said = judge(two_path_cell(), directory, records, "exit status 0").reason
    assert "its stderr ends: SyntaxError: no" in said
    records = [End("timed_out", 1, "the set-up was not over at its deadline", 3)]
    assert judge(two_path_cell(), directory, records, "").reason == "the set-up was not over at its deadline"


def test_a_connection_that_nothing_answers_is_a_result_and_no_failure(tmp_path: Path) -> None:
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    cell = two_path_cell()
    for message, outcome in (
        ("connect: Connection timed out: not connected before --stop-ns", Outcome.COMPLETED),
        ("connect: Connection timed out: not connected within --connect-deadline-ns", Outcome.COMPLETED),
        ("connect: Network is unreachable", Outcome.FAILED),
    ):
        write(directory.apps / "ftp.sender.ndjson", [Error(message)])
        ends = [Exit(f"ftp.{role}", status, None, killed=False, t_ns=1) for role, status in
                (("sender", 1), ("receiver", 0))]  # fmt: skip
        assert judge(cell, directory, [*ends, End("completed", None, None, 2)], "").outcome is outcome
