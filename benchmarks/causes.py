"""Causes of retransmissions by netwarp against the kernel's own counters: `python benchmarks/causes.py`.

Makes captures under known conditions (causes_host.py: namespaces of this machine's kernel, as root; causes_cells.py:
cells in virtual time), each with the sender's kernel's counters of that connection, analyses them as `netwarp analyze`
does, and prints both. Nothing is left but the directory of --keep; --judge DIR judges such a directory again.

Which counter stands for which class (Linux; net/ipv4/tcp_output.c, tcp_timer.c; net/sctp/outqueue.c):

| class | TCP, in segments | SCTP, in chunks |
| --- | --- | --- |
| fast | TCPFastRetrans: by duplicates, SACK, RACK, partial ACKs | all but *timeout*; FastRetransmits counts occasions |
| timeout | TCPTimeouts - TCPSynRetrans: expiries, each sends one segment | 0 without T3RtxExpireds, else at most all |
| after timeout | TCPSlowStartRetrans: in the state Loss | (in *timeout*) |
| tail probe | the rest; at most TCPLossProbes, which counts probes with new data too | - |
| sent again | RetransSegs - TCPSynRetrans - TCPRetransFail: what the own qdisc refused is not on the wire | rtxchunks |
| expiries | TCPTimeouts - TCPSynRetrans | T3RtxExpireds |

Where a transmission failed (TCPRetransFail) it is not known of which class it was; the counts are then intervals. Per
capture: *right* is what netwarp puts into a class up to the kernel's number of it, *wrong* what goes beyond, *unknown*
the rest of what the capture shows as sent again. TCP's retransmissions are found there by the IPv4 identification,
which Linux counts up with each segment of a connection: a number below the highest in a packet that was sent later.
Behind a loss these are fewer than the kernel sent (some are lost, some cannot be told from new data). A packet of
segmentation offload is as many segments as it holds. Counts cannot show two errors that cancel each other.

A *wrong headline* is a finding of timeouts or T3 expiries that the kernel did not have, or of more reordering than the
capture has. The rule: in every capture at least 90 % right, at most 1 % wrong, no wrong headline; exit status 1 if it
is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import re
import shutil
import struct
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import causes_cells
import causes_host
import numpy as np
from causes_conditions import CONDITIONS
from in_a_guest import run_in_guest
from netwarp.captures import read_captures
from netwarp.captures.tcp import analyze_tcp
from netwarp.captures.tcp.retransmission import RetransmissionCause
from netwarp.core.wire import DATA
from netwarp.engine.captures import analyze_captures
from netwarp.store import compressed

CLASSES = ("fast", "timeout", "after", "probe")
RIGHT, WRONG = 0.9, 0.01
LIMIT_NS = 60_000_000_000
"""Of one condition in a guest."""
FINDING = re.compile(r"([\d\u202f]+) (retransmission timeout|T3 expir|packets? arrived after others)")
Interval = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Truth:
    """The kernel's word: segments (chunks) sent again, of each class as an interval, and expiries of the timer."""

    again: int
    classes: dict[str, Interval]
    expiries: int


@dataclasses.dataclass(frozen=True)
class Row:
    """A capture: the kernel's word, what the capture shows as sent again, what netwarp claims, what is wrong."""

    name: str
    dimensions: dict[str, str]
    truth: Truth
    shown: int
    claimed: dict[str, int]
    headlines: tuple[str, ...]

    @property
    def wrong(self) -> int:
        return sum(max(0, count - self.truth.classes[name][1]) for name, count in self.claimed.items())

    @property
    def right(self) -> int:
        return sum(self.claimed.values()) - self.wrong

    @property
    def total(self) -> int:
        return max(self.shown, self.right + self.wrong)

    @property
    def kept(self) -> bool:
        """Does it keep the rule?"""
        return self.right >= RIGHT * self.total and self.wrong <= WRONG * self.total and not self.headlines


def truth_of(counters: dict[str, Any]) -> Truth:
    """The kernel's word, by the table above."""
    get = defaultdict(int, counters["sender"]).__getitem__
    if counters.get("sctp_stats"):
        again = sum(one["retransmitted_chunks"] for one in counters["sctp_stats"])
        expiries, occasions = get("SctpT3RtxExpireds"), get("SctpFastRetransmits")
        late = (min(1, expiries) if occasions else again, again - occasions) if expiries else (0, 0)
        return Truth(again, {"fast": (again - late[1], again - late[0]), "timeout": late}, expiries)
    failed, expiries = get("TCPRetransFail"), get("TCPTimeouts") - get("TCPSynRetrans")
    again = get("RetransSegs") - get("TCPSynRetrans") - failed
    fast, after = get("TCPFastRetrans"), get("TCPSlowStartRetrans")
    rest = again - fast - after
    probes = (max(0, rest - expiries), min(rest, get("TCPLossProbes")))
    if not failed:
        probes = (probes[0], probes[0])
    classes = {"fast": (fast, fast), "timeout": (rest - probes[1], rest - probes[0]), "after": (after, after)}
    return Truth(again, classes | {"probe": probes}, expiries)


