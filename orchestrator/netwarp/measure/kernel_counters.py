"""What the kernel counted in each host's namespace by the end (/proc/net/snmp, netstat, sctp/snmp), as numbers.

For comparison with what the captures show: Tcp.RetransSegs, TcpExt.TCPDSACKRecv, Sctp.SctpT3Retransmits, ...
"""

from __future__ import annotations

from collections.abc import Sequence

from ..store.ndjson import Record

FILES = ("net/snmp", "net/netstat", "net/sctp/snmp")


def kernel_counters(init_records: Sequence[Record], namespaces: Sequence[str]) -> dict[str, dict[str, int]]:
    """Namespace (node) -> "Group.Name" -> count. init_records: of init.ndjson; namespaces: by number.

    A file this kernel does not have gives nothing. Of SCTP the group is "Sctp" and names are the kernel's own.
    """
    found: dict[str, dict[str, int]] = {}
    for record in init_records:
        if record.get("record") != "proc" or record.get("path") not in FILES:
            continue
        place = found.setdefault(namespaces[record["ns"]], {})
        text = record.get("text") or ""
        place.update(_sctp(text) if record["path"] == "net/sctp/snmp" else _groups(text))
    return found


def _groups(text: str) -> dict[str, int]:
    """Pairs of lines: "Tcp: A B" and "Tcp: 1 2"."""
    lines = [line.split() for line in text.splitlines() if ":" in line]
    counts: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group = names[0].rstrip(":")
        counts |= {f"{group}.{name}": int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return counts


def _sctp(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in text.splitlines())
    return {f"Sctp.{name}": int(value) for name, value in pairs}
