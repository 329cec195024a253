"""The kernel's trace: pages of its ring buffer as cell-init decodes them, and the records as analysis reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netwarp.captures.native import Rows
from netwarp.core.types import Cell
from netwarp.measure.cell_records import kernel_counters
from netwarp.measure.kernel_samples import RECORD, PathSamples, path_traces, read_trace, trace_check, with_thresholds
from netwarp.measure.make_series import TRACE_POINTS, trace_series
from netwarp.store.init_records import Proc, Trace
from netwarp.testbed.compile import Clock, compile_cell
from support.cell_init_driver import Driver
from support.cells import S, two_path_cell

SCTP_ID, TCP_ID, OTHER_ID = 501, 733, 12
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
