"""The player's parts without a kernel: packets against scapy, assertions against Python, calls, steps."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from netwarp.selftests.packetdrill.addresses import VERSIONS, Version, addresses_of
from netwarp.selftests.packetdrill.answers import Answer
from netwarp.selftests.packetdrill.asserts import failed, memory_info, read_code, tcp_info
from netwarp.selftests.packetdrill.calls import CallCompiler, Request
from netwarp.selftests.packetdrill.compile import compile_script, versions_of
from netwarp.selftests.packetdrill.judge import Judge, Tolerance
from netwarp.selftests.packetdrill.packets import inbound, options_bytes, options_of, parse, text_of
from netwarp.selftests.packetdrill.parser import parse_script
from netwarp.selftests.packetdrill.record import Record, read_record
from netwarp.selftests.packetdrill.script import Call, Icmp, Packet, ScriptError, Tcp, Unsupported
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.packet import Packet as Dissected


def packet(text: str) -> Packet:
    what = parse_script(f"0 {text}").events[0].what
    assert isinstance(what, Packet)
    return what


def dissected(text: str, version: Version, **more: int) -> tuple[Dissected, bytes]:
    addresses = addresses_of(version)
    made = inbound(packet(text), addresses, 50_001, addresses.defines, 1, more.get("remote_isn", 0))
    data = made.header + bytes(made.zeros)
    return (IPv6(data) if version == "ipv6" else IP(data)), data


@pytest.mark.parametrize("version", VERSIONS)
def test_scapy_reads_a_segment_as_it_was_written(version: Version) -> None:
    text = "< [ect1] SW. 5:15(10) ack 7 win 300 urg 3 <mss 1460,sackOK,TS val 9 ecr 8,nop,wscale 7>"
    read, _ = dissected(text, version)
    tcp = read[TCP]
    assert (tcp.sport, tcp.dport, tcp.seq, tcp.ack, tcp.window, tcp.urgptr) == (50_001, 8080, 5, 7, 300, 3)
    assert str(tcp.flags) == "SAC"
    assert tcp.options == [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (9, 8)), ("NOP", None), ("WScale", 7)]
    assert len(tcp.payload) == 10
    assert (read.tc if version == "ipv6" else read.tos) == 1
    assert (read.src, read.dst) == (
        ("fd3d:fa7b:d17d::1", "fd3d:a0b:17d6::1") if version == "ipv6" else ("192.0.2.1", "192.168.0.1")
    )


def test_the_header_of_ipv4_has_a_right_checksum() -> None:
    read, data = dissected("< . 1:1(0) ack 1 win 1", "ipv4")
    del read.chksum
    assert bytes(read)[:20] == data[:20]


def test_sequence_numbers_count_from_the_remote_hosts_own() -> None:
    read, _ = dissected("< . 1:1(0) ack 1 win 1 <sack 2:3 5:9,nop,nop>", "ipv4", remote_isn=1000)
    assert read[TCP].seq == 1001
    assert read[TCP].options[0] == ("SAck", (2, 3, 5, 9))


def test_an_icmp_error_echoes_the_segment() -> None:
    read, _ = dissected("< icmp packet_too_big mtu 1280 [1:1461(1460)]", "ipv6")
    assert read[ICMPv6PacketTooBig].mtu == 1280
    addresses = addresses_of("ipv6")
    made = inbound(packet("< icmp packet_too_big mtu 1280 [1:1461(1460)]"), addresses, 50_001, {}, 1, 0)
    assert struct.unpack_from(">HHI", made.header, made.local_port_at) == (8080, 50_001, 1)
    assert made.isn_at == (made.local_port_at + 4,)


@pytest.mark.parametrize("flags", ["S", "SEWA", ".5", "P.7", "FP.", "R", "-", "U."])
def test_what_is_captured_reads_as_it_is_written(flags: str) -> None:
    ack = " ack 4" if "." in flags else ""
    text = f"{flags} 1:9(8){ack} win 77 <nop,nop,sack 1:2 3:4>"
    _, data = dissected(f"< {text}", "ipv4")
    seen = parse(data)
    assert seen is not None
    order = "".join(letter for letter in "SFRPUEWA." if letter in flags) + "".join(c for c in flags if c.isdigit())
    assert text_of(seen, ace=any(c.isdigit() for c in flags)) == f"> {text.replace(flags, order or '-', 1)}"


@settings(max_examples=300)
@given(st.binary(max_size=120), st.integers(0, 119), st.integers(0, 255))
def test_damaged_packets_are_read_or_refused(data: bytes, at: int, value: int) -> None:
    _, good = dissected("< P. 1:9(8) ack 4 win 77 <mss 5,nop,wscale 1>", "ipv4")
    damaged = bytearray(good)
    damaged[at % len(damaged)] = value
    for sample in (data, bytes(damaged), bytes(damaged[:at])):
        seen = parse(sample)
        if seen is not None:
            assert text_of(seen).startswith(">")
    assert sum(len(part) for _, part in options_of(data)) <= len(data)


def test_options_must_fill_words() -> None:
    with pytest.raises(Unsupported, match="TCP options of 3 bytes"):
        options_bytes(tuple((packet("> S 0:0(0) <wscale 7>").body.options) or ()), {}, 1)  # type: ignore[union-attr]


# --- assertions ---------------------------------------------------------------------------------------------

NAMES = {"tcpi_snd_cwnd": 10, "tcpi_options": 5, "tcpi_state": 7}
LEAVES = st.one_of(
    st.integers(-20, 20).map(str),
    st.sampled_from([*NAMES, "TCP_CLOSE", "TCPI_OPT_WSCALE", "True", "False"]),
    st.sampled_from(["(0 // 0)", "(1 % 0)", "tcpi_new"]),  # an error, where it is reached
)
ARITHMETIC = ["+", "-", "*", "&", "|", "^", "//", "%"]
COMPARISONS = ["<", "<=", "==", "!=", ">", ">="]


def chain(operators: list[str], least: int) -> Callable[[st.SearchStrategy[str]], st.SearchStrategy[str]]:
    """Operands between operators, in brackets: `(a < b <= c)`."""
    return lambda inner: (
        st.lists(st.tuples(inner, st.sampled_from(operators)), min_size=least, max_size=4)
        .map(lambda parts: " ".join(word for part in parts for word in part).rsplit(" ", 1)[0])
        .map("({})".format)
    )


def expressions(more: list[str]) -> st.SearchStrategy[str]:
    """Expressions of Python over NAMES; `more`: operators beside those that the player knows."""

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        kinds = [chain([*ARITHMETIC, *more], 2)(inner), chain(["and", "or"], 2)(inner), chain(COMPARISONS, 2)(inner)]
        kinds += [st.tuples(st.sampled_from(["not ", "~", "-", "+"]), inner).map(lambda part: f"({part[0]}{part[1]})")]
        if more:
            kinds += [st.tuples(inner, inner, inner).map(lambda part: f"({part[0]} if {part[1]} else {part[2]})")]
        return st.one_of(kinds)

    return st.recursive(LEAVES, grown, max_leaves=10)


def by_python(text: str) -> str:
    """What becomes of an assertion in Python: "holds", "fails", or the name that is unknown."""
    known = {**NAMES, "TCP_CLOSE": 7, "TCPI_OPT_WSCALE": 4}
    try:
        exec(compile(f"assert {text}, 'text'", "sample", "exec", optimize=0), {"__builtins__": {}, **known})
    except NameError as error:
        return str(error.name)
    except (AssertionError, ZeroDivisionError, ValueError, OverflowError, TypeError):
        return "fails"
    return "holds"


def by_the_player(text: str) -> str:
    difference = failed(read_code(f"assert {text}, 'text'", 1), NAMES)
    name, _, rest = difference.partition(": ")
    if not difference:
        return "holds"
    return name if rest == "this kernel does not say it" else "fails"


@settings(max_examples=600)
@given(expressions([]))
@example("~(0 <= -1 < (0 // 0))")
@example("tcpi_state == 7 or tcpi_new > 3")
@example("not (1 < 0 < tcpi_new)")
def test_assertions_mean_what_python_means(text: str) -> None:
    """With what is not reached, errors and unknown names too."""
    assert by_the_player(text) == by_python(text)


@settings(max_examples=200)
@given(expressions(["<<", ">>", "/", "is", "in", "**"]))
def test_an_assertion_is_refused_or_means_what_python_means(text: str) -> None:
    try:
        found = by_the_player(text)
    except Unsupported:
        assert any(word in text for word in [" << ", " >> ", " / ", " ** ", " is ", " in ", " if "])
        return
    assert found == by_python(text)


@pytest.mark.parametrize(
    "text",
    [
        "import os", "x = 1", "assert open('/etc/passwd')", "assert tcpi_rtt.real", "assert [1][0]",
        "assert 2 ** 9 ** 9",
        "assert (lambda: 1)()", "assert f'{1}'", "def f(): pass", "assert 1 if 1 else 0",
        "assert 1 << 5", "assert x := 1",
        "assert " + "(" * 300 + "1" + ")" * 300, "assert " + "-" * 100 + "1", "assert 1" + " + 1" * 6000,
    ],
)  # fmt: skip
def test_code_that_is_more_than_assertions_over_numbers_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        read_code(text, 3)


@settings(max_examples=200)
@given(st.text(max_size=80))
def test_whatever_the_code_nothing_of_it_runs(text: str) -> None:
    try:
        found = read_code(f"assert {text}", 1)
    except Unsupported:
        return
    failed(found, NAMES)


def test_a_block_may_span_lines_with_a_margin() -> None:
    found = read_code("\n   assert tcpi_snd_cwnd == 10, 1; \\\n   assert tcpi_state == TCP_CLOSE # why\n", 1)
    assert len(found) == 2
    assert failed(found, NAMES) == ""
    assert failed(found, {**NAMES, "tcpi_state": 1}) == "assert tcpi_state == TCP_CLOSE: tcpi_state is 1"
    assert failed(read_code("assert tcpi_new == 1", 1), NAMES) == "tcpi_new: this kernel does not say it"


def test_the_fields_of_tcp_info_lie_where_the_kernels_header_has_them() -> None:
    """Offsets by hand from include/uapi/linux/tcp.h."""
    data = bytearray(280)
    data[0], data[5], data[6], data[7] = 7, 32, 0x78, 5
    struct.pack_into("<I", data, 80, 10)
    struct.pack_into("<Q", data, 104, 1 << 40)
    struct.pack_into("<I", data, 188, 3)
    struct.pack_into("<I", data, 268, 77)
    values = tcp_info(bytes(data))
    expected = {"tcpi_state": 7, "tcpi_options": 32, "tcpi_snd_wscale": 8, "tcpi_rcv_wscale": 7, "tcpi_snd_cwnd": 10}
    expected |= {"tcpi_pacing_rate": 1 << 40, "tcpi_delivery_rate_app_limited": 1, "tcpi_fastopen_client_fail": 2}
    assert values.items() >= (expected | {"tcpi_delivered_ce": 3 if values["tcpi_delivered_ce"] else 0}).items()
    assert "tcpi_delivered_ce_bytes" in values
    assert "tcpi_delivered_ce_bytes" not in tcp_info(bytes(data[:240]))
    assert memory_info(struct.pack("<3I", 1, 2, 3)) == {
        "SK_MEMINFO_RMEM_ALLOC": 1, "SK_MEMINFO_RCVBUF": 2, "SK_MEMINFO_WMEM_ALLOC": 3,
    }  # fmt: skip


# --- calls --------------------------------------------------------------------------------------------------


def request(text: str, version: Version = "ipv4") -> Request:
    what = parse_script(f"0 {text}").events[0].what
    assert isinstance(what, Call)
    addresses = addresses_of(version)
    return CallCompiler(addresses, addresses.defines).compile(what, 1)


def test_an_address_is_that_of_the_version() -> None:
    assert request("bind(3, ..., ...) = 0").memory[0].data == bytes.fromhex("02001f90c0a80001") + bytes(8)
    mapped = request("connect(3, ..., ...) = 0", "ipv4-mapped-ipv6").memory[0].data
    assert mapped == bytes.fromhex("0a001f90000000000000000000000000" + "0000ffffc0000201" + "00000000")


@pytest.mark.parametrize(
    ("control", "difference"),
    [
        (struct.pack("<QiiI", 20, 6, 36, 9000), ""),
        (struct.pack("<QiiI", 20, 6, 36, 8999), "cmsg_data: expected 9000, seen 8999"),
        (struct.pack("<QiiI", 20, 6, 35, 9000), "control messages: expected level 6 type 36; seen level 6 type 35"),
        (b"", "control messages: expected level 6 type 36; seen none"),
    ],
)
def test_control_messages_are_compared(control: bytes, difference: str) -> None:
    made = request(
        "recvmsg(3, {msg_name(...)=..., msg_iov(1)=[{..., 10}], msg_flags=0, msg_control="
        "[{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=9000}]}, 0) = 10"
    )
    header = next(at for at, piece in enumerate(made.memory) if len(piece.data) == 56)
    room = made.memory[header].pointers[32]
    message = bytearray(made.memory[header].data)
    struct.pack_into("<Q", message, 40, len(control))
    answer = Answer(10, 0, {header: bytes(message), room: control.ljust(512, b"\0")}, 0)
    assert [text for check in made.checks if (text := check(answer, 0))] == ([difference] if difference else [])


@pytest.mark.parametrize("text", ["socket(1) = 3", "write(3, ..., -1) = 0",
                                  "write(3, ..., 99999999999) = 0", "frob() = 0",
                                  "setsockopt(3, SOL_TCP, NO_SUCH, [1], 4) = 0", "poll(1, 2, 3) = 0", "read() = 0",
                                  "sendmsg(3, {msg_what=1}, 0) = 0", "pipe([3]) = 0"])  # fmt: skip
def test_arguments_that_nobody_knows_are_unsupported(text: str) -> None:
    with pytest.raises(Unsupported):
        request(text)


# --- whole scripts ------------------------------------------------------------------------------------------


def test_each_syn_that_comes_in_to_a_listener_has_a_port_of_its_own() -> None:
    text = """0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
    +0 listen(3, 1) = 0
    +0 < S 9:9(0) win 1
    +0 > S. 0:0(0) ack 10 <...>
    +0 < S 9:9(0) win 1
    +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4
    +0 listen(4, 1) = 0
    +0 < S 0:0(0) win 1
    +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
    +0 connect(5, ..., ...) = 0
    +0 > S 3:3(0) <...>
    """
    program = compile_script(parse_script(text), "ipv4")
    assert [step.connection for step in program.steps if isinstance(step.event.what, Packet)] == [0, 0, 0, 1, 2]
    assert [(one.active, one.remote_port, one.remote_isn) for one in program.connections] == [
        (False, 50_001, 9), (False, 50_002, 0), (True, 8080, None),
    ]  # fmt: skip
    assert program.connections[2].isn == 3
    anchors = [line.split()[1] for line in program.text.splitlines() if line.startswith("event ")]
    assert anchors[0] == "s"
    assert set(anchors[1:]) == {"n"}


def test_the_versions_of_a_script() -> None:
    own = parse_script("--ip_version=ipv6\n0 `true`")
    assert versions_of(own, VERSIONS) == ("ipv6",)
    assert versions_of(parse_script("0 `true`"), VERSIONS[:2]) == ("ipv4", "ipv6")
    with pytest.raises(Unsupported, match="--ip_version=ipx"):
        versions_of(parse_script("--ip_version=ipx\n0 `true`"), VERSIONS)


@pytest.mark.parametrize("head", ["--bogus=1", "--mss=99999999", "--tolerance_usecs=x", "--tolerance_percent=x"])
def test_options_that_the_player_does_not_know_are_unsupported(head: str) -> None:
    with pytest.raises(Unsupported):
        compile_script(parse_script(f"{head}\n0 `true`"), "ipv4")


def test_what_the_kernel_sends_is_never_icmp_here() -> None:
    with pytest.raises(Unsupported):
        compile_script(parse_script("0 < S 0:0(0) win 1\n+0 > icmp unreachable [1:2(1)]"), "ipv4")
    assert isinstance(packet("< icmp unreachable [1:2(1)]").body, Icmp)
    assert isinstance(packet("< . 1:1(0) ack 1").body, Tcp)


@pytest.mark.parametrize(
    "line", ['{"record":"what"}', '{"record":1}', "{", '{"record":"sent","data":"x","length":1}',
             '{"record":"sent","length":999999999999}'],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "drill.ndjson"
    file.write_text(line + "\n")
    with pytest.raises(ValueError):
        read_record(file)


def test_a_line_that_a_dying_guest_left_half_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "drill.ndjson"
    file.write_text('{"record":"stopped","event":3}\n{"record":"en')
    record = read_record(file)
    assert (record.stopped, record.ended) == (3, False)


WHOLE = """--mss=1000
--tolerance_usecs=9000
`./defaults.sh`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_SNDBUF, [200000], 4) = 0
   +0 listen(3, 1) = 0
   +0 < [ect0] S 5:5(0) win 1 <mss 1460,sackOK,TS val 5 ecr 0,nop,wscale 7>
   +0 > [noecn] S. 0:0(0) ack 6 <mss 1460,FO TFO_COOKIE,nop,nop>
  +.1...2 accept(3, ..., ...) = 4
 +.01 < PU.3 1:1001(1000) ack 1 win 1 urg 9 <sack 1:2 3:4,nop,nop>
   +0 recvmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 40}, {..., 0}], msg_flags=MSG_TRUNC, msg_control=[
        {cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMPING, cmsg_data={scm_sec=0,scm_nsec=20000000}}]}, 0) = 40
   +0 poll([{fd=4, events=POLLIN, revents=0}], 1, 0) = 0
   +0 epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0) = 1
   +0 pipe([5, 6]) = 0
   +0 %{ assert 1 <= tcpi_snd_cwnd <= 10 and tcpi_state == TCP_CLOSE, tcpi_snd_cwnd }%
   +0 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]
