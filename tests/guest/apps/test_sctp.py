"""SCTP flows in guests: addresses, primary, streams, windows, notifications, counters; packets checked with tshark."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Event
from support.apps_lab import MS, Run, S, apps, make_cell, run, with_arguments, without

SLOW = LinkImpairment(one_way_delay_ns=200 * MS, rate_bit_s=500_000, queue_packets=50)
FAST = LinkImpairment(one_way_delay_ns=10 * MS, rate_bit_s=20_000_000, queue_packets=100)
LOSSY = LinkImpairment(one_way_delay_ns=10 * MS, rate_bit_s=5_000_000, queue_packets=100, loss_ratio=0.02)
EXPOSE = {"net.sctp.pf_expose": "2"}
SAMPLED = {"sample_interval_ns": 100 * MS}
DATA = "sctp.chunk_type == 0"
FIRST, SECOND = "10.0.0.129", "10.0.1.129"


def chunks(done: Run, capture: str) -> list[tuple[int, int, int]]:
    """(TSN, stream, payload bytes) of every DATA chunk, in the order captured."""
    found = []
    for tsns, sids, lengths, types in done.tshark(
        capture, DATA, "sctp.data_tsn_raw", "sctp.data_sid", "sctp.chunk_length", "sctp.chunk_type"
    ):
        sizes = [
            int(size) - 16 for size, kind in zip(lengths.split(","), types.split(","), strict=True) if int(kind) == 0
        ]
        numbers = [int(tsn) for tsn in tsns.split(",")]
        streams = [int(sid, 0) for sid in sids.split(",")]
        found += list(zip(numbers, streams, sizes, strict=True))
    return found


def unique_payload(done: Run, *captures: str) -> int:
    """Payload bytes of the TSNs seen at any of these captures."""
    return sum({tsn: size for capture in captures for tsn, _, size in chunks(done, capture)}.values())


def names(done: Run, role: str) -> list[tuple[str, str | None, str | None]]:
    """(type, state, address) of the notifications."""
    return [(r["type"], r.get("state"), r.get("address")) for r in done.of(role, "notification")]


@pytest.mark.parametrize("program", ["sender", "receiver"])
def test_the_functions_of_rfc_6458_are_libsctps(program: str) -> None:
    """`sctp_getaddrlen` is not called by us: it comes with libsctp.a's sctp_getpaddrs()."""
    done = subprocess.run(["nm", apps() / program], capture_output=True, text=True, check=True)
    defined = {line.split()[2] for line in done.stdout.splitlines() if line.split()[-2] == "T"}
    assert {"sctp_bindx", "sctp_getpaddrs", "sctp_getaddrlen"} <= defined
    assert any(name.startswith("sctp_connectx@@") for name in defined), "the library's versioned function"


def test_a_timed_flow_starts_and_stops_on_the_microsecond(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=SLOW, paths=2, start_ns=1_234_567_891, stop_ns=6 * S, sysctls=EXPOSE)
    done = run(kernel, tmp_path, cell).well()
    assert 0 <= done.times("a-p1", "sctp.chunk_type == 1")[0] - (1_234_567_891 + 1000) < 2000
    aborts = done.times("a-p1", "sctp.chunk_type == 6")
    assert 0 <= aborts[0] - 6 * S < 2000
    assert max(done.times("a-p1", DATA)) <= 6 * S
    assert (done.sent["reason"], done.got["reason"]) == ("stop", "peer_aborted")
    assert done.got["unique_bytes"] == unique_payload(done, "b-p1", "b-p2") > 0
    assert done.got["corrupt_bytes"] == done.got["gap_bytes"] == done.got["duplicate_bytes"] == 0
    assert names(done, "receiver")[-1][:2] == ("ASSOC_CHANGE", "COMM_LOST")
    arrivals = done.times("b-p1", DATA)
    assert 0 <= done.got["first_t_ns"] - arrivals[0] < 2000
    assert 0 <= done.got["last_t_ns"] - arrivals[-1] < 2000


