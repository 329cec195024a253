"""Compares the kernel's answers in init.ndjson with the configuration; every difference is a failed check."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..core.frozen import Frozen
from ..core.ip_families import IPV4, IPV6
from ..core.types import Check
from ..store import init_records as init
from ..store.ndjson import of_kind
from .aqm import KINDS as AQM_KINDS
from .aqm import AqmQdisc, marked, step_marks
from .compile import AskedDump, Compiled
from .layout import BRIDGE
from .messages import (
    DUMPS,
    IFF_MULTICAST,
    IFF_NOARP,
    NUD_PERMANENT,
    RELAY_TABLE,
    RTPROT_STATIC,
    TCA_BPF_NAME,
    TCA_BPF_TAG,
    TCA_KIND,
    TCA_OPTIONS,
)
from .netem import PRNG_SEED, Netem
from .nftables import check_rules, decode_rules, refused
from .qdiscs import TCA_STAB, Fifo, Fq, Htb, QdiscStage, Tbf, attributes_of, overhead_of
from .shaping import ExpectedQdisc

NLMSG_ERROR, NLMSG_DONE = 2, 3
TCA_STATS2, TCA_STATS_APP, TCA_STATS_QUEUE, TCA_STATS_BASIC = 7, 4, 3, 1
NETEM_QOPT_BYTES = 24
NEVER_NS = 1 << 62
LOOPBACK = (IPV4.loopback, IPV6.loopback)
SHAPING_KINDS = ("netem", "tbf", "htb", "fq", "pfifo", "bfifo", *AQM_KINDS)
OFFLOADS = ("tx", "rx", "sg", "tso", "gso", "gro")


class Qdisc(Frozen, frozen=True):
    """A qdisc in a dump. `netem`, `tbf`, `aqm`, `htb` (or its queue): None if it is of another kind. Handles are major
    numbers; parent None: root.

    seeded: False if the kernel's netem has no generator of its own (6.1): losses do not follow the seed then.
    """

    ifindex: int
    handle: int
    parent: int | None
    kind: str
    netem: Netem | None
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    queued_packets: int
    seeded: bool = True
    tbf: Tbf | None = None
    aqm: AqmQdisc | None = None
    marked_packets: int = 0
    """ECN marks, of an AQM."""
    step_marks: int = 0
    """Of them those of DualPI2's step, which also counts packets that were marked already."""
    htb: Htb | Fifo | Fq | None = None


def verify(compiled: Compiled, records: Sequence[init.InitRecord]) -> tuple[list[Check], dict[str, Any]]:
    """Compare every read-back with the configuration.

    Returns the checks, and the read-backs in readable form for environment.json: per namespace its links, addresses,
    routes and sysctls at the start, and the qdiscs of every dump with their counters.
    """
    played = {record.step for record in of_kind(records, init.Timeline) if record.step is not None}
    over_ns = max((record.t_ns or 0 for record in of_kind(records, init.Exit)), default=NEVER_NS)
    names = compiled.layout.namespaces
    network: dict[str, Any] = {"namespaces": {name: {} for name in names}, "qdiscs": []}
    if compiled.programs:
        network["packet_programs"] = []
    devices = {(each.namespace, each.name) for each in compiled.layout.interfaces() if each.is_device}
    unanswered, unrecorded = dict(compiled.dumps), dict(enumerate(compiled.programs))
    checks: list[Check] = []
    sysctls = 0
    for record in records:
        if isinstance(record, init.Sysctl):
            sysctls += 1
            name = names[record.ns]
            asked, got = " ".join(record.asked.split()), " ".join(record.value.split())
            checks.append(_same(f"sysctl {record.path} in {name}", asked, got))
            network["namespaces"][name].setdefault("sysctls", {})[record.path] = got
        elif isinstance(record, init.Offload):
            # some network cards cannot leave checksums to the kernel: a packet's length and time do not hang on them
            features = OFFLOADS[2:] if (record.ns, record.iface) in devices else OFFLOADS
            state = {feature: getattr(record, feature) for feature in features}
            checks.append(
                _same(f"offloads off on {names[record.ns]} {record.iface}", dict.fromkeys(features, 0), state)
            )
        elif isinstance(record, init.Bpf):
            program = unrecorded.pop(record.index)
            judged, counted = program.check(record, compiled.settings_at_end(program, played))
            checks += judged
            network["packet_programs"].append({"link": program.link, "direction": program.direction, "counts": counted})
        elif isinstance(record, init.Dump):
            checks += _check_dump(compiled, unanswered.pop(record.step), record, played, network)
    checks.append(_same("sysctls read back", len(compiled.sysctls), sysctls))
    for program in unrecorded.values():
        checks.append(Check(f"packet program of {program.link} {program.direction}", False, "left no record"))
    missing = [
        f"{dump.label} of {names[dump.namespace]} (step {number})"
        for number, dump in unanswered.items()
        # of a cell whose flows ended early the rest of the timeline is not carried out
        if dump.at_ns is None or number in played or dump.at_ns < over_ns
    ]
    if missing:
        checks.append(Check("dumps", False, f"were never answered: {', '.join(missing)}"))
    network["netem_seeded"] = all(qdisc.seeded for entry in network["qdiscs"] for qdisc in entry["qdiscs"])
    return checks, network


