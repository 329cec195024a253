"""netwarp as a library: what the command line can do, from Python alone, with nothing printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.chain_kit import LIMIT_S, Checkout, two_paths, written

SCRIPT = """\
import pathlib, threading
import netwarp

experiment = netwarp.load_experiment("spec.toml")
plan = netwarp.plan_experiment(experiment, where={"protocol": "tcp"})
assert len(plan.cells) == 1 and plan == netwarp.plan_experiment("spec.toml", where=[("protocol", "tcp")])

events = []
run = netwarp.run(experiment, where={"protocol": "tcp"}, out="run", progress=events.append)
kinds = {type(event) for event in events}
assert {netwarp.CellsStarted, netwarp.CellFinished, netwarp.CellsFinished} <= kinds, kinds
assert run.complete and run.outcomes == {"COMPLETED": 1} and run.page.is_file()
assert run.wall_s > 0 and run.manifest.backend == "virtual"

rows = run.table("measurements")
(goodput,) = [row for row in rows if row["metric"] == "goodput_bit_s"]
assert isinstance(goodput["value"], float) and goodput["unit"] == "bit/s"
(cell,) = run.table("cells")
assert cell["outcome"] == "COMPLETED" and cell["repetition"] == 0 and cell["protocol"] == "tcp"
assert run.results.value(cell["cell_id"], goodput["flow"], "goodput_bit_s") == goodput["value"]

try:
    netwarp.run(experiment, where={"protocol": "tcp"}, out="run")
except netwarp.SpecError as error:
    assert "holds a run already" in str(error)
again = netwarp.run(experiment, where={"protocol": "tcp"}, out="run", resume=True, report=False)
assert again.complete and again.wall_s is None

other = netwarp.run("spec.toml", where={"protocol": "tcp"}, out="other", report=False)
compared = netwarp.compare_runs("run", "other")
assert not compared.numbers.differs and compared.count("equal") == 1

before = (run.path / "tables" / "measurements.csv").read_bytes()
assert netwarp.remove_derived("run").bytes > 0
assert netwarp.analyze("run").complete
assert (run.path / "tables" / "measurements.csv").read_bytes() == before
assert netwarp.report("run") == run.page

captures = run.path / "cells" / cell["cell_id"] / "capture"
(file,) = netwarp.analyze_captures([sorted(captures.iterdir())[0]]).files
assert [flow.protocol for flow in file.connections] == ["tcp"]
(plain,) = netwarp.export_captures([sorted(captures.iterdir())[0]], "plain")
assert plain.suffix == ".pcap"

def stop(event):
    if isinstance(event, netwarp.CellsStarted):
        raise KeyboardInterrupt
try:
    netwarp.run("spec.toml", out="stopped", progress=stop)
except netwarp.RunInterrupted as error:
    assert error.run.kept == 0 and len(error.run.plan.cells) == 2
    assert netwarp.run("spec.toml", out="stopped", resume=True, jobs=2, report=False).complete
else:
    raise AssertionError("not interrupted")
"""


def test_an_experiment_from_python_alone(checkout: Checkout, tmp_path: Path) -> None:
    written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], cwd=tmp_path, env=checkout.environment(tmp_path),
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)
