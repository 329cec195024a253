"""packetdrill's language: what is read, where an error is said to be, and that no bytes break the reader."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from netwarp.selftests.packetdrill.compile import compile_script
from netwarp.selftests.packetdrill.parser import LONGEST, parse_script, read_text
from netwarp.selftests.packetdrill.script import (
    Call,
    Code,
    Command,
    Icmp,
    Member,
    Name,
    Operation,
    Option,
    Packet,
    Script,
    ScriptError,
    Structure,
    Tcp,
    Unsupported,
    Usual,
    When,
)

SCRIPT = """\
--tolerance_usecs=10000
--send_omit_free  // a comment

`./defaults.sh
sysctl -q net.ipv4.tcp_ecn=1  # not a comment of ours`

    0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3 // another
   +0 setsockopt(3, SOL_SOCKET, SO_SNDBUF, [200000], 4) = 0
  +.1...0.200 read(3, ..., 512) = -1 ECONNRESET(Connection (really) reset)
 +.01 < [ect0] S. 5:15(10) ack 1 win 5792 <mss 1460,sackOK,TS val 7 ecr 1,nop,wscale 7>
 +.3~+.310 > [noecn] P.5 1:1001(1000) ack 1 <ECN e1b 1 ceb 0 e0b 1,nop,sack 1:2 4:9>
    * > . 1:1(0) ack 2 urg 3 <...>
   +0 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]
1.5 recvmsg(3, {msg_name(...)=..., msg_iov(2)=[{..., 0}, {..., 40}], msg_flags=0}, 0) = 0x2a
   +0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%
   +0 `nstat -n`

