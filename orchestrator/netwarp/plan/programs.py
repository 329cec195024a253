"""Reads a flow that is a program of the user's own: its argument lists determine what it sends; the spec says only
where and when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.types import Flow, Program, Protocol
from ..experiment.programs import read_program
from .reader import Reader

SPOKEN: tuple[Protocol, ...] = ("tcp", "sctp", "udp", "icmp")
OF_OUR_APPS = ("bytes", "message_size", "sender", "receiver", "switch_primary")
"""Keys of a flow that mean nothing to a program of the user's own."""


def own_program(protocol: Protocol, paths: int, start_ns: int, stop_ns: int | None, reader: Reader) -> Program | None:
    """The program of a flow; None if it is wrong, after collecting the problem."""
    before = len(reader.problems)
    for key in OF_OUR_APPS:
        if reader.has(key):
            reader.problem(key, "is for netwarp's own sender and receiver; of a program its arguments say it")
    if protocol not in SPOKEN:
        reader.problem("protocol", f"a program speaks {', '.join(SPOKEN)}; {protocol} is netwarp's own apps' only")
    item = reader.item.get("program")
    if paths > 1 and protocol != "sctp":
        reader.problem("paths", f'a program that speaks {protocol} has one path, only SCTP several; for example ["p1"]')
    elif paths > 1 and item is not None and isinstance(item.value, str):
        reader.problem(
            "paths", f'{item.value} has one path; for example ["p1"], or give argument lists with {{to_all}}'
        )
    if item is None or stop_ns is None:  # with bytes it has no stop: said above
        return None
    program = read_program(item, protocol, stop_ns - start_ns, reader.problems)
    return program if len(reader.problems) == before else None


def check_datagrams_differ(others: Iterable[Flow], flow: Flow, reader: Reader) -> None:
    """Reports two flows of datagrams with the same protocol and addresses: captures could not tell them apart."""
    for other in others:
        same = {flow.sender, flow.receiver} == {other.sender, other.receiver} and other.paths == flow.paths
        if flow.is_datagrams and other.protocol == flow.protocol and same:
            reader.problems.add(
                reader.item, f'on the wire its packets cannot be told from those of flow "{other.name}"',
                context=reader.context,
            )  # fmt: skip
