"""A rate that changes: the qdiscs asked for, in place and anew, and what a dump of htb's class shows."""

from __future__ import annotations

import struct

import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.testbed.compile import Clock, Compiled, compile_cell
from netwarp.testbed.messages import CHANGE, Device, class_dump, htb_class
from netwarp.testbed.netem import ORDERING_BYTE_S
from netwarp.testbed.qdiscs import Fifo, Htb, attributes_of
from netwarp.testbed.rate_line import varies
from netwarp.testbed.readback import decode_classes
from support.specs import BASE, cell_of, replaced

SLOWER = (
    '[event.slow]\naction = "change"\nlink = "p1"\ndirections = ["forward"]\nat = "2 s"\nfor = "1 s"\n'
    'rate = "100 kbit/s"\n'
)
CODEL = 'queue = "50 packets"\naqm = { kind = "codel" }'


def compiled(text: str) -> Compiled:
    """Of the only cell of a spec, on the virtual clock."""
    return compile_cell(cell_of(text), Clock(t0_realtime_ns=0))


def at(result: Compiled, at_ns: int) -> list[str]:
    """The tc commands of a time."""
    lines = [line for item in result.steps if item.at_ns == at_ns for line in item.command.split("\n")]
    return [line.partition(" tc ")[2] for line in lines if " tc " in line]


@pytest.mark.parametrize("rate_byte_s", [25, 125_000, 2**32 - 1, 2**32, ORDERING_BYTE_S])
def test_a_dump_of_a_class_shows_what_was_asked(rate_byte_s: int) -> None:
    asked = Htb(rate_byte_s, 15)
    message = htb_class(Device("rate9", 9), asked, handle=0x12, create=False).data
    length, kind, flags, _, _ = struct.unpack_from("=IHHII", message)
    _, _, _, ifindex, handle, parent, _ = struct.unpack_from("=BBHiIII", message, 16)
    assert (length, kind, flags, ifindex, handle, parent) == (len(message), 40, CHANGE, 9, 0x120001, 0x120000)
    assert list(decode_classes([message])) == [(0x12, asked)]
    parms = attributes_of(asked.encode_class())
    other = {**parms, 1: parms[1][:24] + struct.pack("=I", 16) + parms[1][28:]}
    assert Htb.decode_class(parms) == asked != Htb.decode_class(other)
    assert asked.as_shown() == Htb(), "a dump of qdiscs does not tell the rate"
    assert struct.unpack_from("=BBHiIII", class_dump(9, 0x12), 16)[5] == 0x120000


def test_the_last_dump_of_classes_is_of_whichever_qdisc_is_there() -> None:
    """Each cut makes the qdiscs anew, by other handles; a cell may end before the next one."""
    cut = '[event.cut]\naction = "cut"\nlink = "p1"\nat = "5 s"\nfor = "1 s"\n'
    result = compiled(BASE + SLOWER + cut)
    dumps = [dict(item.fields) | {"at": item.at_ns} for item in result.steps if item.verb == "dump"]
    asked = {
        dump["at"]: struct.unpack_from("=BBHiIII", bytes.fromhex(dump["data"]), 16)[5] for dump in dumps
        if dump["label"] == "class"
    }  # fmt: skip
    assert asked.pop(None) == 0, "the last one"
    assert all(asked.values()), asked


def test_the_queue_as_asked_is_the_queue_as_shown() -> None:
    for asked in (Fifo(50, in_bytes=False), Fifo(65_536, in_bytes=True)):
        assert Fifo.decode(asked.kind, asked.encode()) == asked
    assert (Fifo(1, in_bytes=False).kind, Fifo(1, in_bytes=True).kind) == ("pfifo", "bfifo")


