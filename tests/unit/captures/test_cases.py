"""Small captures on which a sentence was false (tests/data/cases): what was put into them is what must be said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.explanation import Explanation, explain

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"


def case(name: str) -> tuple[FileSummary, tuple[Explanation, ...]]:
    """The summary of a case, and its explanation."""
    (file,) = summarise_points([[CASES / f"{name}.pcap.zst"]])
    return file, tuple(explain([file], 10))


def story(explained: Explanation) -> str:
    """What happened, as one text."""
    return " | ".join(moment.text for moment in explained.moments)


# Of the largest connection: totals that must be, what a finding must hold, what no sentence may hold
HANDSHAKES: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "synack-other-isn": ({"acknowledged_unseen_bytes": 0, "stray_packets": 1}, "2 SYNs", ("not hold", "no answer")),
    "time-wait-challenge-ack": ({"acknowledged_unseen_bytes": 0, "stray_packets": 2}, "2 SYNs", ("not hold", "reset")),
    "stray-synack": ({"out_of_order_packets": 0, "stray_packets": 1}, "2 SYNs", ("out of order",)),
    "syn-without-options": ({"max_window_bytes": 4151 << 5}, "2 SYNs", ()),
    "three-syns": ({"syn_packets": 3}, "the handshake took 3 SYNs: 2 got no answer", ("the answer to the SYN took",)),
    "simultaneous-open": ({"simultaneous_open": 1, "syn_retransmitted_packets": 0}, "", ("retransmission", "SYNs")),
    "one-way-client": ({"syn_packets": 1}, "no packet of 192.0.2.2:80 is in this capture", ("no answer", "refused")),
    "capture-lost-records": (
        {"acknowledged_unseen_bytes": 31_856},
        "856 bytes were acknowledged that this capture does not hold",
        (),
    ),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshakes_truth(name: str) -> None:
    totals, said, never = HANDSHAKES[name]
    file, (explained,) = case(name)
    (connection,) = file.connections
    assert {key: connection.totals[key] for key in totals} == totals
    assert connection.facts["unseen_end"] == (1 if name == "one-way-client" else None)
    told = " | ".join(file.findings)
    assert said in told
    assert not [words for words in never if words in told or words in story(explained)]


def test_copies_of_ipv6() -> None:
    file, (explained,) = case("dup-v6-3")
    assert not [text for text in file.findings if "repeat" in text or "SYN" in text]
    assert not [known for known in explained.settings if known.name == "syn_timeout"]


def test_jumbograms_are_read() -> None:
    file, _ = case("big-tcp-ipv6")
    assert file.findings == ()
    assert file.connections[0].directions[0]["new_bytes"] == 942_800


def test_a_clock_set_back() -> None:
    file, _ = case("clock-set-back")
    totals = file.connections[0].totals
    assert (totals["out_of_order_packets"], totals["reordered_packets"]) == (0, 0)
    assert [note for note in file.notes if "the capturing clock was set back by 2 s or more" in note]
    assert not [text for text in file.findings if "reordering" in text]


def test_an_association_of_two_paths_from_its_middle_on() -> None:
    file, (explained,) = case("mid-multihomed")
    (connection,) = file.connections
    assert connection.totals["heartbeats_unanswered"] == connection.totals["reverse_heartbeats_unanswered"] == 0
    assert file.findings == ()
    assert "without answer" not in story(explained)


def test_an_association_without_its_cookie_ack() -> None:
    _, (explained,) = case("cookie-ack-not-captured")
    assert "never came up" not in story(explained)
    assert "the association is up" in story(explained)


def test_both_ends_ask() -> None:
    file, (explained,) = case("5-simultaneous-init")
    assert file.findings == ("both ends asked for the association at the same time (RFC 9260 5.2.1)",)
    assert not {"rto_initial", "init_attempts"} & {known.name for known in explained.settings}


def test_silence_up_to_the_end_of_the_capture() -> None:
    file, explained = case("6-one-goes-silent")
    assert [text for text in file.findings if text.startswith("flow 2: its last packet is at 4.52 s: the capture goes")]
    texts = [each.moments[-1].text for each in explained]
    assert "its last packet: the capture goes on for 56 s without one; nothing closed it" in texts
    assert "the capture ends; nothing closed it" in texts


def test_icmp_answers_an_init() -> None:
    file, (explained,) = case("8-init-icmp-protocol-unreachable")
    assert file.findings == (
        "10.9.7.2 answered 10.9.7.1:40021 with 3 ICMP errors, from 0.01 s on: protocol unreachable",
    )
    assert "10.9.7.2 answers 10.9.7.1:40021 by ICMP: protocol unreachable (3 times" in story(explained)


def test_an_abort_answers_each_init() -> None:
    file, _ = case("7-init-refused-by-abort")
    assert [text.split(": ")[1].split(" at")[0] for text in file.findings] == ["the association was aborted"] * 3


@pytest.mark.parametrize("name", ["1-one-path", "1c-mid-association", "2-two-paths-pf1"])
def test_settings_hold_what_was_set(name: str) -> None:
    """Intervals hold the truth; without a handshake those that need none are known."""
    truth = {
        "1-one-path": {"rto_initial": 2.0, "rto_min": 0.7, "rto_max": 4.0, "sack_delay": 0.12},
        "1c-mid-association": {"rto_max": 4.0},
        "2-two-paths-pf1": {"rto_min": 1.0, "failover_threshold": 1},
    }[name]
    _, (explained,) = case(name)
    known = {setting.name: setting for setting in explained.settings}
    for setting, value in truth.items():
        assert (known[setting].low or 0) <= value <= (known[setting].high or float("inf")), setting


def test_retransmissions_are_counted_against_transmissions() -> None:
    _, (explained,) = case("2-two-paths-pf1")
    assert "7 of 85 transmissions of 78 DATA chunks of 10.9.1.1:40002 were retransmissions" in " ".join(
        explained.network
    )


def test_keep_alives_with_one_byte() -> None:
    file, (explained,) = case("keepalive-one-byte")
    totals = file.connections[0].totals
    assert (totals["keep_alives"], totals["retransmitted_packets"], totals["new_bytes"]) == (5, 0, 1000)
    assert file.findings == ()
    assert "until a retransmission" not in story(explained)
    assert "no data for 26 s, all is acknowledged: 192.0.2.1:40000 has nothing to send until then" in story(explained)


def test_keep_alives_without_answer() -> None:
    file, (explained,) = case("keepalive-unanswered")
    told = "9 keep-alives of 192.0.2.1:40000 got no answer from 60 s on, then it reset the connection"
    assert file.findings == (told,)
    assert explained.network == (told,)


def test_probes_of_a_closed_window_with_one_byte() -> None:
    file, (explained,) = case("zero-window-one-byte-probes")
    totals = file.connections[0].totals
    expected = {"zero_window_probes": 5, "retransmitted_packets": 0, "fast_retransmitted_packets": 0, "timeouts": 0}
    assert {name: totals[name] for name in expected} == expected
    assert (totals["new_bytes"], totals["acknowledged_unseen_bytes"]) == (11_000, 0)
    assert not [text for text in file.findings if "repeat" in text]
    assert "until a retransmission" not in story(explained)


def test_a_timer_of_seconds_is_no_tail_loss_probe() -> None:
    totals = case("probe-after-5500ms")[0].connections[0].totals
    assert (totals["tail_loss_probes"], totals["timeouts"]) == (0, 2)


def test_segments_of_the_size_that_their_receiver_takes() -> None:
    assert case("mss-asymmetric")[0].connections[0].totals["offloaded_packets"] == 0


def test_nagle_beside_delayed_acknowledgements() -> None:
    file, (explained,) = case("nagle-delayed-ack")
    (told,) = [
        text for text in file.findings if text.startswith("Nagle's algorithm beside delayed acknowledgements: 49")
    ]
    assert "put off by 41 ms" in told
    totals = file.connections[0].totals
    assert totals["unknown_limit_ratio"] < 0.02
    assert totals["nagle_limited_ratio"] == pytest.approx(totals["nagle_wait_s"] / totals["limits_s"], abs=0.02)
    assert any("by Nagle's algorithm beside delayed acknowledgements for 44 %" in text for text in file.findings)
    assert told in explained.network


def test_a_black_hole_of_full_segments() -> None:
    file, (explained,) = case("pmtu-a")
    (told,) = [text for text in file.findings if "path-MTU black hole" in text]
    assert told.startswith("none of 18 packets of 10.0.0.1:38833 with 1448 B of data and more was acknowledged")
    assert told in explained.network
    assert file.connections[0].totals["initial_window_packets"] == 10
    at_b, (explained,) = case("pmtu-b")
    (told,) = at_b.findings
    assert told.startswith("the capture has no data of either end in the 61 s from the handshake on: none was sent, or")
    assert told.endswith("as behind a path-MTU black hole")
    assert told in explained.network
    assert "closed in order" not in story(explained)
