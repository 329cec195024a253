"""The packets of a connection by kind, and each one's words, for the ladder."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..core import wire
from ..core.numbers import fixed
from .arrays import run_begins
from .capture import Capture, rows_of_flow, rows_of_flows
from .native import UNKNOWN, Bools, Ints, Rows
from .packet_words import ack_words, block_words, chunk_words, sent_words
from .sctp.message_names import message_name
from .tcp.ack_information import probe_rows

CONTROL, AGAIN, PROBE, DATA, BEAT, ACK = range(6)
"""Kinds of packets; one that is of several is of the first of them."""
LOOKS = ("control", "again", "again", "data", "beat", "ack")
ENDS = (wire.ABORT, wire.ERROR)
BLOCKS_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class PacketRows:
    """The packets, in the order of the capture; one value each. lane: the place of its path; frame: its number as
    tshark counts; named: it carries a message whose name is known. text: a packet's words; names_of: its messages'
    names.
    """

    time_ns: Ints
    direction: Ints
    lane: Ints
    frame: Ints
    kind: Ints
    named: Bools
    ends: Bools
    text: Callable[[int], str]
    names_of: Callable[[int], list[str]]

    def look(self, row: int) -> str:
        """How the packet is drawn."""
        return "end" if self.ends[row] else LOOKS[int(self.kind[row])]

    def names(self, rows: Ints, most: int) -> list[str]:
        """The commonest names of the messages in these packets, with their counts."""
        found = Counter(name for row in rows[self.named[rows]].tolist() for name in self.names_of(row))
        texts = [f"{name} ({fixed(count, 0)})" for name, count in found.most_common(most)]
        return [*texts, f"{len(found) - most} more names"] if len(found) > most else texts


def sctp_rows(capture: Capture, flow: int) -> tuple[PacketRows, list[int]]:
    """An association's packets, and the paths in the order of their lanes."""
    chunks = rows_of_flow(capture, "chunks", flow)
    first = np.flatnonzero(run_begins(chunks["packet"]))
    last = np.append(first[1:], len(chunks))
    paths = list(rows_of_flow(capture, "flow_paths", flow)["path"].tolist())
    kinds = chunks["type"]
    is_data = (kinds == wire.DATA) | (kinds == wire.I_DATA)
    is_beat = (kinds == wire.HEARTBEAT) | (kinds == wire.HEARTBEAT_ACK)
    of_chunk = np.full(len(chunks), CONTROL, dtype=np.int64)
    of_chunk[kinds == wire.SACK], of_chunk[is_beat], of_chunk[is_data] = ACK, BEAT, DATA
    of_chunk[is_data & chunks["is_retransmission"]] = AGAIN
    ports = tuple(int(port) for port in capture.flows["port"][flow])
    names: dict[tuple[int, int], str] = {}

    def name(chunk: Rows) -> str:
        key = int(chunk["ppid"]), int(chunk["detail"])
        if key not in names:
            names[key] = message_name(*key, (ports[0], ports[1]))
        return names[key]

    def names_of(row: int) -> list[str]:
        mine = chunks[first[row] : last[row]]
        return [text for chunk in mine[is_data[first[row] : last[row]]] if _begins(chunk) and (text := name(chunk))]

    keys = (chunks["ppid"].astype(np.int64) << 32) + chunks["detail"]
    begins = is_data & (chunks["flags"] & wire.FIRST != 0)
    distinct, where = np.unique(keys[begins], return_inverse=True)
    told = np.array(
        [bool(message_name(key >> 32, key & 0xFFFFFFFF, (ports[0], ports[1]))) for key in distinct.tolist()]
    )
    has_name = np.zeros(len(chunks), dtype=np.bool_)
    has_name[begins] = told[where] if len(told) else False
    causes = rows_of_flow(capture, "causes", flow)

    def text(row: int) -> str:
        return _sctp_text(capture, chunks[first[row] : last[row]], causes, name)

    whole = len(first) > 0
    lanes = np.zeros(len(capture.paths), dtype=np.int64)
    lanes[paths] = np.arange(len(paths))
    return PacketRows(
        chunks["time_ns"][first], chunks["direction"][first].astype(np.int64), lanes[chunks["path"][first]],
        chunks["packet"][first].astype(np.int64) + 1,
        np.minimum.reduceat(of_chunk, first) if whole else of_chunk,
        np.logical_or.reduceat(has_name, first) if whole else has_name,
        np.logical_or.reduceat(np.isin(kinds, ENDS), first) if whole else has_name, text, names_of,
    ), paths  # fmt: skip


def _begins(chunk: Rows) -> bool:
    return bool(chunk["flags"] & wire.FIRST)


