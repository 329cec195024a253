"""The arguments of a flow's ends, of netwarp's own and of a user's programs: addresses, times, options, the token."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ..core.ip_families import IPV6, family_of
from ..core.types import Cell, Flow, OptionValue, Path, Program, closing, reversed_flow
from ..core.unpacked import UNPACKED_PACKAGES, library_folders
from ..experiment.fields import ESCAPED, PLACEHOLDER
from ..experiment.page_flows import CLIENT_OPTIONS, SERVER_OPTIONS
from ..experiment.programs import ENDLESS_BYTES, FILES, JOINED, OF_EACH, OF_ONE, TOTAL_BYTES, UNPACKED
from .layout import Layout
from .message_files import heartbeat_file, listed, message_file
from .steps import Step, step
from .tls_identity import TLS_FILES

EMULATORS = {"arm64": "qemu-aarch64-static"}
"""Debian's qemu-user-static; cell-init looks it up in its PATH."""


def sender_program(flow: Flow) -> list[str]:
    """The command that runs a flow's sender, relative to the cell's directory, without the sender's options."""
    arch = arch_of(flow)
    return ["bin/sender"] if arch is None else [EMULATORS[arch], f"bin/{sender_file(arch)}"]


def bare(flow: Flow) -> bool:
    """True if the sender must run with --bare: qemu-user (7.2) passes no SCTP socket option on."""
    return flow.protocol == "sctp" and (arch_of(flow) is not None or bool(flow.sender_options.get("bare")))


def arch_of(flow: Flow) -> str | None:
    """The processor that a flow's sender is built for; None: this machine's."""
    arch = flow.sender_options.get("arch")
    return None if arch is None or flow.program is not None else str(arch)


def archs(cell: Cell) -> list[str]:
    """The processors, besides this machine's, that a cell's senders are built for."""
    return sorted({arch for flow in cell.flows if (arch := arch_of(flow)) is not None})


def sender_file(arch: str) -> str:
    """Its name in the cell's bin/."""
    return f"sender-{arch}"


BY_THE_TESTBED = frozenset({"tracepoints", "arch", "bare", "initial_window_packets", "quick_ack", "any_address"})
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


def receiver_arguments(flow: Flow, layout: Layout, token: int, t0_file: str = "", *, again: bool = False) -> list[str]:
    """The arguments of `receiver`, without the program's name. t0_file: will hold T0, where that is not known yet.
    again: it takes one connection after another.
    """
    arguments = ["--protocol", flow.protocol, "--port", str(flow.port), "--token", str(token)]
    addresses = receiver_addresses(flow, layout)
    # a subflow to another address finds a listener only if that is bound to any; to any of IPv6 takes IPv4's too
    if flow.protocol == "mptcp" and len(addresses) > 1:
        addresses = ["::"] if IPV6 in map(family_of, addresses) else []
    if flow.receiver_options.get("any_address"):  # a socket of IPv6 takes IPv4 too
        addresses = ["::"] if IPV6 in map(family_of, addresses) else []
    for address in addresses:
        arguments += ["--bind", address]
    peers = dict.fromkeys(sender_addresses(flow, layout))
    if flow.sender_options.get("any_address"):  # its kernel names every address of the host
        peers |= dict.fromkeys(each.ip for each in layout.interfaces() if each.node == flow.sender and each.ip)
    for address in peers:
        arguments += ["--peer", address]
    arguments += ["--again"] if again else []
    if flow.reverse is not msgspec.UNSET:
        arguments += _duplex(flow, "receiver")
        arguments += ["--message-bytes", str(flow.reverse.message_bytes), "--start-ns", str(flow.start_ns)]
        if flow.stop_ns is not None:
            arguments += ["--stop-ns", str(flow.stop_ns)]
        if flow.reverse.total_bytes is not None:
            arguments += ["--total-bytes", str(flow.reverse.total_bytes)]
        if t0_file:
            arguments += ["--t0-file", t0_file]
        arguments += _options(flow.reverse.options)
    return [*arguments, *_options(flow.receiver_options)]


