"""The network under an association, as packets show it: intervals in which nothing passed, and single losses."""

from pathlib import Path

from netwarp.captures import read_captures
from netwarp.captures.sctp.association import Association
from netwarp.captures.sctp.event_match import SentEvent, match_events
from netwarp.captures.sctp.network_evidence import EDGE_NS, Packet, transmissions_that_arrived, way
from netwarp.captures.sctp.replay_inputs import View, replay_inputs
from netwarp.captures.sctp.transmissions import NEVER
from support.captures import T, association, pcap, read, recorded
from support.sctp_story import data, handshake, sack

S, MS = 1_000_000_000, 1_000_000


def sent(*packets: tuple[float, bool]) -> list[Packet]:
    return [Packet(int(at * S), arrived, number) for number, (at, arrived) in enumerate(packets, 1)]


def test_an_interval_ends_between_its_last_loss_and_the_next_arrival() -> None:
    found = way(sent((1, True), (2, False), (3, False), (7, True), (8, True)))
    (dead,) = found.dead
    assert found.lost == ()
    assert dead.begin_ns == 2 * S - EDGE_NS
    assert (dead.least_ns, dead.most_ns) == (3 * S + EDGE_NS, 7 * S - EDGE_NS)
    assert dead.losses == 2


def test_what_never_comes_back_has_no_end() -> None:
    (dead,) = way(sent((1, True), (2, False))).dead
    assert dead.most_ns == NEVER


def test_a_loss_within_a_burst_is_told_by_its_number() -> None:
    found = way(sent((1, True), (1.0001, False), (1.0002, True), (5, True)))
    assert found.dead == ()
    assert found.lost == (2,)


def test_the_recorded_association_is_seen_alike_from_one_end_and_from_both() -> None:
    views = [View(read_captures(recorded("bundle", node, ("p1",))), 0) for node in "ab"]
    both, one = replay_inputs(views), replay_inputs(views[:1])
    assert both.seen_from == (True, True) and one.seen_from == (True, False)
    assert [message.size for message in both.messages[0]] == [message.size for message in one.messages[0]]
    assert both.paths[0].addresses == one.paths[0].addresses
    assert abs(both.paths[0].round_trip_ns - one.paths[0].round_trip_ns) < 2 * MS


def event(kind: str, number: int, at_ms: float, *, allowed_ms: float = 50) -> SentEvent:
    return SentEvent((0, kind, number, 0), int(at_ms * MS), 0, allowed_ms * MS)


def test_equal_events_match_whatever_heartbeats_do() -> None:
    field = [event("INIT", -1, 0), event("DATA", 0, 100), event("DATA", 1, 900)]
    cell = [event("INIT", -1, 0), event("DATA", 0, 110), event("DATA", 1, 930)]
    match = match_events(field, cell, S)
    assert match.whole and match.matched == 3 and match.largest_ns == 30 * MS


def test_a_late_a_missing_and_an_extra_event_are_told() -> None:
    field = [event("DATA", 0, 100), event("DATA", 1, 300)]
    late = match_events(field, [event("DATA", 0, 100), event("DATA", 1, 400)], S)
    assert late.matched == 1 and "DATA 1 at 300 ms in the capture, at 400 ms in the replay" in late.parting
    missing = match_events(field, [event("DATA", 0, 100)], S)
    assert missing.matched == 1 and "the replay has no such packet" in missing.parting
    extra = match_events(field, [*field, event("SACK", 7, 200)], S)
    assert extra.extra is not None and extra.matched == 1 and "the capture has no such packet" in extra.parting


def test_the_recorded_failover_has_messages_in_order_on_two_paths() -> None:
    inputs = replay_inputs([View(read_captures(recorded("sctp", "a", ("p1", "p2"))), 0)])
    assert len(inputs.paths) == 2
    times = [message.time_ns for message in inputs.messages[0]]
    assert times == sorted(times) and inputs.messages[1] == ()
    assert any(dead.losses for path in inputs.paths for dead in path.ways[0].dead)


def test_the_answer_to_an_init_sent_twice_gives_the_round_trip(tmp_path: Path) -> None:
    """T1 is shorter than the round trip: the first answer comes soon after the second INIT, and answers the first."""
    init, answer, echo, done = association()
    opening = [(0, init), (200, init), (240, answer), (240, echo), (440, answer), (480, done)]
    packets = [*((at * MS, packet) for at, packet in opening), data(1000, 0), sack(1240, 0)]
    capture = read(tmp_path, pcap([(T + at, packet) for at, packet in packets]))
    (path,) = replay_inputs([View(capture, 0)]).paths
    assert path.round_trip_ns == 240 * MS and path.ways[0].dead == ()


def test_what_a_later_sack_does_not_report_did_not_arrive(tmp_path: Path) -> None:
    """TSN 1 is sent three times. A SACK long after the first does not have it, and it is reported as there twice."""
    packets = [
        *handshake(), data(1000, 0), sack(1100, 0),
        data(2000, 1), data(2500, 2), sack(2600, 0, [(2, 2)]), data(3000, 1), data(3090, 1),
        sack(3100, 2), sack(3190, 2, again=[1]),
    ]  # fmt: skip
    capture = read(tmp_path, pcap([(T + at, packet) for at, packet in packets]))
    found = Association(capture, 0, direction=0)
    assert transmissions_that_arrived(found, {0: 100 * MS}) == [True, False, True, True, True]
