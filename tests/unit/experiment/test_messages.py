"""`messages` and `reverse` of a flow: what they mean in a cell, what is wrong, and files of messages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.errors import SpecError
from netwarp.core.frozen import to_json
from netwarp.core.messages import Law, Messages
from netwarp.core.types import Cell, Flow, reversed_flow
from netwarp.experiment.read_messages import read_message_file
from netwarp.plan import make_plan
from netwarp.testbed.message_files import message_files, rows_of
from support.specs import cell_of, only, problems_of, replaced, spec_of

MS = 1_000_000


def cell_with(text: str, protocol: str = "sctp") -> Cell:
    return cell_of(replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{text}'))


def flow_with(text: str, protocol: str = "sctp") -> Flow:
    return cell_with(text, protocol).flows[0]


def problem(text: str, protocol: str = "sctp") -> str:
    return only(replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{text}'))


def test_equal_messages_are_the_interval_that_they_are() -> None:
    """One cell, however it is said: `interval` is the short form."""
    long = flow_with('messages = { gaps = "50 ms", sizes = "100 B" }')
    assert long == flow_with('message_size = "100 B"\nsender.interval = "50 ms"')
    burst = flow_with('messages = { gaps = "1 s", sizes = "100 B", burst = 3 }')
    assert burst == flow_with('message_size = "100 B"\nsender.burst = { messages = 3, every = "1 s" }')
    assert long.messages is msgspec.UNSET


def test_both_directions() -> None:
    flow = flow_with(
        'messages = { gaps = { exponential = "50 ms" }, sizes = "100 B" }\nlate = "100 ms"\n'
        'reverse = { gaps = { uniform = ["20 ms", "80 ms"] }, streams = 2, '
        'sizes = { lognormal = { median = "120 B", sigma = "0.5" } } }'
    )
    assert isinstance(flow.messages, Messages)
    assert flow.messages.wait == Law("exponential", 50e6)
    assert flow.message_bytes == 100
    back = reversed_flow(flow)
    assert (back.name, back.sender, back.receiver, back.opener, back.late_ns) == (
        "f.back",
        "b",
        "a",
        "receiver",
        100 * MS,
    )
    assert isinstance(back.messages, Messages)
    assert back.messages.sizes == Law("lognormal", 120.0, 0.5)
    assert flow.reverse is not msgspec.UNSET
    assert flow.reverse.options == {"reverse_streams": 2}


def test_a_cell_that_is_read_back_is_the_same_cell() -> None:
    for text in (
        'messages = { gaps = { exponential = "50 ms" } }\nreverse = { gaps = "20 ms" }',
        'messages = { think = "1 s" }\nreverse = { think = { pareto = { least = "1 ms", shape = "2" } } }',
        'messages = { gaps = "20 ms", on = "1 s", off = "2 s", burst = 2, sizes = { exponential = "1 kB" } }',
    ):
        cell = cell_with(text)
        assert msgspec.json.decode(to_json(cell), type=Cell) == cell
        assert msgspec.json.decode(to_json(cell), type=Cell).id == cell.id


def test_draws_make_a_cell_random() -> None:
    assert cell_with('messages = { gaps = { exponential = "50 ms" } }').random
    assert cell_with('reverse = { gaps = { exponential = "50 ms" } }').random
    assert not cell_with('messages = { gaps = "50 ms", on = "1 s", off = "1 s" }', "tcp").random


def test_the_files_are_what_the_programs_read() -> None:
    cell = cell_with('messages = { gaps = "100 ms", sizes = "300 B" }\nreverse = { think = "5 ms", sizes = "1 kB" }')
    files = {name: data.decode().split("\n") for name, data in message_files(cell)}
    assert files["apps/f.sender.messages"][:3] == ["due", "100000000 300 0", "200000000 300 0"]
    assert files["apps/f.receiver.messages"][:2] == ["answers", "5000000 1000 0"]
    assert len(rows_of(cell, cell.flows[0])) == len(files["apps/f.sender.messages"]) - 2
    asks = cell_with('messages = { think = "1 s" }\nreverse = { think = "5 ms" }')
    assert dict(message_files(asks))["apps/f.sender.messages"].startswith(b"asks\n1000000000 ")
    assert not dict(message_files(cell_with('reverse = { gaps = "1 s" }')))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('messages = { gaps = "50 ms", think = "1 s" }', "gaps says when messages are due already"),
        ('messages = { gaps = { normal = "50 ms" } }', "one law of uniform, exponential"),
        ('messages = { gaps = { uniform = ["80 ms", "20 ms"] } }', "ends below its beginning"),
        ('messages = { gaps = { lognormal = { median = "50 ms" } } }', "needs median and sigma"),
        ('messages = { gaps = { lognormal = { median = "50 ms", sigma = "9" } } }', "a number from 0 to 4"),
        ('messages = { gaps = 50 }', "text with its unit"),
        ('messages = { gaps = "50 ms", on = "1 s" }', "needs off too"),
        ('messages = { on = "1 s", off = "1 s" }', "needs gaps"),
        ('messages = { sizes = { exponential = "1 kB" } }', "drawn sizes need gaps or think"),
        ('messages = { sizes = "1 MB" }', "at most 212992 B"),
        ('messages = { gaps = { exponential = "1 us" } }', "at most 500000 can be drawn"),
        ('messages = { think = "1 s" }', "think needs answers"),
        ('messages = { think = "1 s" }\nreverse = { gaps = "1 s" }', "the next request waits for an answer"),
        ('reverse = { think = "1 s" }', "think is the time to an answer"),
        ('bytes = "1 MB"\nreverse = {}', "this direction needs bytes too"),
        ('messages = { gaps = "1 s" }\nsender.interval = "2 s"', "sender.interval says when messages are due already"),
        ('message_size = "90 B"\nmessages = { gaps = "1 s", sizes = "80 B" }', "message_size says the size already"),
        ('receiver.ppid = 60', "a receiver sends no messages without reverse"),
        ('messages = { file = "voice.txt" }', "is no .csv file beside the spec"),
        ('reverse = { late = "1 s" }', 'unknown key "late"'),
        ('late = "5"', "late"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_an_example(text: str, says: str) -> None:
    first = problems_of(replaced('protocol = "tcp"', f'protocol = "sctp"\n{text}'))[0]
    assert says in first
    assert "spec.toml:" in first


def test_streams_are_of_sctp_only() -> None:
    assert "only sctp has streams" in problem("reverse = { streams = 2 }", "tcp")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing holds UDP back"),
        ('messages = { sizes = "100 B" }', "nothing holds UDP back"),
        ('messages = { gaps = "1 s", sizes = "7 B" }', "8 B (its number) to 1472 B"),
        ('messages = { gaps = "1 s", sizes = "1473 B" }', "at most 1472 B"),
        ('sender = { burst = { sizes = ["1500 B"], every = "1 s" } }', "8 B (its number) to 1472 B"),
        ('messages = { gaps = "1 s" }\nreverse = { gaps = "1 s" }', "write a second flow"),
        ('messages = { gaps = "1 s" }\nsender.nodelay = true', "no option of a udp sender"),
    ],
)
def test_what_udp_cannot_do_is_said(text: str, says: str) -> None:
    assert says in problem(text, "udp")


def test_datagrams_fill_a_packet_and_hold_their_number() -> None:
    assert flow_with('sender.interval = "10 ms"', "udp").message_bytes == 1472
    flow = flow_with('messages = { gaps = { exponential = "10 ms" }, sizes = { exponential = "20 B" } }', "udp")
    assert isinstance(flow.messages, Messages)
    assert (flow.messages.least_bytes, flow.messages.largest_bytes) == (8, 1472)


def with_file(folder: Path, content: str | bytes, more: str = "") -> Cell:
    (folder / "voice.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    text = replaced('protocol = "tcp"', f'protocol = "sctp"\nmessages = {{ file = "voice.csv" }}\n{more}')
    return make_plan(spec_of(text, folder)).cells[0]


def test_a_file_has_each_message_and_its_end_ends_the_flow(tmp_path: Path) -> None:
    cell = with_file(tmp_path, "time_ms,bytes,stream\n0,100,0\n\n0.5,2000,1\n1000,1,0\n", "sender.streams = 2")
    (flow,) = cell.flows
    assert isinstance(flow.messages, Messages)
    assert flow.messages.rows == ((0, 100, 0), (500_000, 2000, 1), (1_000_000_000, 1, 0))
    assert (flow.total_bytes, flow.stop_ns) == (2101, None)
    assert dict(message_files(cell))["apps/f.sender.messages"].startswith(b"all\n0 100 0\n500000 2000 1\n")
    timed = with_file(tmp_path, "time_s,bytes\n0,100\n", 'stop = "2 s"').flows[0]
    assert (timed.total_bytes, timed.stop_ns) == (None, 2_000_000_000)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "begins with no such column names: time_s,bytes"),
        ("time,bytes\n0,1\n", "begins with no such column names"),
        ("time_s,bytes\n", "has no message"),
        ("time_s,bytes\n1,5\n0,5\n", "line 3: is due before the line above"),
        ("time_s,bytes\n1\n", "line 2: has 1 values in place of 2"),
        ("time_s,bytes\n1,x\n", "line 2: has no numbers"),
        ("time_s,bytes\nnan,1\n", "line 2: a time is from 0 to a day"),
        ("time_s,bytes\n1,0\n", "line 2: a message has 1 to"),
        ("time_s,bytes,stream\n1,1,1\n", "has a message on stream 1; the flow has the streams 0 to 0"),
        ("time_s,bytes\n1,300000\n", "has a message of 300000 B"),
        (b"time_s,bytes\n\xff,1\n", "is no CSV"),
    ],
)
def test_a_file_that_is_none_is_said_with_its_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(SpecError, match=r"voice\.csv|messages\.file") as caught:
        with_file(tmp_path, content)
    assert says in str(caught.value)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.text("0123456789.,-eE\n\"' naif", max_size=200).map(lambda text: f"time_s,bytes\n{text}".encode()),
    )
)
def test_no_file_does_more_than_be_refused(content: bytes) -> None:
    try:
        rows = read_message_file(content)
    except ValueError:
        return
    assert rows == sorted(rows, key=lambda row: row[0])
    assert all(at >= 0 and size >= 1 and 0 <= stream < 65536 for at, size, stream in rows)