def _check_dump(
    compiled: Compiled, asked: AskedDump, record: init.Dump, played: set[int], network: dict[str, Any]
) -> Iterator[Check]:
    """Compares one answer; what it shows goes into `network`."""
    name, data = compiled.layout.namespaces[asked.namespace], record.data()
    if asked.wanted is not None:
        yield asked.wanted.check(name, [each for _, each in split(data)] if asked.label == "conntrack"
                                 else decode(asked.label, data))  # fmt: skip
        return
    match asked.label:
        case "rules" if asked.namespace in compiled.firewalls:
            network.setdefault("firewalls", {})[name] = {"refused_packets": refused(data)}
        case "rules":
            through = decode_rules(data)
            network.setdefault("agents", {})[name] = through
            yield check_rules(name, through, name in compiled.dying)
        case "filter":
            place = asked.namespace, asked.ifindex
            attached = dict(decode_programs(data))
            for program in compiled.programs:
                if (program.interface.namespace, program.interface.ifindex) == place:
                    yield program.check_attached(attached)
        case "policer":
            place = asked.namespace, asked.ifindex
            messages = [message for _, message in split(data)]
            for policer in compiled.policers:
                if (policer.interface.namespace, policer.interface.ifindex) == place:
                    checked, counted = policer.check(messages)
                    network.setdefault("policers", []).append(counted)
                    yield checked
        case "class":
            want = {(qdisc.handle, qdisc.stage) for qdisc in compiled.expected(asked, played)
                    if qdisc.device.ifindex == asked.ifindex and isinstance(qdisc.stage, Htb)}  # fmt: skip
            yield _same(f"class of htb on interface {asked.ifindex} of {name}", want, set(decode_classes(data)))
        case "qdisc":
            qdiscs = list(decode_qdiscs(data))
            yield from _check_qdiscs(name, compiled.expected(asked, played), qdiscs)
            network["qdiscs"].append({"step": record.step, "namespace": name, "qdiscs": qdiscs})
        case label if asked.whole:
            entries = list(decode(label, data))
            yield from _check_entries(compiled, asked.namespace, label, entries)
            if asked.at_ns is None:
                shown = [_readable(entry) for entry in entries]
                if label == "neighbour":  # dumped in the order of a hash of addresses inside the kernel
                    shown.sort(key=str)
                network["namespaces"][name][label] = shown


def _same(what: str, asked: object, got: object) -> Check:
    if isinstance(asked, set) and isinstance(got, set):
        # a set is printed in an order that changes from run to run; equal runs have equal files
        asked, got = sorted(asked, key=str), sorted(got, key=str)
    return Check(what, asked == got, str(got) if asked == got else f"asked {asked}, found {got}")


def _attributes(entry: Any) -> dict[str, Any]:
    return dict(entry["attrs"])


