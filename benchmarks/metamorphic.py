"""Captures changed in ways whose effect is known: what is told of them must stay true.

    .venv/bin/python benchmarks/metamorphic.py [CAPTURE | DIR]... [--only NAME]

Without arguments: the captures of tests/data. A change leaves the story the same, or takes a known part of it away.
Then a number may become unknown or count less, a sentence may go; none may come that the whole capture does not have,
but of what the capture lacks. Ends with status 1 where a sentence, a number or an interval became false.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import itertools
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import transformations as change
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.explanation import Explanation, explain
from netwarp.captures.findings import every_finding
from netwarp.core.errors import CaptureError
from transformations import HEADERS, TCP, Frames, read_frames

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
NUMBER = re.compile(r"\d+(?:[\s\u202f]\d{3})*(?:\.\d+)?")
UNIT = re.compile(r"# ?(?:[mµun]?s|bytes?|%|k?B)\b")
MOST_CONNECTIONS = 20
LACKS = (
    "no packet of", "the capture begins;", "acknowledged that this capture does not hold", "its last packet",
    "the capture ends", "what limited", "packets of these ports are", "packet of these ports is",
    "shows it, the capture",
    "is in the capture", "in the capture", "as seen from the capture",
)  # fmt: skip
"""Sentences about what a capture lacks."""
LIMITS = ("was limited by", "what limited")
"""Shares of time: they change with the part of it that is captured."""


@dataclasses.dataclass(frozen=True)
class Told:
    """What is said of one connection. sentences: of both commands, without times; settings: intervals."""

    sentences: tuple[str, ...]
    totals: dict[str, Any]
    settings: dict[tuple[str, str], tuple[float | None, float | None]]

    @property
    def templates(self) -> frozenset[str]:
        """The sentences without numbers, and what stands in brackets in them."""
        inner = [text.removesuffix(" in all") for each in self.sentences for text in re.findall(r"\(([^()]*)\)", each)]
        return frozenset(template(sentence) for sentence in (*self.sentences, *inner))


def template(sentence: str) -> str:
    """A sentence without its numbers, units, plurals and what stands in brackets."""
    bare = re.sub(r"(expir\w+|timeouts?) of \S+", r"\1", sentence)
    bare = re.sub(r"\([^()]*\)|, with \d+ \w+|, then it reset the connection", "", bare).replace(" are ", " is ")
    bare = UNIT.sub("#", NUMBER.sub("#", bare))
    bare = re.sub(r"\s+([:,;])", r"\1", re.sub(r"(#(,| to|) ?)+", "# ", bare)).partition(";")[0]
    return re.sub(r"expirie\b", "expiry", re.sub(r"\b(\w{3,}?)s\b", r"\1", bare)).strip()


Story = dict[tuple[str, ...], Told]


def story_of(points: Sequence[Path], rename: dict[str, str]) -> Story:
    """By ends (the lower first) what is told of each connection; of several with the same ends the largest."""
    (file,) = summarise_points([list(points)])
    result: Story = {}
    for explained in explain([file], MOST_CONNECTIONS):
        told = _told(file, explained, rename)
        key = tuple(sorted(_renamed(end, rename) for end in explained.connection.ends))
        result.setdefault((explained.connection.protocol, *key), told)
    return result


def _told(file: FileSummary, explained: Explanation, rename: dict[str, str]) -> Told:
    connection = explained.connection
    texts = [*every_finding(connection), *(moment.text for moment in explained.moments), *explained.network]
    settings = {
        (_renamed(connection.ends[known.end], rename), known.name): (known.low, known.high)
        for known in explained.settings
    }
    totals = {name: value for name, value in connection.totals.items() if not isinstance(value, str)}
    return Told(tuple(_renamed(text, rename) for text in texts), totals, settings)


def _renamed(text: str, rename: dict[str, str]) -> str:
    if not rename:
        return text
    names = {f"[{new}]": old for new, old in rename.items()} | rename
    found = sorted(names, key=lambda name: -len(name))
    return re.sub("|".join(re.escape(name) + r"(?!\d)" for name in found), lambda match: names[match[0]], text)


@dataclasses.dataclass(frozen=True)
class Change:
    """name; make: from a capture one or several files' contents (together one capture point), or None where it does not
    apply; part: it takes something away; times: lengths of time stay; may: totals that change; true: words of sentences
    that are true whatever is missing; rename: addresses, new to old.
    """

    name: str
    make: Callable[[Frames], list[bytes] | None]
    part: bool = False
    may: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    rename: Callable[[Frames], dict[str, str]] = lambda frames: {}
    times: bool = True


def one(make: Callable[[Frames], Frames]) -> Callable[[Frames], list[bytes] | None]:
    """A change that gives one file."""
    return lambda frames: [make(frames).pcap()]


def _in_order(make: Callable[[Frames], Frames]) -> Callable[[Frames], list[bytes] | None]:
    """One file, of a capture whose clock is not set back anyway."""

    def of(frames: Frames) -> list[bytes] | None:
        return [make(frames).pcap()] if _is_sorted(frames) else None

    return of


def _is_sorted(frames: Frames) -> bool:
    times = change.times_of(frames)
    return times == sorted(times)


def _addresses(frames: Frames) -> set[bytes]:
    found = set()
    for frame in frames.frames:
        if change.is_ipv4(frames, frame):
            ip = frame.data[frames.header :]
            found |= {ip[12:16], ip[16:20]}
    return found


def _six(frames: Frames) -> dict[str, str]:
    prefix = b"\x20\x01\x0d\xb8" + bytes(8)
    both = {str(ipaddress.IPv6Address(prefix + four)): str(ipaddress.IPv4Address(four)) for four in _addresses(frames)}
    return dict(sorted(both.items(), key=lambda item: -len(item[0])))


def _mapped(frames: Frames) -> dict[str, str]:
    return {
        f"172{str(ipaddress.IPv4Address(four))[2:]}": str(ipaddress.IPv4Address(four))
        for four in sorted(_addresses(frames))
        if four[0] == 10
    }


def _ports(frames: Frames) -> dict[str, str]:
    ends = {end for frame in frames.frames for end in change.ends_of(frames, frame)}
    texts = [(str(ipaddress.IPv4Address(address)), port) for address, port in ends]
    return {f"{text}:{port ^ change.PORT_BITS}": f"{text}:{port}" for text, port in texts}


def _only_tcp(make: Callable[[Frames], list[bytes] | None]) -> Callable[[Frames], list[bytes] | None]:
    """INITs of SCTP carry addresses as well."""

    def of(frames: Frames) -> list[bytes] | None:
        protocols = {frame.data[frames.header + 9] for frame in frames.frames if change.is_ipv4(frames, frame)}
        return make(frames) if protocols == {TCP} else None

    return of


def _strays(frames: Frames) -> list[bytes] | None:
    """A SYN of another number, a reset and a SYN+ACK far from any window, of the first TCP connection's ports."""
    here, there, ports = change.tcp_ends(frames)
    if not here or not change.is_ipv4(frames, frames.frames[0]):
        return None
    seq = next(  # tcp_ends has found one
        struct.unpack("!I", frame.data[frames.header + 24 : frames.header + 28])[0]
        for frame in frames.frames
        if change.is_ipv4(frames, frame) and frame.data[frames.header + 9] == TCP
    )
    other = (seq + 0x9000_0000) % 2**32

    def header(flags: int, *, back: bool = False, ack: int = 0) -> bytes:
        way = ports[2:] + ports[:2] if back else ports
        tcp = way + struct.pack("!IIBBHHH", other, ack, 5 << 4, flags, 1000, 0, 0)
        return change.ipv4(TCP, tcp, there if back else here, here if back else there)

    added = [(0.4, header(2)), (0.5, header(4, back=True)), (0.6, header(0x12, back=True, ack=(other + 5) % 2**32))]
    return [change.with_others(frames, added).pcap()]


