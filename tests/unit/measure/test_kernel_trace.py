"""The kernel's own account of a cell: samples of its state, and its trace, whose ring buffer cell-init decodes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures.native import Rows
from netwarp.core.errors import StoreError
from netwarp.core.types import Cell
from netwarp.measure.cell_records import kernel_counters
from netwarp.measure.kernel_samples import (
    RECORD,
    PathSamples,
    path_traces,
    read_samples,
    read_trace,
    time_weighted_mean,
    trace_check,
    with_thresholds,
)
from netwarp.measure.make_series import TRACE_POINTS, _columns, trace_series
from netwarp.store.app_records import (
    AssociationStatus,
    GaveUp,
    Notification,
    PathState,
    Sample,
    SwitchPrimary,
    TcpInfo,
)
from netwarp.store.init_records import Proc, Trace
from netwarp.testbed.compile import Clock, compile_cell
from support.captures import READ_BYTES
from support.cell_init_driver import Driver
from support.cells import S, two_path_cell
from support.recorded_cell import MONOTONIC, derive, make_cell, make_directory, write

SCTP_ID, TCP_ID, OTHER_ID = 501, 733, 12
FUZZ = settings(max_examples=300)


def format_file(number: int, fields: list[tuple[str, int]]) -> str:
    """As /sys/kernel/tracing/events/*/*/format: name and size of each field, one after the other from byte 8 on."""
    lines, offset = (
        [f"name: x\nID: {number}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"],
        8,
    )
    for name, size in fields:
        lines.append(f"\tfield:__u32 {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        offset += size
    return "".join(lines) + '\nprint fmt: "field:%u", REC->cwnd\n'


SCTP_FORMAT = format_file(
    SCTP_ID,
    [("asoc", 8), ("primary", 4), ("ipaddr[28]", 28), ("state", 4), ("cwnd", 4), ("ssthresh", 4), ("flight_size", 4),
     ("partial_bytes_acked", 4), ("pathmtu", 4)],
)  # fmt: skip
TCP_FORMAT = format_file(
    TCP_ID,
    [("saddr[28]", 28), ("daddr[28]", 28), ("sport", 2), ("dport", 2), ("data_len", 2), ("snd_nxt", 4), ("snd_una", 4),
     ("snd_cwnd", 4), ("ssthresh", 4), ("snd_wnd", 4), ("srtt", 4), ("sock_cookie", 8)],
)  # fmt: skip
V4 = struct.pack("<H", 2) + struct.pack(">H", 5001) + bytes([10, 0, 1, 129]) + bytes(20)


def sctp_event(cwnd: int) -> bytes:
    return struct.pack("<H6xQI28s6I", SCTP_ID, 77, 1, V4, 2, cwnd, 9000, 3000, 1500, 1400)


def tcp_event() -> bytes:
    return struct.pack(
        "<H6x28s28sHHH6IQ", TCP_ID, V4, V4, 40000, 5001, 1448, 1000, 400, 10, 0x7FFFFFFF, 65535, 41000, 5
    )


def data(payload: bytes, delta: int) -> bytes:
    """An event of the ring buffer: short ones have their length in the type, long ones in a word of its own."""
    payload += bytes(-len(payload) % 4)
    if len(payload) <= 112:
        return struct.pack("<I", delta << 5 | len(payload) // 4) + payload
    return struct.pack("<II", delta << 5, len(payload) + 4) + payload


def page(*events: bytes, t_ns: int = 10**9, flags: int = 0, behind: bytes = b"") -> bytes:
    body = b"".join(events)
    return struct.pack("<QQ", t_ns, len(body) | flags) + body + behind


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """The sanitised decoder."""
    running = Driver()
    yield running
    running.close()


def decode(driver: Driver, raw: bytes) -> tuple[Rows, int]:
    """Records and how many the kernel lost."""
    answer = driver.ask("trace", SCTP_FORMAT.encode() + b"\0" + TCP_FORMAT.encode() + b"\0" + raw)
    return np.frombuffer(bytes.fromhex("".join(answer["records"])), dtype=RECORD), answer["lost"]


def test_events_of_both_kinds_with_their_times(driver: Driver) -> None:
    extend = struct.pack("<II", 7 << 5 | 30, 3)  # 3 x 2^27 + 7 ns
    stamp = struct.pack("<II", 5 << 5 | 31, 100)
    gap = struct.pack("<II", 2 << 5 | 29, 8) + bytes(4)
    other = data(struct.pack("<H30x", OTHER_ID), 1)
    long = data(tcp_event() + bytes(40), 4)
    raw = page(
        data(sctp_event(4380), 10), extend, other, data(tcp_event(), 3), gap, long, stamp, data(sctp_event(6000), 1)
    )
    rows, lost = decode(driver, raw)
    assert lost == 0
    first = 10**9 + 10
    second = first + (3 << 27) + 7 + 1 + 3
    assert rows["t_ns"].tolist() == [first, second, second + 2 + 4, (100 << 27) + 5 + 1]
    assert rows["kind"].tolist() == [1, 2, 2, 1]
    assert rows["cwnd"].tolist() == [4380, 10, 10, 6000]
    one, two = rows[0], rows[1]
    assert (one["connection"], one["primary"], one["state"], one["ssthresh"], one["flight"]) == (77, 1, 2, 9000, 3000)
    assert (one["acked"], one["mtu"], one["peer_port"], one["family"], one["address"][:4].tolist()) == (
        1500, 1400, 5001, 4, [10, 0, 1, 129],
    )  # fmt: skip
    assert (two["connection"], two["local_port"], two["peer_port"], two["flight"], two["acked"]) == (
        5, 40000, 5001, 600, 1448,
    )  # fmt: skip
    assert (two["ssthresh"], two["mtu"], two["state"]) == (0x7FFFFFFF, 65535, 41000)


def test_events_the_kernel_lost_are_counted(driver: Driver) -> None:
    stored = page(data(sctp_event(1), 0), flags=3 << 30, behind=struct.pack("<Q", 321))
    assert decode(driver, stored)[1] == 321
    assert decode(driver, page(data(sctp_event(1), 0), flags=1 << 31))[1] == 1


def test_a_page_that_is_none(driver: Driver) -> None:
    assert decode(driver, b"")[1] == -1
    assert decode(driver, struct.pack("<QQ", 0, 4000))[1] == -1
    assert decode(driver, page(struct.pack("<II", 0, 400)))[1] == -1
    assert decode(driver, page(struct.pack("<I", 28)))[1] == -1


def test_a_field_that_is_missing_is_named(driver: Driver) -> None:
    other = TCP_FORMAT.replace("snd_cwnd", "cwnd_of_today")
    assert driver.ask("trace", SCTP_FORMAT.encode() + b"\0" + other.encode() + b"\0")["missing"] == "snd_cwnd"


@FUZZ
@given(st.binary(max_size=300), st.integers(0, 2**33))
def test_no_page_reads_beyond_itself(driver: Driver, body: bytes, commit: int) -> None:
    """ASan looks on; whatever the bytes are, the answer is records or a refusal."""
    rows, lost = decode(driver, struct.pack("<QQ", 5, commit) + body)
    assert lost >= -1
    assert len(rows) <= len(body)


def rows_of(count: int, port: int = 5001, **fields: int) -> Rows:
    rows = np.zeros(count, dtype=RECORD)
    rows["t_ns"], rows["kind"], rows["family"], rows["peer_port"] = np.arange(count) * 10**6, 1, 4, port
    rows["address"][:, :4] = [10, 0, 0, 129]
    for name, value in fields.items():
        rows[name] = value
    return rows


def test_traces_by_path(tmp_path: Path) -> None:
    cell = two_path_cell()
    flow = cell.flows[0]
    other = rows_of(3, cwnd=2)
    other["address"][:, :4] = [10, 0, 1, 129]
    (tmp_path / "trace.bin").write_bytes(
        np.concatenate([rows_of(5, cwnd=4380, ssthresh=70_000), other, rows_of(9, port=5002)]).tobytes() + b"cut off"
    )
    events = read_trace(tmp_path / "trace.bin")
    assert len(events) == 17
    found = path_traces(events, flow, {"10.0.0.129": "p1", "10.0.1.129": "p2", "10.0.2.129": "p3"}, None, -S)
    assert list(found) == ["p1", "p2"]
    assert found["p1"].t_s.tolist() == [1.0, 1.001, 1.002, 1.003, 1.004]
    assert found["p1"].cwnd_bytes.tolist() == [4380.0] * 5
    assert found["p1"].ssthresh_bytes.tolist() == [70_000.0] * 5
    assert len(read_trace(tmp_path / "none.bin")) == 0


def test_the_series_is_thinned_to_its_last_event() -> None:
    cell = two_path_cell()
    found = path_traces(rows_of(10_000, cwnd=1), cell.flows[0], {"10.0.0.129": "p1"}, None, 0)
    drawn = trace_series(found)["p1"]
    assert len(drawn["t_s"]) == len(drawn["cwnd_bytes"]) == TRACE_POINTS
    assert (drawn["t_s"][0], drawn["t_s"][-1]) == (0.0, 9.999)
    assert trace_series({}) == {}


def test_samples_get_the_threshold_of_the_trace() -> None:
    """A sample at 1.5 ms lies before the event of 2 ms, which shows what was in force until then."""
    rows = rows_of(4, cwnd=1)
    rows["ssthresh"] = [10, 20, 30, 40]
    trace = path_traces(rows, two_path_cell().flows[0], {"10.0.0.129": "p1"}, None, 0)
    t_s = np.array([0.0015, 0.002, 0.9])
    none = np.full(3, np.nan)
    samples = {name: PathSamples(t_s, t_s, *(none,) * 9) for name in ("p1", "p2")}
    found = with_thresholds(samples, trace)
    assert found["p1"].ssthresh_bytes[:2].tolist() == [30.0, 30.0]
    assert np.isnan(found["p1"].ssthresh_bytes[2])
    assert np.isnan(found["p2"].ssthresh_bytes).all()


def with_options(cell: Cell, options: dict[str, bool]) -> Cell:
    flow = msgspec.structs.replace(cell.flows[0], sender_options=options)
    return msgspec.structs.replace(cell, flows=(flow,))


def test_a_trace_with_losses_fails_its_check() -> None:
    cell = with_options(two_path_cell(), {"tracepoints": True})
    assert trace_check(two_path_cell(), None) == []
    assert [check.ok for check in trace_check(cell, None)] == [False]
    assert [check.ok for check in trace_check(cell, Trace(11, "trace.bin", 5, 1, 0))] == [False]
    assert [check.ok for check in trace_check(cell, Trace(11, "trace.bin", 5, 0, 0))] == [True]


def test_steps_of_a_traced_cell() -> None:
    """The trace is a step of its own and no argument of the sender; counters are read after the end."""
    wanted: tuple[dict[str, bool], ...] = ({"nodelay": True}, {"nodelay": True, "tracepoints": True})
    plain, traced = (
        compile_cell(with_options(two_path_cell(), options), Clock(t0_realtime_ns=S)).steps for options in wanted
    )
    (added,) = [step for step in traced if step.verb == "trace"]
    assert [step for step in traced if step != added] == plain
    end = next(number for number, step in enumerate(plain) if step.verb == "end")
    assert {step.verb for step in plain[:end]}.isdisjoint({"proc"})
    assert [dict(step.fields)["path"] for step in plain if step.verb == "proc"] == 2 * [
        "net/snmp", "net/netstat", "net/sctp/snmp",
    ]  # fmt: skip


def test_counters_are_read() -> None:
    records = [
        Proc(7, 1, "net/snmp", "Tcp: RetransSegs MaxConn\nTcp: 7 -1\nIp: A\nIp: 2\n"),
        Proc(8, 1, "net/sctp/snmp", "SctpT3Retransmits               \t4\n"),
        Proc(9, 0, "net/sctp/snmp", None),
        Proc(10, 0, "sys/kernel/random/boot_id", "a file of others"),
    ]
    assert kernel_counters(records, ["a", "b"]) == {
        "b": {"Tcp.RetransSegs": 7, "Tcp.MaxConn": -1, "Ip.A": 2, "Sctp.SctpT3Retransmits": 4},
        "a": {},
    }


def test_the_kernels_samples_and_words(tmp_path: Path) -> None:
    cell = make_cell("sctp")
    root = make_directory(cell, "sctp", tmp_path / "cell")

    def sample(t_s: float, cwnd: int, srtt_ns: int | None) -> Sample:
        paths = (
            PathState("10.1.2.1", cwnd_bytes=cwnd, srtt_ns=srtt_ns),
            PathState("10.2.2.1", cwnd_bytes=1, srtt_ns=0),
        )
        return Sample(MONOTONIC + int(t_s * S), 0, paths)

    samples = [sample(1, 1000, None), sample(2, 4000, 50_000_000), sample(5, 9999, 90_000_000)]
    change = Notification(
        MONOTONIC + 7 * S, "PEER_ADDR_CHANGE", 0, address="10.1.2.1", state="POTENTIALLY_FAILED", error=0
    )
    write(
        root / "apps" / "ftp.sender.ndjson",
        [
            *samples,
            change,
            SwitchPrimary(MONOTONIC + 8 * S, None, "10.2.2.1", 0),
            GaveUp(MONOTONIC + 9 * S, "send", 110),
        ],
    )
    derived = derive(cell, root)
    assert derived.metrics["cwnd_bytes"] == (1000 * 1 + 4000 * 3) / 4
    assert derived.metrics["srtt_s"] == pytest.approx(0.05, rel=1e-12)
    samples = derived.series["flows"]["ftp"]["samples"]
    assert samples["p1"] == {"t_s": [1, 2, 5], "cwnd_bytes": [1000, 4000, 9999], "srtt_s": [None, 0.05, 0.09]}
    assert samples["p2"]["cwnd_bytes"] == [1, 1, 1]
    assert samples["p2"]["srtt_s"] == [None, None, None]  # 0: not measured yet
    events = {event["kind"]: event for event in derived.series["events"]}
    assert events["notification"]["t_s"] == 7
    assert events["notification"]["text"] == "PEER_ADDR_CHANGE, address 10.1.2.1, POTENTIALLY_FAILED"
    assert events["switch_primary"]["text"] == "address 10.2.2.1"
    assert events["gave_up"]["text"] == "what send, errno 110"


def test_more_of_the_kernels_words(tmp_path: Path) -> None:
    def sample(t_s: int, state: str, **more: Any) -> Sample:
        path = PathState("10.1.2.1", state=state, cwnd_bytes=1, srtt_ns=0, rto_ns=t_s * S, **more)
        return Sample(t_s * S, 0, (path,), AssociationStatus(10 * t_s))

    states = [sample(1, "ACTIVE"), sample(2, "ACTIVE", ssthresh_bytes=9), sample(3, "PF"), sample(4, "ACTIVE")]
    found = read_samples(states, {"10.1.2.1": "p1"}, 0)
    assert found["p1"].states == ((1.0, "ACTIVE"), (3.0, "PF"), (4.0, "ACTIVE"))
    assert _columns(found["p1"]) == {
        "t_s": [1, 2, 3, 4],
        "cwnd_bytes": [1, 1, 1, 1],
        "srtt_s": [None] * 4,
        "ssthresh_bytes": [None, 9, None, None],
        "rto_s": [1, 2, 3, 4],
    }
    assert _columns(found[""]) == {"t_s": [1, 2, 3, 4], "outstanding_chunks": [10, 20, 30, 40]}
    tcp = read_samples([sample(1, "", tcp_info=TcpInfo(1448, 7))], {}, 0)["10.1.2.1"]
    assert tcp.outstanding_packets.tolist() == [7]


def test_cpu_time_is_there_on_the_wall_clock_only(tmp_path: Path) -> None:
    """cell-init writes it where it counts ticks; bytes are those that arrived, also after the stop."""
    names = {"sender_cpu_per_byte_s", "receiver_cpu_per_byte_s"}
    cell = make_cell("sctp")
    assert not names & derive(cell, make_directory(cell, "sctp", tmp_path / "virtual")).metrics.keys()
    root = make_directory(cell, "sctp", tmp_path / "wall")
    with (root / "init.ndjson").open("a") as records:
        for role, cpu_ns in (("sender", 30_000_000), ("receiver", 50_000_000)):
            ended = {"id": f"ftp.{role}", "status": 0, "signal": None, "killed": False, "t_ns": 1, "cpu_ns": cpu_ns}
            records.write(json.dumps({"record": "exit"} | ended) + "\n")
    metrics = derive(cell, root).metrics
    assert metrics["sender_cpu_per_byte_s"] == pytest.approx(0.03 / READ_BYTES["sctp"])
    assert metrics["receiver_cpu_per_byte_s"] == pytest.approx(0.05 / READ_BYTES["sctp"])


def test_time_weighted_mean_of_little() -> None:
    assert time_weighted_mean(np.array([]), np.array([])) is None
    assert time_weighted_mean(np.array([1.0]), np.array([7.0])) == 7
    assert time_weighted_mean(np.array([1.0, 2.0]), np.array([np.nan, np.nan])) is None


def test_samples_of_too_many_paths_are_refused() -> None:
    paths = tuple(PathState(f"10.0.{number // 250}.{number % 250}") for number in range(1001))
    with pytest.raises(StoreError, match=r"samples of more than .* paths of one connection"):
        read_samples([Sample(t_ns=1, sent_bytes=0, paths=paths)], {}, 0)
    assert len(read_samples([Sample(t_ns=1, sent_bytes=0, paths=paths[:1000])], {}, 0)) == 1000
