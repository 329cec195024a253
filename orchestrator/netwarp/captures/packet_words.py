"""The words for what a packet carries, the same for packets of a ladder (packet_rows.py) and for the first packet that
differs between two captures (packet_meaning.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core import wire


def sent_words(flags: int, sequence: int, size: int) -> list[str]:
    """What a segment of TCP carries: flags, and the bytes of data by their numbers; empty: an acknowledgement alone."""
    words = [text for bit, text in ((wire.SYN, "SYN"), (wire.FIN, "FIN"), (wire.RST, "RST")) if flags & bit]
    if flags & wire.SYN and flags & wire.ACK:
        words[0] = "SYN+ACK"
    if size:
        words.append(f"data {range_words(sequence + bool(flags & wire.SYN), size)}")
    return words


def ack_words(number: int) -> str:
    """An acknowledgement of TCP."""
    return f"ACK {number}"


def chunk_words(kind: int, tsns: Sequence[int] = (), up_to: int | None = None) -> str:
    """A chunk of SCTP, or several of data. tsns: of data; up_to: the cumulative TSN."""
    text = wire.chunk_name(kind)
    if tsns:
        low, high = min(tsns), max(tsns)
        whole = len(set(tsns)) == high - low + 1
        text += f" {range_words(low, high - low + 1) if whole else ', '.join(map(str, tsns))}"
    return text if up_to is None else f"{text} up to {up_to}"


def block_words(blocks: Sequence[tuple[int, int]], more: int = 0) -> str:
    """Blocks of a SACK, the first and the last number of each; more: that are not told."""
    text = ", ".join(range_words(low, high - low + 1) for low, high in blocks)
    return text + (f" and {more} more" if more else "")


def range_words(first: int, count: int) -> str:
    """Numbers in a row."""
    return str(first) if count == 1 else f"{first} to {first + count - 1}"
