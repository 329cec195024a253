"""Questions asked after a run: another spec's outputs over its cells; a resumed run may have other outputs."""

from __future__ import annotations

from pathlib import Path

from support.chain_kit import Checkout, factor, two_paths, written

TABLE = '[table.goodput]\nmetric = "goodput_bit_s"\nrows = ["protocol"]\ncolumns = ["delay"]\n'
LATER = """
[metric]
share = { unit = "ratio", value = "goodput_bit_s / 2000000" }
[table]
share = { metric = "share", rows = ["protocol", "flow"], columns = ["delay"] }
"""


def spec_text(*more: str) -> str:
    text = two_paths(factor("delay", ["10 ms", "20 ms"]), *more, duration="1 s")
    return text.replace('"20 ms"', '"{delay}"', 1)


def test_outputs_are_asked_for_later(checkout: Checkout, tmp_path: Path) -> None:
    spec, run = written(tmp_path / "spec.toml", spec_text(TABLE)), tmp_path / "x"
    checkout.run("run", spec, "--where", "delay=10 ms", "--no-report", "--out", run, cwd=tmp_path).ok()
    assert (run / "spec" / "spec.toml").read_text() == spec.read_text()
    raw = {path: path.read_bytes() for path in sorted((run / "cells").rglob("*")) if path.is_file()}
    other = written(tmp_path / "other.toml", spec_text(LATER))
    done = checkout.run("analyze", run, "--spec", other, cwd=tmp_path).ok()
    assert "the run has no cells of 2 combinations of the spec" in done.err, done
    assert "delay=20 ms" in done.err
    assert (run / "tables" / "share.csv").is_file()
    assert not (run / "tables" / "goodput.csv").exists()
    assert {path: path.read_bytes() for path in sorted((run / "cells").rglob("*")) if path.is_file()} == raw
    checkout.run("report", run, "--spec", spec, cwd=tmp_path).ok()
    assert "goodput" in (run / "report" / "index.html").read_text()
    changed = written(tmp_path / "changed.toml", spec_text(TABLE).replace("20 ms", "25 ms"))
    assert checkout.run("analyze", run, "--spec", changed, cwd=tmp_path).ok().err.count("delay=25 ms") == 2
    longer = written(tmp_path / "longer.toml", spec_text(TABLE).replace('duration = "1 s"', 'duration = "2 s"'))
    done = checkout.run("analyze", run, "--spec", longer, cwd=tmp_path)
    assert (done.status, "duration_ns: 1000000000 in the run" in done.err) == (2, True), done


def test_a_resumed_run_takes_the_outputs_of_its_spec(checkout: Checkout, tmp_path: Path) -> None:
    spec, run = written(tmp_path / "spec.toml", spec_text(TABLE)), tmp_path / "x"
    checkout.run("run", spec, "--where", "delay=10 ms", "--no-report", "--out", run, cwd=tmp_path).ok()
    written(spec, spec_text(TABLE.replace("table.goodput", "table.speed")))
    checkout.run("run", spec, "--where", "delay=10 ms", "--no-report", "--out", run, "--resume", cwd=tmp_path).ok()
    assert (run / "tables" / "speed.csv").is_file()
    assert "table.speed" in (run / "spec" / "spec.toml").read_text()