def _check_entries(compiled: Compiled, namespace: int, label: str, entries: list[Any]) -> Iterator[Check]:
    layout = compiled.layout
    name = layout.namespaces[namespace]
    own = [interface for interface in layout.interfaces() if interface.namespace == namespace]
    if label == "link":
        by_index = {entry["index"]: _attributes(entry) for entry in entries}
        for interface in own:
            link = by_index.get(interface.ifindex, {})
            got = (link.get("IFLA_IFNAME"), link.get("IFLA_MTU"), link.get("IFLA_ADDRESS"), link.get("IFLA_OPERSTATE"))
            up = "UNKNOWN" if interface.is_device and got[3] == "UNKNOWN" else "UP"  # some drivers never say
            asked = (interface.name, interface.mtu_bytes, interface.mac, up)
            yield _same(f"link {interface.name} of {name}", asked, got)
            if interface.speaks_ipv6:
                flags = next((e["flags"] for e in entries if e["index"] == interface.ifindex), 0)
                on = [bit for bit in (IFF_NOARP, IFF_MULTICAST) if flags & bit]
                yield _same(f"no ND and no multicast on {interface.name} of {name}", [IFF_NOARP], on)
            if interface.bridge is not None:
                port_of = link.get("IFLA_MASTER")
                yield _same(f"bridge of port {interface.name} of {name}", interface.bridge.ifindex, port_of)
        if namespace in layout.bridges:
            bridge = by_index.get(layout.bridges[namespace].ifindex, {})
            state = (bridge.get("IFLA_IFNAME"), bridge.get("IFLA_OPERSTATE"))
            yield _same(f"bridge of {name}", (BRIDGE, "UP"), state)
    elif label == "address":
        addresses = {(e["index"], _attributes(e).get("IFA_ADDRESS"), e["prefixlen"]) for e in entries}
        asked_addresses = {(each.ifindex, each.ip, each.ip_family.subnet_length) for each in own if each.ip}
        yield _same(f"addresses of {name}", asked_addresses, {a for a in addresses if a[1] not in LOOPBACK})
    elif label == "neighbour":
        permanent = {
            (e["ifindex"], _attributes(e).get("NDA_DST"), _attributes(e).get("NDA_LLADDR"))
            for e in entries
            if e["state"] & NUD_PERMANENT
        }
        asked_neighbours = {(each.ifindex, ip, mac) for each in own for ip, mac in layout.neighbours(each)}
        yield _same(f"permanent neighbours of {name}", asked_neighbours, permanent)
    elif label == "route":
        routes = {
            (*(_attributes(e).get(f"RTA_{key}") for key in ("DST", "GATEWAY", "OIF")), *_tcp_metrics(e))
            for e in entries
            if e["proto"] == RTPROT_STATIC and _attributes(e).get("RTA_TABLE") != RELAY_TABLE
        }
        asked_routes = {
            (r.subnet, r.gateway or None, r.interface.ifindex, r.initial_window_packets, r.quick_ack)
            for r in layout.routes
            if r.node == name
        }
        yield _same(f"static routes of {name}", asked_routes, routes)
    elif label == "rule":
        rules = {
            tuple(_attributes(e).get(f"FRA_{key}") for key in ("IIFNAME", "SPORT_RANGE", "DPORT_RANGE"))
            for e in entries
            if _attributes(e).get("FRA_TABLE") == RELAY_TABLE
        }
        yield _same(f"rules of the relay of {name}", compiled.relays[namespace], rules)


def _tcp_metrics(route: Any) -> tuple[int | None, bool]:
    """Initial window, and whether every segment is acknowledged."""
    metrics = _attributes(route).get("RTA_METRICS")
    known = {} if metrics is None else _attributes(metrics)
    return known.get("RTAX_INITCWND"), bool(known.get("RTAX_QUICKACK"))


def _check_qdiscs(name: str, expected: list[ExpectedQdisc], qdiscs: list[Qdisc]) -> Iterator[Check]:
    unmatched = {(qdisc.ifindex, qdisc.handle): qdisc for qdisc in qdiscs if qdisc.kind in SHAPING_KINDS}
    for want in expected:
        got = unmatched.pop((want.device.ifindex, want.handle), None)
        what = f"qdisc {want.handle:x}: on {want.device.name} of {name}"
        if got is None or got.kind != want.stage.kind:
            yield Check(what, False, f"asked {want.stage.text()}, found {'nothing' if got is None else got.kind}")
            continue
        # the kernel never dumps a delay distribution's table: it is taken as asked
        shown: QdiscStage | None = got.aqm or got.tbf or got.htb
        if got.netem is not None and isinstance(want.stage, Netem):
            shown = msgspec.structs.replace(
                got.netem,
                distribution=want.stage.distribution,
                seed=got.netem.seed if got.seeded else want.stage.seed,
            )
        asked = want.stage.as_shown()
        if isinstance(asked, AqmQdisc) and got.aqm is not None:
            asked = asked.in_ticks_of(got.aqm).as_adapted(got.aqm)
        yield _same(what, (want.parent, asked), (got.parent, shown))
    for ifindex, handle in unmatched:
        yield Check(f"qdiscs of {name}", False, f"unexpected qdisc {handle:x}: on interface {ifindex}")