def test_a_flow_by_bytes_is_whole_and_its_counters_are_those_of_the_wire(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=LOSSY, duration_ns=60 * S, total_bytes=1_000_001, message_bytes=1452)
    done = run(kernel, tmp_path, cell).well()
    assert (done.sent["sent_bytes"], done.sent["messages"], done.sent["reason"]) == (1_000_001, 689, "total")
    assert (done.got["unique_bytes"], done.got["messages"], done.got["reason"]) == (1_000_001, 689, "closed")
    assert done.got["corrupt_bytes"] == done.got["gap_bytes"] == done.got["out_of_order"] == 0
    seen = Counter(tsn for tsn, _, _ in chunks(done, "a-p1"))
    there = done.sent["kernel"]["sctp_stats"]
    assert there["ordered_chunks_out"] == len(seen) == 689
    assert there["retransmitted_chunks"] == sum(seen.values()) - len(seen) > 0
    here = done.got["kernel"]["sctp_stats"]
    arrived = Counter(tsn for tsn, _, _ in chunks(done, "b-p1"))
    assert here["ordered_chunks_in"] == len(arrived) == 689
    assert here["duplicate_chunks_in"] == sum(arrived.values()) - len(arrived)
    assert there["sacks_in"] == len(done.times("a-p1", "sctp.chunk_type == 3 && ip.dst == 10.0.0.1"))


def test_the_receive_buffer_is_the_window_on_the_wire(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=FAST, total_bytes=100_000, receiver={"rcvbuf_bytes": 65_536}, sender={"rcvbuf_bytes": 4_000_000}
    )
    done = run(kernel, tmp_path, cell).well()
    (init,) = done.tshark("a-p1", "sctp.chunk_type == 1", "sctp.init_credit")
    (ack,) = done.tshark("a-p1", "sctp.chunk_type == 2", "sctp.initack_credit")
    assert (int(init[0]), int(ack[0])) == (4_000_000, 65_536)
    assert done.one("receiver", "in_force")["rcvbuf_bytes"] == 65_536
    assert done.one("receiver", "in_force")["local_rwnd_bytes"] == 65_536
    assert done.one("sender", "in_force")["peer_rwnd_bytes"] == 65_536


def test_the_send_buffer_has_to_hold_a_message(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=900_000, message_bytes=300_000, sender={"sndbuf_bytes": 100_000})
    done = run(kernel, tmp_path, cell)
    assert done.exits()["sender"]["status"] == 1
    assert "--sndbuf-bytes" in done.one("sender", "error")["message"]


def test_connectx_makes_all_paths_usable_at_once(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=FAST, paths=2, stop_ns=8 * S, sysctls=EXPOSE, sender={"sample_interval_ns": 100 * MS}
    )
    done = run(kernel, tmp_path, cell).well()
    first = done.of("sender", "sample")[0]
    assert [(path["address"], path["state"]) for path in first["paths"]] == [(FIRST, "ACTIVE"), (SECOND, "ACTIVE")]
    connected = done.one("sender", "connected")
    assert (connected["local"], connected["peer"]) == (["10.0.0.1", "10.0.1.1"], [FIRST, SECOND])
    assert not done.times("a-p2", DATA)


def test_connect_to_one_address_leaves_the_other_to_be_confirmed(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=FAST, paths=2, stop_ns=8 * S, sysctls=EXPOSE, sender={"sample_interval_ns": 100 * MS}
    )
    done = run(
        kernel, tmp_path, cell, change=with_arguments("sender", lambda words: [*without(words, "--to"), "--to", FIRST])
    ).well()
    states = {sample["paths"][1]["state"] for sample in done.of("sender", "sample")}
    assert states == {"UNCONFIRMED", "ACTIVE"}
    assert ("PEER_ADDR_CHANGE", "CONFIRMED", SECOND) in names(done, "sender")


def test_the_primary_from_the_start(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, paths=2, stop_ns=3 * S, sysctls=EXPOSE, sender={"primary": SECOND})
    done = run(kernel, tmp_path, cell).well()
    switch = done.one("sender", "switch_primary")
    assert (switch["at_ns"], switch["address"], switch["errno"]) == (None, SECOND, 0)
    assert not done.times("a-p1", DATA)
    assert done.times("a-p2", DATA)


