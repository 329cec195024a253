"""Tables, figures, claims and metrics of another spec over the cells of a finished run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import netwarp
import pytest
from netwarp.core.errors import SpecError, StoreError
from netwarp.core.types import GuestKernel
from netwarp.engine.later_outputs import texts_of
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import RunDir
from support.report_kit import plan_of, spec_text, write_run
from support.run_files import rows as csv_rows

CLAIM = """
[[claim]]
id = "L1"
text = "later"
source = "test"
kind = "greater"
metric = "double"
a = { outage = "0 s", variant = "tcp" }
b = { outage = "5 s", variant = "tcp" }
"""
LATER = """
[metric]
double = { unit = "bit/s", value = "2 * goodput_bit_s" }
[table]
later = { metric = "double", rows = ["variant", "failover"], columns = ["outage"] }
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return write_run(tmp_path / "run", plan_of(spec_text(), tmp_path / "spec"))


def later(folder: Path, text: str, expected: str | None = None) -> Path:
    folder.mkdir()
    if expected is not None:
        (folder / "claims.toml").write_text(expected)
    text = text.replace("EXPECTED", "" if expected is None else 'expected = "claims.toml"')
    (folder / "other.toml").write_text(text)
    return folder / "other.toml"


def rows(run: RunDir, table: str) -> list[dict[str, str]]:
    return csv_rows(run.tables / f"{table}.csv")


def files(run: RunDir) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.root.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_run_with_a_factor_of_kernels(tmp_path: Path) -> None:
    """A name means the build that the run had; another release at the same level is another cell."""
    kernels = '[factor.kernel]\nlevels = ["old", "new"]\n'
    levels = kernels + '[factor.kernel.level.old]\nkernel = "6.1"\n[factor.kernel.level.new]\nkernel = "6.12"\n'
    text = spec_text(more=levels, extra=', "kernel"', where='where = { kernel = "old" }')
    place = later(tmp_path / "spec", text)
    plan = make_plan(load_spec(place), builds=lambda name: GuestKernel(f"{name}.192", f"{name.replace('.', ''):0>64}"))
    assert {cell.kernel.release for cell in plan.cells if cell.kernel} == {"6.1.192", "6.12.192"}
    run = write_run(tmp_path / "run", plan)
    cells = read_plan(run).cells
    title = 'title = "Table 1: share of the link against the outage"'
    assert title in text
    done = netwarp.analyze(run.root, spec=later(tmp_path / "more", text.replace(title, 'title = "Another"')))
    assert not done.missing
    assert read_plan(run).cells == cells
    assert read_plan(run).tables[0].title == "Another"
    with pytest.raises(SpecError, match=r"kernel.release: 6.12.192 in the run, asked for: 6.10"):
        netwarp.analyze(run.root, spec=later(tmp_path / "else", text.replace('"6.12"', '"6.10"')))


def test_another_spec_asks_over_the_same_cells(run: RunDir, tmp_path: Path) -> None:
    cells = run.plan.read_bytes()
    goodput = {
        row["cell_id"]: float(row["value"]) for row in rows(run, "measurements") if row["metric"] == "goodput_bit_s"
    }
    spec = later(tmp_path / "later", spec_text().replace("[table.outages]", LATER + "[table.outages]"), CLAIM)
    analyzed = netwarp.analyze(run.root, spec=spec)
    assert analyzed.missing == ()
    assert run.plan.read_bytes() == cells, "the cells are those of the run"
    assert [table.name for table in read_plan(run).tables] == ["later", "outages"]
    places = {(row["variant"], row["failover"], row["outage"]): float(row["value"]) for row in rows(run, "later")}
    for cell in analyzed.run.plan.cells:
        levels = cell.factors
        assert places[levels["variant"], levels["failover"], levels["outage"]] == 2 * goodput[cell.id]
    assert [row["claim"] for row in rows(run, "claims")] == ["L1"]
    assert sorted(path.name for path in run.spec.iterdir()) == ["claims.toml", "other.toml"]
    assert (run.spec / "other.toml").read_bytes() == spec.read_bytes()
    netwarp.report(run.root)
    assert "later" in (run.report / "index.html").read_text()


def test_tables_of_before_are_gone(run: RunDir, tmp_path: Path) -> None:
    text = spec_text()
    spec = later(tmp_path / "later", text.replace("[table.outages]", "[table.renamed]"))
    assert (run.tables / "outages.csv").exists()
    netwarp.analyze(run.root, spec=spec)
    assert not (run.tables / "outages.csv").exists()
    assert (run.tables / "renamed.csv").exists()


