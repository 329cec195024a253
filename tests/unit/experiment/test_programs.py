# ruff: noqa: E501 (rows of tables)
"""Programs of the user's own as flows: grammar and mistakes, steps, what back ends refuse, the verdict."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from netwarp.cli import main
from netwarp.core.errors import SpecError
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell, Flow, Program
from netwarp.plan import make_plan
from netwarp.sandbox.cell_verdict import asked_to_end
from netwarp.sandbox.choose import Chosen
from netwarp.sandbox.netns import NetnsBackend
from netwarp.sandbox.user_programs import missing_program, programs_used
from netwarp.sandbox.virtual import VirtualBackend
from netwarp.store.init_records import Exit
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import to_text
from support.checkout import BUILD
from support.specs import BASE, plan_of, problems_of, replaced, spec_of

S = 10**9

OWN = 'program = { sender = ["/bin/mine", "--to={to}:{port}", "{from}", "{start_s}/{stop_s}/{duration_s}", "{size}"], receiver = ["their", "$(rm -rf /); `x`"], ready = "up and running" }'


def with_program(program: str, protocol: str = "tcp", more: str = "") -> str:
    text = replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{program}\n{more}')
    return text + '[parameter]\nsize = "9"\n'


def cell_of(program: str, protocol: str = "tcp", more: str = "") -> Cell:
    return plan_of(with_program(program, protocol, more)).cells[0]


def program_of(cell: Cell) -> Program:
    assert cell.flows[0].program is not None
    return cell.flows[0].program


def steps_of(cell: Cell) -> str:
    return to_text(compile_cell(cell, Clock(t0_realtime_ns=1_700_000_000 * S)).steps)


def test_argument_lists_stay_lists_and_parameters_are_filled_in() -> None:
    program = program_of(cell_of(OWN))
    assert program.sender[-1] == "9"
    assert program.sender[1] == "--to={to}:{port}", "known when the network is laid out"
    assert program.receiver == ("their", "$(rm -rf /); `x`")
    assert (program.ready, program.interrupt) == ("up and running", False)


def test_steps_run_the_lists_as_they_are_with_addresses_and_times() -> None:
    lines = steps_of(cell_of(OWN, more='start = "1.5 s"\nstop = "4 s"\nport = 7000')).splitlines()
    sender = next(line for line in lines if line.startswith("spawn") and "f.sender" in line)
    assert sender.startswith("spawn at=1500000000 ")
    arguments = [word for word in sender.split() if word.startswith("arg=")]
    assert arguments == ["arg=/bin/mine", "arg=--to%3D10.0.0.129:7000", "arg=10.0.0.1", "arg=1.5/4/2.5", "arg=9"]
    assert "stdout=apps/f.sender.stdout" in sender
    receiver = next(line for line in lines if line.startswith("spawn") and "f.receiver" in line)
    assert "arg=their arg=%24%28rm%20-rf%20/%29%3B%20%60x%60" in receiver, "one argument, no shell"
    waits = [line for line in lines if line.startswith("output")]
    assert len(waits) == 1 and "text=up%20and%20running" in waits[0]
    assert lines.index(receiver) < lines.index(waits[0]) < lines.index("ready") < lines.index(sender)


TWO_PATHS = '[link.p2]\nlike = "p1"\n'
EACH = 'program = { sender = ["mine", "-B{from_all}", "-C{to_all}:{port}", "-h", "{to}", "--peers={to_list}"], receiver = ["theirs", "{to_all}", "{from_list}", "-B{to_others}"] }'


def over_two_paths(program: str, protocol: str = "sctp") -> str:
    return with_program(program, protocol).replace('paths = ["p1"]', 'paths = ["p1", "p2"]') + TWO_PATHS


def test_all_addresses_of_both_ends_are_handed_over() -> None:
    lines = steps_of(plan_of(over_two_paths(EACH)).cells[0]).splitlines()

    def arguments(role: str) -> list[str]:
        (line,) = [line for line in lines if line.startswith("spawn") and f"f.{role}" in line]
        return [word.removeprefix("arg=") for word in line.split() if word.startswith("arg=")]

    sender = ["-B10.0.0.1", "-B10.0.1.1", "-C10.0.0.129:5001", "-C10.0.1.129:5001"]
    assert arguments("sender") == ["mine", *sender, "-h", "10.0.0.129", "--peers%3D10.0.0.129,10.0.1.129"]
    assert arguments("receiver") == ["theirs", "10.0.0.129", "10.0.1.129", "10.0.0.1,10.0.1.1", "-B10.0.1.129"]


def test_over_a_single_path_all_is_that_path() -> None:
    lines = steps_of(cell_of(EACH, "sctp")).splitlines()
    (line,) = [line for line in lines if line.startswith("spawn") and "f.receiver" in line]
    assert line.endswith("arg=theirs arg=10.0.0.129 arg=10.0.0.1") or "arg=theirs arg=10.0.0.129 arg=10.0.0.1 " in line


@pytest.mark.parametrize(("protocol", "extra"), [("tcp", ()), ("sctp", ("--sctp",)), ("udp", ("-u",))])
def test_iperf3(protocol: str, extra: tuple[str, ...]) -> None:
    program = program_of(cell_of('program = "iperf3"', protocol))
    assert program.sender == (
        "iperf3", "-c", "{to}", "-B", "{from}", "-p", "{port}", "-t", "{duration_s}", "-J", *extra,
    )  # fmt: skip
    assert program.receiver[:3] == ("iperf3", "-s", "-1")


def test_ping_gets_a_signal_at_its_stop() -> None:
    cell = cell_of('program = "ping"', "icmp", 'stop = "4 s"')
    assert program_of(cell) == Program(("ping", "-n", "-I", "{from}", "{to}"), interrupt=True)
    assert "signal at=4000000000 id=f.sender signal=2" in steps_of(cell).splitlines()
    assert "f.receiver" not in steps_of(cell)


def test_a_cell_with_a_program_survives_its_json() -> None:
    assert plan_of(BASE).cells[0].flows[0].program is None
    own = cell_of(OWN)
    assert from_json(to_json(own), Cell) == own


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        (with_program('program = "iperf"'), "flow.f.program", 'did you mean "iperf3"?'),
        (with_program('program = "ping"'), "flow.f.program", 'ping does not speak tcp; for example protocol = "icmp"'),
        (with_program("", "icmp"), "flow.f.protocol", 'icmp needs a program that speaks it; for example program = "ping"'),
        (with_program("program = 3"), "flow.f.program", "must be iperf3, ping, ngtcp2 or argument lists"),
        (with_program('program = ["iperf3"]'), "flow.f.program", "must be iperf3, ping, ngtcp2 or argument lists"),
        (with_program("program = {}"), "flow.f.program", "sender is missing; for example {"),
        (with_program('program = { sender = "iperf3 -c {to}" }'), "flow.f.program.sender", "must be a list of 1 to 64 texts, the program first"),
        (with_program("program = { sender = [] }"), "flow.f.program.sender", "must be a list of 1 to 64 texts"),
        (with_program("program = { sender = [1] }"), "flow.f.program.sender", "must be text"),
        (with_program('program = { sender = ["./mine"] }'), "flow.f.program.sender", "neither a name nor an absolute path"),
        (with_program('program = { sender = ["{to}"] }'), "flow.f.program.sender", "must name a program"),
        (with_program('program = { sender = ["mine", "{too}"] }'), "flow.f.program.sender", 'did you mean "to"?'),
        (with_program('program = { sender = ["mine"], recever = ["x"] }'), "flow.f.program.recever", 'did you mean "receiver"?'),
        (with_program('program = { sender = ["mine"], ready = "up" }'), "flow.f.program.ready", "there is no receiver"),
        (with_program('program = { sender = ["mine"], interrupt = 1 }'), "flow.f.program.interrupt", "must be true or false"),
        (over_two_paths('program = { sender = ["mine"] }', "tcp"), "flow.f.paths", "a program that speaks tcp has one path, only SCTP several"),
        (over_two_paths('program = "iperf3"'), "flow.f.paths", 'iperf3 has one path; for example ["p1"], or give argument lists with {to_all}'),
        (with_program('program = { sender = ["mine", "{from_all}{to_all}"] }', "sctp"), "flow.f.program.sender", "two of {from_all}, {to_others} and the like want an argument each"),
        (with_program('program = { sender = ["mine", "{to_al}"] }', "sctp"), "flow.f.program.sender", 'did you mean "to_all"?'),
        (with_program('program = "iperf3"', more='stop = "2.5 s"'), "flow.f.program", "runs for whole seconds"),
        (with_program('program = "iperf3"', more='bytes = "1 MB"'), "flow.f.bytes", "of a program its arguments say it"),
        (with_program('program = "iperf3"', more='sender = { nodelay = true }'), "flow.f.sender", "of a program its arguments say it"),
        (with_program('program = { sender = ["mine"] }', "mptcp"), "flow.f.protocol", "mptcp is netwarp's own apps' only"),
        (with_program('program = "ping"', "icmp") + '[flow.g]\nlike = "f"\n', "flow.g", 'on the wire its packets cannot be told from those of flow "f"'),
    ],
)  # fmt: skip
def test_mistakes(text: str, key: str, says: str) -> None:
    found = problems_of(text)
    assert len(found) == 1, found
    assert f" {key}" in found[0] and says in found[0], found[0]


def refused(program: str, protocol: str = "tcp") -> tuple[str, str]:
    cell = cell_of(program, protocol)
    return VirtualBackend(Path("linux"), BUILD).refuses(cell), NetnsBackend(BUILD).refuses(cell)


def test_in_virtual_time_programs_have_a_clock_that_moves_on() -> None:
    """program-clock.so is preloaded into both ends of a flow on the virtual clock only."""
    cell = cell_of('program = { sender = ["mine"], receiver = ["mine", "-s"], ready = "up" }')
    for clock, preloaded in ((VirtualBackend.clock, True), (NetnsBackend.clock, False)):
        spawned = [step for step in compile_cell(cell, clock).steps if step.verb == "spawn"]
        assert len(spawned) == 2
        assert all(("program-clock.so" in step.line()) == preloaded for step in spawned)


def test_the_plan_names_cells_that_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chosen = Chosen(VirtualBackend(Path("linux"), BUILD), None)
    monkeypatch.setattr("netwarp.engine.planning.choose", lambda name: chosen)
    spec = tmp_path / "spec.toml"
    spec.write_text(with_program('program = { sender = ["no-such-program-here"] }'))
    assert main(["plan", str(spec)]) == 77
    assert "1 cell cannot run: flow f: there is no program no-such-program-here" in capsys.readouterr().err
    spec.write_text(BASE)
    assert main(["plan", str(spec)]) == 0


def test_a_program_that_is_not_there_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    virtual, netns = refused('program = { sender = ["no-such-program-here"] }')
    assert virtual == netns
    assert "flow f: there is no program no-such-program-here on this machine; install it in one of /usr" in netns
    monkeypatch.setattr("netwarp.sandbox.user_programs.SEARCHED", str(tmp_path))
    assert "apt install iputils-ping" in refused('program = "ping"', "icmp")[0]


def test_the_environment_says_which_program_it_was() -> None:
    facts = programs_used(cell_of('program = { sender = ["sh", "-c", "exit 0"] }'))["sh"]
    assert facts["path"] is not None and facts["path"].endswith("/sh")
    assert facts["sha256"] is not None and len(facts["sha256"]) == 64
    assert facts["version"] is None, "only iperf3 and ping are asked"


@pytest.mark.parametrize(
    ("interrupt", "role", "t_ns", "well"),
    [(True, "sender", 4 * S, True), (True, "sender", 4 * S - 1, False), (True, "receiver", 4 * S, False),
     (False, "sender", 4 * S, False), (False, "receiver", 12 * S, True), (False, "sender", 12 * S, True)],
)  # fmt: skip
def test_a_program_that_ends_at_its_signal_ended_well(interrupt: bool, role: str, t_ns: int, well: bool) -> None:
    own = f'program = {{ sender = ["x"], receiver = ["y"], interrupt = {str(interrupt).lower()} }}'
    cell = cell_of(own, more='stop = "4 s"')
    assert asked_to_end(cell, cell.flows[0], role, Exit("f", 1, None, killed=False, t_ns=t_ns)) is well
    ours: Flow = msgspec.structs.replace(cell.flows[0], program=None)
    assert not asked_to_end(cell, ours, role, Exit("f", 1, None, killed=False, t_ns=t_ns))


SERVER = 'program = { sender = ["{unpacked}/usr/sbin/nginx", "-p", "{port}"], receiver = ["curl", "{from}"], listens = "sender", ready = "worker", interrupt = true }'


def test_a_sender_that_listens_is_started_before_t0() -> None:
    cell = cell_of(SERVER, more='start = "2 s"\nstop = "4 s"')
    flow = cell.flows[0]
    assert (flow.opener, flow.listener) == ("receiver", "sender")
    lines = steps_of(cell).splitlines()
    server, client = (
        next(i for i, line in enumerate(lines) if line.startswith("spawn") and f"f.{role}" in line)
        for role in ("sender", "receiver")
    )
    waits = next(i for i, line in enumerate(lines) if line.startswith("output"))
    assert server < waits < lines.index("ready") < client
    assert "f.sender" in lines[waits] and "at=2000000000" in lines[client]
    (stopped,) = [line for line in lines if line.startswith("signal")]
    assert "f.receiver" in stopped and "at=4000000000" in stopped
    assert asked_to_end(cell, flow, "receiver", Exit("f", 0, None, killed=False, t_ns=4 * S))
    assert not asked_to_end(cell, flow, "sender", Exit("f", 0, None, killed=False, t_ns=4 * S))


def test_unpacked_programs_are_known_by_their_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "packages"
    for module in ("netwarp.sandbox.user_programs", "netwarp.testbed.arguments"):
        monkeypatch.setattr(f"{module}.UNPACKED_PACKAGES", root)
    cell = cell_of(SERVER.replace('"-p"', '"-c", "exec {unpacked}/usr/bin/nghttp"'))
    assert missing_program(cell) == f"flow f: {root}/usr/sbin/nginx is not there; make programs unpacks it"
    for name in ("usr/sbin/nginx", "usr/bin/nghttp"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/sh\n")
        (root / name).chmod(0o755)
    assert str(root) not in missing_program(cell)
    used = programs_used(cell)
    assert {str(root / "usr/sbin/nginx"), str(root / "usr/bin/nghttp"), "curl"} == used.keys()
    assert f"arg={root}/usr/sbin/nginx" in steps_of(cell)


def test_what_listens_needs_another_end() -> None:
    lines = problems_of(with_program('program = { sender = ["mine"], listens = "sender" }'))
    assert any("there is no receiver" in line for line in lines), lines


FILES = 'program = { sender = ["mine", "--config", "{files}/mine.cfg"], files = ["mine.cfg", "peers.list"] }'
CONFIG = "# {size} {nobody} {\nlocal-ip {from_all}\nremote-ip {to}:{port}, all: {to_list}\n}"


def beside(folder: Path, config: str = CONFIG) -> Path:
    (folder / "mine.cfg").write_text(config)
    (folder / "peers.list").write_text("peer {to_others}\n")
    return folder


def over_two_with_files(folder: Path, program: str = FILES) -> Cell:
    return make_plan(spec_of(over_two_paths(program), folder)).cells[0]


def test_files_beside_the_spec_go_with_the_program(tmp_path: Path) -> None:
    """Their placeholders are filled in; a line with {from_all} stands once for each address; other braces stay."""
    cell = over_two_with_files(beside(tmp_path))
    compiled = compile_cell(cell, Clock(t0_realtime_ns=1_700_000_000 * S))
    lines = ["# 9 {nobody} {", "local-ip 10.0.0.1", "local-ip 10.0.1.1"]
    lines += ["remote-ip 10.0.0.129:5001, all: 10.0.0.129,10.0.1.129", "}"]
    assert compiled.files == {
        "apps/f.files/mine.cfg": "\n".join(lines).encode(),
        "apps/f.files/peers.list": b"peer 10.0.1.129\n",
    }
    assert "arg=/proc/1/cwd/apps/f.files/mine.cfg" in to_text(compiled.steps)
    assert from_json(to_json(cell), Cell) == cell
    beside(tmp_path, CONFIG + " ")
    assert over_two_with_files(tmp_path).id != cell.id


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ('"mine.cfg"', 'must be a list of 1 to 16 files beside the spec; for example ["stp.cfg"]'),
        ("[]", "must be a list of 1 to 16 files"),
        ("[3]", "must be the name of a file beside the spec"),
        ('["no.cfg"]', '"no.cfg" is no file beside the spec; for example files = ["stp.cfg"]'),
        ('["../mine.cfg"]', "is no file beside the spec"),
        ('["mine.cfg", "mine.cfg"]', '"mine.cfg" is there twice'),
        ('["bytes.cfg"]', "bytes.cfg is no text in UTF-8"),
        ('["two.cfg"]', "line 2 of two.cfg stands once for each address; two of {from_all}, {to_others}"),
    ],
)
def test_mistakes_of_files(tmp_path: Path, files: str, says: str) -> None:
    beside(tmp_path)
    (tmp_path / "bytes.cfg").write_bytes(b"\xff\xfe")
    (tmp_path / "two.cfg").write_text("{to_all}\n{to_all} {from_all}\n")
    with pytest.raises(SpecError) as caught:
        over_two_with_files(tmp_path, FILES.replace('["mine.cfg", "peers.list"]', files))
    assert says in str(caught.value)


RESTART = '[event.x]\naction = "restart"\nnode = "b"\nat = "3 s"\nfor = "2 s"\n'
ENDS = 'program = { sender = ["mine"], receiver = ["theirs"] }'


@pytest.mark.parametrize("killed", ["host", "process"])
def test_programs_of_a_host_that_restarts_are_killed_and_started_again(killed: str) -> None:
    cell = plan_of(with_program(ENDS) + RESTART + f'killed = "{killed}"\n').cells[0]
    kill, again = (
        next(line for line in steps_of(cell).splitlines() if line.startswith(start) and "f.sender" not in line)
        for start in ("kill", "spawn at=5000000000")
    )
    assert kill.startswith("kill at=3000000000 ns=") and ("abort=1" in kill) == (killed == "host")
    assert "id=f.receiver.2" in again and "stdout=apps/f.receiver.2.stdout" in again and " arg=theirs env=" in again
    flow = cell.flows[0]
    for signal, t_ns, well in ((9, 3 * S, True), (9, 3 * S - 1, False), (11, 3 * S, False)):
        assert asked_to_end(cell, flow, "receiver", Exit("f", None, signal, killed=False, t_ns=t_ns)) is well
    assert not asked_to_end(cell, flow, "sender", Exit("f", None, 9, killed=False, t_ns=3 * S))


def test_a_program_does_not_restart_beside_netwarps_own_sender() -> None:
    lines = problems_of(
        with_program(ENDS) + '[flow.g]\nfrom = "a"\nto = "b"\nprotocol = "tcp"\npaths = ["p1"]\n' + RESTART
    )
    assert any('flow "f" is a program, flow "g" is not: they do not restart together' in line for line in lines), lines


def test_a_level_that_sets_files_names_them(tmp_path: Path) -> None:
    """The report says what a level sets: of files their names, not all they hold."""
    text = over_two_paths(ENDS) + '[factor.config]\nlevels = ["own"]\n[factor.config.level.own]\n'
    plan = make_plan(spec_of(text + 'flow.f.program.files = ["mine.cfg", "peers.list"]\n', beside(tmp_path)))
    (level,) = plan.factors[0].levels
    assert level.sets == ("flow.f.program.files = mine.cfg, peers.list",)


def test_doubled_braces_are_braces_of_the_programs_own() -> None:
    """curl's and docker's formats, and a name that is filled in elsewhere in the same list."""
    given = '["curl", "-w", "%{{time_total}} {{to}} {to} {{size}}{size}"]'
    lines = steps_of(cell_of(f"program = {{ sender = {given} }}")).splitlines()
    (line,) = [line for line in lines if line.startswith("spawn") and "f.sender" in line]
    arguments = [unquote(word.removeprefix("arg=")) for word in line.split() if word.startswith("arg=")]
    assert arguments == ["curl", "-w", "%{time_total} {to} 10.0.0.129 {size}9"]
    assert problems_of(with_program('program = { sender = ["curl", "%{time_total}"] }'))
