"""A run's summary: tables with intervals and scaled units, levels that changed nothing, its size."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from netwarp import open_run
from netwarp.cli.summary import print_summary
from netwarp.present import run_data
from netwarp.results.identical_levels import identical_levels
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import RunDir
from support.report_kit import goodput, plan_of, put, small_run, spec_text, write_run

TABLES = """\
[table.rates]
title = "Table 2: goodput against the outage"
metric = "goodput_bit_s"
rows = ["variant", "failover"]
columns = ["outage"]
[table.short]
title = "Table 3: failover"
metric = "first_new_data_other_path_s"
rows = ["variant", "failover"]
columns = ["outage"]
"""


def summary_of(run: RunDir, capsys: pytest.CaptureFixture[str]) -> str:
    print_summary(open_run(run.root))
    return capsys.readouterr().out


def made(tmp_path: Path, *, loss: str = "", repetitions: int = 1) -> RunDir:
    plan = plan_of(spec_text(loss=loss) + TABLES, tmp_path / "spec", repetitions=repetitions)
    return write_run(tmp_path / "run", plan)


def test_random_numbers_have_an_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = summary_of(made(tmp_path, loss="1 %", repetitions=5), capsys)
    (rates,) = [part for part in said.split("Table ") if part.startswith("2:")]
    assert rates.splitlines()[0].endswith("measured, kbit/s")
    (tcp,) = [line for line in rates.splitlines() if " TCP " in line]
    assert tcp.count("±") == 4, "one an outage"
    assert "± is the 95 % confidence interval of the mean of 5 draws" in rates


def test_one_draw_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = summary_of(made(tmp_path, loss="1 %"), capsys)
    assert "±" not in said
    assert "one draw of something random each: no interval (--repetitions 5)" in said


def test_deterministic_numbers_are_not_called_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TCP without loss is deterministic; SCTP's heartbeats over two paths are drawn from the seed."""
    said = summary_of(made(tmp_path), capsys)
    assert "±" not in said
    (rates,) = [part for part in said.split("Table ") if part.startswith("2:")]
    assert "8 of 12 numbers are one draw of something random each: no interval" in rates


def test_rows_and_columns_have_their_titles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = summary_of(made(tmp_path), capsys)
    assert "SCTP, two paths" in said, "a level's title"
    assert "length of the outage" in said, "a factor's title"


def test_small_times_are_milliseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    table = run.tables / "short.csv"
    rows = table.read_text().splitlines()
    place = rows[0].split(",").index("value")
    fields = [row.split(",") for row in rows]
    for row in fields[1:]:
        row[place] = "0.0123" if row[place] else ""
    table.write_text("\n".join(",".join(row) for row in fields) + "\n")
    (short,) = [part for part in summary_of(run, capsys).split("Table ") if part.startswith("3:")]
    assert short.splitlines()[0].endswith("measured, ms")
    assert "12.30" in short


def digests(run: RunDir, same: set[str]) -> dict[str, dict[str, str]]:
    """Cells whose failover level is in `same` have equal packets where all else is equal."""
    found = {}
    for cell in read_plan(run).cells:
        factors = {name: level for name, level in cell.factors.items() if name != "failover"}
        mark = "same" if cell.factors["failover"] in same else cell.factors["failover"]
        found[cell.id] = {"a-p1": f"{factors} {cell.repetition} {mark}"}
    return found


def test_levels_that_changed_nothing_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    for cell_id, packets in digests(run, {"default", "rfc4960"}).items():
        put(run.cell(cell_id).packets, packets)
    said = " ".join(summary_of(run, capsys).split())
    assert 'levels "default" and "rfc4960" of factor "failover" gave identical packets in all 4 cells of each' in said


def test_levels_that_changed_one_packet_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    found = digests(run, {"default", "rfc4960"})
    one = next(cell.id for cell in read_plan(run).cells if cell.factors["failover"] == "rfc4960")
    found[one] = {"a-p1": "another"}
    for cell_id, packets in found.items():
        put(run.cell(cell_id).packets, packets)
    assert "identical packets" not in summary_of(run, capsys)


