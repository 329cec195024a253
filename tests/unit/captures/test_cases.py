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
    "one-way-client": ({"unseen_end": 1}, "no packet of 192.0.2.2:80 is in this capture", ("nothing", "refused")),
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
    told = " | ".join(file.findings)
    assert said in told
    assert not [words for words in never if words in told or words in story(explained)]
