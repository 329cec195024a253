"""cell-init's parser of steps.txt: it reads what the Python encoder writes and refuses everything else."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.testbed import messages
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import HEADER, Step, step, to_text
from support.cell_init_driver import Driver
from support.cells import S, outage, two_path_cell

UP = messages.set_link(Device("p1", 3), up=True).data.hex()
DUMP = messages.dump("link").hex()
SANDBOX = "sandbox kind=guest"
CLOCK = "clock t0_realtime_ns=1700000000000000000"
NS = "ns index=0 name=a"
SPAWN = "spawn id=x ns=0 stdout=o stderr=e arg=./x"
CAPTURE = "capture ns=0 ifindex=1 iface=p1 mtu=1500 file=capture/a.pcap"
WHOLE = [SANDBOX, CLOCK, NS, SPAWN, "ready", f"netlink at=5 ns=0 data={UP}", "end at=9 grace_ns=1"]
FUZZ = settings(max_examples=400)


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """The sanitised parser."""
    running = Driver()
    yield running
    running.close()


def parse(driver: Driver, lines: list[str]) -> dict[str, object]:
    """Parse these lines behind the header."""
    return driver.ask("steps", "\n".join([HEADER, *lines]).encode() + b"\n")


def test_a_whole_cell_is_read_as_it_was_written(driver: Driver) -> None:
    cell = two_path_cell(timeline=outage())
    steps = compile_cell(cell, Clock(t0_realtime_ns=1_700_000_000 * S)).steps
    answer = driver.ask("steps", to_text(steps).encode())
    assert "error" not in answer, answer
    assert len(answer["steps"]) == len(steps)
    for number, (read, written) in enumerate(zip(answer["steps"], steps, strict=True)):
        assert read["line"] == number + 2
        assert read["verb"] == written.verb
        assert read["at_ns"] == written.at_ns
        values = [decoded(item) for item in read["values"] if item[0] != "at"]
        fields = [
            (key, int(value) if value.isdigit() and key not in TEXT_KEYS else value)
            for key, value in plain_fields(written)
        ]
        assert sorted(values, key=itemgetter(0)) == sorted(fields, key=itemgetter(0))


TEXT_KEYS = {"value", "data", "arg", "name", "id", "iface", "text"}


def plain_fields(item: Step) -> list[tuple[str, str]]:
    """The fields without `at`, which stands elsewhere."""
    return [(key, value) for key, value in item.fields if key != "at"]


def decoded(item: list[object]) -> tuple[str, object]:
    """A value as the encoder was given it."""
    key, value = item
    assert isinstance(key, str)
    if not isinstance(value, str):
        return key, value
    return key, value if key == "data" else bytes.fromhex(value).decode()


@FUZZ
@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), min_size=1),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
)
def test_every_text_survives(driver: Driver, arguments: list[str], ident: str) -> None:
    steps = [
        step("sandbox", kind="guest"),
        step("ns", index=0, name="a"),
        step("spawn", id=ident, ns=0, stdout="o", stderr="e", arg=arguments),
        step("output", id=ident, text=ident, timeout_ns=1),
    ]
    answer = driver.ask("steps", to_text(steps).encode())
    assert "error" not in answer, answer
    values = [decoded(item) for item in answer["steps"][2]["values"]]
    assert [value for key, value in values if key == "arg"] == arguments
    assert ("id", ident) in values


@FUZZ
@given(st.integers(1, 10**18), st.integers(1, 10**18), st.integers(0, 4 * 10**18))
def test_every_number_survives(driver: Driver, setup_ns: int, after_ns: int, t0_ns: int) -> None:
    lines = [SANDBOX, f"clock t0_realtime_ns={t0_ns}", f"deadline setup_ns={setup_ns} after_t0_ns={after_ns}"]
    answer = parse(driver, lines)
    assert "error" not in answer, answer
    assert answer["steps"][1]["values"] == [["t0_realtime_ns", t0_ns]]
    assert answer["steps"][2]["values"] == [["setup_ns", setup_ns], ["after_t0_ns", after_ns]]


def test_phases(driver: Driver) -> None:
    answer = parse(driver, [*WHOLE, f"dump ns=0 label=link data={DUMP}"])
    assert "error" not in answer, answer
    assert [item["phase"] for item in answer["steps"]] == [1, 1, 1, 1, 1, 2, 2, 4]


def test_comments_and_empty_lines_keep_their_numbers(driver: Driver) -> None:
    answer = parse(driver, ["", "# comment with key=value", SANDBOX, "", NS])
    assert [item["line"] for item in answer["steps"]] == [4, 6]


# What is wrong, and what the message must say: the line, the verb, the key, the reason.
WRONG = [
    ([], "steps.txt:1: the first step must be sandbox"),
    ([NS], "steps.txt:2: the first step must be sandbox"),
    ([SANDBOX, SANDBOX], "steps.txt:3: sandbox: is given twice"),
    ([NS, SANDBOX], "steps.txt:3: sandbox: must be the first step"),
    (["sandbox kind=house"], "steps.txt:2: sandbox: key kind: 'house' is neither guest nor namespaces"),
    (["sandbox"], "steps.txt:2: sandbox: key kind: is missing"),
    ([SANDBOX, "dance"], "steps.txt:3: unknown verb 'dance'"),
    ([SANDBOX, "ns index=0"], "steps.txt:3: ns: key name: is missing"),
    ([SANDBOX, "ns index=0 name=a colour=red"], "steps.txt:3: ns: key colour: is unknown here"),
    ([SANDBOX, "ns index=0 name"], "steps.txt:3: ns: key name: has no '='"),
    ([SANDBOX, "ns index=0 name="], "steps.txt:3: ns: key name: is empty"),
    ([SANDBOX, "ns index=0 index=1 name=a"], "steps.txt:3: ns: key index: is given twice"),
    ([SANDBOX, "ns index=-1 name=a"], "steps.txt:3: ns: key index: '-1' is not a whole number from 0 to 999"),
    ([SANDBOX, "ns index=1000 name=a"], "steps.txt:3: ns: key index: '1000' is not a whole number from 0 to 999"),
    ([SANDBOX, "ns index=1e3 name=a"], "steps.txt:3: ns: key index: '1e3' is not a whole number"),
    ([SANDBOX, "ns index= name=a"], "steps.txt:3: ns: key index: '' is not a whole number"),
    ([SANDBOX, "ns index=99999999999999999999 name=a"], "steps.txt:3: ns: key index: '99999999999999999999' is not"),
    ([SANDBOX, "ns index=0 name=a%2Fb"], "steps.txt:3: ns: key name: 'a/b' cannot be a file name"),
    ([SANDBOX, "ns index=0 name=a%2"], "steps.txt:3: ns: key name: byte 1 of the value must be written %XX"),
    ([SANDBOX, "ns index=0 name=a%ZZ"], "steps.txt:3: ns: key name: byte 1 of the value must be written %XX"),
    ([SANDBOX, "ns index=0 name=a\tb"], "steps.txt:3: ns: key name: byte 1 of the value must be written %XX"),
    ([SANDBOX, "ns index=0 name=a%00b"], "steps.txt:3: ns: key name: contains a NUL byte"),
    ([SANDBOX, NS, "ns index=0 name=b"], "steps.txt:4: ns: key index: is made twice"),
    ([SANDBOX, NS, "ns index=1 name=a"], "steps.txt:4: ns: key name: 'a' is made twice"),
    ([SANDBOX, "sysctl ns=0 path=net/x value=1"], "steps.txt:3: sysctl: key ns: no earlier step makes namespace 0"),
    ([SANDBOX, NS, "sysctl ns=0 path=/etc/x value=1"], "steps.txt:4: sysctl: key path: '/etc/x' must be relative"),
    ([SANDBOX, NS, "sysctl ns=0 path=net/../../x value=1"], "key path: 'net/../../x' must be relative"),
    ([SANDBOX, "file path=.. timeout_ns=1"], "steps.txt:3: file: key path: '..' must be relative and without .."),
    ([SANDBOX, "file path=a/.. timeout_ns=1"], "steps.txt:3: file: key path: 'a/..' must be relative and without .."),
    ([SANDBOX, NS, "netlink ns=0 data=0"], "steps.txt:4: netlink: key data: 1 hex digits do not make whole bytes"),
    ([SANDBOX, NS, "netlink ns=0 data=0g"], "steps.txt:4: netlink: key data: not a hex digit in byte 0"),
    ([SANDBOX, NS, "netlink ns=0 data=00"], "netlink: key data: the bytes are not whole netlink messages"),
    ([SANDBOX, NS, f"netlink ns=0 data={UP[:-2]}"], "netlink: key data: the bytes are not whole netlink messages"),
    ([SANDBOX, NS, f"netlink ns=0 data={UP}00"], "netlink: key data: the bytes are not whole netlink messages"),
    ([SANDBOX, NS, f"netlink ns=0 data={DUMP}"], "netlink: key data: a message lacks NLM_F_REQUEST, NLM_F_ACK"),
    ([SANDBOX, NS, f"dump ns=0 label=x data={DUMP}{DUMP}"], "steps.txt:4: dump: key data: must be one request"),
    ([SANDBOX, "clock"], "steps.txt:3: clock: takes one of t0_realtime_ns, t0_after_ready_ns and t0_file"),
    ([SANDBOX, "clock t0_realtime_ns=1 t0_after_ready_ns=1"], "steps.txt:3: clock: takes one of"),
    ([SANDBOX, "clock t0_realtime_ns=1 t0_file=x"], "steps.txt:3: clock: takes one of"),
    ([SANDBOX, "clock t0_file=/x"], "steps.txt:3: clock: key t0_file: '/x' must be relative"),
    ([SANDBOX, "adopt ns=0 iface=x ifindex=10"], "steps.txt:3: adopt: key ns: no earlier step makes namespace 0"),
    ([SANDBOX, "output id=x text=a timeout_ns=1"], "steps.txt:3: output: key id: no earlier step spawns 'x'"),
    ([SANDBOX, NS, SPAWN, SPAWN], "steps.txt:5: spawn: key id: 'x' is spawned twice"),
    ([SANDBOX, NS, SPAWN + " env=NOVALUE"], "steps.txt:4: spawn: key env: 'NOVALUE' has no '='"),
    ([SANDBOX, NS, SPAWN + " flow=2"], "steps.txt:4: spawn: key flow: '2' is not a whole number from 0 to 1"),
    ([SANDBOX, NS, CAPTURE], "steps.txt:4: capture: is the last step: capture needs a capture-start"),
    ([SANDBOX, NS, "capture-start", CAPTURE], "steps.txt:5: capture: must stand before capture-start"),
    ([SANDBOX, NS, CAPTURE, CAPTURE], "steps.txt:5: capture: key file: is captured to twice"),
    ([SANDBOX, NS, CAPTURE + " block_bytes=5000"], "steps.txt:4: capture: key block_bytes: must be a multiple of 4096"),
    ([SANDBOX, "ready"], "steps.txt:3: ready: needs an earlier clock step"),
    ([SANDBOX, CLOCK, "ready"], "steps.txt:4: ready: is the last step: after ready an end step must follow"),
    (
        [SANDBOX, "bpf index=0 settings=00 state=00 program=0000000000000000 t0=1"],
        "steps.txt:3: bpf: key state: has no room for T0",
    ),
    ([SANDBOX, "end at=1 grace_ns=1"], "steps.txt:3: end: cannot stand before ready"),
    ([SANDBOX, NS, f"netlink at=5 ns=0 data={UP}"], "steps.txt:4: netlink: key at: only stands between ready and end"),
    ([*WHOLE[:5], f"netlink ns=0 data={UP}", WHOLE[6]], "steps.txt:7: netlink: key at: is missing"),
    (
        [*WHOLE[:5], f"netlink at=-1000000001 ns=0 data={UP}"],
        "steps.txt:7: netlink: key at: '-1000000001' is not a whole",
    ),
    ([*WHOLE[:5], f"netlink at=- ns=0 data={UP}"], "steps.txt:7: netlink: key at: '-' is not a whole number"),
    ([*WHOLE[:6], "end at=4 grace_ns=1"], "steps.txt:8: end: key at: 4 is earlier than the step before (5)"),
    ([*WHOLE, SPAWN.replace("id=x", "id=y")], "steps.txt:9: spawn: cannot stand after end"),
    ([*WHOLE[:5], "offload to=1 ns=0 iface=x"], "steps.txt:7: offload: key to: is unknown here"),
]


@pytest.mark.parametrize(("lines", "message"), WRONG, ids=[message[10:60] for _, message in WRONG])
def test_errors_name_line_verb_key_and_reason(driver: Driver, lines: list[str], message: str) -> None:
    answer = parse(driver, lines)
    assert message in str(answer.get("error")), answer


# Every verb with its required keys, where it may stand.
VERBS = [
    "deadline setup_ns=1 after_t0_ns=1",
    "progress every_ns=1",
    "module module=/x",
    "memory pages=1",
    "ns index=1 name=b",
    "adopt ns=0 iface=x ifindex=10",
    f"netlink ns=0 data={UP}",
    f"dump ns=0 label=x data={DUMP}",
    "sysctl ns=0 path=x value=1",
    "offload ns=0 iface=x",
    "operstate ns=0 ifindex=1 timeout_ns=1",
    CAPTURE,
    SPAWN.replace("id=x", "id=y"),
    "output id=x text=a timeout_ns=1",
    "file path=x timeout_ns=1",
    "signal id=x signal=15",
    "trace file=x buffer_bytes=4096",
    "proc ns=0 path=x",
]


@pytest.mark.parametrize("line", VERBS, ids=lambda line: line.split()[0])
def test_every_key_is_needed_and_spelt_right(driver: Driver, line: str) -> None:
    """Without a required key, or with a misspelt or a second one, the file is refused; with all of them it is not."""
    verb, *pairs = line.split()
    for i, pair in enumerate(pairs):
        key = pair.partition("=")[0]
        for changed, problem in (
            (pairs[:i] + pairs[i + 1 :], f"key {key}: is missing"),
            ([*pairs[:i], f"{key}x{pair[len(key) :]}", *pairs[i + 1 :]], f"key {key}x: is unknown here"),
            ([*pairs, pair] if key != "arg" else [], f"key {key}: is given twice"),
        ):
            if changed:
                answer = parse(driver, [SANDBOX, CLOCK, NS, SPAWN, " ".join([verb, *changed])])
                assert f"steps.txt:6: {verb}: {problem}" in str(answer.get("error")), answer
    answer = parse(driver, [SANDBOX, CLOCK, NS, SPAWN, line, "capture-start"])
    assert answer["steps"][4]["verb"] == verb
    assert sorted(key for key, _ in answer["steps"][4]["values"]) == sorted(pair.partition("=")[0] for pair in pairs)


@pytest.mark.parametrize("first", ["", "netwarp-steps 2", "netwarp-steps 1 ", "\ufeffnetwarp-steps 1"])
def test_another_version_is_refused(driver: Driver, first: str) -> None:
    answer = driver.ask("steps", f"{first}\n{SANDBOX}\n".encode())
    assert answer["error"] == "steps.txt:1: the first line must be 'netwarp-steps 1'"


def test_nul_and_missing_line_feed(driver: Driver) -> None:
    assert "NUL byte" in driver.ask("steps", f"{HEADER}\n{SANDBOX}\0\n".encode())["error"]
    assert "error" not in driver.ask("steps", f"{HEADER}\n{SANDBOX}".encode())
    assert "first line" in driver.ask("steps", b"")["error"]


@settings(FUZZ, max_examples=1500)
@given(st.data())
def test_no_damage_to_a_file_breaks_the_parser(driver: Driver, data: st.DataObject) -> None:
    """Bytes of a good file changed, dropped, doubled: an answer each time, never a finding of the sanitisers."""
    lines = [*WHOLE[:4], CAPTURE, "capture-start", "output id=x text=%25 timeout_ns=5", *WHOLE[4:]]
    text = bytearray("\n".join([HEADER, *lines]).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                text[at] = data.draw(st.sampled_from(b"%= \n\0#09afzZ\xff-"))
            case 1:
                del text[at : at + data.draw(st.integers(1, 20))]
            case 2:
                text[at:at] = text[at : at + data.draw(st.integers(1, 40))]
            case _:
                text[at:at] = data.draw(st.binary(max_size=8))
        if not text:
            break
    answer = driver.ask("steps", bytes(text))
    assert ("error" in answer) != ("steps" in answer)
    if "error" in answer:
        assert answer["error"].startswith("steps.txt:")


@settings(FUZZ, max_examples=500)
@given(st.binary(max_size=300))
def test_any_bytes_get_an_answer(driver: Driver, data: bytes) -> None:
    driver.ask("steps", data)
    driver.ask("steps", f"{HEADER}\n{SANDBOX}\n".encode() + data)


def test_many_steps(driver: Driver) -> None:
    lines = [SANDBOX, *(f"ns index={i} name=n{i}" for i in range(1000))]
    answer = parse(driver, lines)
    assert len(answer["steps"]) == 1001