def test_primary_switches_are_exact(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=FAST, paths=2, stop_ns=8 * S, sysctls=EXPOSE, switches=[(3 * S, "p2"), (5 * S, "p1")]
    )
    done = run(kernel, tmp_path, cell).well()
    records = done.of("sender", "switch_primary")
    assert [(r["at_ns"], r["address"], r["errno"]) for r in records] == [(3 * S, SECOND, 0), (5 * S, FIRST, 0)]
    # at T0 + NS and 1 us, within 2 us
    assert all(0 <= record["t_ns"] - record["at_ns"] - 1000 < 2000 for record in records)
    made = [r["t_ns"] for r in done.of("sender", "notification") if r.get("state") == "MADE_PRIM"]
    assert all(0 <= at - want < 5000 for at, want in zip(made, (3 * S, 5 * S), strict=True))
    on_second = done.times("a-p2", DATA)
    assert on_second[0] > 3 * S and on_second[-1] < 5 * S + 1000 * MS
    assert max(at for at in done.times("a-p1", DATA) if at < 5 * S) < 3 * S + 100 * MS
    assert done.got["unique_bytes"] == unique_payload(done, "b-p1", "b-p2")


def test_messages_go_round_robin_over_the_streams(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=LOSSY, total_bytes=300_010, message_bytes=1000, sender={"streams": 3})
    done = run(kernel, tmp_path, cell).well()
    first_seen: dict[int, tuple[int, int]] = {tsn: (sid, size) for tsn, sid, size in chunks(done, "a-p1")}
    by_stream: Counter[int] = Counter()
    for sid, size in first_seen.values():
        by_stream[sid] += size
    assert by_stream == {0: 100_010, 1: 100_000, 2: 100_000}
    assert {e["stream"]: e["unique_bytes"] for e in done.got["streams"]} == by_stream
    assert {e["stream"]: e["messages"] for e in done.got["streams"]} == {0: 101, 1: 100, 2: 100}
    assert all(e["out_of_order"] == e["gap_bytes"] == e["corrupt_bytes"] == 0 for e in done.got["streams"])


def test_a_peer_with_fewer_streams_is_an_error(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=1000, sender={"streams": 5}, receiver={"streams": 4})
    done = run(kernel, tmp_path, cell)
    assert done.exits()["sender"]["status"] == 1
    assert "only 4 streams" in done.one("sender", "error")["message"]


