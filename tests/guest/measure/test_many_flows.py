"""Many flows in a guest: what is drawn is what runs, queues and losses against the queue's length and the sender's own
count, windows against the metrics of the whole cell.
"""

from __future__ import annotations

import json

import netwarp
import pytest
from support.chain_kit import Checkout
from support.run_files import RunFiles

SPEC = """\
format = 1
name = "many"
duration = "6 s"
shape = { kind = "dumbbell", pairs = 2 }
measure = { windows = "500 ms", links = ["bottleneck.forward"], span = { from = "1 s", to = "3 s" } }
[default.link]
rate = "100 Mbit/s"
queue = "200 packets"
one_way_delay = "1 ms"
[link.bottleneck]
rate = "5 Mbit/s"
queue = "20 packets"
one_way_delay = "10 ms"
[default.flow]
from = "a*"
to = "b*"
paths = ["a*"]
protocol = "tcp"
[flow.x]
count = 3
start = { first = "0 s", every = "500 ms" }
stop = { last = "4 s", every = "300 ms" }
[flow.web]
classes = { mice = "10 kB", elephants = "1 MB" }
arrivals = { process = "poisson", rate = "4 /s", size = { exponential = "15 kB" }, stop = "3 s" }
[factor.variant]
levels = ["cubic", "reno", "codel"]
[factor.variant.level]
reno.default.flow.sender = { congestion = "reno" }
codel.link.bottleneck.aqm = { kind = "codel" }
[figure.fct]
kind = "cdf"
metric = "completion_time_s"
flow = ["web.mice", "web"]
lines = ["flow", "variant"]
[figure.shares]
series = ["goodput_bit_s"]
windows = true
flow = "x"
panels = ["variant"]
log = true
[figure.waiting]
series = ["queue_delay_mean_s"]
flow = "bottleneck.forward"
[figure.jain]
series = ["jain_index"]
panels = ["variant"]
"""
VARIANTS = ("cubic", "reno", "codel")
LINK = "bottleneck.forward"
Numbers = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return checkout.run_spec(tmp_path_factory.mktemp("many"), SPEC)


def numbers(run: RunFiles, variant: str) -> Numbers:
    """(flow, metric) -> value, of those that have one."""
    cell_id = run.cell(variant=variant).cell.id
    rows = (row for row in run.table("measurements") if row["cell_id"] == cell_id and row["value"])
    return {(row["flow"], row["metric"]): float(row["value"]) for row in rows}


def windows(run: RunFiles, variant: str, flow: str, series: str) -> list[float | None]:
    """The values of a series."""
    cell_id = run.cell(variant=variant).cell.id
    chosen = {"cell_id": cell_id, "flow": flow, "series": series}
    return [
        float(row["value"]) if row["value"] else None for row in run.table("windows") if chosen.items() <= row.items()
    ]


