"""Judges a cell after its sandbox has ended, from init.ndjson and the output of its apps, whose errors are put into the
words of a spec: an app knows only its own options.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import signal
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.errors import StoreError
from ..core.numbers import fixed, given, percent
from ..core.types import FAULTS, Agent, Cell, Check, Flow, Outcome
from ..store import app_records as app
from ..store import console
from ..store import init_records as init
from ..store.app_records import AppRecord, Summary, WindowClampLost
from ..store.ndjson import last, of_kind
from ..store.run_dir import CellDir
from ..testbed.agent_steps import agent_id, agents_of
from ..testbed.arguments import program_id
from ..testbed.compile import LINGER_NS
from ..testbed.many_flows import processes, shared_processes
from ..testbed.spawning import LEAD_NS, program_start_ns

AMONG_MANY = 5
"""How many times as late a flow may start that is not alone in its cell: a guest has one CPU."""
ON_THE_WALL_CLOCK_NS = 1_000_000
"""From this tolerance on a start is late by the machine's doing: there a CPU is not waited for."""
SPAWN_WAITS = 2
"""How many times as long the start of a program takes as a sender's own."""
FRAGMENT = CHECKOUT / "kernel" / "fragment.config"
_CONGESTION = re.compile(r"TCP_CONGESTION: No such file or directory: (\S+)")
_BUILT_IN = re.compile(r"^CONFIG_TCP_CONG_([A-Z]+)=y$", re.MULTILINE)
CLAMP = "window_clamp_bytes"
_REFUSED = (
    "connect: Network is unreachable", "connect: No route to host", "connect: Connection refused",
    "connect: Connection reset", "bind: Cannot assign requested address",
    "sctp_bindx: Cannot assign requested address", "recvmsg: the connection ended before the page",
    "recvmsg: Connection reset", "recvmsg: Connection timed out", "sendmsg: Connection reset", "sendmsg: Broken pipe",
)  # fmt: skip
"""What an app says where a link, a host or an address is gone when it connects, or while a page is loaded."""
_LOST = ("peer_aborted", "peer_closed", "stalled")
"""How a sender's connection ends by an RST or an ABORT that comes, or by the silence of its network."""
_LATE = "connect: Connection timed out: not connected "


def in_words_of_the_spec(cell: Cell, app: str, message: str) -> str:
    """A message of an app ("flow.role") as a user of the spec knows it; as it is if nothing is known of it."""
    flow = next((flow for flow in cell.flows if flow.name == app.rpartition(".")[0]), None)
    if match := _CONGESTION.fullmatch(message):
        return (
            f'this kernel has no congestion control "{match[1]}"; netwarp\'s guest kernels have:'
            f" {', '.join(congestion_controls())} (kernel/fragment.config); a file of yours becomes a part of a kernel"
            f" by `netwarp kernel build --congestion tcp_{match[1]}.c`"
        )
    if flow is not None and message.startswith(_LATE):
        rtt_ms = max(path.base_rtt_ns for path in flow.paths) / 1e6
        until = "its stop" if message.endswith("--stop-ns") else "its connect_deadline"
        return (
            f"the connection was not up at {until}: setting it up takes at least one RTT ({rtt_ms:g} ms), and after a"
            " loss also a timeout of 1 s (TCP) or 3 s (SCTP). Is the link cut or its loss 100 %? Else a longer duration"
            f" or a later stop ({message})"
        )
    return message


def clamp_lost(cell: Cell, name: str, records: Sequence[AppRecord]) -> str:
    """The window clamp of a receiver ("flow.receiver") that the kernel overwrote, in words; "": it did not."""
    asked = next((flow.receiver_options.get(CLAMP) for flow in cell.flows if f"{flow.name}.receiver" == name), None)
    lost = [record.found_bytes for record in of_kind(records, WindowClampLost)]
    summary = last(records, Summary)
    if summary is not None and summary.kernel.window_clamp_bytes not in (None, asked):  # after its last look
        lost.append(summary.kernel.window_clamp_bytes or 0)
    if asked is None or not lost:
        return ""
    times = "" if len(lost) == 1 else f", {len(lost)} times"
    return (
        f"Linux overwrote the receiver's window_clamp of {asked} B with {lost[0]} B{times}, as it does when full"
        " segments follow shorter ones of one length: for a while it offered another window than the one asked for"
        " (docs/formats.md, window_clamp_lost); another seed may not lead there"
    )


