"""Changes of a spec, how they are drawn, what is kept, how a finding is made small. No kernel is needed."""

import random

import numpy as np
import pytest
from netwarp.core.schedule_levels import PacketPosition
from netwarp.core.types import CellOutcome, Outcome
from netwarp.experiment import load_experiment
from netwarp.exploration.changes import FaultChange, PacketChange, SettingChange, joined, named
from netwarp.exploration.corpus import Entry, Reached, choose
from netwarp.exploration.counters import Kept
from netwarp.exploration.minimise import minimised
from netwarp.exploration.mutation import MOST_CHANGES, Parent, mutated
from netwarp.exploration.oracles import Seen, mild, wrongs
from netwarp.exploration.specs import cell_of, root_of, text_of
from netwarp.plan.make import make_plan

LOST = PacketChange("drop", "p1", "forward", 3, "DATA 2")
LATE = PacketChange("delay", "p1", "backward", 2, "SACK 1", 60_000_000)
CUT = FaultChange("x1", {"action": "cut", "link": "p1", "at": "2 s", "for": "300 ms"})
SHORT_LIVED = SettingChange(("flow", "f", "sender", "lifetime"), "20 ms")
SMALL = SettingChange(("flow", "f", "receiver", "rcvbuf"), "4 KiB")
LOSSY = SettingChange(("link", "p1", "loss"), "5 %")
AWAY = FaultChange("x2", {"action": "address", "node": "b", "link": "p1", "at": "1 s", "for": "1 s"})


@pytest.fixture(scope="module")
def root():
    spec = load_experiment("schedules")
    plan = make_plan(spec, only=["handshake"], where=[("variant", "sctp2")])
    return spec, root_of(spec, plan.cells[0])


def cell(root, *changes):
    spec, of = root
    return cell_of(of, spec, changes, lambda name: pytest.fail(name))


def test_changes_are_those_of_the_cell(root):
    changed = cell(root, LOST, LATE, CUT, SMALL)
    shapes = changed.shapes
    assert [(rule.action, rule.numbers) for rule in shapes["p1", "forward"].packet_rules] == [("drop", (3,))]
    late = [rule for rule in shapes["p1", "backward"].packet_rules if rule.numbers]
    assert [(rule.action, rule.numbers, rule.delay_ns) for rule in late] == [("delay", (2,), 60_000_000)]
    assert [event.action for event in changed.timeline] == ["cut", "repair"]
    assert changed.flows[0].receiver_options["rcvbuf_bytes"] == 4096
    assert changed.factors["explored"] == "DATA 2 lost + SACK 1 60 ms late + cut link p1 at 2 s for 300 ms + " + (
        "f.receiver.rcvbuf = 4 KiB"
    )


def test_every_direction_counts_its_packets_from_the_start(root):
    assert all(shape.packet_rules for shape in cell(root).shapes.values())


def test_a_finding_is_a_spec(root):
    text = text_of(root[1], [LOST, CUT], "what it shows")
    assert 'title = "what it shows"' in text and "drop = [3]" in text and "[event.x1]" in text


def test_of_two_changes_of_one_place_the_later_one_counts():
    other = SettingChange(SMALL.path, "64 KiB")
    assert joined([LOST, SMALL], [other]) == (LOST, other)
    assert named([]) == "none"


def test_what_a_root_has_of_faults_and_settings_excuses_as_changes_do():
    spec = load_experiment("roots")
    plan = make_plan(spec, only=["common"], where=[("protocol", "sctp"), ("root", "random losses")])
    calm = make_plan(spec, only=["common"], where=[("protocol", "sctp"), ("root", "two paths")])
    cut = make_plan(spec, only=["common"], where=[("protocol", "sctp"), ("root", "first link cut")])
    given = [root_of(spec, each.cells[0]).given for each in (plan, calm, cut)]
    assert [mild(each) for each in given] == [False, True, False]
    assert SettingChange(("flow", "f", "sender", "close"), "graceful") in given[1]
    assert [each.table["action"] for each in given[2] if isinstance(each, FaultChange)] == ["cut"]


PACKETS = [
    PacketPosition("p1", side, number, 10**7 * number, f"{name} {number}", node)
    for number in range(1, 20)
    for side, name, node in (("forward", "DATA", "a"), ("backward", "SACK", "b"))
]


def test_equal_seeds_draw_equal_schedules(root):
    parent = Parent(root[1].cell, (LOST,), PACKETS)
    first = [mutated(parent, [(CUT,)], random.Random(f"1/{number}")) for number in range(200)]
    again = [mutated(parent, [(CUT,)], random.Random(f"1/{number}")) for number in range(200)]
    assert first == again and len({named(changes) for changes in first}) > 150
    assert {type(change) for changes in first for change in changes} == {PacketChange, FaultChange, SettingChange}
    assert max(map(len, first)) <= MOST_CHANGES


def test_most_of_what_is_drawn_can_be_said_by_a_spec(root):
    parent = Parent(root[1].cell, (), PACKETS)
    said = 0
    for number in range(100):
        try:
            cell(root, *mutated(parent, [], random.Random(f"2/{number}")))
            said += 1
        except Exception as error:  # noqa: BLE001
            assert type(error).__name__ == "SpecError", error
    assert said > 75