def _sctp_text(capture: Capture, chunks: Rows, causes: Rows, name: Callable[[Rows], str]) -> str:
    """The chunks of a packet in words; data chunks in a row that are alike together."""
    parts: list[str] = []

    def alike(chunk: Rows) -> tuple[object, ...]:
        kind = int(chunk["type"])
        if kind not in (wire.DATA, wire.I_DATA):
            return (kind, int(chunk["tsn"]), int(chunk["message"]))
        return kind, name(chunk) if _begins(chunk) else "", bool(chunk["is_retransmission"]), int(chunk["stream"])

    for _, group in itertools.groupby(chunks, alike):
        mine = list(group)
        kind = int(mine[0]["type"])
        if kind in (wire.DATA, wire.I_DATA):
            parts.append(_data_text(mine, name(mine[0]) if _begins(mine[0]) else ""))
        elif kind == wire.SACK:
            parts += [_sack_text(capture, chunk) for chunk in mine]
        else:
            of_it = causes[(causes["packet"] == mine[0]["packet"]) & (causes["type"] == kind)]
            why = ", ".join(wire.cause_name(int(code)) for code in of_it["code"])
            parts.append(chunk_words(kind) + (f" ({why})" if why else ""))
    return "; ".join(parts)


def _data_text(chunks: Sequence[Rows], name: str) -> str:
    tsns = [int(chunk["tsn"]) for chunk in chunks if chunk["tsn"] != UNKNOWN]
    size = sum(int(chunk["user_bytes"]) for chunk in chunks)
    said = chunk_words(int(chunks[0]["type"]), tsns)
    again = " again" if chunks[0]["is_retransmission"] else ""
    if chunks[0]["on_other_path"]:
        again += " on another path"
    text = f"{said}{again}, stream {int(chunks[0]['stream'])}, {fixed(size, 0)} B"
    return f"{name}: {text}" if name else text


def _sack_text(capture: Capture, chunk: Rows) -> str:
    if chunk["tsn"] == UNKNOWN or int(chunk["detail"]) >= len(capture.sacks):
        return chunk_words(wire.SACK)
    sack = capture.sacks[int(chunk["detail"])]
    text = chunk_words(wire.SACK, up_to=int(chunk["tsn"]))
    if sack["gap_blocks"]:
        text += f", also {_blocks(capture, int(sack['first_block']), int(sack['gap_blocks']))}"
    if sack["duplicate_tsns"]:
        text += f", {int(sack['duplicate_tsns'])} came twice"
    return text + (", window 0" if not sack["a_rwnd_bytes"] else "")


def _blocks(capture: Capture, first: int, count: int) -> str:
    blocks = capture.blocks[first : first + count]
    pairs = [(int(block["start"]), int(block["end"]) - 1) for block in blocks[:BLOCKS_SHOWN]]
    return block_words(pairs, max(count - BLOCKS_SHOWN, 0))


def tcp_rows(capture: Capture, flows: Sequence[int], turned: Sequence[int]) -> PacketRows:
    """The packets of a TCP connection, or of all subflows of one of MPTCP: a lane each. turned: 1 if the other end
    opened that subflow.
    """
    rows = rows_of_flows(capture, "segments", list(flows))
    lane = np.zeros(len(rows), dtype=np.int64)
    direction = rows["direction"].astype(np.int64)
    for place, (flow, turn) in enumerate(zip(flows, turned, strict=True)):
        mine = rows["flow"] == flow
        lane[mine] = place
        direction[mine] ^= turn
    flags, payload = rows["flags"], rows["payload_bytes"]
    kind = np.full(len(rows), ACK, dtype=np.int64)
    kind[payload > 0] = DATA
    kind[rows["probe"] | probe_rows(rows)] = PROBE
    kind[rows["is_retransmission"] & ~rows["probe"]] = AGAIN
    is_control = (flags & (wire.SYN | wire.FIN | wire.RST) != 0) | rows["stray"]
    kind[is_control] = CONTROL
    options = rows_of_flows(capture, "mptcp_options", list(flows))

    def text(row: int) -> str:
        return _tcp_text(capture, rows[row], int(kind[row]), options)

    return PacketRows(
        rows["time_ns"], direction, lane, rows["packet"].astype(np.int64) + 1, kind,
        np.zeros(len(rows), dtype=np.bool_), flags & wire.RST != 0, text, lambda row: [],
    )  # fmt: skip


def _tcp_text(capture: Capture, row: Rows, kind: int, options: Rows) -> str:
    flags, size, seq, ack = int(row["flags"]), int(row["payload_bytes"]), int(row["seq"]), int(row["ack"])
    text = ", ".join(sent_words(flags, seq, size))
    if kind == PROBE:
        text = f"keep-alive or window probe{f', {size} B' if size else ''}"
    elif row["is_retransmission"]:
        text = f"{text or 'sequence number'} again"
    if row["stray"]:
        text = f"stray: {text or 'ACK'}"
    if ack != UNKNOWN and not flags & wire.SYN and (not text or not size):
        text = f"{text}, {ack_words(ack)}" if text else ack_words(ack)
    if row["sack_blocks"]:
        text += f", SACK {_blocks(capture, int(row['first_block']), int(row['sack_blocks']))}"
    if not row["window"] and ack != UNKNOWN and not flags & wire.RST:
        text += ", window 0"
    mine = options[options["packet"] == row["packet"]]
    for option in mine["subtype"].tolist():
        text += f", {'DATA_FIN' if option == wire.DSS else wire.mptcp_subtype_name(option)}"
    return text
