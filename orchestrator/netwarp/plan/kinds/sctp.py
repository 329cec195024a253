"""SCTP, one association a flow."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.types import Flow
from .kind import FlowKind, Options, Sysctls, Window

HEADER_BYTES, CHUNK_BYTES = 12, 16
"""RFC 9260 3 and 3.3.1."""
SNDBUF_BYTES = 212_992
"""net.core.wmem_default, and so the largest message without a sndbuf of its own (socket.c: EMSGSIZE)."""
WINDOW_BYTES = 106_496
"""Half of net.core.rmem_default (net/sctp/associola.c): the a_rwnd of any Linux that is not told otherwise."""
REMEDY = 'receiver = { rcvbuf = "4 MB" }, sender = { sndbuf = "4 MB" }'
EXPOSE = {"net.sctp.pf_expose": "2"}
"""Without it a failover raises no notification (RFC 7829; Linux default 0)."""
PRIVATE = {"net.sctp.addr_scope_policy": "2"}
"""Over both families: the kernel takes fd00::/8 for global and 10.0.0.0/8 for private, and would not name a private
address in an INIT to a global one (net/sctp/bind_addr.c: sctp_in_scope). Of public addresses it names both.
"""
INTERLEAVE = {"net.sctp.intl_enable": "1"}
"""The kernel offers I-DATA (RFC 8260) only then."""


def _sysctls(flow: Flow, both_families: bool) -> Sysctls:
    interleaved = flow.sender_options.get("interleave")
    return {**EXPOSE, **(PRIVATE if both_families else {}), **(INTERLEAVE if interleaved else {})}


def _largest_message(room_bytes: int, options: Options) -> int:
    return int(options.get("sndbuf_bytes", SNDBUF_BYTES))


def _window_bytes(flow: Flow, sysctls: Mapping[str, Sysctls]) -> float | None:
    chosen = {"rcvbuf_bytes", "window_clamp_bytes"} & flow.receiver_options.keys()
    return None if chosen or "net.core.rmem_default" in sysctls[flow.receiver] else WINDOW_BYTES


KIND = FlowKind(
    # SCTP_DEFAULT_MINSEGMENT (net/sctp/constants.h); at 256 B no association comes about
    least_mtu_bytes=512,
    header_bytes=HEADER_BYTES + CHUNK_BYTES,
    unit_bytes=4,
    largest_message=_largest_message,
    whole_messages=True,
    several_paths=True,
    program_paths=True,
    pages=True,
    primary_path=True,
    heartbeats=True,
    streams=True,
    # heartbeats are delayed by rand(RTO) (net/sctp/transport.c: sctp_transport_timeout). They are sent on every idle
    # path, and unanswered ones double the RTO. Measured with five seeds, one path, 10 s outage: new payload 6.75 to
    # 7.42 s after the repair.
    timers_drawn=True,
    sysctls=_sysctls,
    window=Window(
        _window_bytes, lambda size_bytes: REMEDY, "SCTP announces a window of", guests_only=True,
    ),
)  # fmt: skip
