"""Settings of SCTP's ends, inferred from recorded captures whose kernel had Linux' own values."""

import contextlib
from pathlib import Path

import pytest
from netwarp.captures import read_captures
from netwarp.captures.inference import InferredSetting
from netwarp.captures.sctp.settings import infer_settings
from netwarp.core.errors import CaptureError
from netwarp.engine.captures import explain_captures
from netwarp.present.captures.explanation_words import explanation_text
from support.captures import damaged, plain, recorded
from support.tshark import tshark

LINUX = {
    "rto_initial": 3.0,
    "rto_min": 1.0,
    "rto_max": 60.0,
    "sack_delay": 0.2,
    "sack_frequency": 2,
    "heartbeat_interval": 30.0,
    "failover_threshold": 0,
    "association_max_retrans": 10,
    "init_attempts": 8,
    "max_burst": 4,
}


def inferred(files: list[Path]) -> dict[tuple[int, str], InferredSetting]:
    capture = read_captures(files)
    return {(each.end, each.name): each for flow in range(len(capture.flows)) for each in infer_settings(capture, flow)}


@pytest.mark.parametrize(
    ("name", "node", "links"),
    [
        ("sctp", "a", ("p1", "p2")),
        ("sctp", "b", ("p1", "p2")),
        ("bundle", "a", ("p1",)),
        ("bundle", "b", ("p1",)),
        ("sctptestcut", "a", ("p1", "p2")),
        ("sctptest", "a", ("p1",)),
    ],
)
def test_every_interval_holds_the_kernels_value(name: str, node: str, links: tuple[str, ...]) -> None:
    for (_, setting), each in inferred(recorded(name, node, links)).items():
        value = LINUX.get(setting)
        if value is not None:
            assert each.low is None or each.low <= value, each
            assert each.high is None or each.high >= value, each


def test_an_outage_shows_the_floor_of_the_rto_and_the_threshold_at_the_sender() -> None:
    found = inferred(recorded("sctp", "a", ("p1", "p2")))
    floor, threshold = found[0, "rto_min"], found[0, "failover_threshold"]
    assert floor.low is not None and floor.high is not None
    assert 0.8 < floor.low <= 1.0 <= floor.high < 1.1
    assert (threshold.low, threshold.high) == (0, 0)
    assert floor.times_ns, "the packets that show it are named"


def test_the_receivers_capture_tells_nothing_of_the_senders_timers() -> None:
    found = inferred(recorded("sctp", "b", ("p1", "p2")))
    assert (0, "rto_min") not in found
    assert (0, "failover_threshold") not in found


def test_two_points_are_explained_as_one_association() -> None:
    files = [*recorded("bundle", "a", ("p1",)), *recorded("bundle", "b", ("p1",))]
    (explained,) = explain_captures(files).connections
    assert explained.point == "bundle-a-p1"
    assert explained.points == ("bundle-a-p1", "bundle-b-p1")
    assert [moment.t_s for moment in explained.moments] == sorted(moment.t_s for moment in explained.moments)


def test_the_course_of_a_failover_in_order() -> None:
    (explained,) = explain_captures(recorded("sctp", "a", ("p1", "p2")), merge=True).connections
    texts = [moment.text for moment in explained.moments]
    order = ["asks for an association", "is up", "is acknowledged for", "new data moves", "new data returns"]
    places = [next(place for place, text in enumerate(texts) if words in text) for words in order]
    assert places == sorted(places)


def test_tcp_has_a_course_too() -> None:
    (explained,) = explain_captures(recorded("tcp", "a", ("p1",))).connections
    assert "connects" in explained.moments[0].text


@pytest.mark.parametrize("node", ["a", "b"])
def test_what_the_syns_of_tcp_offer(node: str) -> None:
    (explained,) = explain_captures(recorded("tcp", node, ("p1",))).connections
    known = {(each.end, each.name): (each.low, each.high) for each in explained.settings}
    for end in (0, 1):
        assert known[end, "mss"] == (1460, 1460)
        assert known[end, "sack_permitted"] == known[end, "timestamps"] == (1, 1)
        assert known[end, "window_shift"][0] == known[end, "window_shift"][1]
    assert ((0, "initial_window") in known) == (node == "a"), "at the data's sender only"


@pytest.mark.parametrize(("name", "link"), [("sctp", "p1"), ("sctp", "p2"), ("bundle", "p1"), ("tcp", "p1")])
def test_a_damaged_capture_is_explained_or_refused(name: str, link: str, tmp_path: Path) -> None:
    for file in damaged(recorded(name, "a", (link,))[0], 15, tmp_path):
        with contextlib.suppress(CaptureError):
            for explained in explain_captures([file]).connections:
                assert explanation_text(explained)


def test_a_queue_that_the_sender_fills_is_no_sack_delay() -> None:
    """Longer than 500 ms no SACK is put off (RFC 9260 6.2)."""
    found = inferred(recorded("sctptest", "a", ("p1",)))
    assert not [each for each in found.values() if each.name == "sack_delay"]


def test_bursts_of_several_send_calls_bound_max_burst_above_only() -> None:
    """As a SACK makes room in the send buffer, the next send call makes a burst of its own, at the same instant."""
    (burst,) = [each for each in inferred(recorded("sctptest", "a", ("p1",))).values() if each.name == "max_burst"]
    assert (burst.low, burst.high) == (None, 10)


def test_a_timer_of_a_queue_that_grew_is_no_floor() -> None:
    """T3 of 3.2 s after round trips of 0.04 to 1.6 s: as long as they ask for, one taken a round trip."""
    floor = inferred(recorded("sctptestcut", "a", ("p1", "p2")))[0, "rto_min"]
    assert floor.low is None and floor.high is not None and floor.high >= 1.0


def test_inits_to_two_addresses_in_turn_have_no_longest_timer() -> None:
    """Linux doubles the timer when all addresses have been asked, so two in a row are of one length."""
    found = list(inferred(recorded("osmo", "a", ("p1", "p2"))).values())
    (first,) = [each for each in found if each.name == "rto_initial"]
    assert first.low is not None and first.high is not None and first.low <= 3.0 <= first.high
    assert "init_max_timeout" not in {each.name for each in found}


def test_usrsctp_over_udp_is_read_as_any_other_stack() -> None:
    """Packaged usrsctp, cut from its primary path: the other one gets new data when the path is given up, after
    path_max_retrans of 5. Its timers are up to a tick of 10 ms early, which no kernel's are.
    """
    files = recorded("usrsctp", "a", ("p1", "p2"))
    found = inferred(files)
    threshold, floor = found[0, "failover_threshold"], found[0, "rto_min"]
    assert (threshold.low, threshold.high) == (5, 5)
    assert floor.low is not None and floor.high is not None
    assert floor.low < 1.0 <= floor.high + 0.011


@pytest.mark.parametrize("link", ["p1", "p2"])
def test_sctp_in_udp_has_the_chunks_that_tshark_finds(link: str, tmp_path: Path) -> None:
    """RFC 6951: every chunk with its type, of every packet."""
    (packed,) = recorded("usrsctp", "a", (link,))
    (tmp_path / "plain.pcap").write_bytes(plain(packed))
    rows = tshark([tmp_path / "plain.pcap"], tmp_path, ["sctp.chunk_type"], "udp.port == 9899")
    capture = read_captures([packed])
    theirs = sorted(int(kind) for (kinds,) in rows for kind in kinds)
    assert sorted(capture.chunks["type"].tolist()) == theirs
    assert len(theirs) > 100
