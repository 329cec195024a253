"""The conditions of benchmarks/causes.py on a kernel with namespaces: this machine's own, or a guest's."""

from __future__ import annotations

import dataclasses

from causes_hop import Loss


@dataclasses.dataclass(frozen=True)
class Condition:
    """One set of connections. qdisc, router_qdisc: on the sender's interface, and on the router's towards the receiver
    ("a; b": b below a). guest: made in a guest on the wall clock; this machine's kernel may lack what it needs. lost:
    one loss in so many data packets by nftables in the router (burst: in runs of so many). losses: in words, if a
    qdisc makes them. hop: causes_hop.py in place of the router; rtt_ms,
    rate (bit/s), queue_bytes: its own; split: two hops, with the middle's capture between them, losses in the first
    (1) or second (2). pause_s, block: the application writes blocks of so many bytes with pauses between them.
    reader: bytes a second that the receiver reads (0: at once).
    """

    name: str
    protocol: str = "tcp"
    guest: bool = False
    seconds: float = 2.5
    size: int = 0
    flows: int = 1
    qdisc: str = ""
    router_qdisc: str = ""
    offloads: bool = False
    congestion: str = "reno"
    lost: int = 0
    burst: int = 1
    losses: str = ""
    hop: bool = False
    rtt_ms: float = 0.0
    rate: float = 0.0
    queue_bytes: float = 0.0
    loss: Loss | None = None
    split: int = 0
    pacing: int = 0
    block: int = 0
    pause_s: float = 0.0
    reader: int = 0
    receive_buffer: int = 0
    send_buffer: int = 0
    sysctl: tuple[tuple[str, str], ...] = ()
    snaplen: int = 96
    points: tuple[str, ...] = ("sender",)
    reset: bool = False

    def dimensions(self) -> dict[str, str]:
        """The levels by which the table is summed up."""
        loss = self.loss or Loss()
        kinds = {
            "random": loss.random or (self.lost and self.burst == 1),
            "burst": loss.every or self.burst > 1,
            "tail": loss.tail,
            "of retransmissions": loss.again,
            "reordering": loss.late,
            "outage": loss.outage_s,
            "of ACKs": loss.acks,
        }
        own = "+".join(part.split()[0] for part in self.qdisc.split(";")) if self.qdisc else "none"
        return {
            "made": "guest" if self.guest else "host",
            "protocol": self.protocol,
            "qdisc at the sender": f"{own}, pacing" if self.pacing else own,
            "offloads": "on" if self.offloads else "off",
            "round trip": f"{self.rtt_ms:g} ms" if self.rtt_ms else "below 1 ms",
            "congestion": self.congestion if self.protocol == "tcp" else "sctp",
            "losses": self.losses or ", ".join(name for name, has in kinds.items() if has) or "queue alone",
            "application": "pauses" if self.pause_s else "reads slowly" if self.reader else "bulk",
            "settings": " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in self.sysctl) or "default",
            "snaplen": str(self.snaplen),
        }


