"""Every knob of SCTP: read back from the kernel, and, where a packet can show it, seen on the wire."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Event
from support.apps_lab import MS, Options, Run, S, make_cell, run

FAST = LinkImpairment(one_way_delay_ns=10 * MS, rate_bit_s=20_000_000, queue_packets=100)
SLOW = LinkImpairment(one_way_delay_ns=50 * MS, rate_bit_s=1_000_000, queue_packets=50)
FIRST, SECOND = "10.0.0.129", "10.0.1.129"
DATA, INIT, HEARTBEAT = (f"sctp.chunk_type == {number}" for number in (0, 1, 4))
EVERY_SECOND: Options = {"interval_ns": S}

READ_BACK: Options = {
    "rto_initial_ns": 700 * MS,
    "rto_min_ns": 150 * MS,
    "rto_max_ns": 7 * S,
    "path_max_retrans": 3,
    "association_max_retrans": 7,
    "pf_retrans": 1,
    "ps_retrans": 4,
    "heartbeat_interval_ns": 4 * S,
    "sack_delay_ns": 30 * MS,
    "sack_frequency": 5,
    "max_burst": 9,
    "path_mtu_bytes": 1200,
    "mss_bytes": 600,
}


def gaps(times: list[int]) -> list[int]:
    """Between one and the next, ns."""
    return [after - before for before, after in itertools.pairwise(times)]


def test_every_value_is_in_force_at_both_ends(kernel: Path, tmp_path: Path) -> None:
    only_sender: Options = {"init_attempts": 3, "init_max_timeout_ns": 2 * S, "scheduler": "wfq"}
    cell = make_cell("sctp", shape=FAST, paths=2, stop_ns=2 * S, sender=READ_BACK | only_sender, receiver=READ_BACK)
    done = run(kernel, tmp_path, cell).well()
    sender, receiver = (done.one(role, "in_force") for role in ("sender", "receiver"))
    assert {key: sender[key] for key in (*READ_BACK, *only_sender)} == READ_BACK | only_sender
    assert {key: receiver[key] for key in READ_BACK} == READ_BACK


@pytest.mark.parametrize("flag", ["no_heartbeats", "no_fragments", "nodelay", "unordered"])
def test_switches_do_not_hurt_a_transfer(kernel: Path, tmp_path: Path, flag: str) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=200_000, sender={flag: True})
    done = run(kernel, tmp_path, cell).well()
    assert done.got["unique_bytes"] == 200_000


def test_a_value_the_kernel_does_not_take_is_reported(kernel: Path, tmp_path: Path) -> None:
    """A maximum below the node's own minimum of the RTO: the kernel refuses it."""
    cell = make_cell("sctp", shape=FAST, stop_ns=2 * S, sender={"rto_max_ns": 500 * MS})
    done = run(kernel, tmp_path, cell)
    assert done.exits()["sender"]["status"] == 1
    assert "SCTP_RTOINFO" in done.one("sender", "error")["message"]


def test_rto_initial_is_the_first_inits_timeout(kernel: Path, tmp_path: Path) -> None:
    """Nothing comes back: INITs at RTO.Initial, doubled up to the maximum, as often as asked."""
    dead = (Event(0, "dead", "blackhole", "p1"),)
    sender: Options = {"rto_initial_ns": 500 * MS, "init_attempts": 3, "init_max_timeout_ns": S}
    cell = make_cell("sctp", shape=FAST, stop_ns=20 * S, duration_ns=20 * S, sender=sender, timeline=dead)
    done = run(kernel, tmp_path, cell)
    assert done.exits()["sender"]["status"] == 1
    waits = gaps(done.times("a-p1", INIT))
    # a timer wheel fires up to 12.5 % late, never early
    assert len(waits) == 3
    for wait, asked in zip(waits, (500 * MS, S, S), strict=True):
        assert asked <= wait <= asked * 1.125 + MS, waits


def fault_run(kernel: Path, tmp_path: Path, sender: Options, duration_ns: int = 30 * S) -> Run:
    """One message a second over two paths; the first dies for good at 5.5 s."""
    cell = make_cell(
        "sctp", shape=FAST, paths=2, stop_ns=duration_ns, duration_ns=duration_ns, message_bytes=200,
        sender=EVERY_SECOND | sender, receiver={"sack_frequency": 1},
        timeline=(Event(5 * S + 500 * MS, "dead", "cut", "p1"),),
    )  # fmt: skip
    return run(kernel, tmp_path, cell).well()


