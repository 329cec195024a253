"""Causes of retransmissions against the kernel's counters: recorded captures, and the benchmark's own reckoning."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from causes import judge, shown_by, table, truth_of
from causes_hop import VNET, segments
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap
from support.captures import has

RECORDED = sorted((Path(__file__).parents[2] / "data" / "causes").glob("*/*.pcap.zst"))


@pytest.mark.parametrize("capture", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_recorded(capture: Path) -> None:
    """At least 90 % right, at most 1 % wrong, no headline of timeouts that the kernel did not have."""
    row = judge(capture)
    assert row.truth.again > 0
    at_receiver = row.dimensions["captured at"] == "receiver"  # what was lost on the way is not in the capture
    assert 0 < row.shown <= row.truth.again if at_receiver else row.shown == row.truth.again
    assert row.kept, "\n".join(table([row]))


def test_a_wrong_class_breaks_the_rule(tmp_path: Path) -> None:
    """The same capture beside counters without a timeout: claims of timeouts are wrong, and so is the headline."""
    place = tmp_path / "changed"
    shutil.copytree(next(path.parent for path in RECORDED if path.parent.name == "20pct-no-queue"), place)
    counters = json.loads((place / "counters.json").read_text())
    sender = counters["sender"]
    expiries = sender.pop("TCPTimeouts")
    sender["TCPFastRetrans"] += expiries
    (place / "counters.json").write_text(json.dumps(counters))
    row = judge(place / "sender.pcap.zst")
    assert row.wrong == expiries
    assert row.headlines
    assert not row.kept


def test_counters() -> None:
    """What the own qdisc refused was not sent, and is of an unknown class; a SYN is in none."""
    sender = {"RetransSegs": 20, "TCPFastRetrans": 10, "TCPSlowStartRetrans": 3, "TCPTimeouts": 3, "TCPLossProbes": 4,
              "TCPSynRetrans": 1}  # fmt: skip
    truth = truth_of({"sender": sender})
    has(truth, again=19, expiries=2, classes={"fast": (10, 10), "timeout": (2, 2), "after": (3, 3), "probe": (4, 4)})
    truth = truth_of({"sender": sender | {"TCPRetransFail": 2}})
    has(truth, again=17, classes={"fast": (10, 10), "timeout": (0, 2), "after": (3, 3), "probe": (2, 4)})


def test_counters_of_sctp() -> None:
    """Without an expiry every chunk sent again is fast; with both kinds at least one is of each occasion."""

    def of(expiries: int, occasions: int) -> dict[str, tuple[int, int]]:
        sender = {"SctpT3RtxExpireds": expiries, "SctpFastRetransmits": occasions}
        return truth_of({"sender": sender, "sctp_stats": [{"retransmitted_chunks": 30}]}).classes

    assert of(0, 4) == {"fast": (30, 30), "timeout": (0, 0)}
    assert of(2, 0) == {"fast": (0, 0), "timeout": (30, 30)}
    assert of(2, 4) == {"fast": (4, 29), "timeout": (1, 26)}


def test_shown(tmp_path: Path) -> None:
    """By the IPv4 identification: sent again is what was sent after higher numbers, a super packet as its segments; a
    copy by the network is not, and what is late is out of order.
    """
    sent = [
        (65534, 1, 100),
        (65535, 101, 100),
        (1, 301, 100),
        (0, 201, 100),
        (0, 201, 100),
        (2, 101, 200),
        (4, 401, 100),
    ]
    frames = [
        Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=number) / TCP(sport=1, dport=2, seq=seq) / bytes(size)
        for number, seq, size in sent
    ]
    path = tmp_path / "one.pcap"
    wrpcap(str(path), frames)
    assert shown_by(path, 100) == (2, 2)


def test_the_hop_cuts_as_a_network_card_does() -> None:
    """A super packet becomes segments whose headers are right, but for the TCP checksum, of which the kernel wants the
    pseudo header's sum.
    """
    payload = bytes(range(250))
    whole = Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=0xFFFF) / TCP(sport=1, dport=2, seq=2**32 - 50, flags="PA")
    frame = VNET.pack(1, 1, 54, 100, 34, 16) + bytes(whole / payload)
    cut = list(segments(frame))
    found = [Ether(part[VNET.size :]) for part in cut]
    assert [bytes(one[TCP].payload) for one in found] == [payload[:100], payload[100:200], payload[200:]]
    assert [one[TCP].seq for one in found] == [2**32 - 50, 50, 150]
    assert [one[IP].id for one in found] == [0xFFFF, 0, 1]
    assert [str(one[TCP].flags) for one in found] == ["A", "A", "PA"]
    for part, one in zip(cut, found, strict=True):
        assert VNET.unpack_from(part)[1:4:2] == (0, 0)
        again = one.copy()
        del again[IP].chksum, again[TCP].chksum
        right = Ether(bytes(again))
        assert one[IP].chksum == right[IP].chksum
        words = bytes(one[TCP]) + b"\0" * (len(one[TCP]) % 2)
        total = sum(struct.unpack(f">{len(words) // 2}H", words))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert 0xFFFF ^ total == right[TCP].chksum
