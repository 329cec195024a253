"""Plans: the cells of a spec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell
from netwarp.core.units import parse_quantity
from netwarp.engine.planning import plan_experiment
from netwarp.experiment import EXAMPLE_SPEC, load_spec, parse_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan, Selection
from support.specs import BASE, plan_of, problems_of, replaced, spec_of

MS, S = 10**6, 10**9
X = '[factor.x]\nlevels = ["1 s", "2 s", "3 s"]\n'


def test_example_spec_loads_and_plans() -> None:
    plan = make_plan(parse_spec(EXAMPLE_SPEC.encode(), Path("spec.toml"), sets={}))
    assert len(plan.cells) == 6
    assert len({cell.id for cell in plan.cells}) == 6


def test_a_cell_with_a_program_is_not_called_deterministic() -> None:
    """It may draw random numbers, which the guest's kernel makes from the seed: two seeds may differ."""
    own = EXAMPLE_SPEC.replace('paths = ["p1"]', 'paths = ["p1"]\nprogram = "ping"').replace('"{protocol}"', '"icmp"')
    own = own.replace('[factor.protocol]\nlevels = ["tcp", "sctp"]\n', "").partition("[table.")[0]
    plan = make_plan(parse_spec(own.encode(), Path("spec.toml"), sets={}))
    assert plan.cells and all(cell.random for cell in plan.cells)


def test_choi2009_draws_lengths_beside_table_5() -> None:
    """The length of the outage drawn, 20 % to either side, which no published number is about."""
    plan = make_plan(load_spec("choi2009"), only=["lengths"])
    drawn = [cell for cell in plan.cells if cell.factors["drawn_outage"] != "0 s"]
    assert len(drawn) == 3 * 3 * 5 * 2, "three lengths, three variants, five draws, two stacks"
    assert all(cell.random and cell.links[0].forward.one_way_delay_ns == 200 * MS for cell in drawn)
    lengths: dict[tuple[str, int], set[int]] = {}
    selection = Selection(plan)
    for cell in drawn:
        fault, repair = cell.timeline
        assert (fault.action, fault.at_ns) == ("cut", 50 * S)
        named = int(parse_quantity(cell.factors["drawn_outage"], "time").value)
        assert 0.8 * named <= repair.at_ns - fault.at_ns <= 1.2 * named
        lengths.setdefault((cell.factors["drawn_outage"], cell.repetition), set()).add(repair.at_ns - fault.at_ns)
        assert not any(selection.has(cell, number.at) for number in plan.expected)
        assert bool(cell.flows[0].switches) == (cell.factors["variant"] == "sctp_multi")
    assert len(lengths) == 15
    assert all(len(same) == 1 for same in lengths.values()), "one length a seed, whoever is compared"


def test_choi2009_runs_every_table_of_the_paper() -> None:
    """The paper states 42 runs for Table 6 and 30 for Table 7; here both readings, and three ways of failover."""
    plan = make_plan(load_spec("choi2009"), where=[("reading", "one_way_delay")])
    stated = {"rtts": 42, "bandwidths": 30}
    for experiment, count in stated.items():
        cells = [cell for cell in plan.cells if cell.experiment in (experiment, f"{experiment}_undisturbed")]
        base = {"failover": {"-", "scripted_switch"}, "stack": {"-", "today"}, "heartbeats": {"-", "on"}}
        scripted = [cell for cell in cells if all(cell.factors[name] in levels for name, levels in base.items())]
        assert len(scripted) == count
        for cell in cells:
            down = int(parse_quantity(cell.factors["outage"], "time").value)
            assert [event.at_ns for event in cell.timeline] == ([50 * S, 50 * S + down] if down else [])
            delay = cell.factors["printed_rtt"] if experiment == "rtts" else "200 ms"
            rate = cell.factors["bandwidth"] if experiment == "bandwidths" else "0.5 Mbit/s"
            shape = cell.links[-1].forward
            assert shape.one_way_delay_ns == int(parse_quantity(delay, "time").value)
            assert shape.rate_bit_s == int(parse_quantity(rate, "rate").value)
    durations = [cell for cell in plan.cells if cell.experiment == "durations"]
    assert len(durations) == 9 * 2, "two stacks"
    for cell in durations:
        assert cell.duration_ns == int(parse_quantity(cell.factors["sim_time"], "time").value)
        assert (cell.flows[0].stop_ns, cell.timeline) == (cell.duration_ns, ())
    rtt = make_plan(load_spec("choi2009"), only=["rtts"], where=[("reading", "rtt"), ("printed_rtt", "1000 ms")])
    assert {link.forward.one_way_delay_ns for cell in rtt.cells for link in cell.links} == {500 * MS}
    for cell in make_plan(load_spec("choi2009"), only=["onsets"]).cells:
        at = int(parse_quantity(cell.factors["onset"], "time").value)
        assert cell.timeline[0].at_ns == at
        assert all(switch.at_ns == at for switch in cell.flows[0].switches)


