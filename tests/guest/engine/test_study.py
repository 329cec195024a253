"""An experiment written in Python runs as one of a file does: its run keeps it, and every later stage reads that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.chain_kit import LIMIT_S, Checkout, written

SCRIPT = """\
import shutil
import netwarp

study = netwarp.Experiment("queues", duration="2 s")
a, b = study.host("a"), study.host("b")
way = study.link("way", a, b, rate="1 Mbit/s", queue="1 bdp", rtt="40 ms")
study.flow("bulk", a, b, protocol="tcp", paths=[way])
study.factor("queue", ["1 bdp", "4 bdp"], sets=way.queue)
study.table("goodput", metric="goodput_bit_s", rows=["queue"])

run = study.run(out="run")
rows = run.metric("goodput_bit_s")
assert run.complete and [row["queue"] for row in rows] == ["1 bdp", "4 bdp"], rows
assert all(0.5e6 < row["value"] < 1e6 and row["outcome"] == "COMPLETED" for row in rows)
assert [row["value"] for row in run.table("goodput")] == [row["value"] for row in rows]
kept = run.path / "spec" / "spec.toml"
assert kept.read_text() == study.to_toml() and run.manifest.spec_path == str(kept)
try:
    run.metric("nothing")
except netwarp.SpecError as error:
    assert "no cell has the metric 'nothing'" in str(error)

shutil.copy(kept, "spec.toml")
assert study.run(out="run", resume=True, report=False).complete
assert netwarp.run("spec.toml", out="run", resume=True, report=False).complete
assert netwarp.run("spec.toml", out="again", report=False).complete
compared = netwarp.compare_runs("run", "again").numbers
assert compared is not None and not compared.differs
assert netwarp.verify("run", "again").count("equal") == 2
study.table("lost", metric="retransmitted_packets", columns=["queue"])
assert "lost" in netwarp.analyze("run", spec=study).run.tables
assert netwarp.report("run").is_file()
"""


def test_an_experiment_written_in_python_is_kept_in_its_run(checkout: Checkout, tmp_path: Path) -> None:
    script = written(tmp_path / "mine.py", SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, env=checkout.environment(tmp_path),
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)