@pytest.mark.parametrize(
    ("message", "total", "options"),
    [(1, 20_000, {}), (7, 20_000, {"nodelay": True}), (60_000, 1_800_000, {"sndbuf_bytes": 500_000})],
)
def test_tiny_and_huge_messages(
    kernel: Path, tmp_path: Path, message: int, total: int, options: dict[str, int | str | bool]
) -> None:
    cell = make_cell("sctp", shape=LOSSY, duration_ns=200 * S, total_bytes=total, message_bytes=message, sender=options)
    done = run(kernel, tmp_path, cell).well()
    assert (done.got["unique_bytes"], done.got["messages"]) == (total, -(-total // message))
    assert done.got["corrupt_bytes"] == done.got["gap_bytes"] == done.got["incomplete_bytes"] == 0


def test_a_message_larger_than_the_receive_window_comes_in_pieces(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp",
        shape=FAST,
        duration_ns=30 * S,
        total_bytes=2_000_000,
        message_bytes=1_000_000,
        sender={"sndbuf_bytes": 4_000_000},
        receiver={"rcvbuf_bytes": 65_536},
    )
    done = run(kernel, tmp_path, cell).well()
    assert (done.got["unique_bytes"], done.got["messages"], done.got["corrupt_bytes"]) == (2_000_000, 2, 0)


def test_the_segment_size_is_the_user_data_of_a_chunk(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=90_000, message_bytes=3000, sender={"mss_bytes": 500})
    done = run(kernel, tmp_path, cell).well()
    assert {size for _, _, size in chunks(done, "a-p1")} == {500}
    assert done.got["messages"] == 30


def test_an_outage_is_reported_by_name_and_address(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp",
        shape=SLOW,
        paths=2,
        duration_ns=90 * S,
        stop_ns=89 * S,
        sysctls={
            **EXPOSE,
            "net.sctp.path_max_retrans": "2",
            "net.sctp.rto_max": "4000",
            "net.sctp.hb_interval": "5000",
        },
        timeline=[Event(10 * S, "hole", "cut", "p1"), Event(60 * S, "hole", "repair", "p1")],
        sender={"sample_interval_ns": S},
    )
    done = run(kernel, tmp_path, cell).well()
    told = [name for name in names(done, "sender") if name[0] == "PEER_ADDR_CHANGE"]
    assert told == [
        ("PEER_ADDR_CHANGE", "POTENTIALLY_FAILED", FIRST),
        ("PEER_ADDR_CHANGE", "UNREACHABLE", FIRST),
        ("PEER_ADDR_CHANGE", "AVAILABLE", FIRST),
    ]
    times = [r["t_ns"] for r in done.of("sender", "notification") if r["type"] == "PEER_ADDR_CHANGE"]
    assert 10 * S < times[0] < times[1] < 60 * S < times[2]
    states = {sample["t_ns"] // S: sample["paths"][0]["state"] for sample in done.of("sender", "sample")}
    assert states[5] == "ACTIVE"
    assert states[times[1] // S + 1] == "INACTIVE"
    assert states[88] == "ACTIVE"
    assert done.got["unique_bytes"] == unique_payload(done, "b-p1", "b-p2")


def test_samples_convert_jiffies(kernel: Path, tmp_path: Path) -> None:
    """The kernel tells srtt in jiffies and rto in milliseconds; both have to come out in nanoseconds."""
    shape = LinkImpairment(one_way_delay_ns=123 * MS, rate_bit_s=50_000_000, queue_packets=100)
    cell = make_cell(
        "sctp", shape=shape, stop_ns=9 * S, sender={"sample_interval_ns": S, "nodelay": True}, message_bytes=1400
    )
    done = run(kernel, tmp_path, cell).well()
    assert done.one("sender", "in_force")["jiffy_ns"] == MS
    samples = done.of("sender", "sample")
    assert [sample["t_ns"] // S for sample in samples] == [1, 2, 3, 4, 5, 6, 7, 8]
    for sample in samples:
        (path,) = sample["paths"]
        assert 240 * MS <= path["srtt_ns"] <= 260 * MS
        assert path["rto_ns"] == S
        assert path["mtu_bytes"] == 1500
        assert sample["association"]["state"] == "ESTABLISHED"
        assert sample["association"]["primary"] == FIRST
    assert [sample["t_ns"] % S - S // 2 < 3000 for sample in samples] == [True] * 8


def test_the_same_cell_gives_the_same_bytes(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=LOSSY, paths=2, stop_ns=8 * S, sender={"sample_interval_ns": 100 * MS})
    runs = [run(kernel, tmp_path / name, cell).well() for name in ("one", "two")]
    for name in ("apps/f.sender.ndjson", "apps/f.receiver.ndjson", "capture/a-p1.pcap", "capture/b-p2.pcap"):
        first, second = ((done.result.directory / name).read_bytes() for done in runs)
        assert first == second, name
    assert runs[0].got["unique_bytes"] > 1_000_000


def test_an_association_with_an_address_that_is_not_the_peers_is_refused(kernel: Path, tmp_path: Path) -> None:
    """The INIT of the multihomed sender lists both addresses; the receiver was told of one: an ABORT at once."""

    cell = make_cell("sctp", shape=FAST, paths=2, total_bytes=100_000)
    change = with_arguments("receiver", lambda words: [*without(words, "--peer"), "--peer", "10.0.0.1"])
    done = run(kernel, tmp_path, cell, change=change)
    assert done.got["reason"] == "terminated"
    assert done.exits()["sender"]["status"] == 1
    assert done.one("receiver", "refused")["peer"] == ["10.0.0.1", "10.0.1.1"]
    assert (done.got["refused"], done.got["unique_bytes"]) == (1, 0)
    # the first; what is still on its way is answered by more of them
    assert done.times("b-p1", "sctp.chunk_type == 6 && ip.src == 10.0.0.129")[0] < S


def test_an_association_of_another_run_is_refused(kernel: Path, tmp_path: Path) -> None:
    """From the right addresses, with another token."""
    cell = make_cell("sctp", shape=FAST, paths=2, total_bytes=100_000)
    change = with_arguments("sender", lambda words: [*without(words, "--token"), "--token", "1"])
    done = run(kernel, tmp_path, cell, change=change)
    assert done.exits()["receiver"]["status"] == 1
    assert done.one("receiver", "error")["what"] == "token"
    assert (done.got["unique_bytes"], done.got["messages"]) == (0, 0)
    assert done.one("receiver", "connected")["peer"] == ["10.0.0.1", "10.0.1.1"]