def test_all_variants_have_the_flows_that_were_drawn(run: RunFiles) -> None:
    drawn = [
        [(flow.name, flow.start_ns, flow.total_bytes) for flow in run.cell(variant=variant).cell.flows]
        for variant in VARIANTS
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    measured = numbers(run, "cubic")
    for name, _, size in drawn[0]:
        if size is not None:
            assert measured[name, "payload_bytes"] == size
            assert measured[name, "completion_time_s"] > 0.024, "a round trip"
    mice = [size for _, _, size in drawn[0] if size is not None and size <= 10_000]
    assert measured["web.mice", "completed_flows"] == measured["web.mice", "group_flows"] == len(mice) > 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_flows_lose_is_what_the_bottleneck_drops(run: RunFiles, variant: str) -> None:
    measured = numbers(run, variant)
    lost = sum(value for (flow, metric), value in measured.items() if metric == "lost_packets" and flow != LINK)
    assert lost == measured[LINK, "lost_packets"] > 0
    if variant == "codel":
        assert lost == measured["", "aqm_dropped_packets"], "the kernel's own count"


def test_no_packet_waits_longer_than_the_queue_is(run: RunFiles) -> None:
    """20 packets of 1500 B wait, of 2.4 ms each, and the rest of the one that is being sent."""
    for variant in ("cubic", "reno"):
        measured = numbers(run, variant)
        assert 19 * 0.0024 < measured[LINK, "queue_delay_max_s"] <= 21 * 0.0024
        assert measured["x1", "queue_delay_max_s"] == pytest.approx(measured[LINK, "queue_delay_max_s"], abs=0.0015)
    assert numbers(run, "codel")[LINK, "queue_delay_mean_s"] < 0.5 * numbers(run, "cubic")[LINK, "queue_delay_mean_s"]


def test_windows_add_up_to_the_whole_cell(run: RunFiles) -> None:
    measured = numbers(run, "cubic")
    for name in ("x1", "x2", "x3"):
        goodput = windows(run, "cubic", name, "goodput_bit_s")
        assert len(goodput) == 12
        payload = sum(value or 0 for value in goodput) * 0.5 / 8
        assert measured[name, "payload_bytes"] <= payload <= measured[name, "payload_bytes"] + 50_000, "after its stop"
        lost = windows(run, "cubic", name, "lost_packets")
        assert sum(value or 0 for value in lost) == measured[name, "lost_packets"]
    used = windows(run, "cubic", LINK, "utilization_ratio")
    assert sum(value or 0 for value in used) / 12 == pytest.approx(measured[LINK, "link_utilization_ratio"], rel=1e-6)
    assert max(value or 0 for value in used) <= 1 + 0.0024 / 0.5, "the packet that arrives at its beginning"
    running = windows(run, "cubic", "", "running_flows")
    assert running[:8] == [0, 1, 2, 3, 3, 3, 3, 3], "those without a size: from 0, 0.5 and 1 s on"
    jain = windows(run, "cubic", "", "jain_index")
    assert all(
        (value is not None) == (count is not None and count > 1) for value, count in zip(jain, running, strict=True)
    )


def test_a_span_is_its_windows(run: RunFiles) -> None:
    measured = numbers(run, "cubic")
    rates = {}
    for name in ("x1", "x2", "x3"):
        rates[name] = sum(value or 0 for value in windows(run, "cubic", name, "goodput_bit_s")[2:6]) / 4
        assert measured[name, "span_goodput_bit_s"] == pytest.approx(rates[name], abs=2 * 12_000), "a packet at an edge"
    web = sum(value for (flow, metric), value in measured.items() if metric == "span_goodput_bit_s" and "web" in flow)
    total = sum(measured[name, "span_goodput_bit_s"] for name in rates) + web
    assert measured["x1", "span_share_ratio"] == pytest.approx(measured["x1", "span_goodput_bit_s"] / total)
    assert measured["x", "group_span_goodput_bit_s"] == pytest.approx(total - web)
    lost = sum(value or 0 for value in windows(run, "cubic", LINK, "lost_packets")[2:6])
    came = 5e6 / 8 / 1500 * 2  # packets that the rate carries
    assert measured[LINK, "span_loss_ratio"] == pytest.approx(lost / (came + lost), rel=0.1)
    assert 0.9 < measured[LINK, "span_utilization_ratio"] <= 1 + 0.0024 / 2
    assert 0 < measured[LINK, "span_queue_delay_mean_s"] < measured[LINK, "span_queue_delay_p95_s"] <= 21 * 0.0024


def test_a_figure_shows_the_flows_of_a_group_together(run: RunFiles) -> None:
    rows = run.table("fct")
    flows = run.cell(variant="reno").cell.flows
    classes = [flow.size_class for flow in flows]
    shown = [row for row in rows if row["flow"] == "web.mice" and row["variant"] == "reno"]
    assert len(shown) == classes.count("mice")
    assert len(rows) == 3 * (classes.count("mice") + sum(flow.group == "web" for flow in flows))


def test_a_figure_over_time_has_a_panel_for_each_variant_and_one_look_for_a_variant(run: RunFiles) -> None:
    rows = run.table("shares")
    assert {row["flow"] for row in rows} == {"x1", "x2", "x3"}
    assert {row["t_s"] for row in rows} == {str(number / 2) for number in range(12)}
    report = run.root / "report"
    assert all((report / "figures" / f"{name}.pdf").is_file() for name in ("shares", "waiting", "jain"))
    page = (report / "index.html").read_text()
    data = json.loads(page.split('<script type="application/json" id="report-data">')[1].split("</script>")[0])
    grid = data["figures"]["shares"]
    assert (grid["kind"], grid["y"]["kind"], grid["legend"]) == ("grid", "log", False)
    assert [panel["label"] for panel in grid["panels"]] == ["cubic", "reno", "codel"]
    assert [len(panel["series"]) for panel in grid["panels"]] == [3, 3, 3]
    looks = data["looks"]
    colours = [{looks[line["key"]]["light"] for line in panel["series"]} for panel in grid["panels"]]
    waiting = [looks[line["key"]]["light"] for line in data["figures"]["waiting"]["series"]]
    assert colours == [{colour} for colour in waiting], "a variant has one colour in the whole report"
    assert len({*waiting}) == 3


def test_windows_are_a_data_frame(run: RunFiles) -> None:
    frame = netwarp.load_run(run.root).windows
    cell_id = run.cell(variant="reno").cell.id
    chosen = frame.filter((frame["cell_id"] == cell_id) & (frame["flow"] == LINK) & (frame["series"] == "loss_ratio"))
    assert chosen["t_s"].to_list() == [number / 2 for number in range(12)]
    assert chosen["value"].to_list() == windows(run, "reno", LINK, "loss_ratio")