def told(done: Run, state: str, address: str = FIRST) -> list[int]:
    """When the sender was told of that state of an address."""
    return [
        r["t_ns"]
        for r in done.of("sender", "notification")
        if (r["type"], r.get("state"), r.get("address")) == ("PEER_ADDR_CHANGE", state, address)
    ]


def test_the_rto_floor_and_pf_retrans_decide_the_failover(kernel: Path, tmp_path: Path) -> None:
    """The message due at 5.5 s is lost: its timer runs out after RTO.Min. With pf_retrans = 1 the path is potentially
    failed at the second timeout: twice RTO.Min after the message of 6.5 s.
    """
    for number, (floor_ns, pf, sent_ns, factor) in enumerate(
        [(S, 0, 5 * S + S // 2, 1), (300 * MS, 0, 5 * S + S // 2, 1), (300 * MS, 1, 6 * S + S // 2, 2)]
    ):
        done = fault_run(kernel, tmp_path / str(number), {"rto_min_ns": floor_ns, "pf_retrans": pf})
        after = told(done, "POTENTIALLY_FAILED")[0] - sent_ns
        assert factor * floor_ns <= after <= factor * floor_ns * 1.125 + 5 * MS, (floor_ns, pf, after)


def test_path_max_retrans_makes_it_unreachable(kernel: Path, tmp_path: Path) -> None:
    few = fault_run(kernel, tmp_path / "2", {"rto_min_ns": 200 * MS, "rto_max_ns": 400 * MS, "path_max_retrans": 2})
    many = fault_run(kernel, tmp_path / "5", {"rto_min_ns": 200 * MS, "rto_max_ns": 400 * MS, "path_max_retrans": 5})
    assert told(few, "UNREACHABLE")[0] < told(many, "UNREACHABLE")[0]


def test_ps_retrans_moves_the_primary(kernel: Path, tmp_path: Path) -> None:
    stays = fault_run(kernel, tmp_path / "stays", {})
    moves = fault_run(kernel, tmp_path / "moves", {"pf_retrans": 0, "ps_retrans": 0})
    assert not told(stays, "MADE_PRIM", SECOND)
    assert told(moves, "MADE_PRIM", SECOND)


@pytest.mark.parametrize(("options", "count"), [({"heartbeat_interval_ns": 2 * S}, range(5, 11)), ({}, range(2)),
                                                ({"no_heartbeats": True}, range(1))])  # fmt: skip
def test_heartbeats_come_as_often_as_asked(kernel: Path, tmp_path: Path, options: Options, count: range) -> None:
    """The second path is idle for 25 s; between heartbeats there is the interval and 0.5 to 1.5 times the RTO (1 s)."""
    cell = make_cell(
        "sctp", shape=FAST, paths=2, stop_ns=26 * S, duration_ns=26 * S, sender=EVERY_SECOND | options, message_bytes=99
    )
    done = run(kernel, tmp_path, cell).well()
    beats = done.times("a-p2", f"{HEARTBEAT} && ip.src == 10.0.1.1")
    assert len(beats) in count
    if options.get("heartbeat_interval_ns"):
        assert all(2.4 * S <= gap <= 3.6 * S * 1.125 for gap in gaps(beats)), gaps(beats)


def test_the_sack_delay_and_frequency_are_the_receivers(kernel: Path, tmp_path: Path) -> None:
    """One message at a time: its SACK waits for the delay, unless the frequency is 1."""
    for number, (receiver, low, high) in enumerate(
        [({"sack_delay_ns": 40 * MS}, 40, 46), ({"sack_delay_ns": 200 * MS}, 200, 226), ({"sack_frequency": 1}, 0, 1)]
    ):
        cell = make_cell(
            "sctp", shape=FAST, stop_ns=9 * S, message_bytes=99, sender=EVERY_SECOND, receiver=dict(receiver)
        )
        done = run(kernel, tmp_path / str(number), cell).well()
        data, sacks = done.times("b-p1", DATA), done.times("b-p1", "sctp.chunk_type == 3")
        waits = [sack - arrival for arrival, sack in zip(data, sacks, strict=True)]
        assert len(waits) == 8
        # the first DATA is acknowledged at once
        assert all(low * MS <= wait <= high * MS for wait in waits[1:]), (receiver, waits)


def test_the_path_mtu_is_the_largest_packet(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=300_000, message_bytes=4000, sender={"path_mtu_bytes": 1000})
    done = run(kernel, tmp_path, cell).well()
    sizes = {int(row[0]) for row in done.tshark("a-p1", "sctp && ip.src == 10.0.0.1", "ip.len")}
    assert max(sizes) == 1000
    assert done.one("sender", "in_force")["path_mtu_bytes"] == 1000


def test_max_burst_limits_what_leaves_at_once(kernel: Path, tmp_path: Path) -> None:
    """A window opens after silence: how many packets leave within 1 ms."""

    def longest(burst: int) -> int:
        cell = make_cell(
            "sctp", shape=FAST, stop_ns=9 * S, message_bytes=1400,
            sender={"interval_ns": 2 * S, "burst_bytes": ",".join(["1400"] * 60), "max_burst": burst},
        )  # fmt: skip
        done = run(kernel, tmp_path / str(burst), cell).well()
        times = done.times("a-p1", DATA)
        return max(sum(1 for other in times if 0 <= other - one < MS) for one in times)

    assert longest(2) < longest(8)


def test_unordered_ppid_and_streams_are_on_the_wire(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell(
        "sctp", shape=FAST, total_bytes=50_000, message_bytes=500, sender={"unordered": True, "ppid": 60, "streams": 2}
    )
    done = run(kernel, tmp_path, cell).well()
    rows = done.tshark("a-p1", DATA, "sctp.data_payload_proto_id", "sctp.data_u_bit")
    assert {value for row in rows for value in row[0].split(",")} == {"60"}
    assert {value for row in rows for value in row[1].split(",")} <= {"1", "True"}


def test_connect_leaves_the_second_path_unconfirmed(kernel: Path, tmp_path: Path) -> None:
    states = {}
    for way in ("connect", "connectx"):
        cell = make_cell(
            "sctp", shape=FAST, paths=2, stop_ns=8 * S,
            sender={"connect": way, "sample_interval_ns": 100 * MS, "interval_ns": 100 * MS}, message_bytes=99,
        )  # fmt: skip
        done = run(kernel, tmp_path / way, cell).well()
        states[way] = {sample["paths"][1]["state"] for sample in done.of("sender", "sample")}
        assert len(done.one("sender", "connected")["peer"]) == 2
    assert states == {"connect": {"UNCONFIRMED", "ACTIVE"}, "connectx": {"ACTIVE"}}


def streams_of(done: Run) -> list[int]:
    """Stream of each DATA chunk, in the order sent."""
    rows = done.tshark("a-p1", DATA, "sctp.data_sid")
    return [int(sid, 0) for row in rows for sid in row[0].split(",")]


def test_prio_sends_stream_1_first(kernel: Path, tmp_path: Path) -> None:
    """A burst over two streams that waits for the window: with prio, stream 1 (value 0) overtakes stream 0 (5)."""
    sender: Options = {
        "streams": 2, "interval_ns": 5 * S, "burst_bytes": ",".join(["1400"] * 60), "scheduler": "prio",
        "stream_values": "5,0",
    }  # fmt: skip
    cell = make_cell("sctp", shape=SLOW, stop_ns=9 * S, message_bytes=1400, sender=sender)
    prio = streams_of(run(kernel, tmp_path / "prio", cell).well())
    plain = {key: value for key, value in sender.items() if key not in ("scheduler", "stream_values")}
    cell = make_cell("sctp", shape=SLOW, stop_ns=9 * S, message_bytes=1400, sender=plain)
    fcfs = streams_of(run(kernel, tmp_path / "fcfs", cell).well())
    assert fcfs[:60].count(1) == prio[:60].count(1) == 30
    assert sum(fcfs[10:30]) == 10
    assert sum(prio[10:30]) >= 18


def test_stream_values_of_a_scheduler_without_any_are_reported(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, stop_ns=2 * S, sender={"stream_values": "3"})
    done = run(kernel, tmp_path, cell)
    (error,) = done.of("sender", "error")
    assert (error["what"], "asked for 3, the kernel has 0" in error["message"]) == ("stream_values", True)


def test_a_message_that_may_not_be_fragmented(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=FAST, total_bytes=9000, message_bytes=3000, sender={"no_fragments": True})
    done = run(kernel, tmp_path, cell)
    assert "--no-fragments" in done.of("sender", "error")[0]["message"]


@pytest.mark.parametrize("limit", [{"lifetime_ns": 300 * MS}, {"max_retransmissions": 0}])
def test_messages_are_given_up(kernel: Path, tmp_path: Path, limit: Options) -> None:
    """Nothing gets through for 6 s: what is too old by then never arrives; without a limit all of it does."""
    outage = (Event(3 * S, "gap", "cut", "p1"), Event(9 * S, "gap", "repair", "p1"))
    received = []
    for number, options in enumerate((limit, {})):
        cell = make_cell(
            "sctp", shape=FAST, stop_ns=25 * S, duration_ns=25 * S, message_bytes=99, timeline=outage,
            sender={"interval_ns": 200 * MS, "rto_max_ns": 2 * S, **options},
        )  # fmt: skip
        done = run(kernel, tmp_path / str(number), cell).well()
        assert done.got["corrupt_bytes"] == 0
        received.append(done.got["messages"])
        failures = [r for r in done.of("sender", "notification") if r["type"].startswith("SEND_FAILED")]
        # Linux tells of what it gives up unsent (the lifetime), not of what it gives up after sending it
        assert bool(failures) == ("lifetime_ns" in options)
    assert received[0] < received[1] - 10


def test_messages_leave_on_their_schedule(kernel: Path, tmp_path: Path) -> None:
    """SCTP and TCP: bursts of three sizes; each packet leaves within 20 us of its due time, none is late."""
    for protocol in ("sctp", "tcp"):
        cell = make_cell(
            protocol, shape=FAST, start_ns=S // 2, stop_ns=9 * S,
            sender={"interval_ns": 700 * MS, "burst_bytes": "100,33,400", "nodelay": True},
        )  # fmt: skip
        done = run(kernel, tmp_path / protocol, cell).well()
        schedule = done.one("sender", "schedule")
        first = schedule["first_t_ns"]
        assert schedule["burst_bytes"] == [100, 33, 400]
        assert (first - S // 2 - 1000) % (700 * MS) == 0
        show = DATA if protocol == "sctp" else "tcp.len > 0"
        times = done.times("a-p1", show)
        bursts = (9 * S - first - 1) // (700 * MS) + 1
        assert done.sent["messages"] == 3 * bursts
        assert done.sent["sent_bytes"] == done.got["unique_bytes"] == 533 * bursts
        offsets = {(time - first) // (700 * MS): (time - first) % (700 * MS) for time in times}
        assert len(offsets) == bursts
        assert max(offsets.values()) < 20_000
        assert not done.of("sender", "blocked")


def test_a_schedule_the_kernel_cannot_follow_is_reported(kernel: Path, tmp_path: Path) -> None:
    """2 Mbit/s due over 1 Mbit/s and a small buffer: nothing is dropped, the records say when it was blocked."""
    cell = make_cell(
        "sctp", shape=SLOW, stop_ns=9 * S, message_bytes=1000,
        sender={"interval_ns": 4 * MS, "sndbuf_bytes": 20_000}, duration_ns=10 * S,
    )  # fmt: skip
    done = run(kernel, tmp_path, cell).well()
    assert done.of("sender", "blocked")
    assert done.got["gap_bytes"] == 0
    assert done.sent["messages"] < 8500 // 4


def test_pacing_spaces_the_packets_of_tcp(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("tcp", shape=FAST, stop_ns=5 * S, sender={"pacing_rate_bit_s": 2_000_000})
    done = run(kernel, tmp_path, cell).well()
    assert done.one("sender", "in_force")["pacing_rate_bit_s"] == 2_000_000
    rate = done.got["unique_bytes"] * 8 / 4.5
    assert 1_700_000 < rate < 2_050_000


def test_the_same_knobs_give_the_same_bytes(kernel: Path, tmp_path: Path) -> None:
    captures = []
    for number in range(2):
        cell = make_cell(
            "sctp", shape=FAST, paths=2, stop_ns=5 * S, sender=READ_BACK | {"interval_ns": 50 * MS}, receiver=READ_BACK
        )
        done = run(kernel, tmp_path / str(number), cell).well()
        folder = done.result.directory / "capture"
        captures.append({file.name: file.read_bytes() for file in sorted(folder.glob("*.pcap"))})
    assert captures[0] == captures[1]