def test_cells_that_the_run_lacks_are_named(run: RunDir, tmp_path: Path) -> None:
    """A claim that needs one is not tested; everything else is answered."""
    text = spec_text().replace('"20 s"]', '"20 s", "40 s"]').replace("[table.outages]", LATER + "[table.outages]")
    claim = CLAIM.replace('"5 s"', '"40 s"')
    analyzed = netwarp.analyze(run.root, spec=later(tmp_path / "later", text, CLAIM + claim.replace("L1", "L2")))
    assert {levels["outage"] for levels in analyzed.missing} == {"40 s"}
    assert len(analyzed.missing) == 3
    verdicts = {row["claim"]: row["verdict"] for row in rows(run, "claims")}
    assert verdicts["L1"] != "not tested"
    assert verdicts["L2"] == "not tested"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('rate = "500 kbit/s"', 'rate = "600 kbit/s"', "rate_bit_s: 500000 in the run, asked for: 600000"),
        ('"10 s", "20 s"]', '"10 s"]', "does not have 3 of the 12 combinations of levels of the run"),
        ("factor.outage]", "factor.gap]", "does not have 12 of the 12 combinations of levels of the run"),
        ('rows = ["variant", "failover"]', 'rows = ["variant"]', "would mix 2 cells, which differ in failover"),
    ],
)
def test_other_cells_are_refused(old: str, new: str, said: str, run: RunDir, tmp_path: Path) -> None:
    text = spec_text().replace(old, new)
    if "gap" in new:
        text = text.replace('"outage"', '"gap"').replace("{outage}", "{gap}")
    before = files(run)
    with pytest.raises(SpecError) as caught:
        netwarp.analyze(run.root, spec=later(tmp_path / "later", text))
    assert said in str(caught.value)
    assert files(run) == before, "nothing is changed"


def test_a_table_and_a_figure_may_have_one_name(run: RunDir, tmp_path: Path) -> None:
    """Their files would have had one name, so a spec had to call them apart."""
    figures = '[figure.later]\nmetric = "double"\nx = "outage"\nlines = ["variant", "failover"]\n'
    figures += '[figure.outages]\nseries = ["goodput_bit_s"]\nwhere = { outage = "5 s" }\n'
    netwarp.analyze(run.root, spec=later(tmp_path / "later", spec_text() + LATER + figures))
    assert list(rows(run, "later")[0])[:3] == ["variant", "failover", "outage"]
    assert list(rows(run, "later.figure")[0])[:3] == ["variant", "failover", "outage"]
    assert "t_s" in rows(run, "outages.figure")[0] and "t_s" not in rows(run, "outages")[0]
    page = netwarp.report(run.root).read_text()
    assert 'id="table-later"' in page and 'id="figure-later"' in page and 'id="figure-outages"' in page


def test_an_expression_that_cannot_be_computed(run: RunDir, tmp_path: Path) -> None:
    text = spec_text().replace("[table.outages]", LATER.replace("2 *", "1e300 ** 9 *") + "[table.outages]")
    before = files(run)
    with pytest.raises(netwarp.CaptureError, match="double"):
        netwarp.analyze(run.root, spec=later(tmp_path / "later", text))
    after = files(run)
    assert {path: after[path] for path in before} == before, "nothing is changed"
    assert not run.spec.exists()


def test_the_texts_of_a_spec_are_itself_what_it_names_and_its_profiles(tmp_path: Path) -> None:
    """Also a profile that only a level names."""
    text = spec_text(more='[factor.path]\nlevels = ["adsl", "e1"]').replace(
        "[link.p1]", '[link.p3]\nprofile = "geo-satellite"\n[link.p1]'
    )
    spec = load_spec(later(tmp_path / "later", text, CLAIM.replace("double", "share")))
    profiles = ["adsl", "e1", "geo-satellite"]
    assert sorted(texts_of(spec)) == [
        "claims.toml",
        *(f"netem-profiles/{name}.toml" for name in profiles),
        "other.toml",
    ]


def stopped(*args: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("at", ["write_tables", "write_timelines"])
def test_a_stop_while_tables_are_written_leaves_the_old_ones(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    assert netwarp.open_run(run.root).results.outcomes  # its cells are judged by their checks now, as in any run
    before = files(run)
    spec = later(tmp_path / "later", spec_text().replace("[table.outages]", "[table.renamed]"))
    monkeypatch.setattr(f"netwarp.engine.analysis.{at}", stopped)
    with pytest.raises(KeyboardInterrupt):
        netwarp.analyze(run.root, spec=spec)
    assert files(run) == before


def test_a_kill_between_the_old_tables_and_the_new_leaves_none_and_they_are_made_again(
    run: RunDir, tmp_path: Path
) -> None:
    """A kill gives no time to tidy up: the process ends where outputs.json is to be written."""
    spec = later(tmp_path / "later", spec_text().replace("[table.outages]", "[table.renamed]"))
    code = (
        "import os, sys, netwarp, netwarp.engine.analysis as analysis\n"
        "analysis.write_outputs = lambda *args: os._exit(9)\n"
        "netwarp.analyze(sys.argv[1], spec=sys.argv[2])\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(run.root), str(spec)], check=False, timeout=300)
    assert killed.returncode == 9
    assert not run.tables.exists() and run.new_tables.is_dir()
    with pytest.raises(StoreError):
        netwarp.open_run(run.root).table("outages")
    netwarp.report(run.root)  # by the outputs that are in force: the old ones
    assert (run.tables / "outages.csv").exists() and not (run.tables / "renamed.csv").exists()
    netwarp.analyze(run.root, spec=spec)
    assert (run.tables / "renamed.csv").exists() and not (run.tables / "outages.csv").exists()
    assert [path for path in run.root.rglob("*.part") if path.exists()] == []
