"""The records of sender, receiver, web-server, web-client and the agents (apps/traffic, apps/web, apps/agents;
docs/formats.md and docs/agents.md say what each member means). Members that netwarp does not read are left out of the
kinds with many of them (Options, InForce, Summary, what the kernel says of a connection), and so are all of NOT_READ.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from .ndjson import Record, decoder_of, read_ndjson


class AppRecord(Record, frozen=True):
    """Base of the apps' records."""


class Options(AppRecord, frozen=True):
    """The options in force; close: of a sender."""

    close: str | None = None
    token: int | None = None


class Ready(AppRecord, frozen=True):
    """An agent takes packets or connections."""

    t_ns: int


class Start(AppRecord, frozen=True):
    """A sender connects."""

    t_ns: int
    late_ns: int
    t0_monotonic_ns: int


class Refused(AppRecord, frozen=True):
    """A receiver aborted a connection from somebody else."""

    t_ns: int
    local: tuple[str, ...] = ()
    peer: tuple[str, ...] = ()


class Connected(AppRecord, frozen=True):
    """A connection or association is up; no peer where it was reset before it could be asked for."""

    t_ns: int
    local: tuple[str, ...] = ()
    peer: tuple[str, ...] = ()


class InForce(AppRecord, frozen=True):
    """The socket's options as the kernel gives them back; mss_bytes: of TCP and SCTP."""

    mss_bytes: int | None = None


class TcpInfo(msgspec.Struct, frozen=True, gc=False):
    """TCP_INFO."""

    snd_mss_bytes: int
    unacked_packets: int


class BbrInfo(msgspec.Struct, frozen=True, gc=False):
    """INET_DIAG_BBRINFO of a congestion control that has it; gains are 1 at 256."""

    bw_byte_s: int
    min_rtt_us: int
    pacing_gain: int
    cwnd_gain: int


class PathState(msgspec.Struct, frozen=True, gc=False):
    """A path (TCP's only one, an MPTCP subflow, an SCTP path) in the kernel's words; all but the address is None where
    it says nothing. state: of SCTP; a number where it has no name. ssthresh_bytes, bbr_info: of TCP.
    """

    address: str
    state: str | int | None = None
    cwnd_bytes: int | None = None
    ssthresh_bytes: int | None = None
    srtt_ns: int | None = None
    rto_ns: int | None = None
    tcp_info: TcpInfo | None = None
    bbr_info: BbrInfo | None = None


class AssociationStatus(msgspec.Struct, frozen=True, gc=False):
    """SCTP_STATUS."""

    unacked_chunks: int


class KernelState(msgspec.Struct, frozen=True, gc=False):
    """The kernel's last words on a connection. window_clamp_bytes: a receiver's, in force at the end."""

    paths: tuple[PathState, ...] = ()
    window_clamp_bytes: int | None = None


class Sample(AppRecord, frozen=True):
    """The state of a sender's connection; sent_bytes: accepted by the kernel."""

    t_ns: int
    sent_bytes: int
    paths: tuple[PathState, ...] = ()
    association: AssociationStatus | None = None


class Notification(AppRecord, frozen=True):
    """A notification of SCTP (RFC 6458 6.1). Values without a name are numbers; None: its type has no such member."""

    t_ns: int
    type: str | int
    flags: int
    address: str | None = None
    state: str | int | None = None
    error: int | None = None
    outbound_streams: int | None = None
    inbound_streams: int | None = None
    stream: int | None = None
    indication: int | None = None


class SwitchPrimary(AppRecord, frozen=True):
    """A sender chose SCTP's primary path; at_ns None: from the start."""

    t_ns: int
    at_ns: int | None
    address: str
    errno: int


class Heartbeat(AppRecord, frozen=True):
    """An end sent a listed HEARTBEAT; address None: from then on the kernel sends its own. at_ns: after the start."""

    t_ns: int
    at_ns: int
    address: str | None
    errno: int


class WindowClampLost(AppRecord, frozen=True):
    """The kernel overwrote a receiver's clamp."""

    t_ns: int
    window_clamp_bytes: int
    found_bytes: int


class Schedule(AppRecord, frozen=True):
    """When messages are due. left_out: of listed ones, those that were due before the connection was up."""

    listed: int = 0
    left_out: int = 0


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """What arrived at a sender whose receiver sends too."""

    unique_bytes: int
    gap_bytes: int = 0
    corrupt_bytes: int = 0


class Error(AppRecord, frozen=True):
    """The failure that ended an app. An agent's has no time, and the system's words (error) for the errno."""

    message: str
    t_ns: int | None = None
    what: str | None = None
    errno: int = 0
    error: str = ""


class GaveUp(AppRecord, frozen=True):
    """The transport gave the connection up."""

    t_ns: int
    what: str | None
    errno: int


class Lost(AppRecord, frozen=True):
    """A sender's connection ended, and it connects again. sent_bytes: of that connection."""

    t_ns: int
    reason: str
    sent_bytes: int


class Object(AppRecord, frozen=True):
    """An object of a page, complete; pieces: its frames in the connection's bytes, "START:BYTES,..."."""

    page: int
    object: int
    port: int
    stream: int
    bytes: int
    requested_t_ns: int
    first_t_ns: int
    complete_t_ns: int
    pieces: str | None = None


class AgentEvent(AppRecord, frozen=True):
    """Base of an agent's events on a connection."""

    t_ns: int
    port: int
    seq: int
    suppressed: int


class Retransmit(AgentEvent, frozen=True):
    """A segment was sent again."""


class Freeze(AgentEvent, frozen=True):
    """A sender's window was closed."""


class Summary(AppRecord, frozen=True):
    """The last record of a program that ended by itself. Each program has those members that it can count; an agent
    neither reason nor status.
    """

    t_ns: int
    reason: str = ""
    status: int | None = None
    kernel: KernelState = KernelState()
    sent_bytes: int | None = None
    unique_bytes: int | None = None
    gap_bytes: int = 0
    corrupt_bytes: int = 0
    pages: int | None = None
    arrived: Arrived | None = None


NOT_READ = tuple(
    msgspec.defstruct(name, [], bases=(AppRecord,), frozen=True, gc=False)
    for name in (
        "PageOptions", "Listening", "Reconnect", "Down", "Blocked", "Unblocked", "FirstByte", "WindowClamp", "Corrupt",
        "Page", "Thaw", "Accepted", "Closed",
    )
)  # fmt: skip
"""Kinds of which netwarp reads no member. Kept here, since a base knows its subclasses only as long as they live."""
DECODER = decoder_of(AppRecord)
"""Of one line, or of many."""


def read_app_log(path: Path, named: str = "") -> list[AppRecord]:
    """The records of an app (of the lines with a kind's name). Raises StoreError (ndjson.read_ndjson)."""
    return read_ndjson(path, DECODER, named)
