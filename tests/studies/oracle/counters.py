"""The kernel's own counters, against packets of the captures: net/snmp and net/sctp/snmp of hosts, qdiscs of hops, and
what the programs' sockets said at their end (tcp_info of Linux).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .cell import CellFiles
from .data import rows_of
from .flows import FlowSeen, own
from .packets import SCTP, TCP, UDP

Json = dict[str, Any]
RTM_NEWLINK, RTM_NEWQDISC = 16, 36
IFLA_IFNAME, TCA_KIND, TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 3, 1, 7, 1, 3
TCA_STATS_APP = 4
MARKS_AT = {"red": 12, "codel": 24, "fq_codel": 12, "pie": 40}
"""Where the marks stand in what a qdisc says of itself (pkt_sched.h: tc_red_xstats and so on); fq_codel: behind the
number of its kind; pie: behind 64 bits of probability and seven numbers.
"""


def namespaces(files: CellFiles) -> list[str]:
    """The cell's namespaces by their number: `ns index=I name=NAME` of steps.txt."""
    text = (files.directory / "steps.txt").read_text()
    found = {int(number): name for number, name in re.findall(r"^ns index=(\d+) name=(\S+)", text, re.MULTILINE)}
    return [found[number] for number in sorted(found)]


def proc(files: CellFiles) -> dict[str, dict[str, int]]:
    """Host -> counter ("Tcp.RetransSegs", "SctpOutSCTPPacks") -> value at the cell's end."""
    names = namespaces(files)
    counters: dict[str, dict[str, int]] = {}
    for record in files.init:
        if record["record"] != "proc" or not record.get("text"):
            continue
        here = counters.setdefault(names[record["ns"]], {})
        lines = record["text"].splitlines()
        if record["path"] == "net/sctp/snmp":
            here |= {name: int(value) for name, value in (line.split() for line in lines)}
        else:
            for head, values in zip(lines[::2], lines[1::2], strict=True):
                prefix = head.split(":")[0]
                here |= {f"{prefix}.{name}": int(value)
                         for name, value in zip(head.split()[1:], values.split()[1:], strict=True)}  # fmt: skip
    return counters


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Netlink attributes: length, type, value, padded to 4."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("<HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) // 4 * 4