def congestion_controls() -> tuple[str, ...]:
    """Those of the guest kernels' configuration; reno is in every kernel."""
    names = _BUILT_IN.findall(FRAGMENT.read_text()) if FRAGMENT.exists() else []
    return ("reno", *(name.lower() for name in names if name != "ADVANCED"))


EXIT_UNSUPPORTED = 77
KILLED_EARLY_NS = 1_000_000
"""A signal of the timeline is sent a little before its time (apps/cell-init/phases.c: LEAD_NS)."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Verdict:
    """The outcome of a cell, and the reason in one sentence."""

    outcome: Outcome
    reason: str = ""


def records_left(path: Path, named: str = "") -> list[init.InitRecord]:
    """The records of an init.ndjson (of the lines with a kind's name). None if cell-init was killed before it wrote
    any, or if the file is not NDJSON: the verdict is then that of a guest without an end record.
    """
    try:
        return init.read_init_log(path, named)
    except StoreError as error:
        log.debug("no records: %s", error)
        return []


def app_records_left(directory: CellDir, name: str, named: str) -> list[app.AppRecord]:
    """The records of an app, as records_left() gives cell-init's."""
    try:
        return app.read_app_log(directory.apps / f"{name}.ndjson", named)
    except StoreError as error:
        log.debug("no records: %s", error)
        return []


def judge(cell: Cell, directory: CellDir, records: list[init.InitRecord], exit_text: str) -> Verdict:
    """The outcome according to the guest's kernel, cell-init and the apps (testbed.readback judges the read-backs)."""
    end = last(records, init.End)
    splat = in_words(found, records) if (found := console.splats(directory.console)) else ""
    if end is None or records[-1] is not end:
        log_text = directory.log.read_text(errors="replace").strip() if directory.log.exists() else ""
        why = splat or ": ".join(filter(None, (exit_text, log_text.rpartition("\n")[2])))
        return Verdict(Outcome.FAILED, f"the sandbox ended without an end record ({why})")
    if splat:
        return Verdict(Outcome.FAILED, splat)
    ours = set(processes(cell))
    ours |= {agent_id(node) for node in agents_of(cell)}
    for exited in of_kind(records, init.Exit):
        if exited.id in ours and exited.status == EXIT_UNSUPPORTED:
            return Verdict(
                Outcome.UNSUPPORTED, app_error(cell, directory, exited.id) or "this kernel cannot run the flow"
            )
    if end.reason == "unsupported":
        return Verdict(Outcome.UNSUPPORTED, f"{end.message}; use --backend virtual")
    if end.reason == "timed_out":
        waited = _waited_for(directory, end.step)
        return Verdict(Outcome.TIMED_OUT, (end.message or "the cell did not end by its virtual deadline") + waited)
    if end.reason != "completed":
        where = "" if end.step is None else f" (steps.txt line {end.step})"
        return Verdict(Outcome.FAILED, f"{end.message}{where}{_app_hint(cell, directory, records)}")
    return _exits_verdict(cell, directory, records) or Verdict(Outcome.COMPLETED)


def _waited_for(directory: CellDir, number: int | None) -> str:
    """The program that a step waits for, what it had not written, and its last words; "" of another step."""
    lines = directory.steps.read_text().splitlines() if number and directory.steps.is_file() else []
    words = lines[number - 1].split(" ") if number and number <= len(lines) else []
    fields = {key: urllib.parse.unquote(value) for key, _, value in (word.partition("=") for word in words[1:])}
    if not words or words[0] != "output":
        return ""
    name, text = fields.get("id", ""), fields.get("text", "")
    last_words: dict[str, str] = {}
    for stream in ("stdout", "stderr"):
        path = directory.apps / f"{name}.{stream}"
        lines = path.read_text(errors="replace").strip().splitlines() if path.is_file() else []
        last_words |= {stream: lines[-1][-200:]} if lines else {}
    said = "; ".join(f"its {stream} ends: {line}" for stream, line in last_words.items())
    return f': {name} had not written "{text}" to its stdout ({said or "it wrote nothing, or keeps it in a buffer"})'


def in_words(found: Sequence[console.Splat], records: Sequence[init.InitRecord]) -> str:
    """What the kernel said of its own faults, and when: the first one."""
    first, more = found[0], len(found) - 1
    ready = last(records, init.Ready)
    if first.boot_s is None:
        when = "before T0" if first.mark_s is None else f"in the second from T0 + {first.mark_s} s on"
    elif ready is None or ready.t0_monotonic_ns is None:
        when = f"{given(first.boot_s)} s after the guest's start, before it was ready"
    else:
        at_s = first.boot_s - ready.t0_monotonic_ns / 1e9
        when = f"at T0 + {fixed(at_s, 3)} s" if at_s >= 0 else f"{fixed(-at_s, 3)} s before T0"
    others = f" (and {more} more, see console.txt)" if more else ""
    return f"the guest's kernel reported {when}: {first.line}{others}"


def _exits_verdict(cell: Cell, directory: CellDir, records: list[init.InitRecord]) -> Verdict | None:
    """An agent ends when the cell does, or when the spec has it killed; an app by itself, or when it is asked to."""
    exits = {exited.id: exited for exited in of_kind(records, init.Exit)}
    excuses: dict[str, Callable[[init.Exit], bool]] = {}
    for node, agent in agents_of(cell).items():
        excuses[agent_id(node)] = functools.partial(_killed_by_the_spec, agent)
    excuses |= dict.fromkeys(processes(cell), _never)
    for flow in cell.flows:
        for role in ("sender", "receiver"):
            if flow.program is not None and (role == "sender" or flow.program.receiver):
                asked = functools.partial(asked_to_end, cell, flow, role)
                excuses |= {program_id(flow, role, start): asked for start in _starts(cell, flow, role)}
    for name, excused in excuses.items():
        exited = exits.get(name)
        if exited is None:
            return Verdict(Outcome.FAILED, f"{name} was never started or never ended")
        if exited.killed:
            return Verdict(Outcome.FAILED, f"{name} did not end and was killed after the grace period")
        if exited.status != 0 and not excused(exited) and not never_connected(cell, directory, name):
            how = f"died of signal {exited.signal}" if exited.signal else f"ended with status {exited.status}"
            return Verdict(Outcome.FAILED, f"{name} {how}{_why(app_error(cell, directory, name))}")
    return None


def never_connected(cell: Cell, directory: CellDir, name: str) -> bool:
    """True if all that was wrong with an app is that nothing answered its connection before its stop or its deadline,
    or, in a cell with faults or firewalls, that the network refused or ended it: that is the network's doing, and a
    result.
    """
    disturbed = any(event.action in (*FAULTS, "forget") for event in cell.timeline)
    disturbed |= any(link.firewall for link in cell.links)
    results = (_LATE, *_REFUSED) if disturbed else (_LATE,)
    failed = 0
    for flow in processes(cell).get(name, (name,)):
        error = last(app_records_left(directory, flow, "error"), app.Error)
        if error is None:
            summary = last(app_records_left(directory, flow, "summary"), Summary)
            if summary is None or not summary.status:
                continue
            if not disturbed or summary.reason not in _LOST:
                return False
        elif not error.message.startswith(results):
            return False
        failed += 1
    return failed > 0


def _killed_by_the_spec(agent: Agent, exited: init.Exit) -> bool:
    due = agent.dies_ns is not None and (exited.t_ns or 0) >= agent.dies_ns - KILLED_EARLY_NS
    return exited.signal == signal.SIGKILL and due


def _never(exited: init.Exit) -> bool:
    """Nothing excuses a program of netwarp's own that fails."""
    return False


def _starts(cell: Cell, flow: Flow, role: str) -> range:
    """The numbers of the starts of a program: one, and one more for each time that its host was up again."""
    node = flow.sender if role == "sender" else flow.receiver
    return range(1, 2 + sum(event.action == "repair" and event.name in _down(cell, node) for event in cell.timeline))


def _down(cell: Cell, node: str) -> dict[str, int]:
    """When a host's programs were killed, by the name of the event."""
    return {event.name: event.at_ns for event in cell.timeline if event.action == "restart" and event.node == node}


def asked_to_end(cell: Cell, flow: Flow, role: str, exited: init.Exit) -> bool:
    """True if a program of the user's own ended when it was asked to, or killed with its host: that counts as success
    whatever its exit status.
    """
    if flow.program is None:
        return False
    killed_ns = _down(cell, flow.sender if role == "sender" else flow.receiver).values()
    if exited.signal == signal.SIGKILL and any((exited.t_ns or 0) >= at_ns for at_ns in killed_ns):
        return True
    interrupted = role == flow.opener and flow.program.interrupt and flow.stop_ns is not None
    asked_ns = flow.stop_ns if interrupted and flow.stop_ns is not None else cell.duration_ns + LINGER_NS
    return (exited.t_ns or 0) >= asked_ns


def app_error(cell: Cell, directory: CellDir, name: str) -> str:
    """The last error of an app: its record `error` in the words of a spec, otherwise the last line of its stderr, or of
    the stdout of a user's program; of a receiver without any, the loss of its window clamp. "": it wrote none.
    """
    flows = processes(cell).get(name, (name,))
    if name not in flows:  # a process of many flows: of the first that says anything
        return next((f"{flow}: {text}" for flow in flows if (text := app_error(cell, directory, flow))), "")
    error = last(app_records_left(directory, name, "error"), app.Error)
    if error is not None:
        return in_words_of_the_spec(cell, name, error.message)
    if lost := clamp_lost(cell, name, app_records_left(directory, name, "window_clamp_bytes")):
        return lost
    for suffix in ("stderr", "stdout"):
        try:
            lines = (directory.apps / f"{name}.{suffix}").read_text(errors="replace").strip().splitlines()
        except FileNotFoundError:
            continue
        if lines:
            return lines[-1]
    return ""


def _app_hint(cell: Cell, directory: CellDir, records: list[init.InitRecord]) -> str:
    failed = [exited.id for exited in of_kind(records, init.Exit) if exited.status]
    return f"; {failed[-1]}{_why(app_error(cell, directory, failed[-1]))}" if failed else ""


def _why(error: str) -> str:
    """What follows a program's name; a program may fail without a word."""
    return f": {error}" if error else " (it wrote no error)"


def check_captures(
    cell: Cell, directory: CellDir, records: list[init.InitRecord], lengths: Mapping[str, int]
) -> list[Check]:
    """Checks that every capture exists, is complete and lost no packet, by comparing cell-init's record with
    the file, or with the length of one that went through memory.
    """
    checks: list[Check] = []
    end_records = {record.file: record for record in of_kind(records, init.Capture)}
    for capture in cell.captures:
        name = f"capture/{capture.node}-{capture.link}.pcap"
        record = end_records.get(name)
        if record is None:
            checks.append(Check(f"{name} end record", False, "the capture process left no end record"))
            continue
        for key in ("dropped", "truncated", "errno", "fsync_errno"):
            value = getattr(record, key)
            checks.append(Check(f"{name} {key}", value == 0, str(value)))
        size = lengths.get(Path(name).name, -1)
        with contextlib.suppress(FileNotFoundError):  # those with a length are compressed by now
            size = (directory.root / name).stat().st_size
        checks.append(Check(f"{name} size", size == record.bytes, f"file {size}, record {record.bytes} bytes"))
    return checks


def check_times(cell: Cell, directory: CellDir, records: list[init.InitRecord], tolerance_ns: int) -> list[Check]:
    """Checks that every step of the timeline began, and every sender connected, within the tolerance of its time.

    Steps that start a program are early by design; what counts is when the sender began. A sender that never began has
    no record `start`. A dump only reads, and may wait for the step before it. On machines (`on`) the first step of an
    instant counts: a card takes tens of ms to go down or up, and what follows waits for it (event_error_ns).
    """
    begun = [(step, step.t_ns - step.at_ns) for step in of_kind(records, init.Timeline) if step.t_ns is not None]
    counted = [(step, late_ns) for step, late_ns in begun if step.verb not in ("spawn", "dump")]
    first = {(step.on, step.at_ns): late_ns for step, late_ns in reversed(counted) if step.on is not None}
    late = max(map(abs, (*first.values(), *(late_ns for step, late_ns in counted if step.on is None))), default=0)
    shared = {flow.name for (_, role), flows in shared_processes(cell).items() if role == "sender" for flow in flows}
    checks = [Check("timeline", late <= tolerance_ns, f"largest deviation {late} ns")]
    for flow in cell.flows:
        if flow.program is not None:  # says nothing of when it began: what counts is when it was started
            due_ns = program_start_ns(cell, flow)
            spawned = [late_ns for step, late_ns in begun if step.verb == "spawn" and step.at_ns == due_ns]
            late = max(spawned, key=abs, default=0)
            at_once = [other for other in cell.flows if other.start_ns == flow.start_ns]
            bound_ns = tolerance_ns * len(at_once)
            checks.append(Check(f"start of {flow.name}", abs(late) <= bound_ns, f"{late} ns late"))
            continue
        start = last(app_records_left(directory, f"{flow.name}.{flow.opener}", "start"), app.Start)
        if start is not None:
            late = start.late_ns - absent_ns(cell, flow)
            at_once = [other for other in cell.flows if other.start_ns == flow.start_ns]
            # a guest has one CPU: of senders due at once each waits for those before it, and for what is started then
            waits = len(at_once) + SPAWN_WAITS * spawned_at(cell, flow.start_ns)
            waits += sum(event.at_ns == flow.start_ns for event in cell.timeline)
            # packets of other flows may be under way at that instant, or system calls of others in its process
            among_others = flow.name in shared or (len(cell.flows) > 1 and tolerance_ns < ON_THE_WALL_CLOCK_NS)
            bound_ns = tolerance_ns * max(waits, AMONG_MANY if among_others else 1)
            among = f", one of {len(at_once)} that start at once" if len(at_once) > 1 else ""
            checks.append(Check(f"start of {flow.name}", abs(late) <= bound_ns, f"{late} ns late{among}"))
    return checks


def absent_ns(cell: Cell, flow: Flow) -> int:
    """How long after its start the host that opens a flow is back, if a restart has killed it or its processes then."""
    opener = flow.receiver if flow.opener == "receiver" else flow.sender
    for event in cell.timeline:
        if event.action == "restart" and event.node == opener and event.at_ns <= flow.start_ns:
            ends = (each.at_ns for each in cell.timeline if each.action == "repair" and each.name == event.name)
            back_ns = min((at_ns for at_ns in ends if at_ns >= event.at_ns), default=event.at_ns)
            if back_ns > flow.start_ns:
                return back_ns - flow.start_ns
    return 0


def spawned_at(cell: Cell, at_ns: int) -> int:
    """How many programs are started at that instant, most of them a while before they are due."""
    ours = (flow.start_ns - LEAD_NS for flow in cell.flows if flow.program is None)
    theirs = (program_start_ns(cell, flow) for flow in cell.flows if flow.program is not None)
    return sum(start_ns == at_ns for start_ns in (*ours, *theirs))


FIRST_SLEEPS = 1
"""kswapd first sleeps for 0.1 s, then for long: if a guest is ready sooner, its record has this second sleep, and no
other.
"""


def check_memory(records: list[init.InitRecord]) -> Check:
    """Checks that the guest's kernel reclaimed no memory; if it did, equal cells could differ (docs/decisions/0007)."""
    memory = last(records, init.Memory)
    if memory is None or memory.kswapd_sleeps is None:
        return Check("guest memory", False, "the guest left no record of its kernel's kswapd")
    if memory.kswapd_sleeps <= FIRST_SLEEPS:
        return Check("guest memory", True, "none reclaimed")  # no number of bytes: it follows the directory's name
    why = f"it ran short (its kernel woke kswapd, {memory.kswapd_sleeps} sleeps), so that equal cells can differ"
    return Check("guest memory", False, f"{why}: lower rates, smaller queues and buffers, or fewer captures need less")


LATE_TICKS_LIMIT = 0.02
"""Share of late ticks in a wall-clock cell above which the host affected what the cell measured."""


def check_ticks(records: list[init.InitRecord]) -> tuple[dict[str, float], list[Check]]:
    """The lateness of the sandbox between its steps: numbers for environment.json, and the check they must pass."""
    ticks = last(records, init.Ticks)
    if ticks is None:
        return {}, []
    ratio = ticks.late / ticks.ticks
    detail = (
        f"{percent(ratio)} of {ticks.ticks} wakes more than {given(ticks.late_ns / 1e6)} ms late, at most "
        f"{percent(LATE_TICKS_LIMIT)}; the latest {fixed(ticks.worst_ns / 1e6, 1)} ms"
    )
    environment = {"late_wakes_ratio": round(ratio, 6), "latest_wake_s": ticks.worst_ns / 1e9}
    return environment, [Check("timeline between steps", ratio <= LATE_TICKS_LIMIT, detail)]
