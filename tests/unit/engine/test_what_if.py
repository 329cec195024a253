"""`netwarp explain --what-if`: changes as they are said, values of inferred intervals, and the cell that is written."""

import contextlib
import dataclasses
import tomllib
from pathlib import Path

import blind_what_if
import pytest
from netwarp import plan_experiment
from netwarp.captures import read_captures
from netwarp.captures.explanation import Known
from netwarp.captures.sctp.association import Association
from netwarp.captures.sctp.network_evidence import Dead, Way
from netwarp.captures.sctp.replay_inputs import View, replay_inputs
from netwarp.captures.sctp.settings import LINUX
from netwarp.captures.sctp.stalls import OPEN, AssociationCourse, Stall
from netwarp.captures.sctp.transmissions import NEVER
from netwarp.core.errors import CaptureError, SpecError
from netwarp.core.types import Heartbeats
from netwarp.engine.captures import explain_captures
from netwarp.engine.replay_cell import (
    OWN,
    Guess,
    known_until_ns,
    options_of,
    repair_factor,
    replay_spec,
    roundest,
    settings_of,
    value_in,
    write_spec,
)
from netwarp.engine.replay_fits import differs, permitted
from netwarp.engine.replay_search import USUAL, WAITS, accepted, left_open, of_waits
from netwarp.engine.what_if import OutageRange, read_changes, what_if
from netwarp.engine.what_if_words import stall_text
from netwarp.experiment.study import load_experiment
from netwarp.experiment.toml_writer import toml_text
from support.captures import damaged, recorded


def test_changes_of_both_ends() -> None:
    assert read_changes(["b.rto_min=300 ms, a.sack_delay = 40 ms"]) == ({"sack_delay": "40 ms"}, {"rto_min": "300 ms"})