def test_an_output_takes_the_cells_of_its_experiment() -> None:
    """Also those that it shares with an experiment that runs them."""
    text = (
        BASE
        + X
        + '[factor.y]\nlevels = ["u", "v"]\n[experiment.one]\nfactors = ["x"]\nfixed = { y = "u" }\n'
        + '[experiment.two]\nfactors = ["y"]\nfixed = { x = "1 s" }\n'
        + '[table.t]\nexperiment = "two"\nmetric = "packets"\nrows = ["y"]\n'
        + '[figure.f]\nexperiment = ["one", "two"]\nmetric = "packets"\nx = "x"\nwhere = { y = "u" }\n'
    )
    plan = plan_of(text)
    selection = Selection(plan)
    levels = [
        [tuple(cell.factors.values()) for cell in plan.cells if selection.has(cell, output.where)]
        for output in (*plan.tables, *plan.figures)
    ]
    assert levels == [[("1 s", "u"), ("1 s", "v")], [("1 s", "u"), ("2 s", "u"), ("3 s", "u")]]
    (mixed,) = problems_of(text.replace('experiment = "two"', 'experiment = ["one", "two"]'))
    assert "would mix 3 cells, which differ in x" in mixed
    alone = make_plan(spec_of(text), only="two")
    assert [cell.experiment for cell in alone.cells if Selection(alone).has(cell, {"experiment": ("one",)})] == ["two"]


