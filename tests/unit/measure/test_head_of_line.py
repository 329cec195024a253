"""Head-of-line delay of every stream and as one stream, held against a receiver played by a plain loop."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.flow_packets import packets_at_both_ends
from netwarp.measure.groups.head_of_line import head_of_line_metrics
from netwarp.measure.observation import FlowObservation, Window
from support.captures import ISN, T, association, data_chunk, pcap, read, sctp
from support.recorded_cell import derive, make_cell, make_directory

MS = 1_000_000
END_MS = 500


def waits_of(arrivals: list[tuple[int, int, int]]) -> tuple[dict[int, list[int]], list[int]]:
    """A receiver that reads what it can at once: delays (ms) of what it read by END_MS, by stream and as one stream.

    arrivals: (ms, TSN, stream); a stream's messages are in the order of their TSNs.
    """
    by_stream: dict[int, list[int]] = defaultdict(list)
    for _, tsn, stream in arrivals:
        by_stream[stream].append(tsn)

    def play(queues: list[list[int]]) -> dict[int, int]:
        came: dict[int, int] = {}
        delays: dict[int, int] = {}
        for at, tsn, _ in arrivals:
            came[tsn] = at
            for queue in queues:
                while queue and queue[0] in came:
                    first = queue.pop(0)
                    if at <= END_MS:
                        delays[first] = at - came[first]
        return delays

    own = play([sorted(tsns) for tsns in by_stream.values()])
    one = play([sorted(tsn for _, tsn, _ in arrivals)])
    return {stream: [own[t] for t in tsns if t in own] for stream, tsns in by_stream.items()}, list(one.values())


@pytest.mark.parametrize(("streams", "seed"), [(1, 1), (2, 2), (5, 3), (10, 4)])
def test_every_number_is_what_a_plain_receiver_would_say(streams: int, seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    numbers: dict[int, int] = defaultdict(int)
    arrivals, packets = [], []
    for tsn in range(200):
        stream = tsn % streams
        late = dice.choice((0, 0, 0, 0, 37, 150))
        arrivals.append((100 + 2 * tsn + late, tsn, stream, numbers[stream]))
        numbers[stream] += 1
    arrivals.sort()
    for at, tsn, stream, ssn in arrivals:
        packets.append((at * MS, sctp(22, data_chunk(ISN + tsn, 100, stream=stream, ssn=ssn))))
    shake = [(at * MS, packet) for at, packet in zip((0, 0, 50, 50), association(), strict=True)]
    capture = read(tmp_path, pcap([(T + at, packet) for at, packet in [*shake, *packets]]))
    cell = make_cell("sctp", flow={"port": 80})
    (flow,) = cell.flows
    _, receiver, _ = packets_at_both_ends(flow, None, CapturePoint("b", ("p1",), capture), T)
    assert receiver is not None
    window = Window(0, END_MS * MS, False)
    found = head_of_line_metrics(FlowObservation(cell, flow, receiver=receiver, window=window))
    by_stream, one = waits_of([arrival[:3] for arrival in arrivals])
    every = sorted(wait for waits in by_stream.values() for wait in waits)
    means = [sum(waits) / len(waits) for waits in by_stream.values()]
    assert 0 < len(every) < 200  # the window cuts some off
    assert max(every) > 0
    wanted = {
        "hol_blocking_s": sum(every) / len(every) / 1000,
        "hol_blocking_p95_s": every[-(-len(every) * 95 // 100) - 1] / 1000,
        "hol_blocking_max_s": every[-1] / 1000,
        "hol_blocked_ratio": sum(wait > 0 for wait in every) / len(every),
        "hol_blocking_least_stream_s": min(means) / 1000,
        "hol_blocking_most_stream_s": max(means) / 1000,
        "hol_blocking_one_stream_s": sum(one) / len(one) / 1000,
        "hol_blocking_one_stream_p95_s": sorted(one)[-(-len(one) * 95 // 100) - 1] / 1000,
        "hol_blocking_one_stream_max_s": max(one) / 1000,
        "hol_blocked_one_stream_ratio": sum(wait > 0 for wait in one) / len(one),
    }
    assert found == {name: pytest.approx(value, abs=1e-9) for name, value in wanted.items()}
    if streams > 1:
        assert (found["hol_blocking_most_stream_s"] or 0) > (found["hol_blocking_least_stream_s"] or 0)
        assert sum(one) / len(one) > sum(every) / len(every)


def test_a_cell_has_them_and_tcp_has_no_streams(tmp_path: Path) -> None:
    for name in ("tcp", "bundle"):
        cell = make_cell(name)
        metrics = derive(cell, make_directory(cell, name, tmp_path / name)).metrics
        most, mean = metrics["hol_blocking_max_s"] or 0, metrics["hol_blocking_s"] or 0
        assert most > mean > 0
        assert 0 < (metrics["hol_blocked_ratio"] or 0) < 1
        assert ("hol_blocking_one_stream_s" in metrics) == (name == "bundle")


def test_a_metric_made_of_what_only_sctp_has_is_empty_for_tcp_and_no_fault_of_the_cell(tmp_path: Path) -> None:
    for name in ("tcp", "bundle"):
        cell = make_cell(name, metrics={"one_ms": "hol_blocking_one_stream_s * 1000"})
        derived = derive(cell, make_directory(cell, name, tmp_path / name))
        assert (derived.metrics["one_ms"] is None) == (name == "tcp")
        assert not [check for check in derived.failed() if "metric" in check]
