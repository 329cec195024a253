"""The apps' command line: refusals, their messages, and a first line that holds every value."""

from __future__ import annotations

import re

import pytest
from support.apps_kit import free_port, records, run
from support.checkout import ROOT

SENDER = ["--protocol", "tcp", "--to", "127.0.0.1", "--port", "5001", "--message-bytes", "1000", "--stop-ns", "10"]
RECEIVER = ["--protocol", "tcp", "--port", "5001"]


def without(name: str) -> list[str]:
    """The sender's minimum, less one option."""
    at = SENDER.index(name)
    return SENDER[:at] + SENDER[at + 2 :]


def changed(name: str, value: str) -> list[str]:
    """The sender's minimum with another value."""
    return [*without(name), name, value]


SCTP = changed("--protocol", "sctp")
REFUSED = [
    ("sender", without("--protocol"), "--protocol", "has to be given"),
    ("sender", without("--to"), "--to", "has to be given"),
    ("sender", without("--port"), "--port", "has to be given"),
    ("sender", without("--message-bytes"), "--message-bytes", "has to be given"),
    ("sender", without("--stop-ns"), "--stop-ns", "--total-bytes"),
    ("sender", changed("--protocol", "quic"), "--protocol", "tcp|sctp|mptcp|udp"),
    ("sender", changed("--protocol", "tcp|sctp"), "--protocol", "tcp|sctp|mptcp|udp"),
    ("sender", changed("--to", "localhost"), "--to", "numeric"),
    ("sender", changed("--to", "1.2.3.4.5"), "--to", "numeric"),
    ("sender", changed("--to", "fe80::1%nosuchif"), "--to", "numeric"),
    ("sender", changed("--port", "0"), "--port", "1 to 65535"),
    ("sender", changed("--port", "65536"), "--port", "1 to 65535"),
    ("sender", changed("--port", "99999999999999999999999"), "--port", "1 to 65535"),
    ("sender", changed("--port", "0x50"), "--port", "1 to 65535"),
    ("sender", changed("--port", "+80"), "--port", "1 to 65535"),
    ("sender", changed("--port", ""), "--port", "1 to 65535"),
    ("sender", changed("--message-bytes", "1k"), "--message-bytes", "1 to 16777216"),
    ("sender", changed("--message-bytes", "-1"), "--message-bytes", "1 to 16777216"),
    ("sender", [*SENDER, "--port", "5002"], "--port", "given twice"),
    ("sender", [*SENDER, "--sndbuf-bytes"], "--sndbuf-bytes", "value is missing"),
    ("sender", [*SENDER, "--nodelay=1"], "--nodelay", "takes no value"),
    ("sender", [*SENDER, "--to", "127.0.0.1"], "--to", "twice"),
    ("sender", [*SENDER, "--to", "127.0.0.2"], "--to", "one peer address"),
    ("sender", [*SENDER, "--start-ns", "10"], "--stop-ns", "later than --start-ns"),
    ("sender", [*SENDER, "--streams", "2"], "--streams", "tcp has no such option"),
    ("sender", [*SENDER, "--primary", "127.0.0.1"], "--primary", "tcp has no such option"),
    ("sender", [*SENDER, "--switch-primary", "5,127.0.0.1"], "--switch-primary", "tcp has no such option"),
    ("sender", [*SENDER, "--window-clamp-bytes", "65700"], "--window-clamp-bytes", "not an option of this program"),
    ("sender", [*SENDER, "--bind", "::1"], "--bind", "do not mix"),
    ("sender", [*SENDER, "--close", "softly"], "--close", "abort|graceful"),
    ("sender", [*SENDER, "--congestion", ""], "--congestion", "empty"),
    ("sender", [*SENDER, "--mss-bytes", "87"], "--mss-bytes", "88 to 32767"),
    ("sender", [*changed("--protocol", "mptcp"), "--mss-bytes", "1400"], "--mss-bytes", "mptcp has no such option"),
    ("sender", [*changed("--protocol", "sctp"), "--congestion", "reno"], "--congestion", "sctp has no such option"),
    ("sender", [*changed("--protocol", "sctp"), "--switch-primary", "5"], "--switch-primary", "a comma"),
    (
        "sender",
        [*changed("--protocol", "tcp"), "--messages", "x", "--interval-ns", "5000"],
        "--messages",
        "not together",
    ),
    ("sender", [*changed("--protocol", "tcp"), "--messages", "x", "--separate-sends"], "--separate-sends", "one size"),
    ("sender", [*changed("--protocol", "tcp"), "--peer-total-bytes", "5"], "--peer-total-bytes", "needs --duplex"),
    ("receiver", ["--protocol=tcp", "--port=5001", "--messages=x"], "--messages", "needs --duplex"),
    ("receiver", ["--protocol=sctp", "--port=5001", "--ppid=60"], "--ppid", "needs --duplex"),
    ("sender", changed("--protocol", "udp"), "--interval-ns", "nothing holds UDP back"),
    (
        "sender",
        [*changed("--protocol", "udp"), "--interval-ns=5000", "--nodelay"],
        "--nodelay",
        "udp has no such option",
    ),
    ("receiver", ["--protocol=udp", "--port=5001", "--duplex"], "--duplex", "udp has no such option"),
    ("receiver", ["--protocol=tcp", "--port=5001", "--duplex"], "--message-bytes", "has to be given"),
    ("sender", [*changed("--protocol", "sctp"), "--switch-primary", "x,1.2.3.4"], "--switch-primary", "a comma"),
    (
        "sender",
        [*changed("--protocol", "sctp"), "--switch-primary", "5,1.2.3.4", "--switch-primary", "4,1.2.3.4"],
        "--switch-primary",
        "in order",
    ),
    (
        "sender",
        [*changed("--protocol", "sctp"), "--to", "1.2.3.4", "--primary", "1.2.3.5"],
        "--primary",
        "none of the --to",
    ),
    (
        "sender",
        [*changed("--protocol", "sctp"), "--start-ns", "9", "--switch-primary", "5,127.0.0.1"],
        "--switch-primary",
        "before --start-ns",
    ),
    ("sender", [*SENDER, "--rto-min-ns", "1000000"], "--rto-min-ns", "tcp has no such option"),
    ("sender", [*SENDER, "--burst-bytes", "100"], "--burst-bytes", "needs --interval-ns"),
    ("sender", [*SENDER, "--burst-bytes", "100,"], "--burst-bytes", "whole number from 1"),
    ("sender", [*SENDER, "--burst-bytes", "1,x"], "--burst-bytes", "'x' does not begin with a whole number"),
    ("sender", [*SENDER, "--burst-bytes", ",".join(["9"] * 257)], "--burst-bytes", "too many"),
    ("sender", [*SENDER, "--pacing-rate-bit-s", "9"], "--pacing-rate-bit-s", "multiple of 8"),
    ("sender", [*SCTP, "--pacing-rate-bit-s", "8"], "--pacing-rate-bit-s", "sctp has no such option"),
    ("sender", [*SCTP, "--rto-min-ns", "1500000"], "--rto-min-ns", "whole milliseconds"),
    ("sender", [*SCTP, "--rto-min-ns", "2000000", "--rto-max-ns=1000000"], "--rto-min-ns", "above --rto-max-ns"),
    ("sender", [*SCTP, "--pf-retrans", "2", "--ps-retrans", "1"], "--pf-retrans", "above --ps-retrans"),
    ("sender", [*SCTP, "--path-max-retrans", "0"], "--path-max-retrans", "1 to 65535"),
    ("sender", [*SCTP, "--sack-delay-ns", "501000000"], "--sack-delay-ns", "1000000 to 500000000"),
    ("sender", [*SCTP, "--sack-delay-ns=1000000", "--sack-frequency=1"], "--sack-delay-ns", "means nothing"),
    ("sender", [*SCTP, "--no-heartbeats", "--heartbeat-interval-ns=0"], "--heartbeat-interval-ns", "not together"),
    ("sender", [*SCTP, "--lifetime-ns=1000000", "--max-retransmissions=1"], "--lifetime-ns", "one such limit"),
    ("sender", [*SCTP, "--stream-values", "0,1"], "--stream-values", "more numbers than --streams"),
    ("sender", [*SCTP, "--path-mtu-bytes", "1281"], "--path-mtu-bytes", "multiple of 4"),
    ("receiver", [*RECEIVER, "--to", "127.0.0.1"], "--to", "not an option of this program"),
    ("receiver", [*RECEIVER, "--window-clamp-bytes", "65701"], "--window-clamp-bytes", "steps of 2 bytes"),
    ("receiver", [*RECEIVER, "--window-clamp-bytes", "1000002"], "--window-clamp-bytes", "steps of 16 bytes"),
    (
        "receiver",
        [*RECEIVER, "--window-clamp-bytes", "65700", "--rcvbuf-bytes", "65536"],
        "--window-clamp-bytes",
        "not together",
    ),
    (
        "receiver",
        ["--protocol", "sctp", "--port", "1", "--window-clamp-bytes", "65700"],
        "--window-clamp-bytes",
        "sctp has no such option",
    ),
    ("sender", [*SENDER, "--peer", "127.0.0.1"], "--peer", "not an option of this program"),
    ("sender", [*SENDER, "--token", "9223372036854775808"], "--token", "0 to 9223372036854775807"),
    ("receiver", [*RECEIVER, "--peer", "gateway"], "--peer", "numeric"),
    ("receiver", [*RECEIVER, *(word for n in range(17) for word in ("--bind", f"10.0.0.{n}"))], "--bind", "too often"),
]


