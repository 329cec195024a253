"""What an SCTP receiver reports of what came to it, and the windows it announces: from packets by hand."""

from __future__ import annotations

from pathlib import Path

from netwarp.measure.groups.reports import report_metrics
from support.captures import T
from support.observed import flow_of, observed
from support.sctp_story import Packet, at_receiver, data, sack

BEGIN = [data(200, 0), sack(200, 0)]


def of(tmp_path: Path, *packets: Packet) -> dict[str, float | None]:
    story = [(T + at, raw) for at, raw in at_receiver(*BEGIN, *packets)]
    return report_metrics(observed(flow_of("sctp"), tmp_path, receiver=story))


def unreported(tmp_path: Path, *packets: Packet) -> float | None:
    return of(tmp_path, *packets)["unreported_chunks"]


def test_a_sack_that_reports_what_came(tmp_path: Path) -> None:
    assert unreported(tmp_path, data(300, 1, 2), sack(300, 2)) == 0
    assert unreported(tmp_path, data(300, 2, 3), data(301, 5), sack(302, 0, [(2, 3), (5, 5)])) == 0


def test_a_sack_that_leaves_something_out(tmp_path: Path) -> None:
    """Chunk 5 had come; the SACK behind it, and the one behind the repetition of 1, do not say so."""
    late = [data(300, 2, 3), data(301, 5), sack(302, 0, [(2, 3)])]
    assert unreported(tmp_path, *late) == 1
    assert unreported(tmp_path, data(300, 2), sack(300, 0, [(2, 2)]), data(400, 3), sack(400, 0, [(3, 3)])) == 1


def test_a_receiver_that_is_short_of_memory_may_discard(tmp_path: Path) -> None:
    assert unreported(tmp_path, data(300, 2), sack(300, 0, window=1000), data(301, 3), sack(302, 0)) == 0


def test_a_full_sack_says_nothing_of_what_lies_above(tmp_path: Path) -> None:
    odd = list(range(2, 40, 2))
    assert unreported(tmp_path, data(300, *odd), sack(301, 0, [(tsn, tsn) for tsn in odd[:16]])) == 0
    assert unreported(tmp_path, data(300, *odd), sack(301, 0, [(tsn, tsn) for tsn in odd[:15]])) == 4


def test_what_came_as_the_sack_left_is_not_asked_for(tmp_path: Path) -> None:
    assert unreported(tmp_path, data(300, 2), sack(300.05, 0)) == 0


def test_what_came_twice_came_once(tmp_path: Path) -> None:
    assert unreported(tmp_path, data(300, 1), sack(300, 1), data(310, 1), sack(310, 1, again=[1])) == 0


def test_the_window_never_exceeds_the_first_one(tmp_path: Path) -> None:
    first = of(tmp_path, data(300, 1), sack(300, 1))["window_excess_bytes"]
    assert first == 0
    assert of(tmp_path, data(300, 1), sack(300, 1, window=200_000))["window_excess_bytes"] not in (None, 0)


def test_other_protocols_have_none(tmp_path: Path) -> None:
    assert report_metrics(observed(flow_of("tcp"), tmp_path)) == {}
