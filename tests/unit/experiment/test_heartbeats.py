"""`heartbeats` of a flow: what a file of them says, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.errors import SpecError
from netwarp.core.types import Cell, Heartbeat, Heartbeats
from netwarp.experiment.read_heartbeats import read_heartbeat_file
from netwarp.plan import make_plan
from netwarp.testbed.layout import make_layout
from netwarp.testbed.message_files import heartbeat_files
from support.specs import BASE, replaced, spec_of

REVERSE = 'reverse = { gaps = "1 s" }'
NS = 1_000_000_000


def cell_with(folder: Path, content: str | bytes, more: str = REVERSE, keys: str = 'file = "beats.csv"') -> Cell:
    (folder / "beats.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    text = replaced('protocol = "tcp"', f'protocol = "sctp"\nheartbeats = {{ {keys} }}\n{more}', BASE)
    return make_plan(spec_of(text, folder)).cells[0]


def test_each_end_gets_its_own_with_the_addresses_of_the_peer(tmp_path: Path) -> None:
    keys = 'file = "beats.csv", until = "9 s"'
    cell = cell_with(tmp_path, "time_ms,end,path\n0.5,sender,p1\n\n1000,receiver,p1\n9000,sender,p1\n", REVERSE, keys)
    (flow,) = cell.flows
    beats = (Heartbeat(500_000, "sender", "p1"), Heartbeat(NS, "receiver", "p1"), Heartbeat(9 * NS, "sender", "p1"))
    assert flow.heartbeats == Heartbeats(beats, 9 * NS)
    layout = make_layout(cell)
    a, b = (layout.interface(node, "p1").ip for node in "ab")
    files = dict(heartbeat_files(cell, layout))
    assert files == {
        "apps/f.sender.heartbeats": f"500000 {b}\n{9 * NS} kernel\n".encode(),
        "apps/f.receiver.heartbeats": f"{NS} {a}\n{9 * NS} kernel\n".encode(),
    }


def test_a_file_may_hold_none(tmp_path: Path) -> None:
    cell = cell_with(tmp_path, "time_s,end,path\n")
    assert cell.flows[0].heartbeats == Heartbeats((), None)
    assert set(dict(heartbeat_files(cell, make_layout(cell))).values()) == {b""}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "begins with no such column names: time_s,end,path"),
        ("time_s,path\n", "begins with no such column names"),
        ("time_s,end,path\n1,sender,p1\n0,sender,p1\n", "line 3: is before the line above"),
        ("time_s,end,path\n1,sender\n", "line 2: has 2 values in place of 3"),
        ("time_s,end,path\nx,sender,p1\n", "line 2: has no time"),
        ("time_s,end,path\n-1,sender,p1\n", "line 2: a time is from 0 to a day"),
        ("time_s,end,path\n1,a,p1\n", "line 2: an end is sender or receiver"),
        ("time_s,end,path\n1,sender,p 1\n", "line 2: has no name of a path"),
        ("time_s,end,path\n1,sender,p2\n", '"p2" is no path of this flow'),
        (b"time_s,end,path\n\xff,sender,p1\n", "is no CSV"),
    ],
)
def test_a_file_that_is_none_is_said_with_its_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        cell_with(tmp_path, content)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("more", "keys", "says"),
    [
        ("", 'file = "beats.csv"', "with reverse only"),
        (REVERSE, 'until = "1 s"', "file is missing"),
        (REVERSE + '\nstart = "2 s"', 'file = "beats.csv", until = "1 s"', "is before the start of the flow"),
        (REVERSE, 'file = "beats.txt"', "is no .csv file beside the spec"),
    ],
)
def test_what_it_needs(tmp_path: Path, more: str, keys: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        cell_with(tmp_path, "time_s,end,path\n", more, keys)
    assert says in str(caught.value)


def test_it_is_of_sctp(tmp_path: Path) -> None:
    (tmp_path / "beats.csv").write_text("time_s,end,path\n")
    text = replaced('protocol = "tcp"', f'protocol = "tcp"\nheartbeats = {{ file = "beats.csv" }}\n{REVERSE}', BASE)
    with pytest.raises(SpecError, match="only sctp sends them"):
        make_plan(spec_of(text, tmp_path))


@given(st.one_of(st.binary(max_size=200), st.text("0123456789.,sender \npath1x-e", max_size=200).map(str.encode)))
def test_no_file_does_more_than_be_refused(content: bytes) -> None:
    try:
        read_heartbeat_file(b"time_s,end,path\n" + content)
    except ValueError as error:
        assert str(error)