def messages(replies: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Netlink messages of a dump's replies: type and payload."""
    for reply in replies:
        data, at = bytes.fromhex(reply), 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("<IH", data, at)
            if length < 16:
                break
            yield kind, data[at + 16 : at + length]
            at += (length + 3) // 4 * 4


def qdiscs(files: CellFiles) -> list[Json]:
    """The qdiscs of every namespace as last dumped: namespace, interface, kind, parent, packets, drops, waiting."""
    names = namespaces(files)
    links: dict[tuple[int, int], str] = {}
    last: dict[tuple[int, str], Json] = {}
    for record in files.init:
        if record["record"] == "dump":
            for kind, payload in messages(record["replies"]):
                if kind == RTM_NEWLINK:
                    index = struct.unpack_from("<i", payload, 4)[0]
                    name = dict(attributes(payload[16:])).get(IFLA_IFNAME, b"")
                    links[record["ns"], index] = name.rstrip(b"\0").decode()
            if record["label"] == "qdisc":
                last[record["ns"], "qdisc"] = record
    found: list[Json] = []
    for (number, _), record in last.items():
        for kind, payload in messages(record["replies"]):
            if kind != RTM_NEWQDISC:
                continue
            index, handle, parent = struct.unpack_from("<iII", payload, 4)
            parts = dict(attributes(payload[20:]))
            stats = dict(attributes(parts.get(TCA_STATS2, b"")))
            if TCA_STATS_QUEUE not in stats:
                continue
            waiting, backlog, drops, _, _ = struct.unpack_from("<5I", stats[TCA_STATS_QUEUE])
            octets, count = struct.unpack_from("<QI", stats[TCA_STATS_BASIC])
            found.append({
                "namespace": names[number], "interface": links.get((number, index), str(index)), "handle": handle,
                "parent": parent, "kind": parts[TCA_KIND].rstrip(b"\0").decode(), "packets": count, "bytes": octets,
                "drops": drops, "waiting": waiting, "backlog": backlog,
                "marks": _marks(parts[TCA_KIND].rstrip(b"\0").decode(), stats.get(TCA_STATS_APP, b"")),
            })  # fmt: skip
    return found


def _marks(kind: str, told: bytes) -> int | None:
    at = MARKS_AT.get(kind)
    return None if at is None or len(told) < at + 4 else int(struct.unpack_from("<I", told, at)[0])


def of_hosts(files: CellFiles, flows: Sequence[FlowSeen]) -> Iterator[tuple[str, float, float]]:
    """What each host's kernel counted, beside what its captures show: (name, kernel's, captured)."""
    kinds = {node["name"]: node["kind"] for node in files.cell["nodes"]}
    points = {(point["node"], point["link"]) for point in files.cell["captures"]}
    reborn = {event.get("node") for event in files.cell["timeline"]}
    if files.corrupting:  # what answers an altered address never leaves
        return
    down = {event["link"] for event in files.cell["timeline"] if event["action"] in ("link", "address")}
    agents = any(node.get("agent") for node in files.cell["nodes"])
    for host, counters in proc(files).items():
        mine = {(host, name) for name, link in files.links.items() if host in (link["a"], link["b"])}
        if (
            kinds.get(host) != "host"
            or not mine <= points
            or host in reborn
            or agents
            or down & {name for _, name in mine}
        ):
            continue
        every = files.at(host)
        ours = {files.address(host, name) for _, name in mine}
        sent = [packet for packet in every if packet.source in ours]
        if any(packet.fragment for packet in every):
            continue
        tcp = [packet for packet in sent if packet.protocol == TCP]
        programs = any(flow.get("program") for flow in files.cell["flows"])
        if "Tcp.RetransSegs" in counters and not programs:
            repeats = sum(1 for row in rows_of(tcp, "tcp") if row.repeats)
            yield f"{host} Tcp.RetransSegs", counters["Tcp.RetransSegs"], repeats
            segments = counters["Tcp.OutSegs"] + counters["Tcp.RetransSegs"]
            if segments < len(tcp):  # what leaves after the cell's end, or is kept back by a fault, is counted too
                yield f"{host} Tcp.OutSegs+RetransSegs", segments, len(tcp)
        if "SctpOutSCTPPacks" in counters:
            sctp = sum(1 for packet in sent if packet.protocol == SCTP)
            yield f"{host} SctpOutSCTPPacks", counters["SctpOutSCTPPacks"], sctp
        if "Udp.OutDatagrams" in counters and not any(link.get("family") for link in files.links.values()):
            udp = sum(1 for packet in sent if packet.protocol == UDP)
            yield f"{host} Udp.OutDatagrams", counters["Udp.OutDatagrams"], udp


def of_checksums(files: CellFiles) -> Iterator[tuple[str, float, float]]:
    """How many packets of SCTP each host's kernel dropped for their CRC32c, where links alter bits, beside how many are
    captured with a wrong one (RFC 9260 6.8): (name, kernel's, captured).
    """
    if not files.corrupting:
        return
    points = {(point["node"], point["link"]) for point in files.cell["captures"]}
    for host, counters in proc(files).items():
        mine = [name for name, link in files.links.items() if host in (link["a"], link["b"])]
        if "SctpChecksumErrors" not in counters or not {(host, name) for name in mine} <= points:
            continue
        ours = {files.address(host, name) for name in mine}
        wrong = 0
        for name in mine:
            came = [packet for packet in files.capture(host, name) or () if packet.destination in ours]
            macs = Counter(packet.to_mac for packet in came)  # an altered one is another host's
            wrong += sum(
                packet.protocol == SCTP and packet.heard and not packet.good and not packet.fragment
                and packet.to_mac == macs.most_common(1)[0][0]
                for packet in came
            )  # fmt: skip
        yield f"{host} SctpChecksumErrors", counters["SctpChecksumErrors"], wrong


def of_sockets(files: CellFiles, seen: FlowSeen) -> Iterator[tuple[str, float, float]]:
    """What the sockets and programs of a flow said at their end, beside what was captured: (name, theirs, captured)."""
    if not own(seen.flow) or seen.flow.get("turned") or seen.unjudged:
        return
    for event in files.cell["timeline"]:
        if event["action"] in ("restart", "stop_reading", "address"):
            return
    receiver = files.summary(seen.name, "receiver")
    total = seen.flow["total_bytes"]
    if receiver is not None and seen.complete and total is not None and seen.protocol in ("tcp", "mptcp"):
        told = receiver.get("arrived") or receiver
        yield f"{seen.name} unique_bytes", told["unique_bytes"] or 0, total
    sender = files.summary(seen.name, "sender")
    if sender is None or seen.protocol != "tcp" or seen.flow["sender_options"].get("reconnect_ns") is not None:
        return
    paths = (sender.get("kernel") or {}).get("paths") or []
    info = paths[0].get("tcp_info") if paths else None
    if not info:
        return
    until = sender["t_ns"] - files.t0_monotonic
    rows = [row for row in seen.sender.data if row.packet.t <= until]
    data = [row for row in rows if row.packet.payload_bytes]
    yield f"{seen.name} data_segs_out", info["data_segs_out"], len(data)
    yield f"{seen.name} bytes_sent", info["bytes_sent"], sum(row.packet.payload_bytes for row in rows)
    yield (
        f"{seen.name} bytes_retrans", info["bytes_retrans"],
        sum(row.packet.payload_bytes - row.new_bytes for row in rows),
    )  # fmt: skip
