"""Errors of the apps in the words of a spec."""

from __future__ import annotations

from pathlib import Path

from netwarp.core.types import Outcome
from netwarp.sandbox.app_errors import congestion_controls, in_words_of_the_spec
from netwarp.sandbox.cell_verdict import console_tail, judge
from netwarp.store.app_records import Error
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


def test_the_last_line_of_every_guest_is_no_news(tmp_path: Path) -> None:
    console = tmp_path / "console.txt"
    console.write_text("a line\nreboot: Power down\n")
    assert console_tail(console) == ("a line",)
