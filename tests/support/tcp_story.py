"""A TCP connection written segment by segment, as its sender's host sees it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from netwarp.captures import Capture
from netwarp.captures.tcp import RetransmissionCause, TcpConnection, analyze_tcp

from support.captures import ISN, T, pcap, read, segment

PEER = 7000
"""The responder's initial sequence number."""
MS = 1_000_000
MSS = 1000
FIRST_IP_ID = 2**16 - 8  # wraps in the middle of a story


@dataclasses.dataclass
class Story:
    """Times in ms from the SYN; stream numbers from 1; the clock of timestamps ticks in ms. heard_ms: stamp of the last
    acknowledgement, which segments echo. numbered: the sender counts its packets in the IPv4 identification.
    """

    stamps: bool = True
    sack: bool = True
    numbered: bool = False
    isn: int = ISN
    heard_ms: float = 0
    packets: list[tuple[int, bytes]] = dataclasses.field(default_factory=list)

    def handshake(self, to_responder_ms: float = 40, to_initiator_ms: float = 0) -> Story:
        """SYN, SYN+ACK, ACK."""
        options = [("MSS", 1460)] + ([("SAckOK", b"")] if self.sack else []) + [("WScale", 7)]
        self._add(0, segment(self.isn, flags="S", options=[*options, *self._stamp(0, 0)], window=64240))
        self._add(
            to_responder_ms,
            segment(
                PEER, back=True, flags="SA", ack=self.isn + 1, options=[*options, *self._stamp(0, 0)], window=65535
            ),
        )
        at = to_responder_ms + to_initiator_ms
        self._add(at, segment(self.isn + 1, ack=PEER + 1, options=self._stamp(at, 0), window=502))
        return self

    def data(
        self,
        at_ms: float,
        number: int,
        length: int = MSS,
        *,
        stamp: float | None = None,
        echo: float | None = None,
        **fields: object,
    ) -> Story:
        """A segment from the sender, first byte `number`, made at `stamp`, when `echo` was the last stamp received."""
        options = self._stamp(at_ms if stamp is None else stamp, self.heard_ms if echo is None else echo)
        packet = segment(
            self.isn + number,
            length,
            ack=PEER + 1,
            window=502,
            options=options,
            **{"flags": "A", **fields},  # type: ignore[arg-type]
        )
        self._add(at_ms, packet)
        return self

    def ack(
        self,
        at_ms: float,
        number: int,
        *sack: tuple[int, int],
        echo: float = 0,
        window: int = 502,
        payload: int = 0,
        **fields: object,
    ) -> Story:
        """An acknowledgement that arrives; SACK blocks as stream numbers."""
        options = self._stamp(at_ms, echo)
        self.heard_ms = at_ms
        if sack:
            edges = tuple((self.isn + edge) % 2**32 for block in sack for edge in block)
            options = [*options, ("SAck", edges)]
        packet = segment(
            PEER + 1,
            payload,
            back=True,
            ack=self.isn + number,
            options=options,
            window=window,
            **{"flags": "A", **fields},  # type: ignore[arg-type]
        )
        self._add(at_ms, packet)
        return self

    def flight(self, at_ms: float, first: int, count: int) -> Story:
        """`count` full segments at once."""
        for k in range(count):
            self.data(at_ms, first + k * MSS)
        return self

    def _stamp(self, at_ms: float, echo: float) -> list[tuple[str, object]]:
        return [("Timestamp", (10_000 + int(at_ms), 10_000 + int(echo)))] if self.stamps else []

    def _add(self, at_ms: float, packet: bytes) -> None:
        if self.numbered:
            count = (FIRST_IP_ID + len(self.packets)) % 2**16
            packet = packet[:18] + count.to_bytes(2, "big") + packet[20:]
        self.packets.append((T + round(at_ms * MS), packet))

    def capture(self, tmp_path: Path, **options: object) -> Capture:
        """Read by the analyser."""
        return read(tmp_path, pcap(self.packets), **options)

    def told(self, tmp_path: Path, *, at: int | None = None) -> TcpConnection:
        """Its analysis."""
        return analyze_tcp(self.capture(tmp_path), 0, at=at)


def whys(connection: TcpConnection, direction: int = 0) -> list[RetransmissionCause]:
    """The causes of one direction's retransmissions."""
    found = connection.directions[direction].retransmissions
    assert found is not None
    return [RetransmissionCause(code) for code in found.cause]