TBF = "tbf rate {} burst 32k limit {}".format
BOTH = ("sender", "receiver")
ALL = ("sender", "middle", "receiver")
RACK_OFF = (("net.ipv4.tcp_recovery", "0"),)
CONDITIONS = (
    # the six of the issue (and 20 % of loss, good already then)
    Condition("tbf-200mbit-0.1pct", qdisc=TBF("200mbit", "200k"), lost=1000),
    Condition("tbf-50mbit-60kB-receiver", seconds=4, qdisc=TBF("50mbit", "60k"), lost=100, points=ALL),
    Condition("router-tbf-50mbit-60kB", seconds=4, router_qdisc=TBF("50mbit", "60k"), points=ALL),
    Condition("router-tbf-50mbit-60kB-offloads", seconds=4, router_qdisc=TBF("50mbit", "60k"), offloads=True,
              points=ALL),
    Condition("router-tbf-20mbit-cubic-4-flows", seconds=4, flows=4, congestion="cubic",
              router_qdisc=TBF("20mbit", "100k"), points=ALL),
    Condition("router-tbf-20mbit-bbr", seconds=4, congestion="bbr", router_qdisc=TBF("20mbit", "40k"), points=BOTH),
    Condition("tbf-5mbit-300kB-1pct", seconds=10, qdisc=TBF("5mbit", "300k"), lost=100),
    Condition("eight-flows-tbf-100mbit-offloads", flows=8, seconds=4, qdisc=TBF("100mbit", "200k"), offloads=True),
    Condition("offloads-0.1pct", size=400_000_000, offloads=True, lost=1000, points=BOTH),
    Condition("20pct-no-queue", seconds=10, lost=5, points=BOTH),
    # qdiscs, offloads
    Condition("tbf-50mbit-offloads-0.5pct", qdisc=TBF("50mbit", "200k"), offloads=True, lost=200, points=ALL),
    Condition("tbf-20mbit-cubic-burst", seconds=4, qdisc=TBF("20mbit", "150k"), congestion="cubic", lost=1500,
              burst=12, points=ALL),
    Condition("tbf-40mbit-60ms-cubic", seconds=4, congestion="cubic", lost=300,
              qdisc="tbf rate 40mbit burst 16k latency 60ms"),
    Condition("pacing-40mbit-1pct", pacing=5_000_000, lost=100, points=ALL),
    Condition("pacing-80mbit-offloads", pacing=10_000_000, offloads=True, lost=100, points=BOTH),
    Condition("plain-1pct", size=40_000_000, lost=100, points=ALL),
    Condition("plain-5pct-rack-off", seconds=4, lost=20, sysctl=RACK_OFF, points=BOTH),
    Condition("plain-5pct", seconds=4, lost=20, points=BOTH),
    Condition("plain-2pct-no-sack", seconds=4, lost=50, sysctl=(("net.ipv4.tcp_sack", "0"),), points=BOTH),
    Condition("plain-2pct-no-timestamps", seconds=4, lost=50, sysctl=(("net.ipv4.tcp_timestamps", "0"),), points=BOTH),
    # round trips, by the hop
    Condition("rtt-1ms-1pct", hop=True, rtt_ms=1, rate=80e6, queue_bytes=200_000, loss=Loss(random=0.01), points=ALL),
    Condition("rtt-10ms-cubic-0.5pct", seconds=4, hop=True, rtt_ms=10, rate=30e6, queue_bytes=60_000,
              congestion="cubic", loss=Loss(random=0.005), split=1, points=ALL),
    Condition("rtt-40ms-bbr-1pct", seconds=5, hop=True, rtt_ms=40, rate=20e6, queue_bytes=200_000, congestion="bbr",
              loss=Loss(random=0.01), split=2, points=ALL),
    Condition("rtt-100ms-reno-queue", seconds=8, hop=True, rtt_ms=100, rate=10e6, queue_bytes=60_000, points=ALL),
    Condition("rtt-300ms-cubic-0.3pct", seconds=7, hop=True, rtt_ms=300, rate=10e6, queue_bytes=200_000,
              congestion="cubic", loss=Loss(random=0.003), split=1, points=ALL),
    Condition("offloads-rtt-20ms-0.5pct", seconds=4, hop=True, rtt_ms=20, rate=40e6, queue_bytes=200_000, offloads=True,
              congestion="cubic", loss=Loss(random=0.005), points=ALL),
    # losses
    Condition("burst-rtt-20ms", seconds=5, hop=True, rtt_ms=20, rate=20e6, queue_bytes=100_000,
              loss=Loss(every=800, burst=25), split=1, points=ALL),
    Condition("tail-rtt-20ms", seconds=6, hop=True, rtt_ms=20, rate=50e6, queue_bytes=300_000, block=28_960,
              pause_s=0.4, loss=Loss(tail=2, block=28_960), points=ALL),
    Condition("again-rtt-10ms", seconds=6, hop=True, rtt_ms=10, rate=20e6, queue_bytes=100_000,
              loss=Loss(random=0.01, again=0.5), split=2, points=ALL),
    Condition("reordering-rtt-20ms", seconds=5, hop=True, rtt_ms=20, rate=20e6, queue_bytes=100_000,
              loss=Loss(random=0.003, late=0.01, late_s=0.008), points=ALL),
    Condition("outage-rtt-30ms", seconds=8, hop=True, rtt_ms=30, rate=10e6, queue_bytes=60_000,
              loss=Loss(outage_s=((2.0, 4.5),)), points=ALL),
    Condition("pauses-rtt-5ms-1pct", seconds=6, hop=True, rtt_ms=5, rate=50e6, queue_bytes=300_000, block=80_000,
              pause_s=0.15, loss=Loss(random=0.01), points=ALL),
    Condition("acks-lost-rtt-20ms", seconds=5, hop=True, rtt_ms=20, rate=20e6, queue_bytes=100_000,
              loss=Loss(random=0.01, acks=0.2), points=BOTH),
    # what limits the connection
    Condition("receiver-reads-slowly", seconds=4, hop=True, rtt_ms=10, rate=50e6, queue_bytes=300_000,
              reader=1_000_000, receive_buffer=65536, points=BOTH),
    Condition("receive-window-32k", seconds=4, hop=True, rtt_ms=20, rate=50e6, queue_bytes=300_000,
              receive_buffer=32768, points=BOTH),
    Condition("send-buffer-32k", seconds=4, hop=True, rtt_ms=20, rate=50e6, queue_bytes=300_000, send_buffer=32768,
              points=BOTH),
    Condition("reset-at-the-end", seconds=3, hop=True, rtt_ms=10, rate=20e6, queue_bytes=60_000, reset=True,
              points=BOTH),
    # what this machine's kernel may not have: in a guest
    *(dataclasses.replace(c, guest=True) for c in (
        Condition("g-fq-pacing-20mbit-1pct", qdisc="fq", pacing=2_500_000, lost=100, points=ALL),
        Condition("g-fq-bbr-netem-20ms", losses="random", rtt_ms=20, seconds=4, qdisc="fq", congestion="bbr",
                  router_qdisc="netem delay 20ms rate 20mbit limit 60 loss 1%", points=ALL),
        Condition("g-fq-pacing-offloads", qdisc="fq", pacing=2_500_000, lost=20, offloads=True, points=BOTH),
        Condition("g-fq-codel-10mbit", seconds=4, qdisc="tbf rate 10mbit burst 16k latency 400ms; fq_codel", lost=200,
                  points=ALL),
        Condition("g-fq-codel-10mbit-4-flows", seconds=4, flows=4, congestion="cubic", points=BOTH,
                  qdisc="tbf rate 10mbit burst 16k latency 400ms; fq_codel", lost=200),
        Condition("g-netem-at-sender-10ms-1pct", rtt_ms=10, seconds=4, qdisc="netem delay 10ms limit 1000",
                  lost=100, points=ALL),
        Condition("g-netem-at-sender-10mbit", rtt_ms=5, seconds=4, congestion="cubic", points=BOTH,
                  qdisc="netem delay 5ms rate 10mbit limit 60", lost=300),
        Condition("g-netem-burst-20ms", losses="burst", rtt_ms=20, seconds=4, points=ALL, congestion="cubic",
                  router_qdisc="netem delay 20ms rate 20mbit limit 100 loss gemodel 0.5% 20%"),
        Condition("g-netem-reordering-15ms", losses="random, reordering", rtt_ms=15, seconds=4, points=BOTH,
                  router_qdisc="netem delay 15ms 2ms loss 0.3% limit 500"),
        Condition("g-netem-100ms-2pct-rack-off", losses="random", rtt_ms=100, seconds=6, points=BOTH, sysctl=RACK_OFF,
                  router_qdisc="netem delay 100ms rate 10mbit limit 200 loss 2%"),
        Condition("g-sctp-1pct", "sctp", lost=100, points=ALL),
        Condition("g-sctp-netem-20ms-2pct", "sctp", losses="random", rtt_ms=20, seconds=5, points=ALL,
                  router_qdisc="netem delay 20ms rate 10mbit limit 100 loss 2%"),
        Condition("g-sctp-tbf-at-sender-1pct", "sctp", seconds=5, qdisc=TBF("5mbit", "100k"), lost=100, points=BOTH),
        Condition("g-sctp-offloads-1pct", "sctp", size=8_000_000, lost=100, offloads=True, snaplen=65535,
                  router_qdisc=TBF("50mbit", "300k")),
        Condition("g-sctp-burst", "sctp", losses="burst", rtt_ms=10, seconds=6, points=BOTH,
                  router_qdisc="netem delay 10ms rate 10mbit limit 100 loss gemodel 1% 20%"),
        Condition("g-sctp-20pct", "sctp", seconds=6, lost=5, points=BOTH),
        Condition("g-sctp-reordering", "sctp", losses="reordering", rtt_ms=20, seconds=4, points=BOTH,
                  router_qdisc="netem delay 20ms 4ms limit 500"),
        Condition("g-sctp-pauses-5pct", "sctp", losses="random", rtt_ms=20, seconds=6, block=14_000, pause_s=0.2,
                  router_qdisc="netem delay 20ms loss 5%", points=BOTH),
    )),
)  # fmt: skip
