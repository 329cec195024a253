"""Notes on a plan: buffers that cannot fill a path, and flows that meet in one phase only."""

from __future__ import annotations

import pytest
from netwarp.plan.notes import notes
from support.specs import BASE, plan_of, replaced

FAST = replaced('"1 Mbit/s"', '"1 Gbit/s"')
G = '[flow.g]\nfrom = "a"\nto = "b"\nprotocol = "sctp"\npaths = ["p1"]\n'
TWO = BASE + G


def said(text: str, backend: str = "virtual") -> tuple[str, ...]:
    return notes(plan_of(text), backend)


def test_a_path_that_the_buffers_of_a_guest_cannot_fill() -> None:
    (note,) = said(FAST)
    assert note.startswith('flow "f" of 1 of 1 cell cannot fill its path: 1 Gbit/s x RTT 40 ms = 5 MB')
    assert "hold 2.85 MB of data: at most 570 Mbit/s" in note and "net.ipv4.tcp_rmem" in note
    assert said(FAST, "netns") == (note,), "every back end sets them"
    assert said(BASE) == ()


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ('[figure.w]\nseries = ["cwnd_bytes"]\n', "figure w has no cwnd_bytes"),
        ('[table.w]\nmetric = "cwnd_end_bytes"\n', "table w has no cwnd_end_bytes"),
        ('[table.w]\nmetric = "srtt_s"\nflow = "f"\n', "table w has no srtt_s"),
    ],
)
def test_an_output_of_samples_that_nobody_asks_for(output: str, what: str) -> None:
    """It would be empty, without a word."""
    (note,) = said(BASE + output)
    assert note.startswith(f'{what} of flow "f": ') and 'sender = { sample_interval = "10 ms" }' in note
    asked = BASE + 'sender = { sample_interval = "10 ms" }\n'
    assert said(asked + output) == ()
    assert said(BASE + output.replace(what.rpartition(" ")[2], "goodput_bit_s")) == ()


def test_a_queue_that_the_buffers_cannot_fill() -> None:
    """50 Mbit/s x 80 ms is 0.5 MB; with 16 MiB the queue of 3 MB overflows, with the default it never does."""
    deep = replaced('"20 ms"', '"40 ms"', replaced('"50 packets"', '"3 MB"', replaced('"1 Mbit/s"', '"50 Mbit/s"')))
    (note,) = said(deep)
    assert "cannot fill the queue of its path: 50 Mbit/s x RTT 80 ms = 500 kB, with a queue of 3 MB 3.5 MB" in note
    assert "hold 2.85 MB of data" in note and "4096 131072 8388608" in note
    assert said(deep.replace('"3 MB"', '"2 MB"')) == ()
    assert said(deep.replace('"3 MB"', '"2000 packets"\naqm = { kind = "codel" }')) == (), "it keeps the queue short"
    assert said(deep.replace('"3 MB"', '"2000 packets"')), "each of 1500 bytes"
    (note,) = said(deep.replace('"tcp"', '"sctp"').replace('"3 MB"', '"100 kB"'))
    assert "SCTP announces a window of 106 kB" in note
    two = deep.replace('"tcp"\npaths = ["p1"]', '"mptcp"\npaths = ["p1", "p2"]') + '[link.p2]\nlike = "p1"\n'
    (note,) = said(two.replace('"3 MB"', '"2 MB"'))
    assert "with a queue of 4 MB 5 MB" in note, "of all its paths"


def test_flows_that_are_alike_have_one_sentence() -> None:
    assert len(said(FAST + G.replace("sctp", "tcp") + 'phase = { uniform = ["0 s", "1 s"] }\n')) == 1


def test_sctp_announces_a_smaller_window() -> None:
    (note,) = said(replaced('"tcp"', '"sctp"', replaced('"1 Mbit/s"', '"100 Mbit/s"')))
    assert "SCTP announces a window of 106 kB: at most 21.3 Mbit/s" in note and "rcvbuf" in note
    assert said(replaced('"1 Mbit/s"', '"100 Mbit/s"')) == (), "TCP's buffers are large enough there"


@pytest.mark.parametrize(
    "more",
    [
        'receiver = { rcvbuf = "8 MB" }\nsender = { sndbuf = "8 MB" }\n',
        'bytes = "1 MB"\n',
        'sender = { interval = "1 s" }\n',
        "[default.node]\n"
        'sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 16777216", "net.ipv4.tcp_wmem" = "4096 16384 16777216" }\n',
    ],
)
def test_no_note_where_the_spec_chose_or_the_window_is_no_limit(more: str) -> None:
    assert said(FAST + more) == ()


def test_flows_that_share_a_queue_meet_in_one_phase() -> None:
    (note,) = said(TWO)
    assert note.startswith("nothing is random in 1 of 1 cell, but the flows f, g share a queue")
    assert 'phase = { uniform = ["0 s", "1 s"] }' in note and "one phase" in note
    short = replaced('paths = ["p1"]\n', 'paths = ["p1"]\nbytes = "300 kB"\n', BASE)
    assert said(short + G + 'start = "8 s"\n'), "2.4 s at full rate: the first may not be over"


@pytest.mark.parametrize(
    "text",
    [
        TWO + 'phase = { uniform = ["0 s", "1 s"] }\n',
        replaced('delay = "20 ms"', 'delay = "20 ms"\nloss = "1 %"', TWO),
        TWO + 'start = "{start}"\n[factor.start]\nlevels = ["0 s", "1 s"]\n',
        replaced('paths = ["p1"]\n', 'paths = ["p1"]\nstop = "2 s"\n', TWO) + 'start = "3 s"\n',
        replaced('paths = ["p1"]\n', 'paths = ["p1"]\nbytes = "10 kB"\n', BASE) + G + 'start = "8 s"\n',
    ],
)
def test_no_note_where_phases_are_drawn_or_nothing_is_shared(text: str) -> None:
    assert said(text) == ()


def test_flows_on_links_of_their_own_share_nothing() -> None:
    other = TWO.replace('protocol = "sctp"\npaths = ["p1"]', 'protocol = "tcp"\npaths = ["p2"]')
    assert said(other + '[link.p2]\nlike = "p1"\n') == ()


def test_flows_over_the_bottleneck_of_a_dumbbell_share_its_queue() -> None:
    text = """\
format = 1
name = "test"
duration = "10 s"
shape = { kind = "dumbbell", pairs = 2 }
[link.bottleneck]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "20 ms"
"""
    for number in (1, 2):
        ends = f'from = "a{number}"\nto = "b{number}"\npaths = [{{ sender = "a{number}", receiver = "b{number}" }}]\n'
        text += f'[flow.f{number}]\nprotocol = "tcp"\n{ends}'
    (note,) = said(text)
    assert "the flows f1, f2 share a queue" in note


def test_a_program_of_the_users_chooses_its_buffers_itself() -> None:
    own = '{ sender = ["iperf3", "-c", "{to}"], receiver = ["iperf3", "-s"], ready = "listening" }'
    (plan,) = (plan_of(FAST + f"program = {own}\n"),)
    assert plan.cells[0].flows[0].program is not None
    assert notes(plan, "virtual") == ()


def test_sixty_flows_that_are_alike_are_one_sentence() -> None:
    more = "".join(f'[flow.g{number}]\nlike = "f"\n' for number in range(59))
    (note,) = said(BASE + more)
    assert "but the flows f, g0, g1 ... g58 (60) share a queue" in note