def _tcp_data(path: Path) -> Iterable[tuple[bytes, int, int, int]]:
    """Flow, IPv4 identification, first number and payload of each segment with data, of a pcap file of Ethernet."""
    data = compressed.read(path.with_name(path.name.removesuffix(".zst")))
    at = 24
    while at + 16 <= len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        ip, at = at + 30, at + 16 + size
        if data[ip - 2 : ip] != b"\x08\x00" or data[ip + 9] != 6:
            continue
        length, number = struct.unpack_from(">HH", data, ip + 2)
        tcp = ip + (data[ip] & 15) * 4
        carried = length - (tcp - ip) - (data[tcp + 12] >> 4) * 4
        if carried:
            yield (
                data[ip + 12 : ip + 20] + data[tcp : tcp + 4],
                number,
                *struct.unpack_from(">I", data, tcp + 4),
                carried,
            )


def shown_by(path: Path, mss: int) -> tuple[int, int]:
    """Segments of TCP sent again, and packets with data that came out of order, by the IPv4 identification."""
    flows: dict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    reordered = 0
    for flow, number, seq, size in _tcp_data(path):
        sent = flows[flow]
        if sent:
            last_number, last_seq = sent[-1][0], sent[-1][1]
            number = last_number + ((number - last_number + 0x8000) & 0xFFFF) - 0x8000
            seq = last_seq + ((seq - last_seq + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        sent.append((number, seq, size))
    again = 0
    for sent in flows.values():
        numbers = np.array([number for number, _, _ in sent])
        reordered += int((numbers < np.maximum.accumulate(numbers)).sum())
        highest, before = -1 << 62, None
        for number, seq, size in sorted(sent):
            if number != before and seq + size <= highest:
                again += -(-size // mss)
            highest, before = max(highest, seq + size), number
    return again, reordered


def judge(path: Path) -> Row:
    """A capture in a condition's directory."""
    counters, about = (json.loads(path.with_name(f"{name}.json").read_text()) for name in ("counters", "about"))
    truth = truth_of(counters)
    file = analyze_captures([path]).files[0]
    claimed = dict.fromkeys(truth.classes, 0)
    if counters.get("sctp_stats"):
        for connection in file.connections.in_depth():
            claimed["fast"] += connection.totals.get("fast_retransmitted_chunks") or 0
            claimed["timeout"] += connection.totals.get("timeout_retransmitted_chunks") or 0
        chunks = read_captures([path]).chunks
        tsn = chunks["tsn"][(chunks["type"] == DATA) & (chunks["direction"] == 0)].astype(np.int64)
        shown = int((tsn[1:] <= np.maximum.accumulate(tsn)[:-1]).sum()) if len(tsn) else 0
        shown, reordered = min(shown, truth.again), shown
    else:
        mss = max([one.get("snd_mss") or one.get("snd_mss_bytes") or 0 for one in counters["tcp_info"]] or [1448])
        shown, reordered = shown_by(path, mss)
        for row in file.connections.rows.tolist():
            tcp = analyze_tcp(file.capture, row, t0_ns=file.first_ns)
            direction = tcp.directions[tcp.data_direction]
            found = direction.retransmissions
            if found is not None:
                segments = -(-direction.data.payload_bytes[found.segment].astype(np.int64) // mss)
                for name, cause in zip(
                    CLASSES,
                    (RetransmissionCause.FAST, RetransmissionCause.TIMEOUT, RetransmissionCause.AFTER_TIMEOUT,
                     RetransmissionCause.TAIL_PROBE),
                    strict=True,
                ):  # fmt: skip
                    claimed[name] += int(segments[found.cause == cause].sum())
    limits, wrong = {"retransmission timeout": truth.expiries, "T3 expir": truth.expiries}, []
    said: dict[str, int] = defaultdict(int)
    for sentence in file.findings:
        for count, what in FINDING.findall(sentence):
            said[what] += int(count.replace("\u202f", ""))
            if said[what] > limits.get(what, reordered):
                wrong.append(sentence)
    dimensions = about["dimensions"] | {"captured at": path.name.partition(".")[0]}
    return Row(path.parent.name, dimensions, truth, shown, claimed, tuple(wrong))


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, and of the summary by dimension."""
    lines = [
        f"{'condition':36} {'captured':8} {'again':>6} {'kernel f/t/a/p':>20} {'shown':>6} {'netwarp f/t/a/p':>20} "
        f"{'right':>6} {'wrong':>6} {'unkn.':>6} heads"
    ]
    for row in rows:
        lines.append(
            f"{row.name:36} {row.dimensions['captured at']:8} {row.truth.again:6} "
            f"{'/'.join(_span(row.truth.classes[name]) for name in row.truth.classes):>20} {row.shown:6} "
            f"{'/'.join(str(count) for count in row.claimed.values()):>20} {_shares([row])} {len(row.headlines):5}"
            f"{'' if row.kept else '  BROKEN'}"
        )
    for row in rows:
        lines += [f"wrong headline: {row.name}, {row.dimensions['captured at']}: {text}" for text in row.headlines]
    lines.append(f"\n{'dimension':58} {'captures':>8} {'kept':>5} {'right':>6} {'wrong':>6} {'unkn.':>6} heads")
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        for dimension in row.dimensions.items():
            groups[dimension].append(row)
    for (name, level), group in [*sorted(groups.items()), (("all", ""), list(rows))]:
        lines.append(
            f"{f'{name}: {level}' if level else name:58} {len(group):8} {sum(row.kept for row in group):5} "
            f"{_shares(group)} {sum(len(row.headlines) for row in group):5}"
        )
    return lines


def _span(interval: Interval) -> str:
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}-{interval[1]}"


def _shares(rows: Sequence[Row]) -> str:
    total = sum(row.total for row in rows)
    if not total:
        return f"{'-':>6} {'-':>6} {'-':>6}"
    right, wrong = (sum(getattr(row, name) for row in rows) / total for name in ("right", "wrong"))
    return f"{right:6.1%} {wrong:6.1%} {1 - right - wrong:6.1%}"


def main() -> int:
    """Make, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN", help="conditions whose name matches")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave captures and counters in this new directory")
    parser.add_argument("--judge", type=Path, metavar="DIR", help="make nothing: judge what --keep left there")
    parser.add_argument("--jobs", type=int, default=2, help="at once (default: %(default)s)")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder, failed = arguments.judge or arguments.keep, []
        if not arguments.judge:
            if arguments.keep:
                arguments.keep.mkdir(parents=True)
            else:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="netwarp-causes-")))
            failed = make(folder, re.compile(arguments.only), arguments.jobs)
        captures = sorted(
            capture
            for about in folder.glob("*/about.json")  # the last file of a condition that was made
            if re.search(arguments.only, about.parent.name)
            for capture in about.parent.glob("*.pcap*")
        )
        with ProcessPoolExecutor(arguments.jobs) as pool:
            rows = list(pool.map(judge, captures))
    print("\n".join([*table(rows), *(f"not made: {why}" for why in failed)]))
    return int(bool(failed) or not all(row.kept for row in rows))