def test_a_threshold_is_changed_by_the_name_that_explain_has_for_it() -> None:
    assert read_changes(["a.failover_threshold=6"])[0] == read_changes(["a.pf_retrans=6, a.path_max_retrans=8"])[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rto_min=300 ms", "is no setting of an end; a asked for the association, b answered; for example"),
        ("b.rto_mon=300 ms", "is no setting of SCTP"),
        ("b.rto_min=300", 'rto_min=300: 300 is a bare number; .*; write for example "1 s"'),
        ("a.max_burst=x", "max_burst=x: must be a whole number from 0 to 65535; for example 4"),
        ("a.nodelay=off", "nodelay=off: must be true or false; for example true"),
        ("a.sack_delay=900 ms", "sack_delay=900 ms: '900 ms' is out of range: at most 500 ms"),
        ("b.rto_min=2 s, b.rto_max=1 s", "b.rto_min=2 s: is above rto_max, which the kernel refuses"),
        ("b.rto_min=1 s,b.rto_min=2 s", "b.rto_min is there twice"),
        ("b.init_attempts=3", "b.init_attempts: only a, which asks, has this setting"),
    ],
)
def test_a_wrong_change_is_told_with_a_right_one(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read_changes([text])


@pytest.mark.parametrize(
    ("name", "low", "high", "value"),
    [
        ("rto_min", 0.88, 1.01, 1.0),
        ("rto_min", 0.266, 0.31, 0.3),
        ("sack_delay", 0.0991, 0.132, 0.12),
        ("rto_min", None, 0.111, 0.1),
        ("association_max_retrans", 3, 5, 5),
        ("association_max_retrans", 12, None, 12),
        ("association_max_retrans", 2, None, 10),
    ],
)
def test_the_value_of_an_interval(name: str, low: float | None, high: float | None, value: float) -> None:
    unit = "" if name.startswith("assoc") else "s"
    assert value_in(Known(0, name, low, high, unit, (), ())) == pytest.approx(value)


def test_the_roundest_number_is_within() -> None:
    assert roundest(0.4431, 0.4439, True) == pytest.approx(0.443, abs=1e-3)
    assert roundest(3.0, 3.0, False) == 3


@pytest.mark.parametrize(
    ("name", "low", "high", "least", "most"),
    [
        ("rto_min", 0.88, 1.01, 0.88, 1.01),
        ("rto_min", None, 0.11, 0.1, 0.11),
        ("rto_max", 1.87, None, 1.87, 60.0),
        ("rto_max", 70.0, None, 70.0, 84.0),
        ("association_max_retrans", 3, None, 3, 20),
        ("sack_delay", None, None, 0.02, 0.5),
    ],
)
def test_what_the_capture_permits(name: str, low: float | None, high: float | None, least: float, most: float) -> None:
    unit = "" if name.startswith("assoc") else "s"
    assert permitted(Known(0, name, low, high, unit, (), ())) == pytest.approx((least, most))


def test_of_each_setting_it_is_said_what_is_usual() -> None:
    assert set(USUAL) == set(LINUX)


def test_settings_that_differ_are_told() -> None:
    guess = Guess(({"rto_min": "1 s"}, {"sack_delay": "200 ms"}))
    assert differs(guess, guess) == ""
    other = guess.changed(({"rto_max": "8 s"}, {"sack_delay": "300 ms"}))
    assert differs(other, guess) == "a.rto_max 8 s, b.sack_delay 300 ms"
    assert differs(dataclasses.replace(guess, phase_ms=16), guess) == "the clock's phase +16 ms"


def test_one_that_acknowledges_each_packet_puts_none_off() -> None:
    guess = Guess(({}, {"sack_delay": "200 ms"})).changed(({}, {"sack_frequency": 1}))
    assert guess.settings[1] == {"sack_frequency": 1}


@pytest.mark.parametrize(
    ("low", "high", "agrees"), [(1.0, 1.05, True), (1.0, 1.2, False), (OPEN, OPEN, True), (1.0, OPEN, False)]
)
def test_outages_agree_as_far_as_timers_do(low: float, high: float, agrees: bool) -> None:
    assert OutageRange(0, 3, 5.0, 4.0, low, high).agrees is agrees


def test_what_the_blind_test_draws_is_a_cell_and_its_change() -> None:
    draws = {f"d{number}": blind_what_if.draw(number, 1) for number in range(6)}
    assert blind_what_if.draw(3, 1) == draws["d3"], "a draw is that of its seed"
    cells = plan_experiment(blind_what_if.experiment(draws, 1)).cells
    assert len(cells) == 2 * len(draws)
    for each in draws.values():
        read_changes([each.text])
    pairs = {str(cell.factors["draw"]): cell for cell in cells}
    for name in draws:
        field, changed = pairs[name], pairs[f"{name}-changed"]
        assert field.timeline == changed.timeline and field.flows != changed.flows


def test_the_cell_of_a_recorded_failover_is_a_spec(tmp_path: Path) -> None:
    inputs = replay_inputs([View(read_captures(recorded("bundle", "a", ("p1",))), 0)])
    known = [Known(0, "rto_min", 0.1, 0.13, "s", (), ())]
    settings = settings_of(known, inputs)
    spec = replay_spec(inputs, Guess(settings))
    if repair := repair_factor(inputs):
        spec["factor"] = {"repair": repair}
    path = write_spec(tmp_path / "cell", spec, inputs)
    assert load_experiment(path).name == "what-if"
    assert tomllib.loads(path.read_text())["flow"]["s"]["sender"]["rto_min"] == "120 ms"
    assert (tmp_path / "cell" / "a.csv").read_text().count("\n") == len(inputs.messages[0]) + 1


def test_settings_that_a_capture_shows_are_those_that_a_kernel_takes() -> None:
    """A SACK of each packet and one that was late; a SACK later than RFC 9260 6.2 allows, by a late timer."""
    inputs = replay_inputs([View(read_captures(recorded("bundle", "a", ("p1",))), 0)])
    late = Known(1, "sack_delay", 0.2, 0.21, "s", (), ())
    each = Known(1, "sack_frequency", 1, 1, "", (), ())
    assert "sack_delay" not in settings_of([late, each], inputs)[1]
    assert accepted(Guess(settings_of([late, each], inputs)))
    assert options_of("sack_delay", 0.517, 1) == {"sack_delay": "500 ms"}


def test_waits_for_t3_are_tried_as_the_rtos_that_the_capture_does_not_bound() -> None:
    association = Association(read_captures(recorded("sctp", "a", ("p1", "p2"))), 0)
    tried = list(of_waits([], {0: association}))
    assert {each.name for each in tried} == {"rto_min", "rto_initial"} and len(tried) <= 2 * WAITS
    assert all(0 < (each.low or 0) < (each.high or 0) for each in tried)
    bounded = Known(0, "rto_min", 0.1, 0.13, "s", (), ())
    assert {each.name for each in of_waits([bounded], {0: association})} == {"rto_initial"}


def test_heartbeats_of_a_cell_are_those_of_the_capture(tmp_path: Path) -> None:
    inputs = replay_inputs([View(read_captures(recorded("sctp", "a", ("p1", "p2"))), 0)])
    assert any(inputs.heartbeats)
    path = write_spec(tmp_path / "cell", replay_spec(inputs, Guess(({}, {}))), inputs)
    (flow,) = plan_experiment(load_experiment(path)).cells[0].flows
    assert isinstance(flow.heartbeats, Heartbeats)
    assert len(flow.heartbeats.beats) == sum(map(len, inputs.heartbeats))
    assert flow.heartbeats.until_ns == inputs.end_ns - inputs.start_ns + Guess(({}, {})).start_ns
    own = replay_spec(inputs, Guess(({}, {}), heartbeats=OWN))
    assert "heartbeats" not in own["flow"]["s"]


def test_a_packet_that_an_outage_lost_already_is_not_lost_once_more(tmp_path: Path) -> None:
    """Nor one twice: a link has one fault at a time."""
    inputs = replay_inputs([View(read_captures(recorded("sctp", "a", ("p1", "p2"))), 0)])
    begin_ns, second = inputs.start_ns, 1_000_000_000
    away = Way((Dead(begin_ns + second, begin_ns + 2 * second, begin_ns + 2 * second + 1000, 3),), ())
    ways = (inputs.paths[0].ways[0], away) if inputs.end == 0 else (away, inputs.paths[0].ways[1])
    paths = (dataclasses.replace(inputs.paths[0], ways=ways), *inputs.paths[1:])
    inputs = dataclasses.replace(inputs, paths=paths)
    guess = Guess(({}, {}), unseen=((0, second + second // 2), (0, 3 * second), (0, 3 * second + 1000)))
    spec = replay_spec(inputs, guess)
    assert [name for name in spec["event"] if name.startswith("unseen")] == ["unseen-2"]
    assert plan_experiment(load_experiment(write_spec(tmp_path / "cell", spec, inputs))).cells


def test_what_the_capture_does_not_show_is_tried_as_products_have_it() -> None:
    """One path, messages of a alone: a's timers of data, and b's acknowledgements."""
    inputs = replay_inputs([View(read_captures(recorded("bundle", "a", ("p1",))), 0)])
    known = Known(1, "sack_delay", 0.2, 0.21, "s", (), ())
    names = {(each.end, each.name) for each in left_open([known], inputs)}
    assert {(0, "rto_min"), (0, "heartbeat_interval"), (1, "sack_frequency")} <= names
    assert not names & {(1, "sack_delay"), (1, "rto_min"), (0, "sack_delay"), (0, "init_attempts")}


def test_settings_that_the_kernel_refuses_are_not_tried() -> None:
    assert accepted(Guess(({"rto_min": "1 s"}, {})))
    assert not accepted(Guess(({"rto_min": "1 s", "rto_max": "200 ms"}, {})))
    assert not accepted(Guess(({}, {"sack_frequency": 1, "sack_delay": "200 ms"})))


def test_what_follows_a_network_that_is_not_seen_to_come_back_is_unknown() -> None:
    inputs = replay_inputs([View(read_captures(recorded("bundle", "a", ("p1",))), 0)])
    lost_ns = inputs.end_ns - 1_000_000_000
    open_end = Dead(lost_ns - 1_000_000, lost_ns, NEVER, 3)
    path = dataclasses.replace(inputs.paths[0], ways=(Way((open_end,), ()), Way((), ())))
    assert known_until_ns(dataclasses.replace(inputs, paths=(path,))) == lost_ns
    closed = dataclasses.replace(open_end, most_ns=lost_ns + 1_000_000)
    path = dataclasses.replace(path, ways=(Way((closed,), ()), Way((), ())))
    assert known_until_ns(dataclasses.replace(inputs, paths=(path,))) is None


def test_an_outage_that_may_have_ended_later_is_of_unknown_length() -> None:
    stall = Stall(tsn=3, sent_s=5.9, wait_s=OPEN, expiries=3)
    course = AssociationCourse(1, 0, 0, 3, (stall,), {3: OPEN}, 0.04, None)
    assert stall_text("a", stall, [course], [course]).startswith("the outage of what a sends at 5.9 s would have been")
    told = stall_text("a", stall, [course], [course], whole=False)
    assert (
        told
        == "the outage of what a sends at 5.9 s was for good; how long with the change is unknown (replay: for good)"
    )


def test_without_an_association_there_is_no_answer() -> None:
    with pytest.raises(CaptureError, match="no SCTP association is in there"):
        what_if(recorded("tcp", "a", ("p1",)), ["a.rto_min=300 ms"])


@pytest.mark.parametrize(("name", "link"), [("sctp", "p1"), ("bundle", "p1")])
def test_a_damaged_capture_gives_a_cell_or_is_refused(name: str, link: str, tmp_path: Path) -> None:
    for file in damaged(recorded(name, "a", (link,))[0], 12, tmp_path):
        with contextlib.suppress(CaptureError):
            for explained in explain_captures([file]).connections:
                inputs = replay_inputs([View(file.capture, found.row) for file, found in explained.views])
                spec = replay_spec(inputs, Guess(settings_of(explained.settings, inputs)))
                load_experiment(write_spec(tmp_path / f"{file.stem}-{explained.connection.row}", spec, inputs))


def test_many_settings_and_losses_make_a_file_that_can_be_read() -> None:
    """No line of a spec is longer than 32768 bytes."""
    levels = {f"s{number}": {"flow": {"s": {"sender": {"rto_min": f"{number} ms"}}}} for number in range(1000)}
    spec = {"factor": {"tried": {"levels": list(levels), "level": levels}}}
    text = toml_text(spec)
    assert tomllib.loads(text) == spec
    assert max(len(line) for line in text.splitlines()) < 8192
