"""Builds the arguments of a flow's sender and receiver: addresses, times, options, and the flow's token."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

from ..core.types import Cell, Flow, OptionValue, Path, closing
from ..experiment.pages import CLIENT_OPTIONS, SERVER_OPTIONS
from .arch import bare
from .layout import Layout

BY_THE_TESTBED = frozenset({"tracepoints", "arch", "bare", "initial_window_packets", "quick_ack"})
"""Options of an app in the spec that are no arguments of it."""


def flow_token(cell: Cell, flow: Flow, secret: bytes) -> int:
    """63 bits derived from the cell's seed, the flow's name and the run's secret. A receiver refuses payload with
    another token.

    In virtual time the secret is empty, so that equal cells have equal captures. On the wall clock each run has another
    secret.
    """
    digest = hashlib.sha256(b"%d\0%b\0%b" % (cell.seed, flow.name.encode(), secret)).digest()
    return int.from_bytes(digest[:8]) >> 1


def _receiver_ip(path: Path, flow: Flow, layout: Layout) -> str:
    return layout.interface(flow.receiver, path.receiver_link).ip


def sender_addresses(flow: Flow, layout: Layout) -> list[str]:
    """The sender's addresses in the order of the paths, each once (two paths may share an end)."""
    return list(dict.fromkeys(layout.interface(flow.sender, path.sender_link).ip for path in flow.paths))


def receiver_addresses(flow: Flow, layout: Layout) -> list[str]:
    """The receiver's addresses, in the same way."""
    return list(dict.fromkeys(_receiver_ip(path, flow, layout) for path in flow.paths))


def _options(options: dict[str, OptionValue]) -> Iterator[str]:
    for key, value in options.items():
        if value is False or key in BY_THE_TESTBED:
            continue
        yield f"--{key.replace('_', '-')}"
        if value is not True:
            yield str(value)


def receiver_arguments(flow: Flow, layout: Layout, token: int) -> list[str]:
    """The arguments of `receiver`, without the program's name."""
    arguments = ["--protocol", flow.protocol, "--port", str(flow.port), "--token", str(token)]
    addresses = receiver_addresses(flow, layout)
    # a subflow to another address finds a listener only if that is bound to any
    if flow.protocol != "mptcp" or len(addresses) == 1:
        for address in addresses:
            arguments += ["--bind", address]
    for address in sender_addresses(flow, layout):
        arguments += ["--peer", address]
    return [*arguments, *_options(flow.receiver_options)]


def sender_arguments(flow: Flow, layout: Layout, token: int) -> list[str]:
    """The arguments of `sender`, without the program's name."""
    arguments = ["--protocol", flow.protocol, "--port", str(flow.port), "--token", str(token)]
    for address in sender_addresses(flow, layout):
        arguments += ["--bind", address]
    for address in receiver_addresses(flow, layout):
        arguments += ["--to", address]
    arguments += ["--message-bytes", str(flow.message_bytes), "--start-ns", str(flow.start_ns)]
    if flow.stop_ns is not None:
        arguments += ["--stop-ns", str(flow.stop_ns)]
    if flow.total_bytes is not None:
        arguments += ["--total-bytes", str(flow.total_bytes)]
    if "close" not in flow.sender_options:
        arguments += ["--close", str(closing(flow))]
    if bare(flow):
        arguments += ["--bare"]
    paths = {path.name: path for path in flow.paths}
    for switch in flow.switches:
        arguments += ["--switch-primary", f"{switch.at_ns},{_receiver_ip(paths[switch.path], flow, layout)}"]
    return [*arguments, *_options(flow.sender_options)]


def page_arguments(flow: Flow, role: Literal["sender", "receiver"], layout: Layout, token: int) -> list[str]:
    """The arguments of `web-server`, which listens at the flow's sender, or of `web-client`, which connects from its
    receiver; without the program's name. The page's own options stand before `--`, the transport's behind it.
    """
    server = role == "sender"
    options = flow.sender_options if server else flow.receiver_options
    names = SERVER_OPTIONS if server else CLIENT_OPTIONS
    here, there = sender_addresses(flow, layout), receiver_addresses(flow, layout)
    arguments = ["--protocol", flow.protocol, "--port", str(flow.port), "--token", str(token)]
    for address in here if server else there:
        arguments += ["--bind", address]
    for address in there if server else here:
        arguments += ["--peer" if server else "--to", address]
    if not server:
        # of the options that every sender needs
        arguments += ["--message-bytes", "1", "--start-ns", str(flow.start_ns), "--stop-ns", str(flow.stop_ns)]
        if flow.protocol == "sctp":
            arguments += ["--streams", str(flow.receiver_options["streams"])]
    own = {key: value for key, value in options.items() if key in names}
    transport = {key: value for key, value in options.items() if key not in names}
    return [*_options(own), "--", *arguments, *_options(transport)]
