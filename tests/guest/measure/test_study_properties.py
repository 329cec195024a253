"""What must not change a number, does not: names, the direction in which a link is written, flows elsewhere, a hop
without a rate; and what scales all times scales them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp import Experiment
from netwarp.core.metrics.catalogue import METRICS

Numbers = dict[tuple[str, str], float | None]
HALF_S = "10 ms"
BYTES = 2_000_000


def study(
    *, names: tuple[str, str, str] = ("a", "b", "p"), mirrored: bool = False, idle: bool = False, hop: bool = False,
    rate: int = 8, delay: str = HALF_S, size: int = BYTES, protocol: str = "tcp",
) -> Experiment:  # fmt: skip
    """One flow by bytes over a bottleneck of `rate` Mbit/s with a short queue; its ACKs have a quarter of that."""
    s = Experiment("properties", duration="30 s")
    a, b = s.host(names[0]), s.host(names[1])
    there = {"rate": f"{rate} Mbit/s", "queue": "20 packets", "one_way_delay": delay}
    back = there | {"rate": f"{rate // 4} Mbit/s"}
    near = s.router("r") if hop else a
    paths: list[object] = []
    if hop:
        first = s.link("hop", a, near)
    ends = (b, near) if mirrored else (near, b)
    p = s.link(names[2], *ends, forward=back if mirrored else there, backward=there if mirrored else back)
    paths = [{"sender": first, "receiver": p}] if hop else [p]
    s.flow("f", a, b, protocol=protocol, paths=paths, bytes=f"{size} B")
    if idle:
        c, d = s.host("c"), s.host("d")
        q = s.link("q", c, d, rate="1 Mbit/s", queue="20 packets", rtt="50 ms")
        s.flow("idle", c, d, protocol=protocol, paths=[q], sender={"interval": "25 s"}, start="0.5 s")
    s.set(measure={"links": [f"{names[2]}.{'backward' if mirrored else 'forward'}"]})
    return s


@pytest.fixture(scope="module")
def measured(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Numbers]:
    """The numbers of a study, by flow and metric."""
    known: dict[str, Numbers] = {}

    def numbers(**changes: object) -> Numbers:
        key = str(sorted(changes.items()))
        if key not in known:
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("NETWARP_KERNEL", str(kernel))
                out = tmp_path_factory.mktemp("properties") / "run"
                run = study(**changes).run(out=out, backend="virtual", report=False)  # type: ignore[arg-type]
            assert run.outcomes == {"COMPLETED": 1}, [cell["reason"] for cell in run.table("cells")]
            known[key] = {(row["flow"], row["metric"]): row["value"] for row in run.table("measurements")}
        return known[key]

    return numbers


def of_flow(numbers: Numbers) -> dict[str, float | None]:
    return {metric: value for (flow, metric), value in numbers.items() if flow == "f"}


def same(one: dict[str, float | None], other: dict[str, float | None], rel: float) -> None:
    """Times and rates to a share, what is counted exactly."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if value is None or other[name] is None or name.endswith(("_packets", "_bytes", "_chunks", "timeouts")):
            assert value == other[name], name
        else:
            assert other[name] == pytest.approx(value, rel=rel, abs=2e-6), name


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_names_do_not_change_a_number(measured: Callable[..., Numbers], protocol: str) -> None:
    plain = of_flow(measured(protocol=protocol))
    assert (plain["retransmitted_packets"] or 0) > 0
    assert of_flow(measured(names=("left", "right", "wire"), protocol=protocol)) == plain


def test_a_link_written_the_other_way_round_is_the_same_link(measured: Callable[..., Numbers]) -> None:
    same(of_flow(measured()), of_flow(measured(mirrored=True)), 1e-4)


def test_a_flow_elsewhere_that_sends_nothing_changes_no_number(measured: Callable[..., Numbers]) -> None:
    beside = of_flow(measured(idle=True))
    # those of a queue computed packet by packet are of flows alone in their cell; a cell ends with the programs of its
    # last flow, when the acknowledgement of a FIN may still be under way
    alone = {
        name: value
        for name, value in of_flow(measured()).items()
        if name not in OF_A_LONE_FLOW and METRICS[name].group != "queues"
    }
    same(alone, {name: value for name, value in beside.items() if name in alone}, 1e-4)


def test_a_hop_without_a_rate_changes_no_number(measured: Callable[..., Numbers]) -> None:
    plain, behind = of_flow(measured()), of_flow(measured(hop=True))
    same({name: plain[name] for name in COUNTED}, {name: behind[name] for name in COUNTED}, 1e-4)


OF_A_LONE_FLOW = ("queue_wait_mean_s", "queue_wait_max_s", "queue_error_s", "queue_drops", "queue_drop_errors",
                  "queue_ties", "unclosed_ends")  # fmt: skip
COUNTED = ("payload_bytes", "retransmitted_packets", "completion_time_s", "goodput_bit_s", "lost_packets",
           "waiting_packets", "queue_delay_mean_s", "queue_delay_max_s", "utilization_ratio",
           "setup_time_s")  # fmt: skip


def test_twice_the_rate_and_half_the_delay_halve_all_times(measured: Callable[..., Numbers]) -> None:
    """A short flow, which loses nothing: timers do not scale."""
    slow, fast = (of_flow(measured(rate=rate, delay=delay, size=14_000)) for rate, delay in ((8, HALF_S), (16, "5 ms")))
    assert slow["retransmitted_packets"] == fast["retransmitted_packets"] == 0
    for name in ("completion_time_s", "setup_time_s", "rtt_min_s", "queue_delay_mean_s"):
        assert fast[name] == pytest.approx((slow[name] or 0) / 2, rel=1e-3), name
    assert fast["goodput_bit_s"] == pytest.approx(2 * (slow["goodput_bit_s"] or 0), rel=1e-3)
    assert fast["payload_bytes"] == slow["payload_bytes"]


def test_half_the_bytes_are_half_the_bytes(measured: Callable[..., Numbers]) -> None:
    whole, half = of_flow(measured()), of_flow(measured(size=BYTES // 2))
    assert (whole["payload_bytes"], half["payload_bytes"]) == (BYTES, BYTES // 2)
    assert (half["completion_time_s"] or 0) < (whole["completion_time_s"] or 0) < 2.2 * (half["completion_time_s"] or 0)
    for name in ("setup_time_s", "initial_window_packets", "rtt_min_s"):
        assert half[name] == whole[name]
