"""The path manager's requests: the endpoints that MPTCP flows need; pyroute2 decodes the bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from netwarp.core.types import Cell, Path
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.layout import make_layout
from netwarp.testbed.path_manager import SIGNAL, SUBFLOW, endpoint, limits, path_manager
from netwarp.testbed.steps import to_commands
from pyroute2.netlink.generic.mptcp import mptcp_msg
from support.cells import S, two_path_cell


def mptcp_cell(*pairs: tuple[str, str], protocol: str = "mptcp") -> Cell:
    """One flow from a to b over paths of (sender link, receiver link)."""
    cell = two_path_cell()
    paths = tuple(Path(f"{a}-{b}", a, b, 500_000, 0) for a, b in pairs)
    flow = msgspec.structs.replace(cell.flows[0], protocol=protocol, paths=paths)
    return msgspec.structs.replace(cell, flows=(flow,))


def decoded(data: bytes) -> mptcp_msg:
    message = mptcp_msg(data)
    message.decode()
    return message


def attributes(message: Any) -> dict[str, Any]:
    return dict(message["attrs"])


def test_limits_are_set() -> None:
    request = limits(3)
    message = decoded(request.data)
    assert (message["cmd"], message["version"], message["header"]["flags"]) == (5, 1, 5)
    assert attributes(message) == {"MPTCP_PM_ATTR_RCV_ADD_ADDRS": 3, "MPTCP_PM_ATTR_SUBFLOWS": 3}
    assert request.command == "ip mptcp limits set subflow 3 add_addr_accepted 3"


@pytest.mark.parametrize(("flag", "word"), [(SIGNAL, "signal"), (SUBFLOW, "subflow")])
def test_an_endpoint_is_added(flag: int, word: str) -> None:
    request = endpoint("10.0.1.129", flag)
    message = decoded(request.data)
    assert message["cmd"] == 1
    inner = attributes(attributes(message)["MPTCP_PM_ATTR_ADDR"])
    assert inner == {
        "MPTCP_PM_ADDR_ATTR_FAMILY": 2,
        "MPTCP_PM_ADDR_ATTR_ADDR4": "10.0.1.129",
        "MPTCP_PM_ADDR_ATTR_FLAGS": flag,
    }
    assert request.command == f"ip mptcp endpoint add 10.0.1.129 {word}"


def wanted(cell: Cell) -> list[tuple[int, str]]:
    return [(ns, request.command) for ns, request in path_manager(cell.flows, make_layout(cell))]


def test_the_receiver_signals_its_other_addresses() -> None:
    assert wanted(mptcp_cell(("p1", "p1"), ("p2", "p2"))) == [
        (0, "ip mptcp limits set subflow 1 add_addr_accepted 1"),
        (1, "ip mptcp limits set subflow 1 add_addr_accepted 1"),
        (1, "ip mptcp endpoint add 10.0.1.129 signal"),
    ]


def test_paths_to_one_address_begin_at_the_senders_others() -> None:
    assert wanted(mptcp_cell(("p1", "p1"), ("p2", "p1")))[2:] == [(0, "ip mptcp endpoint add 10.0.1.1 subflow")]


@pytest.mark.parametrize("cell", [mptcp_cell(("p1", "p1")), two_path_cell()], ids=["one path", "sctp"])
def test_others_need_nothing(cell: Cell) -> None:
    assert wanted(cell) == []


def test_the_receiver_listens_at_every_address() -> None:
    """A join of another address finds no listener that is bound to the first."""
    for pairs, bound in (((("p1", "p1"), ("p2", "p2")), False), ((("p1", "p1"),), True)):
        steps = compile_cell(mptcp_cell(*pairs), Clock(t0_realtime_ns=1_700_000_000 * S)).steps
        (receiver,) = [item for item in steps if item.verb == "spawn" and ("id", "ftp.receiver") in item.fields]
        assert (("arg", "--bind") in receiver.fields) == bound
        assert ("mptcp endpoint" in to_commands(steps)) != bound
