"""SCTP's analysis on associations between real kernels, against what the kernels counted themselves and tshark.

Each sender's kernel says at the end what is in /proc/net/sctp/snmp; its capture is before the qdisc that drops.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from netwarp.captures import Capture, read_captures
from netwarp.captures.sctp import SctpAssociation, analyze_sctp
from netwarp.captures.sctp.transmissions import NEVER
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell, Event
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import Step, step
from support import cell_init_kit as kit
from support.apps_lab import FLOW, MS, Run, S, apps, make_cell, read_records

LOSSY = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=4_000_000, queue_packets=40, loss_ratio=0.02)
HEAVY = LinkImpairment(one_way_delay_ns=20 * MS, rate_bit_s=4_000_000, queue_packets=40, loss_ratio=0.1)
CLEAN = LinkImpairment(one_way_delay_ns=30 * MS, rate_bit_s=4_000_000, queue_packets=40)
AT_ONCE_NS = 50_000
"""A SACK that answers a packet leaves within this on the virtual clock; the SACK timer's is 200 ms late."""


def in_guest(ident: str, node: int, at_ns: int, *words: str) -> Step:
    """Run one of the machine's own programs in the guest."""
    files = {"stdout": f"apps/{ident}.out", "stderr": f"apps/{ident}.err"}
    return step("spawn", id=ident, ns=node, flow=0, arg=list(words), at_ns=at_ns, **files)


@dataclass
class Played:
    """Both hosts' captures, and what their kernels counted (a, b)."""

    run: Run
    captures: tuple[Capture, Capture]
    counted: tuple[dict[str, int], dict[str, int]]

    def at(self, node: int, flow: int = 0, **options: Any) -> SctpAssociation:
        """One host's association."""
        return analyze_sctp(self.captures[node], flow, **options)


def play(kernel: Path, directory: Path, cell: Cell, more: Sequence[Step] = (), *, app: bool = True) -> Played:
    """Play a cell with more steps in its timeline, and the kernels' counters half a second before its end."""
    (directory / "bin").mkdir(parents=True)
    for name in ("sender", "receiver"):
        shutil.copy(apps() / name, directory / "bin" / name)
    for name in ("capture", "apps"):
        (directory / name).mkdir()
    steps = compile_cell(cell, Clock(t0_realtime_ns=kit.T0)).steps
    asked = cell.duration_ns - S // 2
    own = [*more, *(in_guest(f"snmp.{node}", node, asked, "/bin/cat", "/proc/net/sctp/snmp") for node in (0, 1))]
    if not app:
        steps = [item for item in steps if ("id", f"{FLOW}.receiver") not in item.fields]
    last = next(place for place, item in enumerate(steps) if item.verb == "end")
    timed = [item for item in steps[:last] if item.at_ns is not None]
    head = [item for item in steps[:last] if item.at_ns is None]
    body = sorted([*timed, *own], key=lambda item: item.at_ns or 0)
    # the cell lasts to its end, though the apps have long gone
    end = replace(
        steps[last], fields=tuple((key, "0" if key == "early" else value) for key, value in steps[last].fields)
    )
    result = kit.run_guest(kernel, directory, [*head, *body, end, *steps[last + 1 :]])
    result.completed()
    began = result.records("ready")[0]["t0_monotonic_ns"]
    logs = [read_records(directory / "apps" / f"{FLOW}.{role}.ndjson", began) for role in ("sender", "receiver")]
    captures = [read_captures(sorted((directory / "capture").glob(f"{node}-*.pcap")), checksums=True) for node in "ab"]
    counted = []
    for node in (0, 1):
        text = (directory / "apps" / f"snmp.{node}.out").read_text()
        counted.append({name: int(value) for name, value in (line.split() for line in text.splitlines())})
    return Played(Run(result, *logs), (captures[0], captures[1]), (counted[0], counted[1]))


def tshark_counts(played: Played, capture: str) -> Counter[int]:
    """Chunks by type, in one interface's capture."""
    rows = played.run.tshark(capture, "sctp", "sctp.chunk_type")
    return Counter(int(kind) for (kinds,) in rows for kind in kinds.split(","))


CELLS = {
    "loss on one path": {"shape": LOSSY, "paths": 2, "message_bytes": 1400, "total_bytes": 4_000_000},
    "loss, one path, small messages": {"shape": LOSSY, "paths": 1, "message_bytes": 100, "total_bytes": 2_000_000},
    "heavy loss": {"shape": HEAVY, "paths": 2, "message_bytes": 300, "total_bytes": 800_000},
    "streams": {"shape": LOSSY, "paths": 2, "message_bytes": 700, "total_bytes": 4_000_000, "sender": {"streams": 8}},
    "fragments": {"shape": LOSSY, "paths": 1, "message_bytes": 9000, "total_bytes": 4_000_000},
    "cut": {
        "shape": CLEAN,
        "paths": 2,
        "message_bytes": 1400,
        "total_bytes": 7_000_000,
        "timeline": [
            Event(at_ns=5 * S, action="cut", name="x", link="p1"),
            Event(at_ns=9 * S, action="repair", name="x", link="p1"),
        ],
    },
}


