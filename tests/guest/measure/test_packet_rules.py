"""Losses by the packet: rules exact to the packet against both ends' captures, bit errors against their formula."""

import math
from collections import Counter

import pytest
from support.chain_kit import Checkout
from support.chain_packets import DATA, Frame, frames, from_host
from support.run_files import RunFiles

MS = 1_000_000
BER = 2e-5


def two_hosts_unlimited(size: str, more: str) -> str:
    """Two hosts, 20 ms between them and no rate; one flow, SCTP unless said."""
    return f"""
format = 1
name = "packet-rules"
seed = 5
duration = "3000 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
one_way_delay = "20 ms"
[flow.x]
from = "a"
to = "b"
protocol = "sctp"
paths = ["p1"]
bytes = "{size}"
{more}"""


RULES = two_hosts_unlimited(
    "100 kB",
    """
[link.p1.forward]
drop = [7, 11]
duplicate = [5]
delay = { 14 = "30 ms", data = { 20 = "7 ms" } }
[link.p1.backward]
drop = { sack = [2], syn_ack = [1] }
[factor.protocol]
levels = ["tcp", "sctp"]
sets = "flow.x.protocol"
""",
)
ERRORS = two_hosts_unlimited(
    "600 kB",
    f"""
sender = {{ nodelay = true }}
[link.p1.forward]
bit_errors = "{BER:g}"
[factor.size]
levels = ["16 B", "400 B", "1452 B"]
sets = "flow.x.message_size"
""",
)


def both_ends(run: RunFiles, host: str, **levels: str) -> tuple[list[Frame], list[Frame]]:
    """What a host sent, at both ends."""
    cell = run.cell(**levels)
    return tuple(  # type: ignore[return-value]
        from_host(host, frames(next(iter(cell.captures(node, "p1"))))) for node in (host, {"a": "b", "b": "a"}[host])
    )


@pytest.fixture(scope="module")
def rules(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Both protocols, without a rate: each packet takes 20 ms."""
    return checkout.run_spec(tmp_path_factory.mktemp("rules"), RULES, "--no-report")


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_rules_are_exact_to_the_packet(rules: RunFiles, protocol: str) -> None:
    """Packets 7 and 11 never arrive, 5 arrives twice, 14 30 ms late, the 20th with data 7 ms; the others on time."""
    sent, arrived = both_ends(rules, "a", protocol=protocol)
    with_data = [number for number, frame in enumerate(sent, 1) if frame.data_bytes or DATA in frame.chunks]
    late = {14: 30 * MS, with_data[19]: 7 * MS}
    expected = sorted(
        (frame.t_ns + 20 * MS + late.get(number, 0), frame.identity)
        for number, frame in enumerate(sent, 1)
        if number not in (7, 11)
        for _ in range(2 if number == 5 else 1)
    )
    assert Counter(identity for _, identity in expected) == Counter(frame.identity for frame in arrived)
    for (due_ns, _), frame in zip(expected, sorted(arrived, key=lambda frame: frame.t_ns), strict=True):
        assert abs(frame.t_ns - due_ns) <= 2000


def test_kinds_are_counted_apart(rules: RunFiles) -> None:
    """On the way back TCP loses its first SYN ACK and SCTP its second packet with a SACK, and nothing else."""
    sent, arrived = both_ends(rules, "b", protocol="tcp")
    assert Counter(f.identity for f in sent) - Counter(f.identity for f in arrived) == Counter([sent[0].identity])
    sent, arrived = both_ends(rules, "b", protocol="sctp")
    second = [frame for frame in sent if 3 in frame.chunks][1]
    assert Counter(f.identity for f in sent) - Counter(f.identity for f in arrived) == Counter([second.identity])


def test_bit_errors_lose_by_the_packets_length(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> None:
    """1 - (1 - BER)^(8 L) within 4 sigma, for packets of 64 to 1500 bytes."""
    run = checkout.run_spec(tmp_path_factory.mktemp("errors"), ERRORS, "--no-report")
    lengths = set()
    for size in ("16 B", "400 B", "1452 B"):
        sent, arrived = both_ends(run, "a", size=size)
        came = Counter(frame.ip_bytes for frame in arrived)
        for length, count in Counter(frame.ip_bytes for frame in sent).items():
            p = 1 - (1 - BER) ** (8 * length)
            if count * p > 20:
                lengths.add(length)
                assert abs(count - came[length] - count * p) <= 4 * math.sqrt(count * p * (1 - p)), (length, count)
    assert {64, 448, 1500} <= lengths
