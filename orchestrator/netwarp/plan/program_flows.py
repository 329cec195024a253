"""The flows of a cell that are programs of the user's own."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.types import Flow, Program, Protocol
from ..core.wire import IP_PROTOCOLS
from ..experiment.fields import Reader
from ..experiment.programs import OF_OUR_APPS, read_program
from .kinds import FLOW_KINDS


def own_program(protocol: Protocol, paths: int, start_ns: int, stop_ns: int | None, reader: Reader) -> Program | None:
    """The program of a flow; None if it is wrong, after collecting the problem."""
    before = len(reader.problems)
    for key in OF_OUR_APPS:
        if reader.has(key):
            reader.problem(key, "is for netwarp's own sender and receiver; of a program its arguments say it")
    if not FLOW_KINDS[protocol].programs:
        spoken = ", ".join(name for name, kind in FLOW_KINDS.items() if kind.programs)
        reader.problem("protocol", f"a program speaks {spoken}; {protocol} is netwarp's own apps' only")
    item = reader.item.get("program")
    if paths > 1 and not FLOW_KINDS[protocol].program_paths:
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
    """Reports two flows of datagrams with the same protocol and addresses of which one is a program's: captures could
    not tell them apart. Flows of QUIC are told apart by their ports.
    """
    for other in others:
        same = {flow.sender, flow.receiver} == {other.sender, other.receiver} and other.paths == flow.paths
        unknown_ports = any(
            each.program is not None and FLOW_KINDS[each.protocol].read_program is None for each in (flow, other)
        )
        alike = IP_PROTOCOLS[flow.protocol] == IP_PROTOCOLS[other.protocol]
        if flow.is_datagrams and alike and same and unknown_ports:
            said = f'on the wire its packets cannot be told from those of flow "{other.name}"'
            reader.problems.add(reader.item, said)
