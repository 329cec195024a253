"""The flows of a cell that are programs: the user's own, and those of QUIC."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.types import Flow, Program, Protocol
from ..core.units import listed
from ..core.wire import IP_PROTOCOLS
from ..experiment.fields import Reader
from ..experiment.options import read_options
from ..experiment.problems import nearest
from ..experiment.programs import QUIC, QUIC_CONGESTION, TIMES, quic_program, read_program

SPOKEN: tuple[Protocol, ...] = ("tcp", "sctp", "udp", "quic", "icmp")
OF_OUR_APPS = (
    "bytes",
    "message_size",
    "messages",
    "reverse",
    "late",
    "sender",
    "receiver",
    "switch_primary",
    "heartbeats",
)
"""Keys of a flow that mean nothing to a program of the user's own."""
NOT_OF_QUIC = tuple(key for key in OF_OUR_APPS if key not in ("bytes", "sender"))


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


def own_quic(protocol: Protocol, paths: int, start_ns: int, stop_ns: int | None, reader: Reader) -> Program | None:
    """The program of a flow of QUIC, netwarp's own choice or the user's; None if it is wrong (collected)."""
    before = len(reader.problems)
    item, sender = (reader.item.get(key) for key in ("program", "sender"))
    for key in NOT_OF_QUIC:
        if reader.has(key):
            reader.problem(key, "is not of a flow of QUIC: it has bytes or a stop, and sender.congestion; leave it out")
    if paths > 1:
        reader.problem("paths", 'quic has one path; for example ["p1"]')
    if sender is not None and item is not None and item.value != QUIC:
        reader.problem("sender", "is for the program that a flow of QUIC has by itself; of yours its arguments say it")
    congestion = read_options(sender, "sender", protocol, None, reader.problems).get("congestion")
    if congestion is not None and congestion not in QUIC_CONGESTION:
        known = f'{QUIC} has {listed(QUIC_CONGESTION)}; "{congestion}" is none of them'
        reader.problem("sender", f"{known}{nearest(str(congestion), QUIC_CONGESTION)}")
    program = quic_program(item, None if congestion is None else str(congestion), reader.problems)
    if program is None or len(reader.problems) > before:
        return None
    of_time = [name for text in (*program.sender, *program.receiver) for name in TIMES if f"{{{name}}}" in text]
    if of_time and stop_ns is None and item is not None:
        reader.problem("program", f'has {{{of_time[0]}}}, but the flow ends by bytes; for example stop = "20 s"')
    if item is not None and program.interrupt and stop_ns is None and item.value != QUIC:
        reader.problem("program", 'has interrupt, which is at the flow\'s stop; for example stop = "20 s"')
    return program if len(reader.problems) == before else None


def check_datagrams_differ(others: Iterable[Flow], flow: Flow, reader: Reader) -> None:
    """Reports two flows of datagrams with the same protocol and addresses of which one is a program's: captures could
    not tell them apart. Flows of QUIC are told apart by their ports.
    """
    for other in others:
        same = {flow.sender, flow.receiver} == {other.sender, other.receiver} and other.paths == flow.paths
        # whose ports are not known
        program = any(each.program is not None and each.protocol != "quic" for each in (flow, other))
        alike = IP_PROTOCOLS[flow.protocol] == IP_PROTOCOLS[other.protocol]
        if flow.is_datagrams and alike and same and program:
            said = f'on the wire its packets cannot be told from those of flow "{other.name}"'
            reader.problems.add(reader.item, said)