def _duplex(flow: Flow, role: str) -> list[str]:
    """How an end of a flow with `reverse` sends and what it expects."""
    assert flow.reverse is not msgspec.UNSET
    arguments, back = ["--duplex"], reversed_flow(flow)
    own, peer, other = (flow, back, "receiver") if role == "sender" else (back, flow, "sender")
    messages = listed(own)
    if messages is not None and role == "receiver":
        arguments += ["--messages", message_file(flow, role)]
    if flow.heartbeats is not msgspec.UNSET:
        arguments += ["--heartbeats", heartbeat_file(flow, role)]
    if messages is not None and messages.times == "think" and listed(peer) is not None:
        arguments += ["--peer-messages", message_file(flow, other)]
    if role == "sender" and back.total_bytes is not None:
        arguments += ["--peer-total-bytes", str(back.total_bytes)]
    return arguments


def sender_arguments(flow: Flow, layout: Layout, token: int) -> list[str]:
    """The arguments of `sender`, without the program's name."""
    arguments = ["--protocol", flow.protocol, "--port", str(flow.port), "--token", str(token)]
    for address in [] if flow.sender_options.get("any_address") else sender_addresses(flow, layout):
        arguments += ["--bind", address]
    for address in receiver_addresses(flow, layout):
        arguments += ["--to", address]
    arguments += ["--message-bytes", str(flow.message_bytes), "--start-ns", str(flow.start_ns)]
    if flow.stop_ns is not None:
        arguments += ["--stop-ns", str(flow.stop_ns)]
    if flow.total_bytes is not None:
        arguments += ["--total-bytes", str(flow.total_bytes)]
    if "close" not in flow.sender_options and flow.protocol != "udp":
        arguments += ["--close", str(closing(flow))]
    if bare(flow):
        arguments += ["--bare"]
    if listed(flow) is not None:
        arguments += ["--messages", message_file(flow, "sender")]
    if flow.reverse is not msgspec.UNSET:
        arguments += _duplex(flow, "sender")
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


WRITABLE = "/run"
"""The only place where a program may always write: each sandbox has a tmpfs there. The rest is the host's file system,
read-only in a guest."""


def listener_steps(flow: Flow, program: Program, layout: Layout, timeout_ns: int, *, virtual: bool) -> Iterator[Step]:
    """Starts the end that listens before T0 and waits until it prints that it does; no steps if none listens.

    virtual: on the virtual clock a program that spins on the clock is put to sleep (apps/guest/program_clock.c).
    """
    if not program.of(flow.listener):
        return
    yield _program(flow, flow.listener, program, layout, virtual=virtual)
    if program.ready:
        yield step("output", id=f"{flow.name}.{flow.listener}", text=program.ready, timeout_ns=timeout_ns)


def opener_steps(flow: Flow, program: Program, layout: Layout, at_ns: int, *, virtual: bool) -> Iterator[Step]:
    """Starts the other end at its time; sends it SIGINT at the flow's stop if the program asks for it."""
    yield _program(flow, flow.opener, program, layout, at_ns, virtual=virtual)
    if program.interrupt and flow.stop_ns is not None:
        yield step("signal", id=f"{flow.name}.{flow.opener}", signal=int(signal.SIGINT), at_ns=flow.stop_ns)


def program_id(flow: Flow, role: str, start: int = 1) -> str:
    """The name of a process of a flow's program: of its second start "flow.role.2", and so on."""
    return f"{flow.name}.{role}" if start == 1 else f"{flow.name}.{role}.{start}"


def restart_steps(
    flow: Flow, role: Literal["sender", "receiver"], layout: Layout, at_ns: int, start: int, *, virtual: bool
) -> Iterator[Step]:
    """Starts an end again, for the start-th time."""
    if flow.program is not None and flow.program.of(role):
        yield _program(flow, role, flow.program, layout, at_ns, virtual=virtual, start=start)


def spun_file(flow: Flow, role: str) -> str:
    """Where program-clock.so writes, in a cell's directory, that a program spun on the clock."""
    return f"apps/{flow.name}.{role}.spun"


