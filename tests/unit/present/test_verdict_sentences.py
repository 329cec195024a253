"""The first screens: the answer in a sentence, the grid of claims, counts, and the set-up."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from netwarp.cli.summary import print_summary
from netwarp.core.errors import SpecError
from netwarp.engine.run_directory import open_run
from netwarp.present.claim_blocks import Statement, statements
from netwarp.present.conclusions import Field, answer, claim_grid, counts, distances, filled
from netwarp.present.pages.build import make_report
from netwarp.present.run_data import read_run
from netwarp.present.setup import networks, varied
from netwarp.present.style import IN_FEW, IN_OVERLAP, VERDICTS, verdict_shown
from netwarp.store.run_dir import RunDir
from support.report_kit import RATE_BIT_S, goodput, plan_of, spec_text, write_run

STACKS = """\
[factor.stack]
title = "stack"
usual = "today"
levels = ["today", "then"]
[factor.length]
usual = "near"
unstated = "how far the hosts are"
levels = ["near", "far"]
"""
SENTENCE = 'paper = { ko = "둘이 낫다.", en = "Two are better." }\n'
CLAIMS = f"""\
headline = ["C2"]
summary = {{ text = "Mostly: {{C2.measured.size}} less (paper: {{C2.paper}}).", presumes = {{ C2 = "holds" }} }}
[source.paper]
title = "A Paper 2009"
kind = "paper"
[source.simulator]
title = "A Simulator"
kind = "simulator"
[column.era]
title = "Linux as then"
where = {{ stack = "then" }}
[[claim]]
id = "C1"
text = "Two paths beat one at 20 s."
source = "section 4"
class = "conclusion"
{SENTENCE}kind = "greater"
metric = "goodput_bit_s"
a = {{ variant = "multi", failover = "rfc4960", outage = "20 s" }}
b = {{ variant = "tcp", outage = "20 s" }}
also = [{{ length = "far" }}, {{ failover = "default" }}]
[[claim]]
id = "C2"
text = "An outage of 20 s costs TCP more than a tenth."
source = "section 4"
class = "conclusion"
{SENTENCE}kind = "less"
metric = "goodput_bit_s"
a = {{ variant = "tcp", outage = "20 s" }}
b = {{ variant = "tcp", outage = "0 s" }}
tolerance = 0.1
[[claim]]
id = "C3"
text = "It costs 40 %."
source = "section 4"
class = "number"
readings = ["C3"]
{SENTENCE}kind = "gain"
metric = "goodput_bit_s"
a = {{ variant = "tcp", outage = "20 s" }}
b = {{ variant = "tcp", outage = "0 s" }}
expected = -0.4
tolerance = 0.01
[[claim]]
id = "C4"
text = "That is because of its timer."
source = "section 5"
class = "cause"
{SENTENCE}kind = "untestable"
reason = "its timer cannot be changed"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The base of an experiment: TCP and two ways of failover, two stacks; what is far away is not run."""
    folder = tmp_path_factory.mktemp("run")
    text = spec_text(more=STACKS, extra=', "stack", "length"', where='where = { stack = "today", length = "near" }')
    plan = plan_of(text, folder / "spec", CLAIMS, repetitions=5, parts=("base",))
    run = write_run(folder / "run", plan)
    make_report(run)
    return run


@pytest.fixture(scope="module")
def said(run: RunDir) -> tuple[Statement, ...]:
    return statements(read_run(run))


def measured(run: RunDir, **levels: str) -> float:
    """The made-up goodput, by the tables."""
    cell = next(cell for cell in read_run(run).cells if levels.items() <= cell.cell.factors.items())
    return goodput(cell.cell)


def test_the_grid_has_the_headline_first_and_every_sources_number(run: RunDir, said: tuple[Statement, ...]) -> None:
    grid = claim_grid(read_run(run).plan, said)
    assert grid.columns == (("paper", "paper"), ("measured", "Linux 6.12"), ("era", "Linux as then"))
    assert [[claim.id for claim in part] for part in (grid.first, grid.rest, grid.causes)] == [["C2"], ["C1"], ["C4"]]
    tcp = [measured(run, variant="tcp", outage=outage, stack="today") for outage in ("20 s", "0 s")]
    paper, own, era = grid.row(grid.first[0])
    assert own == Field("holds", f"−{100 * (1 - tcp[0] / tcp[1]):.1f} %", "own")
    assert (paper.verdict, paper.text, era.verdict) == ("holds", "−38.1 %", "holds")
    assert grid.row(grid.rest[0])[1].note == "holds in 1 of 2 conditions"
    assert [field.text for field in grid.row(grid.causes[0])] == ["says so", "not testable here", ""]


def test_the_answer_has_the_numbers_of_its_claims(run: RunDir, said: tuple[Statement, ...]) -> None:
    """Where a verdict that it presumes is another, it is not said: which one, and the counts, stand in its place."""
    plan = read_run(run).plan
    assert re.fullmatch(r"Mostly: \d+\.\d\s% less \(paper: −38\.1\s%\)\.", answer(plan, said, "Linux 6.12"))
    assert answer(replace(plan, summary=None), said, "Linux 6.12") == counts(said, "Linux 6.12")[0]
    assert plan.summary is not None
    other = replace(plan, summary=replace(plan.summary, presumes={"C2": "does not hold"}))
    assert "does not bear out the experiment's own summary (C2: holds). Of 2 conclusions" in answer(
        other, said, "Linux 6.12"
    )
    without = replace(plan, summary=replace(plan.summary, text="{C2.simulator}"))
    assert "no such number" in answer(without, said, "Linux 6.12")


@pytest.mark.parametrize("verdict", [name for name in VERDICTS if name not in ("holds", IN_FEW, IN_OVERLAP)])
def test_only_what_was_decided_otherwise_speaks_against_the_summary(
    run: RunDir, said: tuple[Statement, ...], verdict: str
) -> None:
    """What was not tested, cannot be, or is still undecided bears nothing out, and refutes nothing."""
    plan = read_run(run).plan
    assert plan.summary is not None
    plan = replace(plan, summary=replace(plan.summary, presumes={"C2": "holds", "C9": "holds"}))
    claims = tuple(
        dataclasses.replace(one, tests=(dataclasses.replace(one.own, verdict=verdict), *one.tests[1:]))
        for one in said
        if one.id == "C2"
    )
    text = answer(plan, claims, "Linux 6.12")
    decided = verdict in ("weaker, same direction", "does not hold", "its own source refutes it")
    assert ("does not bear out" in text) == decided
    assert "does not decide all that the experiment's own summary rests on (" in text
    assert f"C2: {verdict_shown(verdict)}" in text
    assert "C9: not tested)" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{C2.verdict}, {C2.expected}", "holds, < −10 %"),
        ("{C2.paper.times}", "0.62"),
        ("{C1.conditions}", "1 of 2"),
        ("{C1.verdict @ failover=default}", "holds"),
    ],
)
def test_a_template_has_words_and_forms_of_numbers(text: str, shown: str, said: tuple[Statement, ...]) -> None:
    assert filled(text, said).replace("\u00a0", " ") == shown


@pytest.mark.parametrize("text", ["{C9.measured}", "{C4.measured}", "{C2.simulator}", "{C1.measured @ length=near}"])
def test_a_template_over_a_number_that_is_not_there_is_an_error(text: str, said: tuple[Statement, ...]) -> None:
    with pytest.raises(SpecError, match=re.escape(text)):
        filled(text, said)


@pytest.mark.parametrize(
    ("text", "presumes", "problem"),
    [
        ("{C9.measured}", '{ C2 = "holds" }', 'there is no "C9"'),
        ("{C2.papre}", '{ C2 = "holds" }', 'there is no "papre", did you mean "paper"'),
        ("{C2.paper.big}", '{ C2 = "holds" }', 'there is no "big"'),
        ("{C2.paper}", '{ C1 = "holds" }', "says nothing of C2"),
        ("{C2.paper}", '{ C2 = "hold" }', "is no verdict"),
    ],
)
def test_an_answer_that_names_what_is_not_there_is_refused(
    text: str, presumes: str, problem: str, tmp_path: Path
) -> None:
    lines = [
        f'summary = {{ text = "{text}", presumes = {presumes} }}' if one.startswith("summary") else one
        for one in CLAIMS.splitlines()
    ]
    with pytest.raises(SpecError, match=problem):
        plan_of(spec_text(more=STACKS, extra=', "stack", "length"'), tmp_path, "\n".join(lines))


def test_what_is_of_the_robustness_part_is_in_no_sum_and_said_apart(run: RunDir, said: tuple[Statement, ...]) -> None:
    claim = next(one for one in said if one.id == "C1")
    assert [test.condition for test in claim.tests[1:]] == ["length: far", "failover: default"]
    assert [test.condition for test in claim.others] == ["failover: default"] and claim.left_out == 1
    assert claim.robustness == "holds in 1 of 2 conditions with today's stack; it does with failover: default"
    page = " ".join((run.report / "index.html").read_text().split())
    assert "1 more test of them under conditions that the source does not state belong" in page
    assert "were not tested" not in page and "was not tested" not in page


def test_the_terminal_says_the_same(
    run: RunDir, said: tuple[Statement, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentence, grid, counts, and the run directory last."""
    monkeypatch.setenv("COLUMNS", "300")
    print_summary(open_run(run.root))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == answer(read_run(run).plan, said, "Linux 6.12")
    assert [line.split()[0] for line in lines if re.match(r" *C\d ", line)] == ["C2"]
    assert any(line.startswith("4 claims: ") for line in lines) and any("--only robustness" in line for line in lines)
    assert lines[-1] == str(run.root)