@pytest.mark.parametrize(("program", "arguments", "option", "reason"), REFUSED)
def test_refused_with_the_option_the_reason_and_an_example(
    program: str, arguments: list[str], option: str, reason: str
) -> None:
    done = run(program, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"{program}: {option}: [^\n]+; example: {option}[^\n]*\n", done.stderr), done.stderr
    assert reason in done.stderr


@pytest.mark.parametrize("word", ["-p", "5001", "--", "--prot", "--portx=1", "--=1"])
def test_unknown_words_are_named(word: str) -> None:
    done = run("sender", *SENDER, word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sender: {word}: no such option; --help lists them all\n"


def test_a_bad_t0_in_the_environment_is_refused() -> None:
    done = run("sender", *SENDER, env={"NETWARP_T0_REALTIME_NS": "soon"})
    assert done.returncode == 2
    assert "NETWARP_T0_REALTIME_NS" in done.stderr


def test_the_options_of_the_page_are_those_of_the_programs() -> None:
    """docs/formats.md, The apps, explains no option that neither program has; --help is the list of all."""
    page = (ROOT / "docs" / "formats.md").read_text()
    (section,) = re.findall(r"\n## The apps\n(.*?)\*\*Output\*\*", page, re.DOTALL)
    explained = set(re.findall(r"^- `--([a-z0-9-]+)", section, re.MULTILINE))
    there: set[str] = set()
    for program in ("sender", "receiver"):
        done = run(program, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        there |= set(re.findall(r"^  --([a-z0-9-]+)", done.stdout, re.MULTILINE))
    assert explained and explained <= there


def test_examples_of_the_table_are_correct() -> None:
    """Every example in the help is accepted: together with the minimum it gives no usage error."""
    port = str(free_port())
    minimum = ["--protocol=mptcp", "--to=127.0.0.1", f"--port={port}", "--message-bytes=9", "--stop-ns=1000000"]
    skip = {"protocol", "to", "port", "message-bytes", "stop-ns", "bind", "start-ns", "t0-realtime-ns"}
    for name, example in re.findall(r"^  --([a-z0-9-]+) (\S+)$", run("sender", "--help").stdout, re.MULTILINE):
        if name in skip:
            continue
        needed = {"burst-bytes": "--interval-ns=1000000", "peer-messages": "--duplex", "peer-total-bytes": "--duplex"}
        more = [needed[name]] if name in needed else []
        done = run("sender", *minimum, f"--{name}", example, *more)
        refused = "mptcp has no such option" in done.stderr
        assert done.returncode != 2 or refused, done.stderr


def test_the_first_line_holds_every_option_in_force() -> None:
    port = free_port()
    arguments = [*changed("--port", str(port)), "--sndbuf-bytes=20000", "--nodelay", "--bind=127.0.0.1"]
    done = run("sender", *arguments, env={"NETWARP_T0_REALTIME_NS": "5"})
    first = records(done.stdout)[0]
    assert first["record"] == "options"
    assert list(first)[1:6] == ["program", "pid", "monotonic_ns", "realtime_ns", "kernel"]
    values = {key: value for key, value in first.items() if key not in list(first)[:6]}
    assert values == {
        "protocol": "tcp",
        "bind": ["127.0.0.1"],
        "to": ["127.0.0.1"],
        "port": port,
        "token": None,
        "message_bytes": 1000,
        "streams": None,
        "t0_realtime_ns": 5,
        "start_ns": 0,
        "stop_ns": 10,
        "total_bytes": None,
        "rcvbuf_bytes": None,
        "sndbuf_bytes": 20000,
        "congestion": None,
        "mss_bytes": None,
        "nodelay": True,
        "separate_sends": False,
        "primary": None,
        "switch_primary": [],
        **dict.fromkeys(
            (
                "rto_initial_ns",
                "rto_min_ns",
                "rto_max_ns",
                "path_max_retrans",
                "association_max_retrans",
                "pf_retrans",
                "ps_retrans",
                "heartbeat_interval_ns",
                "sack_delay_ns",
                "sack_frequency",
                "max_burst",
                "path_mtu_bytes",
                "init_attempts",
                "init_max_timeout_ns",
                "scheduler",
                "ppid",
                "lifetime_ns",
                "max_retransmissions",
                "connect",
                "pacing_rate_bit_s",
                "interval_ns",
                "local_port",
                "ecn",
                "reconnect_ns",
                "messages",
                "peer_messages",
                "heartbeats",
                "peer_total_bytes",
            )
        ),
        **dict.fromkeys(("no_heartbeats", "no_fragments", "unordered", "bare", "loss_ends", "duplex"), False),
        **{name: [] for name in ("stream_values", "burst_bytes")},
        "sample_interval_ns": 0,
        "connect_deadline_ns": 0,
        "stall_deadline_ns": 0,
        "close": "abort",
    }
    for option in re.findall(r"^  --([a-z0-9-]+)", run("sender", "--help").stdout, re.MULTILINE):
        assert option.replace("-", "_") in values