def test_without_digests_nothing_is_said(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert identical_levels(read_plan(run), {}) == []


def test_three_levels_are_one_sentence(tmp_path: Path) -> None:
    text = spec_text().replace('levels = ["default", "rfc4960"]', 'levels = ["default", "rfc4960", "x"]')
    plan = plan_of(text, tmp_path / "spec")
    cells = {cell.id: {"a": str((cell.factors["outage"], cell.factors["variant"]))} for cell in plan.cells}
    (found,) = [one for one in identical_levels(plan, cells) if one.factor == "failover"]
    assert (found.levels, found.cells) == (("default", "rfc4960", "x"), 4)


def test_the_runs_size_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    put(run.cell(min(run.finished())).capture / "b-p1.pcap.zst", bytes(3_000_000))
    total, captures = run.sizes()
    assert captures == 3_000_000 + 12 * len(b"not a capture")
    assert total == sum(path.stat().st_size for path in run.root.rglob("*") if path.is_file())
    said = summary_of(run, capsys)
    assert "size: 3." in said
    assert "3.000 MB captures" in said
    assert f"netwarp clean --captures {run.root}" in said


def test_a_run_without_a_table_prints_its_key_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of(spec_text().partition("[table.outages]")[0], tmp_path / "spec")
    run = write_run(tmp_path / "run", plan)
    values = [goodput(cell) / 1e3 for cell in plan.cells]
    said = summary_of(run, capsys)
    assert f"12 cells: goodput {min(values):.1f} to {max(values):.1f} kbit/s" in said
    assert "clean --captures" not in said, "it has next to none"


def test_claims_of_a_run_without_a_paper_are_said_with_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = summary_of(small_run(tmp_path / "run"), capsys)
    assert re.search(r"^ *C\d .*✗ [−+]?[\d.]+ %", said, re.M)


def test_the_first_reason_for_a_missing_number_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(summary_of(made(tmp_path), capsys).split())
    assert re.search(r"-: 0 s, TCP has no first new data sent, other path", said)
    assert "column note" not in said


@pytest.mark.parametrize("kind", ["tables", "claims", "neither"])
def test_the_summary_reads_neither_the_plan_again_nor_the_table_of_measurements(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100,000 cells the plan takes a gigabyte, and that table more."""
    if kind == "neither":
        run = write_run(tmp_path / "run", plan_of(spec_text().partition("[table.outages]")[0], tmp_path / "spec"))
    else:
        run = made(tmp_path) if kind == "tables" else small_run(tmp_path / "run")
    there = open_run(run.root)
    there.plan, there.results  # noqa: B018  read here
    read: list[str | None] = []
    real = run_data.each_row
    monkeypatch.setattr(run_data, "each_row", lambda path: read.append(path.name) or real(path))
    monkeypatch.setattr(run_data, "read_plan", lambda run: read.append("plan.json") or read_plan(run))
    print_summary(there)
    assert capsys.readouterr().out
    assert not {"measurements.csv", "plan.json"} & set(read)


def test_a_cell_whose_reason_stderr_has_is_not_said_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = open_run(small_run(tmp_path / "run").root)
    wrong = [cell for cell, outcome in run.results.outcomes.items() if str(outcome.outcome) != "COMPLETED"]
    assert wrong
    print_summary(run)
    assert all(capsys.readouterr().out.count(f"{cell}: ") == 1 for cell in wrong), "of an earlier run: named here"
    print_summary(run, set(wrong))
    out = capsys.readouterr().out
    assert not any(cell in out for cell in wrong)
    reason = f"{len(wrong)} with the reason on stderr, as it ended, and in {run.directory.tables / 'cells.csv'}"
    assert "".join(reason.split()) in "".join(out.split()), out
