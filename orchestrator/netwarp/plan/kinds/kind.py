"""The interface of a kind of flow in planning: what a protocol's flows need and allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...core.types import Flow, OptionValue, Program
from ...experiment.fields import Reader
from ...experiment.read_messages import LARGEST_MESSAGE

Options = Mapping[str, OptionValue]
Sysctls = Mapping[str, str]
ReadProgram = Callable[[int, int, int | None, Reader], Program | None]
"""From the number of paths, the start, the stop and the flow's table; None if it is wrong, after collecting it."""


def no_limit(room_bytes: int, options: Options) -> int:
    """A message may have any size: it is a part of a stream of bytes."""
    return LARGEST_MESSAGE


def no_sysctls(flow: Flow, both_families: bool) -> Sysctls:
    """The kernel's own."""
    return {}


@dataclass(frozen=True, slots=True)
class Window:
    """The data in flight that default buffers allow.

    bytes_of: of a flow, from sysctls by node; None: the spec set them. larger: the remedy, for so many bytes. words:
    what the bytes are; unit: behind the number. guests_only: a host may have any default.
    """

    bytes_of: Callable[[Flow, Mapping[str, Sysctls]], float | None]
    larger: Callable[[float], str]
    words: str
    unit: str = ""
    guests_only: bool = False


@dataclass(frozen=True, slots=True)
class FlowKind:
    """A protocol.

    least_mtu_bytes: of its links. header_bytes: of a full packet, behind the IP header, without options. unit_bytes: a
    packet's payload is a multiple of it. largest_message: of an end, from the bytes behind the IP header and the
    options. whole_messages: a message must fit the send buffer. has_ports: packets of two flows differ by them.
    several_paths, program_paths: of netwarp's own apps and of programs. programs: a program may speak it.
    only_programs: netwarp's own apps do not. read_program: of flows that are always a program, and may end by bytes;
    None: as one of the user's. pages: they may be fetched over it. relayed: agents split its
    connections. paths_add_up: a flow uses its paths at once. heartbeats: an app
    can have them sent. connected: a receiver holds its sender back.
    timers_drawn: the kernel draws its timers where it has several paths or meets an event. sysctls: those that
    netwarp sets at both ends of a flow; the flag: its paths are of both IP versions.
    """

    least_mtu_bytes: int
    header_bytes: int
    unit_bytes: int = 1
    largest_message: Callable[[int, Options], int] = no_limit
    whole_messages: bool = False
    has_ports: bool = True
    several_paths: bool = False
    program_paths: bool = False
    programs: bool = True
    only_programs: bool = False
    read_program: ReadProgram | None = None
    pages: bool = False
    relayed: bool = False
    primary_path: bool = False
    heartbeats: bool = False
    streams: bool = False
    paths_add_up: bool = False
    connected: bool = True
    timers_drawn: bool = False
    sysctls: Callable[[Flow, bool], Sysctls] = no_sysctls
    window: Window | None = None