def test_a_factor_sets_keys_to_its_levels() -> None:
    """As if each level had a table with them; a level's own table comes after."""
    text = (
        replaced('one_way_delay = "20 ms"', 'one_way_delay = "{delay}"')
        + '[parameter]\ndelay = "20 ms"\n'
        + '[factor.d]\nsets = "parameter.delay"\nlevels = ["1 ms", "2 ms"]\n'
        + '[factor.d.level."2 ms"]\ntitle = "two"\nlink.p1.rate = "2 Mbit/s"\n'
        + '[factor.q]\nsets = ["link.p1.queue", "flow.f.message_size"]\nlevels = ["5000 B", "2500 B"]\n'
        + '[metric.m]\nunit = "s"\nvalue = "{delay}"\n'
    )
    plan = plan_of(text)
    seen = [
        (c.links[0].forward.one_way_delay_ns // MS, c.links[0].forward.rate_bit_s, c.flows[0].message_bytes)
        for c in plan.cells
    ]
    assert seen == [(1, 10**6, 5000), (1, 10**6, 2500), (2, 2 * 10**6, 5000), (2, 2 * 10**6, 2500)]
    assert [cell.metrics["m"] for cell in plan.cells] == ["0.001", "0.001", "0.002", "0.002"]
    assert plan.factors[0].levels[1].title == "two"


def test_choi2009_repeats_only_what_the_seed_decides() -> None:
    plan = make_plan(load_spec("choi2009"), only=["outages"], where=[("stack", "today"), ("stack", "-")])
    count = {cell.factors["variant"]: 0 for cell in plan.cells}
    for cell in plan.cells:
        count[cell.factors["variant"]] += 1
    # TCP, and SCTP with one path and no outage, once; SCTP through an outage or with two paths three times
    assert count == {"tcp": 8, "sctp_single": 2 * (1 + 3 * 3), "sctp_multi": 2 * 3 * 4 * 3}
    assert plan.repetitions == 3


def test_choi2009_has_each_cell_once() -> None:
    stack = [("stack", "today"), ("stack", "-")]
    plan = make_plan(load_spec("choi2009"), repetitions=1, only=["outages", "faults"], where=stack)
    # outages: 4 x 2 readings x (tcp, single, 3 failovers of multi); faults: 3 more faults at 10 s for 5 variants
    assert len(plan.cells) == 4 * 2 * 5 + 3 * 5
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    quiet = [cell for cell in plan.cells if cell.factors["outage"] == "0 s"]
    assert len(quiet) == 10
    for cell in plan.cells:
        heartbeats = cell.flows[0].protocol == "sctp" and (
            cell.factors["outage"] != "0 s" or len(cell.flows[0].paths) > 1
        )
        assert cell.random == heartbeats
        down = int(parse_quantity(cell.factors["outage"], "time").value)
        if not down:
            assert (cell.timeline, cell.factors["fault"]) == ((), "-")
            assert not cell.flows[0].switches
        else:
            fault, repair = cell.timeline
            end = {"link": "p1.hop:b", "link at the sender": "a"}.get(cell.factors["fault"])
            assert (fault.at_ns, repair.at_ns) == (50 * S, 50 * S + down)
            assert (fault.action, fault.end) == (cell.factors["fault"].split()[0], end)
        assert bool(cell.flows[0].switches) == (cell.factors["failover"] == "scripted_switch" and down > 0)
        assert len(cell.links) == (2 if cell.factors["variant"] == "sctp_multi" else 1)
        assert {link.forward.one_way_delay_ns for link in cell.links} == {
            200 * MS if cell.factors["reading"] == "one_way_delay" else 100 * MS
        }
        assert all(link.forward.queue_packets == 50 and link.forward.rate_bit_s == 500_000 for link in cell.links)
    tcp = next(cell for cell in plan.cells if cell.factors["variant"] == "tcp")
    assert tcp.flows[0].receiver_options == {"window_clamp_bytes": 65700, "mss_bytes": 1460}
    wanted = {"congestion": "reno", "mss_bytes": 1460, "sample_interval_ns": 100_000_000}
    assert tcp.flows[0].sender_options == wanted
    assert tcp.metrics["paper_utilisation"] == "unique_data_packets * 1500 / (100 - 1.12) / rate_bit_s"
    multi = next(cell for cell in plan.cells if cell.factors["failover"] == "rfc4960")
    assert multi.metrics["paper_throughput_byte_s"] == "unique_data_packets * 1500 / (100 - 1.5)"
    assert multi.nodes[0].sysctls["net.sctp.pf_enable"] == "0"
    assert multi.nodes[0].sysctls["net.sctp.pf_expose"] == "2"
    assert "net.sctp.pf_enable" not in multi.nodes[1].sysctls
    assert multi.flows[0].receiver_options == {"rcvbuf_bytes": 65536}
    of_ipv6 = {f"V{n}" for n in range(1, 5)}
    assert {claim.id.rstrip("bcdefgnp") for claim in plan.claims} == {f"C{n}" for n in range(1, 41)} | of_ipv6
    assert not [claim.id for claim in plan.claims if claim.kind == "later"], "every claim of the paper is tested"


def test_plan_and_cells_survive_json() -> None:
    plan = make_plan(load_spec("choi2009"), seed=5, repetitions=2, where=[("outage", "10s")])
    assert from_json(to_json(plan), Plan) == plan
    for cell in plan.cells:
        assert from_json(to_json(cell), Cell) == cell
    json.loads(to_json(plan))


def test_seeds_count_up_with_the_repetition() -> None:
    plan = make_plan(spec_of(BASE + X), seed=100, repetitions=3)
    assert [(cell.factors["x"], cell.repetition, cell.seed) for cell in plan.cells][:4] == [
        ("1 s", 0, 100), ("1 s", 1, 101), ("1 s", 2, 102), ("2 s", 0, 100),
    ]  # fmt: skip
    assert make_plan(spec_of("seed = 7\nrepetitions = 2\n" + BASE)).cells[1].seed == 8


# -- choosing


def test_where_compares_quantities() -> None:
    spec = spec_of(BASE + X)
    assert [cell.factors["x"] for cell in make_plan(spec, where=[("x", "2000ms")]).cells] == ["2 s"]
    assert [cell.factors["x"] for cell in make_plan(spec, where=[("x", "3s"), ("x", "1s")]).cells] == ["1 s", "3 s"]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ([("x", "4 s")], 'factor "x" has the levels: 1 s, 2 s, 3 s'),
        ([("x", "1 s,2 s")], "1 s, 2 s, 3 s; for several of them, --where x=... once for each"),
        ([("xx", "1 s")], 'there is no factor "xx", did you mean'),
        ([("x", "-")], "no cell is left: none has x=-"),
    ],
)
def test_where_rejects_unknown_levels(where: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(SpecError, match="x") as caught:
        make_plan(spec_of(BASE + X + '[factor.xxx]\nlevels = ["a"]\n'), where=where)
    assert says in str(caught.value)


def test_only_names_experiments() -> None:
    text = BASE + X + '[experiment.one]\nfactors = ["x"]\n[experiment.two]\nfactors = []\nfixed = { x = "2 s" }\n'
    spec = spec_of(text)
    assert [cell.experiment for cell in make_plan(spec).cells] == ["one"] * 3, "a shared cell is run once"
    assert [(cell.experiment, cell.factors["x"]) for cell in make_plan(spec, only="two").cells] == [("two", "2 s")]
    with pytest.raises(SpecError, match='no experiment "three"; there is: one, two'):
        make_plan(spec, only="three")


def test_an_optional_experiment_is_no_part_of_the_base() -> None:
    text = BASE + X + '[experiment.one]\nfactors = []\nfixed = { x = "2 s" }\n[experiment.all]\nfactors = ["x"]\n'
    spec = spec_of(text + "optional = true\n")
    parts = {part: [cell.factors["x"] for cell in make_plan(spec, only=part).cells] for part in ("base", "all")}
    assert parts == {"base": ["2 s"], "all": ["1 s", "2 s", "3 s"]}
    rest = make_plan(spec, only="robustness").cells
    assert [(cell.experiment, cell.factors["x"]) for cell in rest] == [("all", "1 s"), ("all", "3 s")]
    assert [cell.factors["x"] for cell in plan_experiment(spec).cells] == ["2 s"], "as run without --only"
    often = spec_of(text + "optional = true\nrepetitions = 3\n")
    assert len(make_plan(often, only="base").cells) == 1, "nor are its repetitions"
    assert len(make_plan(often, only="all").cells) == 9
    assert len(plan_experiment(spec_of(text)).cells) == 3


@pytest.mark.parametrize("span", ['from = "1 s"', 'from = "2 s", to = "2 s"', 'to = "2 s"'])
def test_a_span_has_two_ends(span: str) -> None:
    (found,) = problems_of(BASE + X + f"[measure]\nspan = {{ {span} }}\n")
    assert "needs a beginning and a later end" in found and 'span = { from = "20 s", to = "60 s" }' in found


def test_a_span_is_within_the_duration() -> None:
    text = BASE + X + '[measure]\nspan = { from = "1 s", to = "1000 s" }\n'
    (found,) = problems_of(text)
    assert "outside the cell" in found


def test_a_shared_cell_is_repeated_as_often_as_any_experiment_asks() -> None:
    text = BASE + X + '[experiment.one]\nfactors = ["x"]\n[experiment.two]\nfactors = []\nfixed = { x = "2 s" }\n'
    more = make_plan(spec_of(text + "repetitions = 3\n")).cells
    assert [(cell.experiment, cell.factors["x"]) for cell in more] == [("one", x) for x in ("1 s", *["2 s"] * 3, "3 s")]
    assert [cell.repetition for cell in more] == [0, 0, 1, 2, 0]
    drawn = make_plan(spec_of(text + 'repetitions = 3\nrepeat = "random"\n')).cells
    assert len(drawn) == 3, "nothing in it is random"
    assert len(make_plan(spec_of(text + "repetitions = 3\n"), repetitions=2).cells) == 6


def test_only_of_a_factor_and_zip() -> None:
    text = BASE + X + (
        '[factor.y]\nlevels = ["a", "b"]\nonly = { x = ["2 s", "3 s"] }\n[factor.z]\nlevels = ["p", "q", "r"]\n'
        '[experiment.e]\nfactors = ["y", "x", "z"]\nzip = [["x", "z"]]\n'
    )  # fmt: skip
    found = [tuple(cell.factors[name] for name in "xyz") for cell in plan_of(text).cells]
    assert found == [("1 s", "-", "p"), ("2 s", "a", "q"), ("2 s", "b", "q"), ("3 s", "a", "r"), ("3 s", "b", "r")]


def test_too_many_cells_is_an_error_at_once() -> None:
    levels = ", ".join(f'"{n}"' for n in range(100))
    factors = "".join(f"[factor.f{n}]\nlevels = [{levels}]\n" for n in range(20))
    (found,) = problems_of(BASE + factors)
    assert "more than 100000 cells" in found
    with pytest.raises(SpecError, match="more than 100000 cells"):
        make_plan(spec_of(BASE + X), repetitions=50_000)


def test_repetitions_and_seed_out_of_range() -> None:
    with pytest.raises(SpecError, match="at least 1"):
        make_plan(spec_of(BASE), repetitions=0)


def test_the_testbed_takes_every_cell_and_agrees_on_the_way() -> None:
    """Every planned cell lays out: names and routes the plan promises are those the testbed builds."""
    from netwarp.testbed.layout import make_layout

    for cell in [*make_plan(load_spec("choi2009")).cells[:5], *plan_of(EXAMPLE_SPEC).cells]:
        layout = make_layout(cell)
        for flow in cell.flows:
            for path in flow.paths:
                assert layout.interface(flow.sender, path.sender_link).node == flow.sender
                assert layout.interface(flow.receiver, path.receiver_link).node == flow.receiver


def test_an_experiment_varies_only_the_levels_it_names() -> None:
    body = '[factor.y]\nlevels = ["a", "b"]\n[experiment.e]\nfactors = ["x", "y"]\n'
    cells = plan_of(BASE + X + body + 'levels = { x = ["3 s", "1 s"] }\n').cells
    assert [(cell.factors["x"], cell.factors["y"]) for cell in cells] == [(x, y) for x in ("1 s", "3 s") for y in "ab"]
    (found,) = problems_of(BASE + X + body.replace('"x", "y"', '"x"') + 'levels = { y = ["a"] }\n')
    assert '"y" is no factor that this experiment varies by itself' in found
    assert any("4 s" in one for one in problems_of(BASE + X + body + 'levels = { x = ["4 s"] }\n'))
