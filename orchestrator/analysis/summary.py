"""`netwarp analyze FILE...`: what is in any capture, without a spec."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .capture import Capture, read_captures
from .native import Rows
from .notes import capture_notes

PROTOCOLS = {6: "TCP", 132: "SCTP"}
TOTALS = ("packets", "ip_bytes", "data_packets", "payload_bytes", "new_bytes", "retransmitted_packets")
FLOWS_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class Summary:
    """One object a file; see `as_json` for its keys."""

    files: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """{"files": [{file, packets, notes, flows: [{protocol, from, to, paths, ...}], ...}]}; seconds, bytes.

        new_payload_bit_s is over the flow's whole time, handshake and end included: not docs/metrics.md's goodput.
        """
        return {"files": list(self.files)}

    def as_text(self) -> str:
        """For a terminal."""
        return "\n\n".join(_file_text(file) for file in self.files)


def analyze_captures(paths: Sequence[str | os.PathLike[str]]) -> Summary:
    """Summarise captures of any origin, each by itself. Only totals are kept, so memory does not grow with the file.

    Raises CaptureError naming the file that cannot be read; a file cut off is used as far as it goes and says so.
    """
    return Summary(tuple(_file(read_captures([path], ())) for path in paths))


def _file(capture: Capture) -> dict[str, Any]:
    source = capture.sources[0]
    span = int(source["last_ns"] - source["first_ns"]) / 1e9
    order = np.argsort(capture.flow_paths["flow"], kind="stable")
    edges = np.searchsorted(capture.flow_paths["flow"][order], np.arange(len(capture.flows) + 1))
    flows = [
        _flow(capture, row, capture.flow_paths[order[edges[row] : edges[row + 1]]]) for row in range(len(edges) - 1)
    ]
    flows.sort(key=lambda flow: -flow["ip_bytes"])
    return {
        "file": os.fspath(capture.files[0]),
        "packets": int(source["packets"]),
        "frame_bytes": int(source["frame_bytes"]),
        "duration_s": span,
        "first_s": int(source["first_ns"]) / 1e9,
        "ipv4_packets": int(source["ipv4"]),
        "ipv6_packets": int(source["ipv6"]),
        "notes": capture_notes(capture, 0),
        "flows": flows,
    }


def _flow(capture: Capture, row: int, used: Rows) -> dict[str, Any]:
    """One flow; used: its rows of flow_paths."""
    flow = capture.flows[row]
    end = int(flow["path_direction"])
    first = [capture.address(int(flow["path"]), side) for side in (end, 1 - end)]
    span = int(flow["last_ns"] - flow["first_ns"]) / 1e9
    return {
        "protocol": PROTOCOLS[int(flow["protocol"])],
        "from": f"{first[0]}:{flow['port'][0]}",
        "to": f"{first[1]}:{flow['port'][1]}",
        "handshake_seen": bool(flow["initiator_known"]),
        "duration_s": span,
        "ip_bytes": int(used["ip_bytes"].sum()),
        "directions": [
            {name: int(used[name][:, d].sum()) for name in TOTALS}
            | {"new_payload_bit_s": int(used["new_bytes"][:, d].sum()) * 8 / span if span else None}
            for d in (0, 1)
        ],
        "paths": [
            {
                "addresses": [
                    capture.address(int(one["path"]), side)
                    for side in (int(one["path_direction"]), 1 - int(one["path_direction"]))
                ],
                "packets": one["packets"].tolist(),
                "ip_bytes": one["ip_bytes"].tolist(),
                "data_packets": one["data_packets"].tolist(),
                "retransmitted_packets": one["retransmitted_packets"].tolist(),
            }
            for one in used
        ],
    }


def _file_text(file: dict[str, Any]) -> str:
    lines = [f"{file['file']}: {file['packets']} packets, {file['frame_bytes']} bytes, {file['duration_s']:.6f} s"]
    lines += [f"  note: {note}" for note in file["notes"]]
    for flow in file["flows"][:FLOWS_SHOWN]:
        lines.append(f"  {flow['protocol']} {flow['from']} > {flow['to']}  {flow['duration_s']:.6f} s")
        for arrow, totals in zip(("->", "<-"), flow["directions"], strict=True):
            rate = totals["new_payload_bit_s"]
            lines.append(
                f"    {arrow} {totals['packets']} packets ({totals['data_packets']} with data), "
                f"{totals['payload_bytes']} B payload, {totals['new_bytes']} B new, "
                f"{totals['retransmitted_packets']} retransmitted"
                + (f", {rate / 1e6:.4g} Mbit/s of new payload" if rate else "")
            )
        if len(flow["paths"]) > 1:
            lines += [f"    path {' <> '.join(path['addresses'])}: {path['packets']} packets" for path in flow["paths"]]
    if len(file["flows"]) > FLOWS_SHOWN:
        lines.append(f"  and {len(file['flows']) - FLOWS_SHOWN} smaller flows (--json lists all)")
    return "\n".join(lines)