def split(datagrams: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(type, whole message) of every netlink message but the end marks. Raises ValueError on a kernel error."""
    for datagram in datagrams:
        offset = 0
        while offset + 16 <= len(datagram):
            length, kind = struct.unpack_from("=IH", datagram, offset)
            if length < 16 or offset + length > len(datagram):
                raise ValueError(f"netlink message of {length} bytes in a datagram of {len(datagram)}")
            if kind == NLMSG_ERROR:
                raise ValueError(
                    f"the kernel answered a dump with error {struct.unpack_from('=i', datagram, offset + 16)[0]}"
                )
            if kind != NLMSG_DONE:
                yield kind, datagram[offset : offset + length]
            offset += (length + 3) & ~3


def decode(label: str, datagrams: Iterable[bytes]) -> Iterator[Any]:
    """Messages of a link, address, route or neighbour dump, as pyroute2 decodes them."""
    for _, message in split(datagrams):
        decoded = DUMPS[label][0](message)
        decoded.decode()
        yield decoded


def decode_qdiscs(datagrams: Iterable[bytes]) -> Iterator[Qdisc]:
    """Qdiscs of a dump (struct tcmsg; parsed here because pyroute2 would decode netem's options its own way)."""
    for _, message in split(datagrams):
        _, _, _, ifindex, handle, parent, _ = struct.unpack_from("=BBHiIII", message, 16)
        attributes = attributes_of(message[16 + 20 :])
        kind = attributes.get(TCA_KIND, b"").rstrip(b"\0").decode()
        stats = attributes_of(attributes.get(TCA_STATS2, b""))
        size, packets = struct.unpack_from("=QI", stats.get(TCA_STATS_BASIC, bytes(16)))
        queued, _, dropped, _, _ = struct.unpack_from("=IIIII", stats.get(TCA_STATS_QUEUE, bytes(20)))
        yield Qdisc(
            ifindex=ifindex,
            handle=handle >> 16,
            parent=None if parent == 0xFFFFFFFF else parent >> 16,
            kind=kind,
            netem=Netem.decode(
                attributes[TCA_OPTIONS], size_overhead_bytes=overhead_of(attributes_of(attributes.get(TCA_STAB, b"")))
            )
            if kind == "netem"
            else None,
            seeded=kind != "netem" or PRNG_SEED in attributes_of(attributes[TCA_OPTIONS][NETEM_QOPT_BYTES:]),
            sent_packets=packets,
            sent_bytes=size,
            dropped_packets=dropped,
            queued_packets=queued,
            tbf=Tbf.decode(attributes_of(attributes[TCA_OPTIONS])) if kind == "tbf" else None,
            aqm=AqmQdisc.decode(kind, attributes_of(attributes[TCA_OPTIONS])) if kind in AQM_KINDS else None,
            marked_packets=marked(kind, stats.get(TCA_STATS_APP, b"")),
            step_marks=step_marks(kind, stats.get(TCA_STATS_APP, b"")),
            htb=_other(kind, attributes),
        )


def _other(kind: str, attributes: dict[int, bytes]) -> Htb | Fifo | Fq | None:
    match kind:
        case "htb":
            return Htb()
        case "pfifo" | "bfifo":
            return Fifo.decode(kind, attributes[TCA_OPTIONS])
        case "fq":
            return Fq.decode(attributes_of(attributes[TCA_OPTIONS]))
    return None


def decode_classes(datagrams: Iterable[bytes]) -> Iterator[tuple[int, Htb]]:
    """(handle of the qdisc, class as it is) of every class of htb in a dump."""
    for _, message in split(datagrams):
        _, _, _, _, handle, _, _ = struct.unpack_from("=BBHiIII", message, 16)
        attributes = attributes_of(message[16 + 20 :])
        if attributes.get(TCA_KIND) == b"htb\0":
            yield handle >> 16, Htb.decode_class(attributes_of(attributes[TCA_OPTIONS]))


def decode_programs(datagrams: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """(name, tag) of every program among the filters of a dump."""
    for _, message in split(datagrams):
        options = attributes_of(attributes_of(message[16 + 20 :]).get(TCA_OPTIONS, b""))
        if TCA_BPF_TAG in options:
            yield options.get(TCA_BPF_NAME, b"").rstrip(b"\0").decode(), options[TCA_BPF_TAG].hex()


KEEP = {
    "IFLA_IFNAME", "IFLA_MTU", "IFLA_ADDRESS", "IFLA_OPERSTATE", "IFA_ADDRESS", "RTA_DST", "RTA_GATEWAY", "RTA_OIF",
    "RTA_PREFSRC", "NDA_DST", "NDA_LLADDR",
}  # fmt: skip


def _readable(entry: Any) -> dict[str, Any]:
    """The informative fields of a message, for environment.json."""
    text = {name.partition("_")[2].lower(): value for name, value in entry["attrs"] if name in KEEP}
    for key in ("index", "ifindex", "prefixlen", "dst_len", "state"):
        if key in entry:
            text[key] = entry[key]
    return text
