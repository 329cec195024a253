"""Flows that arrive at random: the draws are the process's and the distribution's, and equal for all variants."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment.arrivals import WEB_SEARCH, Sizes, read_sizes
from netwarp.plan import make_plan
from support.specs import plan_of, problems_of, spec_of

S = 10**9
SPEC = """\
format = 1
name = "test"
duration = "100 s"
shape = { kind = "dumbbell", pairs = 3 }
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
one_way_delay = "5 ms"
[flow.w]
from = "a*"
to = "b*"
paths = ["a*"]
protocol = "tcp"
[flow.w.arrivals]
process = "poisson"
rate = "5 /s"
size = "30 kB"
"""


def flows(text: str = SPEC, **planned: int) -> list[list[tuple[int, int | None]]]:
    """(start, bytes) of every flow of every cell."""
    cells = make_plan(spec_of(text), **planned).cells
    return [[(flow.start_ns, flow.total_bytes) for flow in cell.flows] for cell in cells]


def test_gaps_of_a_poisson_process_are_exponential() -> None:
    starts = [start / S for cell in flows(repetitions=20) for start, _ in cell]
    pairs = [pair for cell in flows(repetitions=20) for pair in itertools.pairwise(cell)]
    gaps = [(after - before) / S for (before, _), (after, _) in pairs]
    assert len(starts) / 20 == pytest.approx(500, rel=0.03), "a standard deviation of the mean is 1 %"
    assert statistics.fmean(gaps) == pytest.approx(0.2, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.04), "that of an exponential distribution is its mean"
    assert sum(gap > 0.4 for gap in gaps) / len(gaps) == pytest.approx(0.1353, abs=0.01), "e^-2"


def test_flows_of_a_group_take_the_pairs_in_turn() -> None:
    (cell,) = plan_of(SPEC).cells
    first = cell.flows[:4]
    assert [(flow.name, flow.sender, flow.receiver, flow.port) for flow in first] == [
        ("w1", "a1", "b1", 20001),
        ("w2", "a2", "b2", 20002),
        ("w3", "a3", "b3", 20003),
        ("w4", "a1", "b1", 20004),
    ]
    assert {flow.group for flow in cell.flows} == {"w"}
    assert {flow.total_bytes for flow in cell.flows} == {30_000}
    assert cell.random


def test_variants_meet_the_same_flows_and_seeds_others() -> None:
    text = SPEC.replace('"30 kB"', '{ published = "web-search" }') + (
        '[factor.p]\nlevels = ["tcp", "sctp"]\nsets = "flow.w.protocol"\n'
    )
    tcp, again, sctp, _ = flows(text, repetitions=2)
    assert tcp == sctp != again
    faster, *_ = flows(text.replace("5 /s", "8 /s"))
    assert [size for _, size in tcp] == [size for _, size in faster][: len(tcp)], "sizes do not depend on the rate"


def test_regular_arrivals_of_one_size_are_not_random() -> None:
    text = SPEC.replace("poisson", "regular").replace("5 /s", "30 /min") + 'stop = "10 s"\n'
    (cell,) = plan_of(text.replace('"tcp"\n', '"tcp"\nstart = "1 s"\n')).cells
    assert [flow.start_ns / S for flow in cell.flows] == [1, 3, 5, 7, 9]
    assert not cell.random


@pytest.mark.parametrize(
    ("size", "mean", "median"),
    [
        ('{ exponential = "30 kB" }', 30_000, 20_794),
        ('{ lognormal = { median = "9 kB", sigma = "1" } }', 14_838, 9_000),
        ('{ pareto = { least = "20 kB", shape = "3" } }', 30_000, 25_198),
    ],
)
def test_sizes_have_the_mean_and_median_of_their_distribution(size: str, mean: int, median: int) -> None:
    drawn = [bytes_ or 0 for cell in flows(SPEC.replace('"30 kB"', size), repetitions=30) for _, bytes_ in cell]
    assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.04)
    assert statistics.median(drawn) == pytest.approx(median, rel=0.04)


def test_a_published_distribution_is_met_at_its_points() -> None:
    sizes = Sizes(table=WEB_SEARCH)
    assert [sizes.at(share) for _, share in WEB_SEARCH[1:-1]] == [size for size, _ in WEB_SEARCH[1:-1]]
    assert sizes.at(0.25) == 25_000, "between two points: linear"
    assert Sizes(table=WEB_SEARCH, most_bytes=10**6).at(0.99) == 10**6


def test_sizes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("\ufeffsize_bytes\n1000\n2000\n\n# a comment\n4000\n")  # as spreadsheets do
    text = SPEC.replace('"30 kB"', '{ file = "sizes.csv" }')
    spec = spec_of(text, tmp_path)
    assert {flow.total_bytes for cell in make_plan(spec).cells for flow in cell.flows} == {1000, 2000, 4000}
    assert "sizes.csv" in spec.files, "so that the run keeps it"
    (tmp_path / "sizes.csv").write_text("size_bytes,share\n1000,0\n3000,0.5\n5000,1\n")
    drawn = [flow.total_bytes or 0 for cell in make_plan(spec_of(text, tmp_path)).cells for flow in cell.flows]
    assert statistics.fmean(drawn) == pytest.approx(3000, rel=0.1)
    assert min(drawn) >= 1000
    assert max(drawn) <= 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs 1 to"),
        ("12 kB\n", "without whole bytes"),
        ("-5\n", "not from 0"),
        ("1,2,3\n", "one size in bytes a line"),
        ("size_bytes,cdf\n1,1\n", "columns size_bytes and"),
        ("size_bytes,share\n1,0\n2,0.9\n", "end with the share 1"),
        ("size_bytes,share\n2,0\n1,1\n", "must rise"),
        ("1" * 200_000, "is no CSV"),
    ],
)
def test_files_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_sizes(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('rate = "5 /s"', "rate = 5", 'a number a second is text with its unit; write for example "5 /s"'),
        ('rate = "5 /s"', 'rate = "5 Mbit/s"', "is a rate, but a number a second is wanted"),
        ('rate = "5 /s"', 'rate = "500 /s"', "more than 1000 flows in a cell; a lower rate, or an earlier stop"),
        ('rate = "5 /s"', 'rate = "0.00001 /s"', "no flow arrives with the seed 1"),
        ('rate = "5 /s"\n', "", "rate is missing; for example rate ="),
        ('process = "poisson"', 'process = "Poisson"', 'did you mean "poisson"?'),
        ('size = "30 kB"', 'size = { pareto = { least = "3 kB" } }', "needs least and shape"),
        ('size = "30 kB"', 'size = { pareto = { least = "3 kB", shape = "0" } }', "a number from 0.1"),
        ('size = "30 kB"', 'size = { published = "web-search", exponential = "3 kB" }', "has one of a law"),
        ('size = "30 kB"', 'size = { most = "3 kB" }', "has one of a law"),
        ('size = "30 kB"', 'size = { file = "none.csv" }', '"none.csv" is no .csv or .txt file beside the spec'),
        ('protocol = "tcp"', 'protocol = "tcp"\ncount = 3', "count: says how many flows there are"),
        ('protocol = "tcp"', 'protocol = "tcp"\nbytes = "1 MB"', "bytes: is the size of one flow"),
        ('protocol = "tcp"', 'protocol = "tcp"\nstart = { every = "1 s" }', "is a table, which goes with count"),
        ('size = "30 kB"', 'size = "30 kB"\nstop = "200 s"', "arrivals.stop: must be after the flow's start"),
    ],
)
def test_mistakes_are_named(old: str, new: str, said: str) -> None:
    assert old in SPEC
    assert said in "\n".join(problems_of(SPEC.replace(old, new)))


def test_several_cells_that_are_too_full_are_one_problem() -> None:
    with pytest.raises(SpecError) as caught:
        make_plan(spec_of(SPEC.replace("5 /s", "500 /s")), repetitions=5)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("port", "more", "said"),
    [
        (65_500, "", "would have 65536, and there is none; give the flow another"),
        (5001, '[flow.x]\nfrom = "a1"\nto = "b2"\npaths = ["a1"]\nprotocol = "tcp"\nport = 5005\n',
         'w5 would have 5005, and flow "x" has it at "b2"; give the flow another'),
    ],
)  # fmt: skip
def test_flows_that_would_have_no_port_or_that_of_another_are_said(port: int, more: str, said: str) -> None:
    text = SPEC.replace('protocol = "tcp"\n', f'protocol = "tcp"\nport = {port}\n') + more
    assert said in "\n".join(problems_of(text))