def _unrelated(frames: Frames) -> list[bytes] | None:
    if not frames.frames or not change.is_ipv4(frames, frames.frames[0]):
        return None
    ends = bytes([198, 51, 100, 1]), bytes([198, 51, 100, 2])
    udp = change.ipv4(17, struct.pack("!HHHH", 5000, 5001, 16, 0) + b"payload.", *ends)
    inner = change.ipv4(6, struct.pack("!HHI", 9, 9, 1), ends[1], ends[0])
    icmp = change.ipv4(1, struct.pack("!BBHI", 3, 3, 0, 0) + inner, *ends)
    syn = change.ipv4(TCP, struct.pack("!HHIIBBHHH", 7, 9, 5, 0, 5 << 4, 2, 1000, 0, 0), *ends)
    return [change.with_others(frames, [(0.2, udp), (0.5, icmp), (0.7, syn)]).pcap()]


def _pieces(frames: Frames, count: int) -> list[bytes] | None:
    """As many files, one after the other."""
    edges = [len(frames.frames) * number // count for number in range(count + 1)]
    return [frames.of(frames.frames[a:b]).pcap() for a, b in itertools.pairwise(edges)] if edges[1] else None


def _with_itself(frames: Frames) -> Frames:
    return change.merged(frames, change.shifted(change.other_ports(frames), 50_000))


LONGER = ("took", "without a packet", "no data", "longer than", "HEARTBEAT", "the capture goes on")
"""Lengths of time, which are told from some length on."""
REPEATED = ("repeat",)
"""Bytes that came twice came twice. Without the answers the byte of a window probe cannot be told from data."""
TIMED = ("rto_", "syn_timeout", "init_max_timeout", "heartbeat_interval", "sack_delay", "ack_delay")
"""Settings that are times."""
BYTES = ("ip_bytes", "reverse_ip_bytes")
CHANGES: tuple[Change, ...] = (
    *(
        Change(f"each packet {times} times{', within 0.4 ms' if jitter else ''}", _in_order(
            lambda frames, times=times, jitter=jitter: change.copies(frames, times, jitter)))  # type: ignore[misc]
        for times, jitter in ((2, 0), (3, 0), (6, 0), (2, 400_000), (4, 400_000))
    ),
    Change("each packet 3 times, IPv4 without numbers", _in_order(
        lambda frames: change.copies(change.with_number(frames, 0), 3, 0))),
    Change("each packet 4 times, as IPv6", _only_tcp(_in_order(
        lambda frames: change.copies(change.to_ipv6(frames), 4, 0))), may=BYTES, rename=_six),
    Change("as IPv6", _only_tcp(one(change.to_ipv6)), may=BYTES, rename=_six),
    Change("other addresses", _only_tcp(one(change.other_addresses)), rename=_mapped),
    Change("other ports", _only_tcp(one(change.other_ports)), rename=_ports),
    Change("a day later", one(lambda frames: change.shifted(frames, 86_400_000_000_000))),
    Change("big endian", lambda frames: [frames.pcap(order=">")]),
    Change("pcapng", lambda frames: [frames.pcapng()]),
    Change("in a VLAN", one(change.with_tag)),
    Change("in a GRE tunnel", one(change.in_tunnel)),
    Change("in VXLAN", one(change.in_vxlan)),
    Change("in GTP-U", one(change.in_gtp)),
    Change("behind labels of MPLS", one(change.in_mpls)),
    Change("in a VLAN in a VLAN", one(lambda frames: change.with_tag(change.with_tag(frames)))),
    Change("in two files", lambda frames: _pieces(frames, 2)),
    Change("in five files", lambda frames: _pieces(frames, 5) if _is_sorted(frames) else None),
    Change("merged with itself at other ports, 50 us later", _only_tcp(_in_order(_with_itself))),
    Change("unrelated packets between", _unrelated),
    Change("a stray SYN, SYN+ACK and reset between", _strays,
           may=("stray_packets", "idle_gaps", "idle_s", "syn_ack_packets")),
    Change("the clock set back by 3 s", one(lambda frames: change.set_back(frames, 0.5, 3_000_000_000)), part=True),
    Change("one direction (initiator)", one(lambda frames: change.one_way(frames, 0)), part=True, true=REPEATED),
    Change("one direction (responder)", one(lambda frames: change.one_way(frames, 1)), part=True, true=REPEATED),
    Change("the first tenth gone", one(lambda frames: change.without(frames, 0, 0.1)), part=True),
    Change("the first half gone", one(lambda frames: change.without(frames, 0, 0.5)), part=True),
    Change("the last tenth gone", one(lambda frames: change.without(frames, 0.9, 1)), part=True),
    Change("the last half gone", one(lambda frames: change.without(frames, 0.5, 1)), part=True),
    Change("a hole of a fiftieth", one(lambda frames: change.without(frames, 0.5, 0.52)), part=True),
    Change("segments merged as by GRO", one(change.merged_segments), part=True),
    Change("segments split in two", _in_order(change.split_segments), part=True),
    Change("times twice as long", _in_order(lambda frames: change.stretched(frames, 2)), part=True, times=False,
           true=LONGER),
)  # fmt: skip


@dataclasses.dataclass
class Outcome:
    """Of one change of one capture: sentences kept and gone, numbers kept and unknown now, and what became false."""

    kept: int = 0
    gone: int = 0
    known: int = 0
    unknown: int = 0
    false: list[str] = dataclasses.field(default_factory=list)


def compare(before: Story, after: Story, how: Change) -> Outcome:
    """Hold the story of the changed capture against the whole one's."""
    outcome = Outcome()
    for key, told in before.items():
        other = after.get(key)
        if other is None:
            if not how.part:
                outcome.false.append(f"{key}: the connection is gone")
            continue
        outcome.kept += len(told.templates & other.templates)
        outcome.gone += len(told.templates - other.templates)
        outcome.false += [f"{' > '.join(key[1:])}: {text}" for text in _false(told, other, how)]
        for name, value in told.totals.items():
            if value is not None:
                outcome.known += other.totals.get(name) is not None
                outcome.unknown += other.totals.get(name) is None
    return outcome


def _false(told: Told, other: Told, how: Change) -> Iterator[str]:
    if not how.part:
        if missing := told.templates - other.templates:
            yield f"not said any more: {sorted(missing)[0]}"
        yield from (
            f"{name} {told.totals.get(name)} became {value}"
            for name, value in other.totals.items()
            if name not in how.may and told.totals.get(name) != value
        )
        yield from (
            f"{setting[1]} {interval} became {other.settings.get(setting)}"
            for setting, interval in told.settings.items()
            if other.settings.get(setting) != interval
        )
    for sentence in other.sentences:
        bare = template(sentence)
        allowed = (*LACKS, *LIMITS, *how.true) if how.part else LACKS
        if bare not in told.templates and not any(words in sentence for words in allowed):
            yield f"said: {sentence}"
    for setting, (low, high) in other.settings.items():
        if setting in told.settings and (how.times or not setting[1].startswith(TIMED)):
            least, most = told.settings[setting]
            if _beyond(low, most) or _beyond(least, high):
                yield f"{setting[1]} is {low} to {high}, of the whole capture {least} to {most}"


def _beyond(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low > high * (1 + 1e-9)


def run(paths: Sequence[Path], only: str | None = None) -> tuple[dict[str, list[tuple[Path, Outcome]]], list[str]]:
    """By change its outcomes; and the captures that cannot be read by themselves."""
    results: dict[str, list[tuple[Path, Outcome]]] = {
        each.name: [] for each in CHANGES if not only or only in each.name
    }
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                frames = read_frames(path)
                if frames.link_type not in HEADERS:
                    refused.append(f"{path.name}: frames of link type {frames.link_type} are not changed here")
                    continue
                plain = Path(folder) / "plain.pcap"
                plain.write_bytes(frames.pcap())
                before = story_of([plain], {})
            except (CaptureError, KeyError, struct.error) as error:
                refused.append(f"{path.name}: {error}")
                continue
            for each in CHANGES:
                if each.name in results and (contents := _applied(each, frames)):
                    files = []
                    for number, content in enumerate(contents):
                        files.append(Path(folder) / f"changed{number}.pcap")
                        files[-1].write_bytes(content)
                    outcome = compare(before, story_of(files, each.rename(frames)), each)
                    results[each.name].append((path, outcome))
    return results, refused


def _applied(each: Change, frames: Frames) -> list[bytes] | None:
    """None: the change cannot be made, of a few packets or of lengths that lie; or it changes nothing."""
    try:
        contents = each.make(frames) if len(frames.frames) >= 4 else None
        return None if contents == [frames.pcap()] else contents
    except (struct.error, IndexError):
        return None


def captures_in(paths: Sequence[Path]) -> list[Path]:
    """Files, and those of folders."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.pcap*")) if path.is_dir() else [path]
    return found


def table(results: dict[str, list[tuple[Path, Outcome]]]) -> str:
    """In Markdown."""
    lines = ["| change | captures | sentences kept | gone | numbers known | unknown now | false |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    total: Counter[str] = Counter()
    for name, outcomes in results.items():
        sums = Counter(
            {key: sum(getattr(out, key) for _, out in outcomes) for key in ("kept", "gone", "known", "unknown")}
        ) + Counter(captures=len(outcomes), false=sum(len(out.false) for _, out in outcomes))
        total += sums
        cells = [name, *(str(sums[key]) for key in ("captures", "kept", "gone", "known", "unknown", "false"))]
        lines.append(f"| {' | '.join(cells)} |")
    cells = ["all", *(str(total[key]) for key in ("captures", "kept", "gone", "known", "unknown", "false"))]
    return "\n".join([*lines, f"| {' | '.join(cells)} |"])


def main() -> int:
    """Print what became false, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="CAPTURE | DIR")
    parser.add_argument("--only", metavar="NAME", help="changes whose name holds this")
    args = parser.parse_args()
    results, refused = run(captures_in(args.paths or [DATA / "captures", DATA / "cases"]), args.only)
    for name, outcomes in results.items():
        for path, outcome in outcomes:
            for text in outcome.false:
                print(f"{name}: {path.name}: {text}")
    print("\n".join(refused))
    print(table(results))
    return int(any(outcome.false for outcomes in results.values() for _, outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