@pytest.fixture(scope="module", params=CELLS, ids=lambda name: name.replace(" ", "-").replace(",", ""))
def played(request: pytest.FixtureRequest, kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Played:
    cell = make_cell("sctp", duration_ns=120 * S if request.param == "heavy loss" else 40 * S, **CELLS[request.param])  # type: ignore[arg-type]
    if request.param == "loss on one path":
        clean = msgspec.structs.replace(cell.links[1], forward=CLEAN, backward=CLEAN)
        cell = msgspec.structs.replace(cell, links=(cell.links[0], clean))
    return play(kernel, tmp_path_factory.mktemp("sctp") / "cell", cell)


def test_the_capture_point_is_recognised(played: Played) -> None:
    assert [played.at(node).point for node in (0, 1)] == ["sender", "receiver"]


def test_expiries_and_fast_retransmits_are_the_kernels(played: Played) -> None:
    """SctpT3RtxExpireds counts expiries, SctpFastRetransmits the reports that set off at least one fast retransmission
    on one path: a third miss of one chunk or of several.
    """
    found = played.at(0)
    again = found.again
    kernel = played.counted[0]
    assert found.totals["t3_expiries"] == kernel["SctpT3RtxExpireds"] == kernel["SctpT3Retransmits"]
    triggers = {(int(t), int(p)) for t, p in zip(again.third[again.fast], again.from_path[again.fast], strict=True)}
    assert len(triggers) == kernel["SctpFastRetransmits"]


def test_acknowledgements_of_the_timer_are_the_kernels(played: Played) -> None:
    """SctpDelaySackExpireds at the receiver: SACKs that no packet was answered by."""
    found = played.at(1)
    data = found.sent.rows["time_ns"]
    sacks = found.reports.time_ns[found.reports.is_sack]
    since = sacks - np.concatenate([[0], data])[np.searchsorted(data, sacks, side="right")]
    assert int((since > AT_ONCE_NS).sum()) == played.counted[1]["SctpDelaySackExpireds"]


def test_chunks_are_tsharks_and_the_kernels(played: Played) -> None:
    for node, name in enumerate("ab"):
        files = [Path(file).stem for file in played.captures[node].files]
        theirs = sum((tshark_counts(played, file) for file in files), Counter[int]())
        ours = {row["type"]: row["data"] + row["back"] for row in played.at(node).tables["chunks"]}
        assert ours == dict(theirs), name
    found, kernel = played.at(0), played.counted[0]
    assert found.totals["new_data_chunks"] == kernel["SctpOutOrderChunks"]
    fragmented = (found.messages.fragments > 1).sum()
    assert fragmented == kernel["SctpFragUsrMsgs"]


def test_spurious_is_at_most_what_the_receiver_counted(played: Played) -> None:
    """Every copy that arrived twice is one retransmission's; a SACK that was lost had told of some."""
    spurious = played.at(0).totals["spurious_retransmitted_chunks"]
    assert spurious is not None and spurious <= played.run.got["kernel"]["sctp_stats"]["duplicate_chunks_in"]


def test_rtt_is_no_less_than_the_links(played: Played) -> None:
    found = played.at(0)
    rtt, cell = found.rtt, 2 * 20 * MS
    assert len(rtt.rtt_ns) > 100
    assert rtt.rtt_ns.min() >= cell
    beats = found.heartbeats
    answered = (beats.answered_ns - beats.time_ns)[beats.answered & (beats.direction == 0)]
    assert (answered >= cell).all()


def test_streams_wait_less_than_one_stream_would(played: Played) -> None:
    found = played.at(1)
    own, one = found.totals["hol_blocking_mean_s"], found.totals["hol_blocking_one_stream_mean_s"]
    assert own is not None and one is not None
    if len(found.tables["streams"]) == 1:
        assert own == one
    else:
        assert len(found.tables["streams"]) == 8
        assert own < one / 2


def test_the_receiver_read_what_its_messages_hold(played: Played) -> None:
    told = played.at(1).messages
    assert int(told.payload_bytes[told.delivered].sum()) == played.run.got["unique_bytes"]


def test_a_cut_is_one_outage_with_failover_and_return(kernel: Path, tmp_path: Path) -> None:
    played = play(kernel, tmp_path / "cell", make_cell("sctp", duration_ns=40 * S, **CELLS["cut"]))  # type: ignore[arg-type]
    found = played.at(0, t0_ns=kit.T0)
    outages = [row for row in found.tables["outages"] if row["t_s"] + (row["duration_s"] or 0) > 5]
    first = outages[0]
    assert 5 - 0.2 < first["t_s"] <= 5 + 2 * 0.03
    assert first["path"] == "10.0.0.1>10.0.0.129"
    assert 1.0 <= first["first_retransmission_other_path_s"] <= first["first_new_data_other_path_s"] < 2
    assert first["t_s"] + first["return_s"] > 9
    lost = found.heartbeats
    silent = lost.time_ns[(lost.answered_ns == NEVER) & (lost.path == found.paths[0])] - kit.T0
    assert len(silent) > 0
    assert ((silent > 5 * S) & (silent < 9 * S)).all()


def test_a_port_nobody_listens_at_aborts(kernel: Path, tmp_path: Path) -> None:
    """The ABORT answers the INIT, with the INIT's own tag; it carries no cause."""
    cell = make_cell("sctp", shape=CLEAN, duration_ns=5 * S, total_bytes=10_000)
    played = play(kernel, tmp_path / "cell", cell, app=False)
    found = played.at(0)
    assert len(played.captures[0].flows) == 1
    assert found.ended == "abort"
    assert [(event["what"], event["direction"]) for event in found.events] == [("INIT", "data"), ("ABORT", "back")]
    theirs = played.run.tshark("a-p1", "sctp.chunk_type == 6", "sctp.cause_code")
    assert [row["code"] for row in found.tables["causes"]] == [int(code, 0) for (code,) in theirs if code]


def test_a_killed_receiver_and_the_abort_it_brings(kernel: Path, tmp_path: Path) -> None:
    cell = make_cell("sctp", shape=CLEAN, paths=2, duration_ns=8 * S, stop_ns=6 * S)
    kill = in_guest("kill", 1, 3 * S, "/usr/bin/pkill", "-9", "-x", "receiver")
    played = play(kernel, tmp_path / "cell", cell, [kill])
    found = played.at(0, t0_ns=kit.T0)
    assert found.ended == "abort"
    fields = ("sctp.cause_code", "sctp.cause_length")
    theirs = [row for link in ("p1", "p2") for row in played.run.tshark(f"a-{link}", "sctp.chunk_type == 6", *fields)]
    assert [(row["code"], row["length"]) for row in found.tables["causes"]] == [
        (int(code, 0), int(length)) for code, length in theirs if code
    ]
    told = [(event["what"], event["direction"]) for event in found.events if event["what"] in ("SHUTDOWN", "ABORT")]
    # Linux shuts down what has read all there was; the sender's application gives up then
    assert told[:2] == [("SHUTDOWN", "back"), ("ABORT", "data")]


def test_a_restart_names_the_association_before(kernel: Path, tmp_path: Path) -> None:
    """The sender stops while its link is cut, so that its ABORT is lost; another comes back on the same port."""
    cell = make_cell(
        "sctp",
        shape=CLEAN,
        duration_ns=14 * S,
        stop_ns=4 * S,
        sysctls={"net.ipv4.ip_local_port_range": "40000 40000"},
        timeline=[
            Event(at_ns=3 * S, action="cut", name="x", link="p1"),
            Event(at_ns=5 * S, action="repair", name="x", link="p1"),
        ],
    )
    steps = compile_cell(cell, Clock(t0_realtime_ns=kit.T0)).steps
    sender = next(item for item in steps if item.verb == "spawn" and ("id", f"{FLOW}.sender") in item.fields)
    fields = tuple(
        (key, value.replace(f"{FLOW}.sender", "again") if key in ("id", "stdout", "stderr") else value)
        for key, value in sender.fields
    )
    for option, at_s in (("--start-ns", 7), ("--stop-ns", 12)):
        value = fields.index(("arg", option)) + 1
        fields = (*fields[:value], ("arg", str(at_s * S)), *fields[value + 1 :])
    second = replace(sender, fields=fields, at_ns=6 * S)
    played = play(kernel, tmp_path / "cell", cell, [second])
    capture = played.captures[1]
    assert len(capture.flows) == 2
    found = played.at(1, flow=1)
    assert found.restart_of == 0
    assert (capture.flows["port"] == (40000, 5001)).all()
    assert played.at(1, flow=0).restart_of is None
    assert "restart" in [event["what"] for event in found.events]
    notices = [record.get("state") for record in played.run.of("receiver", "notification")]
    assert "RESTART" in notices, notices