def test_a_claim_that_its_paper_contradicts_is_said_alike_everywhere(
    run: RunDir, said: tuple[Statement, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables and --json have the verdict's own name, which no reader sees."""
    name, words = "its own source refutes it", "paper contradicts itself"
    (number,) = (one for one in said if one.id == "C3")
    assert number.own.verdict == name
    assert number.sureness == "the paper's own numbers do not show it; Linux 6.12 does, but less"
    monkeypatch.setenv("COLUMNS", "300")
    print_summary(open_run(run.root))
    terminal = capsys.readouterr().out
    open_run(run.root).write_junit(run.root / "junit.xml")
    page = (run.report / "index.html").read_text()
    text = re.sub(r"<[^>]*>", "", page[: page.index('id="report-data"')])
    assert "1 the paper itself contradicts" in terminal
    assert words in text and words in (run.root / "junit.xml").read_text()
    assert name not in terminal + text + (run.root / "junit.xml").read_text()


def test_classes_are_counted_apart_and_numbers_are_a_distance(run: RunDir, said: tuple[Statement, ...]) -> None:
    assert counts(said, "Linux 6.12") == (
        "Of 2 conclusions, 1 holds, 1 does not hold on Linux 6.12.",
        "Of 1 number, 1 the paper itself contradicts on Linux 6.12.",
        "Of 1 cause, 1 is not testable here on Linux 6.12.",
    )
    (number,) = (one for one in said if one.id == "C3")
    tcp = [measured(run, variant="tcp", outage=outage, stack="today") for outage in ("20 s", "0 s")]
    assert number.distance == pytest.approx(tcp[0] / tcp[1] / 0.6 - 1)
    assert distances(said) == "", "one number is no distribution"


def test_the_page_says_the_answer_before_anything_else(run: RunDir, said: tuple[Statement, ...]) -> None:
    page = (run.report / "index.html").read_text()
    first = (answer(read_run(run).plan, said, "Linux 6.12"), 'class="summary-claims"', 'id="setup"', 'id="claims"')
    places = [page.index(text) for text in (*first, 'id="counts"', 'id="cells"')]
    assert places == sorted(places)
    text = " ".join(re.sub(r"<[^>]*>", "", page[: page.index('id="setup"')]).split())
    assert "exact: nothing here is random" in text and "95 % interval of 5 repetitions" in text
    assert "needed: &lt; −10 %" in text and "“" not in text and "Two are better." in text


def test_flows_that_are_alike_are_one_row_of_the_set_up(tmp_path: Path) -> None:
    more = "".join(f'[flow.g{number}]\nlike = "ftp"\n' for number in range(59))
    text = spec_text() + more
    text = text.replace('metric = "share"', 'metric = "share"\nflow = "ftp"').replace(
        'metric = "goodput_bit_s"', 'metric = "goodput_bit_s"\nflow = "ftp"'
    )
    drawn = networks(read_run(write_run(tmp_path / "run", plan_of(text, tmp_path))))
    assert [row[0] for row in drawn[0]["rows"] if row[0].startswith("flow")] == ["flows ftp, g0, g1 ... g58 (60)"]


def test_the_set_up_has_every_link_flow_and_fault(run: RunDir) -> None:
    data = read_run(run)
    drawn = networks(data)
    assert [network["title"] for network in drawn] == ["2 nodes, 2 links (80 cells)", "2 nodes, 1 link (40 cells)"]
    two = drawn[0]
    rows = {row[0]: row[1:] for row in two["rows"]}
    assert rows["link p1"] == ("a – b", "500 kbit/s, 200 ms one way, queue 50 packets")
    assert rows["link p2"] == rows["link p1"]
    assert rows["flow ftp"] == ("a → b", "SCTP, over p1 and p2, until 100 s")
    assert rows["fault outage"] == ("link p1", "cut at 50 s, length of the outage (5, 10, 20 s) (in 60 of 80 cells)")
    drawing = str(two["drawing"])
    assert drawing.count("testbed-host") == 2 and drawing.count('class="testbed-link"') == 2
    assert drawing.count('class="testbed-hop"') == 2, "a router hop shapes each link"
    assert "p1 from a to b; p2 from a to b" in drawing, "in words, for who cannot see it"


def test_the_set_up_says_what_each_level_of_the_run_sets(run: RunDir) -> None:
    """Levels that no cell has are not of this run."""
    data = read_run(run)
    found = varied(data)
    settings = {(factor, level): sets for factor, level, sets in found.settings}
    assert "flow.ftp.protocol = sctp" in settings["variant", "SCTP, two paths"]
    page = (run.report / "index.html").read_text()
    for _, levels in found.factors:
        assert levels in page
    assert dict(found.factors)["length of the outage"] == "0, 5, 10, 20 s"
    outages = data.plan.factors[0]
    assert outages.name == "outage"
    some = tuple(cell for cell in data.plan.cells if cell.factors["outage"] in ("5 s", "10 s"))
    part = varied(read_run(run, replace(data.plan, cells=some)))
    assert dict(part.factors)["length of the outage"] == "5, 10 s"
    one = tuple(cell for cell in some if cell.factors["outage"] == "5 s")
    assert dict(varied(read_run(run, replace(data.plan, cells=one))).fixed)["length of the outage"] == "5 s"


def test_claims_csv_has_a_column_for_each(run: RunDir) -> None:
    with (run.tables / "claims.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["claim"] == "C2" and not row["condition"])
    assert float(row["paper"]) == pytest.approx(300_000 / 485_000 - 1)
    tcp = (
        measured(run, variant="tcp", outage="20 s", stack="today"),
        measured(run, variant="tcp", outage="0 s", stack="today"),
    )
    assert float(row["measured"]) == pytest.approx(tcp[0] / tcp[1] - 1)
    assert (row["paper_verdict"], row["measured_verdict"], row["era_verdict"]) == ("holds",) * 3
    assert tcp[0] < RATE_BIT_S


def test_the_counts_say_how_many_hold_in_each_column(run: RunDir, said: tuple[Statement, ...]) -> None:
    own = [claim for claim in said if claim.claim_class == "conclusion"]
    here, there = (
        sum(value.verdict == "holds" for claim in own for value in claim.own.values if value.name == name)
        for name in ("measured", "era")
    )
    sentence = f"{here} of 2 conclusions hold on Linux 6.12, and {there} on Linux as then."
    assert sentence in " ".join((run.report / "index.html").read_text().split())
