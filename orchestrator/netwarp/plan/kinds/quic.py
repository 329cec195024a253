"""QUIC: a flow is a program, netwarp's own choice or the user's."""

from __future__ import annotations

from ...core.types import Program
from ...core.units import listed
from ...experiment.fields import Reader
from ...experiment.options import read_options
from ...experiment.problems import nearest
from ...experiment.programs import NOT_OF_QUIC, QUIC, QUIC_CONGESTION, TIMES, quic_program
from .kind import FlowKind
from .udp import HEADER_BYTES


def _read_program(paths: int, start_ns: int, stop_ns: int | None, reader: Reader) -> Program | None:
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
    congestion = read_options(sender, "sender", "quic", None, reader.problems).get("congestion")
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


KIND = FlowKind(
    least_mtu_bytes=1248,  # datagrams with 1200 B of payload, over IPv6 too (RFC 9000 14)
    header_bytes=HEADER_BYTES,
    only_programs=True,
    read_program=_read_program,
)