CELL_IN_SANDBOX = "/proc/1/cwd"
"""A cell's directory as every process of its sandbox can name it: a program may change its own directory."""


def _folder(flow: Flow) -> str:
    """The folder of the files of a flow's program, in the cell's directory."""
    return f"apps/{flow.name}.files"


def program_files(cell: Cell, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """Every such file and its bytes. A line with `{to_all}` (or a similar one) stands once for each address."""
    for flow in cell.flows:
        if flow.program is not None and flow.program.files is not msgspec.UNSET:
            for name, text in flow.program.files.items():
                lines = fill_in(text.splitlines(keepends=True), flow, layout)
                yield f"{_folder(flow)}/{name}", "".join(lines).encode()


def _program(
    flow: Flow,
    role: Literal["sender", "receiver"],
    program: Program,
    layout: Layout,
    at_ns: int | None = None,
    *,
    virtual: bool,
    start: int = 1,
) -> Step:
    node = flow.sender if role == "sender" else flow.receiver
    name = program_id(flow, role, start)
    filled = [ESCAPED.sub(r"\1", text) for text in fill_in(program.of(role), flow, layout)]
    unpacked = any(f"{{{UNPACKED}}}" in argument for argument in program.of(role))
    return step(
        "spawn",
        id=name,
        ns=layout.namespaces.index(node),
        stdout=f"apps/{name}.stdout",
        stderr=f"apps/{name}.stderr",
        flow=1,  # this process is an end of a flow: hosts/cell_run.py
        arg=filled,
        env=[
            f"TMPDIR={WRITABLE}",
            *([f"LD_LIBRARY_PATH={':'.join(library_folders())}"] if unpacked else []),
            *([f"LD_PRELOAD={CELL_IN_SANDBOX}/bin/program-clock.so"] if virtual else []),
            *([f"NETWARP_SPUN={CELL_IN_SANDBOX}/{spun_file(flow, role)}"] if virtual else []),
        ],
        command=f"ip netns exec {node} {' '.join(filled)} &",
        at_ns=at_ns,
    )


def fill_in(arguments: Iterable[str], flow: Flow, layout: Layout) -> list[str]:
    """The arguments with every placeholder replaced; an argument with `{to_all}` (or a similar one) is repeated for
    each address.
    """
    path, stop_ns = flow.paths[0], flow.stop_ns or flow.start_ns
    ends = (sender_addresses(flow, layout), receiver_addresses(flow, layout))
    single = (
        layout.interface(flow.sender, path.sender_link).ip,
        layout.interface(flow.receiver, path.receiver_link).ip,
        str(flow.port),
        *(_seconds(time_ns) for time_ns in (flow.start_ns, stop_ns, stop_ns - flow.start_ns)),
    )
    # `single` in the order of OF_ONE, `ends` in that of JOINED: strict compares the lengths alone
    values = dict(zip((*OF_ONE, *JOINED), (*single, *map(",".join, ends)), strict=True))
    values |= {UNPACKED: str(UNPACKED_PACKAGES), FILES: f"{CELL_IN_SANDBOX}/{_folder(flow)}"}
    values[TOTAL_BYTES] = str(ENDLESS_BYTES if flow.total_bytes is None else flow.total_bytes)
    values |= {name: f"{CELL_IN_SANDBOX}/{path}" for name, (path, _) in TLS_FILES.items()}
    each = dict(zip(OF_EACH, (*ends, *(addresses[1:] for addresses in ends)), strict=True))
    filled_in: list[str] = []
    for text in arguments:
        name = next((name for name in each if f"{{{name}}}" in text), None)
        for known in [values] if name is None else [{**values, name: address} for address in each[name]]:
            filled_in.append(PLACEHOLDER.sub(lambda at, known=known: known.get(at[1], at[0]), text))  # type: ignore[misc]
    return filled_in


def _seconds(time_ns: int) -> str:
    whole, rest = divmod(time_ns, 10**9)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