+.3~+.31 > . 1:1(0) ack 1001 win 5 <...>
"""
WORDS = ["...", "-1", "[", "{", "0x", "NULL"]
CUTS = st.lists(
    st.tuples(
        st.integers(0, len(WHOLE) - 1), st.integers(0, 12),
        st.one_of(st.text(max_size=3), st.integers(-(2**70), 2**70).map(str), st.sampled_from(WORDS)),
    ), min_size=1, max_size=3,
)  # fmt: skip


@settings(max_examples=500)
@given(CUTS, st.sampled_from(VERSIONS))
def test_whatever_a_script_it_is_compiled_or_refused(cuts: list[tuple[int, int, str]], version: Version) -> None:
    """And judged, though nothing happened."""
    text = WHOLE
    for start, length, new in cuts:
        text = text[:start] + new + text[start + length :]
    try:
        program = compile_script(parse_script(text), version)
    except ScriptError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        return
    assert len(program.text.splitlines()) >= 4 + len(program.steps)
    for word in program.text.split():
        assert not word.lstrip("-").isdigit() or len(word) > 22 or -(2**63) <= int(word) < 2**63, word
    failure = Judge(program, Record()).first_failure(Tolerance(0))
    assert failure is not None
    assert failure.line == program.steps[0].event.line