@pytest.mark.parametrize("queue", ['queue = "50 packets"', 'queue = "64 KiB"', CODEL])
def test_only_a_rate_that_changes_is_htbs(queue: str) -> None:
    """In the direction in which it does; the class alone is changed, and what waits is touched by nothing."""
    text = replaced('queue = "50 packets"', queue) + SLOWER
    result = compiled(text)
    kinds = [(qdisc.device.name[:4], qdisc.stage.kind) for qdisc in result.installed]
    below, plain = {"queue": ("pfifo", ["netem"]), CODEL: ("codel", ["tbf", "codel"])}.get(queue, ("bfifo", ["tbf"]))
    line = "50" in queue and queue != CODEL
    where = "rate" if line else "b"
    changed = [(where, "netem"), (where, "htb"), (where, "pfifo" if line else below)] + [("b", "netem")] * line
    assert kinds == changed + [("a", "netem")] + [("a", kind) for kind in (["netem"] if line else plain)]
    for moment, rate in ((2 * 10**9, 100_000), (3 * 10**9, 10**6)):
        commands = at(result, moment)
        assert [line.split()[:2] for line in commands][:2] == [["qdisc", "change"], ["class", "change"]]
        assert f"htb rate {rate}bit ceil {rate}bit burst 1b" in commands[1]
        assert len(commands) == (3 if line else 2) and " root " in commands[-1 if line else 0]
    assert "htb" not in {
        qdisc.stage.kind for qdisc in compiled(text.replace('rate = "100 kb', 'loss = "1 %"\n#')).installed
    }


def test_a_class_is_dumped_with_every_change_and_at_the_end() -> None:
    result = compiled(BASE + SLOWER)
    played = set(result.events)
    states = [result.expected(dump, played) for dump in result.dumps.values() if dump.label == "class"]
    rates = [{qdisc.stage.rate_byte_s for qdisc in state if isinstance(qdisc.stage, Htb)} for state in states]
    assert rates == [{125_000}, {12_500}, {125_000}, {125_000}], "before T0, twice, and at the end"


def test_a_rate_that_ends_lets_what_waits_go_at_once() -> None:
    """A link without a rate has the queue of its event all the time, and a rate of no consequence."""
    bare = replaced('rate = "1 Mbit/s"\nqueue = "50 packets"\n', "").replace('"tcp"', '"tcp"\nbytes = "1 MB"')
    result = compiled(bare + SLOWER + 'queue = "9 packets"\n')
    (first,) = [qdisc.stage for qdisc in result.installed if isinstance(qdisc.stage, Htb)]
    assert first.rate_byte_s == ORDERING_BYTE_S
    assert (
        len({qdisc.handle for state in result.events.values() for qdisc in state if qdisc.stage.kind == "pfifo"}) == 1
    )


def test_a_wall_clock_gives_more_credit() -> None:
    wall = compile_cell(cell_of(BASE + SLOWER), Clock(t0_after_ready_ns=10**9))
    credits = [[qdisc.stage.credit_ticks for qdisc in each.installed if isinstance(qdisc.stage, Htb)]
               for each in (compiled(BASE + SLOWER), wall)]  # fmt: skip
    assert credits == [[1_000 // 64], [1_000_000 // 64]]


def test_an_interface_that_goes_down_takes_the_waiting_with_it() -> None:
    down = '[event.down]\naction = "link"\nlink = "p1"\nat = "5 s"\nfor = "1 s"\nend = { hop = "b" }\n'
    text = "\n".join(item.command for item in compiled(BASE + SLOWER + down).steps if item.at_ns and item.command)
    for verb in ("down", "up"):
        assert text.count(f"ip link set dev b {verb}") == text.count(f"ip link set dev rate14 {verb}") == 1


def test_cake_changes_its_own_rate() -> None:
    queue = 'queue = "4 MiB"\naqm = { kind = "cake" }'
    kinds = {q.stage.kind for q in compiled(replaced('queue = "50 packets"', queue) + SLOWER).installed}
    assert kinds == {"netem", "cake"}
    assert not varies([LinkImpairment(), LinkImpairment(one_way_delay_ns=5)])