def make(folder: Path, only: re.Pattern[str], jobs: int) -> list[str]:
    """Make the captures of the conditions whose name matches; why some could not be made."""
    names = [name for name in causes_cells.conditions() if only.search(f"v-{name}")]
    failed = []
    if names:
        with tempfile.TemporaryDirectory(prefix="netwarp-causes-") as scratch:
            failed = causes_cells.make(names, folder, Path(scratch) / "run", jobs=jobs)
    chosen = [c for c in CONDITIONS if only.search(c.name)]
    guests = [c.name for c in chosen if c.guest]
    with ProcessPoolExecutor(jobs) as pool:
        done = [pool.submit(_in_guest, guests[job::jobs], folder) for job in range(min(jobs, len(guests)))]
        done += [pool.submit(causes_host.capture, c, folder / c.name) for c in chosen if not c.guest]
        for one in as_completed(done):
            if why := one.exception():
                failed.append(str(why))
    return failed


def _in_guest(names: Sequence[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="netwarp-causes-") as scratch:
        place = Path(scratch) / "guest"
        command = [sys.executable, causes_host.__file__, "/run/cell/made", *names]
        ended = run_in_guest(place, command, limit_ns=len(names) * LIMIT_NS)
        for about in (place / "made").glob("*/about.json"):
            shutil.move(about.parent, folder / about.parent.name)
        if ended is None or ended.status != 0:
            raise RuntimeError(f"the guest of {', '.join(names)}: {ended}\n{(place / 'guest.err').read_text()}")


if __name__ == "__main__":
    sys.exit(main())