`/tmp/sysctl_restore_${PPID}.sh`
"""
MS = 1_000_000


@pytest.fixture(scope="module")
def script() -> Script:
    return parse_script(SCRIPT)


def test_the_head_and_the_shells_first_and_last_word(script: Script) -> None:
    assert script.options == {"tolerance_usecs": "10000", "send_omit_free": ""}
    assert script.init is not None
    assert script.init.text.endswith("# not a comment of ours")
    assert script.cleanup == Command("/tmp/sysctl_restore_${PPID}.sh")


def test_times(script: Script) -> None:
    assert [event.when for event in script.events][:6] == [
        When("absolute", 0),
        When("relative", 0),
        When("relative", 100 * MS, None, 200 * MS),
        When("relative", 10 * MS),
        When("relative", 300 * MS, 310 * MS),
        When("any"),
    ]
    assert script.events[7].when == When("absolute", 1500 * MS)
    assert [event.line for event in script.events][:3] == [7, 8, 9]


def test_packets(script: Script) -> None:
    first, second, third, fourth = (event.what for event in script.events if isinstance(event.what, Packet))
    assert first.inbound
    assert first.ecn == "ect0"
    options = (Option("mss", (1460,)), Option("sackOK"), Option("TS", (7, 1)), Option("nop"), Option("wscale", (7,)))
    assert first.body == Tcp("S.", 5, 10, 1, 5792, None, options)
    assert isinstance(second.body, Tcp)
    assert (second.body.flags, second.body.ace, second.inbound) == ("P.", 5, False)
    assert second.body.options == (
        Option("ECN", (1, 0, 1), "", ("e1b", "ceb", "e0b")), Option("nop"), Option("sack", (1, 2, 4, 9)),
    )  # fmt: skip
    assert third.body == Tcp(".", 1, 0, 2, None, 3, None)
    assert fourth.body == Icmp("unreachable", "frag_needed", 1200, (1, 1460))


def test_calls(script: Script) -> None:
    calls = [event.what for event in script.events if isinstance(event.what, Call)]
    kind = Operation("|", Name("SOCK_STREAM"), Name("SOCK_NONBLOCK"))
    assert calls[0].arguments == (Usual(), kind, Name("IPPROTO_TCP"))
    assert (calls[2].result, calls[2].error) == (-1, "ECONNRESET")
    message = calls[3].arguments[1]
    assert calls[3].result == 42
    assert isinstance(message, Structure)
    parts = (Structure((Member("", Usual()), Member("", 0))), Structure((Member("", Usual()), Member("", 40))))
    assert message.members[1] == Member("msg_iov", parts, 2)
    assert message.get("msg_flags") == 0


def test_code_and_commands(script: Script) -> None:
    assert script.events[-2].what == Code(" assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd ")
    assert script.events[-1].what == Command("nstat -n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the script has no event"),
        ("+1 socket(...) = 3", "line 1: the first event must be at time 0"),
        ("0 socket(... = 3", "line 1: expected ')', found '= 3'"),
        ("0 socket() = 3\n+0 < S 0:5(4) win 1", "line 2: 0:5(4): the numbers do not agree"),
        ("0 `true", "line 1: expected the ` that ends the command, found 'true'"),
        ("0 `true`\n`one`\n`two`", "line 2: a command without a time may stand first or last only"),
        ("0 `true`\n+.2~+.1 > . 1:1(0) ack 1", "line 2: a window ends before it begins"),
        ("0 `true`\n+0 > SS 0:0(0)", "line 2: 'SS' are no flags of a segment"),
        ("0 `true`\n+0 > . 1:1(0) ack x", "line 2: expected a number, found 'x'"),
    ],
)
def test_an_error_names_its_line(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse_script(text)
    assert str(error.value) == message
    assert not isinstance(error.value, Unsupported)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 < udp (1000)", "line 1: packets of udp"),
        ("0 > S 0:0(0) <mss 1,exotic>", "line 1: the TCP option exotic"),
        ("0 < [flowlabel 0x1] S 0:0(0) win 1", "line 1: the packet's prefix [flowlabel 0x1]"),
        ("0 < icmp echo_request", "line 1: icmp echo_request"),
    ],
)
def test_words_that_the_player_has_no_means_for(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match="^" + message.replace("[", r"\[").replace("]", r"\]") + "$"):
        parse_script(text)


PIECES = [line + "\n" for line in SCRIPT.split("\n")]
PIECES += [*'<>[](){}`%~*+.,|=:"\\-0123456789', "...", "%{", "}%", "/*", "//", " ack ", " win ", "\n", "\x00", "é"]


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
@example("0 f(" + "[" * 100_000)
@example("0 f(" + "~" * 100_000)
@example("0 " + "9" * 5000)
@example("0 > . 1:1(0) ack " + "9" * 5000)
@example("0 f(1) = 1 " + "(" * 5000)
@example('0 f("\\") = 1')
@example("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n0 listen(3, " + "1|" * 5000 + "1) = 0")
def test_whatever_the_text_the_answer_is_a_script_or_an_error(text: str) -> None:
    try:
        read = parse_script(text)
    except ScriptError as error:
        assert 1 <= error.line <= text.count("\n") + 1
    else:
        assert read.events
        with contextlib.suppress(Unsupported, ScriptError):
            compile_script(read, "ipv4")


@pytest.mark.parametrize(
    "text", ["0 a()=0\n" * (LONGEST // 8), '0 f("' + "\\n" * (LONGEST // 2 - 10) + '")=0', "\n" * (LONGEST + 1)]
)
def test_a_long_script_takes_time_by_its_length_alone(text: str, tmp_path: Path) -> None:
    """10 s: each line, or each escape, that counts or copies the whole text takes minutes."""
    started = time.process_time()
    with contextlib.suppress(ScriptError):
        parse_script(text)
    assert time.process_time() - started < 10


def test_no_more_of_a_file_is_read_than_a_script_may_have(tmp_path: Path) -> None:
    with (tmp_path / "long.pkt").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(ScriptError, match="characters"):
        parse_script(read_text(tmp_path / "long.pkt"))


@settings(max_examples=200)
@given(st.integers(0, len(SCRIPT) - 1), st.integers(0, len(SCRIPT)), st.text(max_size=3))
def test_a_damaged_script_too(start: int, length: int, new: str) -> None:
    try:
        parse_script(SCRIPT[:start] + new + SCRIPT[start + length :])
    except ScriptError as error:
        assert error.reason