def test_new_arcs_and_new_steps():
    reached = Reached()
    assert reached.add({"a": np.array([0, 1, 5], np.uint64)}) == (2, 2)
    assert reached.add({"a": np.array([0, 1, 7], np.uint64)}) == (0, 0), "5 and 7 are one step"
    assert reached.add({"a": np.array([0, 2, 0], np.uint64)}) == (0, 1)
    assert reached.add({"a": np.array([200, 0, 0], np.uint64)}) == (1, 1)
    assert (reached.arcs, reached.all_arcs) == (3, 3)
    assert reached.sums["a"].tolist() == [200, 4, 12]


def test_schedules_that_reached_much_and_were_seldom_chosen_are_likelier():
    poor, rich = Entry(0, "a", (), 0, 5), Entry(0, "b", (LOST,), 10)
    draw = random.Random(1)
    chosen = [choose([poor, rich], draw) for _ in range(200)]
    assert chosen.count(rich) > 150


def test_a_finding_is_made_small():
    asked = []

    def still(candidates):
        asked.extend(candidates)
        return [LOST in changes and SMALL in changes for changes in candidates]

    assert minimised((LATE, LOST, CUT, SMALL), still) == (LOST, SMALL)
    assert len(asked) < 15
    assert minimised((LOST,), still) == (LOST,)


STALL = "rcu: INFO: rcu_sched self-detected stall on CPU"
NOTHING_LEFT = {"waited_ns": "0", "sctp": "assoc: 0\nchunk: 0\n", "slabs": "TCP 0\n"}


def seen(outcome=Outcome.COMPLETED, reason="", console="", texts=None, values=None, in_time=True):
    kept = Kept({}, texts if texts is not None else NOTHING_LEFT)
    return Seen(CellOutcome(outcome, reason, 1.0, 1.0), console, kept, values or {}, in_time)


@pytest.mark.parametrize(
    ("what", "changes", "kind"),
    [
        (seen(console="[ 1.5] WARNING: CPU: 0 PID: 1 at net/sctp/x.c:12 f+0x1"), [CUT], "splat"),
        (seen(Outcome.FAILED, f"the kernel: {STALL}", console=f"[ 9.5] {STALL}"), [CUT], "splat"),
        (seen(Outcome.TIMED_OUT), [CUT], "hang"),
        (seen(Outcome.FAILED, "f.sender ended with status 1: stalled"), [CUT], "hang"),
        (seen(Outcome.FAILED, "f.sender ended with status 1: stalled"), [LOST] * 7, None),
        (seen(Outcome.FAILED, "f.receiver: stall: no new payload"), [SHORT_LIVED], None),
        (seen(Outcome.FAILED, "f.sender: stall: nothing was acknowledged"), [SHORT_LIVED], "hang"),
        (seen(Outcome.FAILED, "f.sender ended with status 1: Connection timed out"), [LOST], "gave up"),
        (seen(Outcome.FAILED, "f.sender ended with status 1: Connection timed out"), [CUT], None),
        (seen(texts={"waited_ns": "600000000000"}), [CUT], "never closed"),
        (seen(texts={"waited_ns": "0", "sctp": "assoc: 0\nchunk: 2\n"}), [LOST], "leak"),
        (seen(texts={"waited_ns": "0", "slabs": "skbuff_head_cache 90\nTCP 0\n"}), [LOST], "leak"),
        (seen(values={("f", "undelivered_bytes"): 100.0}), [CUT], "payload"),
        (seen(values={("f", "undelivered_bytes"): 100.0, ("f", "aborts"): 1.0}), [CUT], None),
        (seen(values={("f", "aborts"): 1.0}), [LOST], "promise"),
        (seen(values={("f", "aborts"): 1.0}), [LOST, LOSSY], None),
        (seen(values={("f", "notification_as_theory"): 0.0}), [CUT, SMALL], "promise"),
        (seen(values={("f", "notification_as_theory"): 0.0}), [CUT, LOST], None),
        (seen(values={("f", "notification_as_theory"): 1.0}), [CUT], None),
        (seen(values={("f", "window_excess_bytes"): 40.0}), [CUT], "promise"),
        (seen(values={("f", "unreported_chunks"): 1.0}), [LOST], "promise"),
        (seen(values={("f", "unreported_chunks"): 1.0}), [AWAY], None),
        (seen(values={("f", "undelivered_bytes"): 100.0}), [SettingChange(("flow", "f", "stop"), "100 ms")], None),
        (seen(Outcome.INVALID, "payload f: application 3 B"), [CUT], "invalid"),
        (seen(Outcome.INVALID, "payload f: application 3 B", in_time=False), [CUT], None),
        (seen(), [LOST], None),
    ],
)  # fmt: skip
def test_what_is_wrong(what, changes, kind):
    assert [each.kind for each in wrongs(what, seen(), changes)] == ([kind] if kind else [])


def test_few_losses_are_no_reason_to_give_up():
    assert mild([LOST, LATE]) and mild([SMALL])
    assert not mild([CUT]) and not mild([SettingChange(("flow", "f", "sender", "path_max_retrans"), 1)])
