"""The steps of cell-init: their effects, and their error messages."""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import pytest
from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import step, to_text
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg
from support.cell_init_kit import (
    MS,
    T0,
    Result,
    S,
    capture,
    delay,
    ending,
    fails,
    namespaces,
    netlink,
    opening,
    run_guest,
    tool,
    veth,
)


def links(result: Result, label: str) -> list[ifinfmsg]:
    """The links of the dump of that name, decoded."""
    found = []
    for record in result.records("dump"):
        if record["label"] != label:
            continue
        for reply in record["replies"]:
            data = bytes.fromhex(reply)
            at = 0
            while at + 16 <= len(data):
                length = int.from_bytes(data[at : at + 4], "little")
                if int.from_bytes(data[at + 4 : at + 6], "little") == messages.RTM_NEWLINK:
                    message = ifinfmsg(data[at : at + length])
                    message.decode()
                    found.append(message)
                at += (length + 3) & ~3
    return found


def test_links_have_the_numbers_and_places_they_were_asked_for(kernel: Path, tmp_path: Path) -> None:
    dump = messages.dump("link").hex()
    steps = [*opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 77, subnet=1, mtu=1400)]
    steps += [step("dump", ns=0, label="a", data=dump), step("dump", ns=1, label="b", data=dump)]
    result = run_guest(kernel, tmp_path, steps).completed()
    for label in ("a", "b"):
        link = next(item for item in links(result, label) if item.get_attr("IFLA_IFNAME") == "p1")
        assert link["index"] == 77
        assert link.get_attr("IFLA_MTU") == 1400
        assert link.get_attr("IFLA_OPERSTATE") == "UP"
        lo = next(item for item in links(result, label) if item.get_attr("IFLA_IFNAME") == "lo")
        assert lo["flags"] & 1
    offloads = result.records("offload")
    assert [record["ns"] for record in offloads] == [0, 1]
    for record in offloads:
        assert [record[key] for key in ("tx", "rx", "sg", "tso", "gso", "gro", "left_on")] == [0, 0, 0, 0, 0, 0, []]


def test_a_large_dump_is_whole(kernel: Path, tmp_path: Path) -> None:
    """More links than one datagram holds: every one of them is in the replies."""
    steps = [*opening(), *namespaces("a", "b")]
    for number in range(120):
        ends = [Device(f"v{number}", 100 + number, ns, f"02:00:00:0{ns}:00:{number:02x}") for ns in (0, 1)]
        steps.append(netlink(0, messages.veth(ends[0], ends[1], 1500, "b")))
    steps.append(step("dump", ns=1, label="b", data=messages.dump("link").hex()))
    result = run_guest(kernel, tmp_path, steps).completed()
    assert len(result.records("dump")[0]["replies"]) > 1
    names = {link.get_attr("IFLA_IFNAME") for link in links(result, "b")}
    assert names == {"lo", *(f"v{number}" for number in range(120))}


def test_several_requests_in_one_step(kernel: Path, tmp_path: Path) -> None:
    """One step may hold many; a refusal says which of them it was."""
    first, second = (
        Device("p1", 10, 0, "02:00:00:00:00:01"),
        Device("p1", 10, 1, "02:00:00:00:00:02"),
    )
    make = messages.veth(first, second, 1500, "b").data
    up = messages.set_link(Device("p1", 10), up=True).data
    good = [
        *opening(),
        *namespaces("a", "b"),
        netlink(0, make + up + messages.address(Device("p1", 10), "10.0.0.1", 24).data),
    ]
    run_guest(kernel, tmp_path / "good", good).completed()
    bad = [
        *opening(),
        *namespaces("a", "b"),
        netlink(0, make + up + messages.set_link(Device("no", 99), up=True).data),
    ]
    end = fails(kernel, tmp_path / "bad", bad)
    assert end["message"] == f"netlink request 3 refused: no: No such device (errno {errno.ENODEV})"


def test_a_refused_request_brings_the_kernels_own_words(kernel: Path, tmp_path: Path) -> None:
    shaper = delay(0, "p1", 999, 5 * MS)
    steps = [*opening(), *namespaces("a"), shaper]
    end = fails(kernel, tmp_path, steps)
    assert f"(errno {errno.ENODEV})" in str(end["message"])
    request = tcmsg()
    request["index"] = 1
    request["parent"] = messages.TC_H_ROOT
    request["attrs"] = [("TCA_KIND", "nosuch")]
    request["header"].update({"type": messages.RTM_NEWQDISC, "flags": messages.CREATE})
    request.encode()
    end = fails(kernel, tmp_path / "words", [*opening(), *namespaces("a"), netlink(0, bytes(request.data))])
    assert end["message"] == (
        f"netlink request 1 refused: Specified qdisc kind is unknown: No such file or directory (errno {errno.ENOENT})"
    )


def test_a_refusal_in_the_timeline_ends_the_cell_there(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *namespaces("a"), tool("rx", 0, "receive", 5000, 0, flow=0), step("ready"),
        netlink(0, messages.set_link(Device("no", 99), up=True), at_ns=3 * S), ending(60 * S),
        step("dump", ns=0, label="after", data=messages.dump("link").hex()),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps)
    line = steps.index(steps[-3]) + 2
    assert (result.end["reason"], result.end["step"]) == ("failed", line)
    assert abs(result.end["t_ns"] - 3 * S) < MS
    assert [record["step"] for record in result.records("timeline")] == [line]
    assert [record["killed"] for record in result.records("exit")] == [True]
    assert result.records("dump") == []
    assert result.console.startswith("cell-init: netlink request 1 refused")


def test_sysctls_belong_to_their_namespace(kernel: Path, tmp_path: Path) -> None:
    path = "net/ipv4/tcp_wmem"
    steps = [
        *opening(), step("ns", index=0, name="a"), step("ns", index=1, name="b"),
        step("sysctl", ns=0, path=path, value="4096 20000 30000"),
        step("sysctl", ns=1, path=path, value="4096 16384 40000"),
        step("sysctl", ns=0, path="net/ipv4/ip_forward", value="1"),
        step("sysctl", ns=0, path="net/ipv4/tcp_congestion_control", value="reno"),
    ]  # fmt: skip
    found = run_guest(kernel, tmp_path, steps).completed().records("sysctl")
    assert [(record["ns"], record["asked"], record["value"]) for record in found] == [
        (0, "4096 20000 30000", "4096\t20000\t30000"),
        (1, "4096 16384 40000", "4096\t16384\t40000"),
        (0, "1", "1"),
        (0, "reno", "reno"),
    ]


@pytest.mark.parametrize(
    ("path", "value", "number"),
    [("net/ipv4/nosuch", "1", errno.ENOENT), ("net/ipv4/tcp_congestion_control", "nosuch", errno.ENOENT),
     ("net/ipv4/ip_forward", "yes", errno.EINVAL)],
)  # fmt: skip
def test_a_sysctl_that_cannot_be(kernel: Path, tmp_path: Path, path: str, value: str, number: int) -> None:
    end = fails(kernel, tmp_path, [*opening(), *namespaces("a"), step("sysctl", ns=0, path=path, value=value)])
    assert str(end["message"]).startswith(f"sysctl {path} = {value}: ")
    assert str(end["message"]).endswith(f"(errno {number})")


def test_a_program_finds_what_the_format_promises(kernel: Path, tmp_path: Path) -> None:
    """Environment, descriptors, timer slack, working directory; T0 too."""
    steps = [
        *opening(), *namespaces("a", "b"), tool("before", 0, "env"), step("ready"),
        step("spawn", id="after", ns=1, stdout="apps/deep/after.out", stderr="apps/deep/after.out", flow=1,
             arg=["./udp_tool", "env"], env=["A=1 2", "B=x=y"], at_ns=S), ending(2 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    common = ["fd 0", "fd 1", "fd 2", "slack 1"]
    path = "env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    first = [path, "env HOME=/run/cell", "env LANG=C", f"env NETWARP_T0_REALTIME_NS={T0}"]
    assert (tmp_path / "apps/before.out").read_text().splitlines() == [*first, *common]
    assert (tmp_path / "apps/deep/after.out").read_text().splitlines() == [*first, "env A=1 2", "env B=x=y", *common]
    assert [record["status"] for record in result.records("exit")] == [0, 0]


@pytest.mark.parametrize(("program", "number"), [("./nosuch", errno.ENOENT), ("./steps.txt", errno.EACCES)])
def test_a_program_that_cannot_start(kernel: Path, tmp_path: Path, program: str, number: int) -> None:
    steps = [*opening(), *namespaces("a"), step("spawn", id="x", ns=0, stdout="o", stderr="e", arg=program)]
    message = str(fails(kernel, tmp_path, steps)["message"])
    assert message.startswith(f"cannot start x: {program}: ")
    assert message.endswith(f"(errno {number})")


def test_signals(kernel: Path, tmp_path: Path) -> None:
    steps = [
        *opening(), *namespaces("a"), tool("x", 0, "stubborn"), tool("y", 0, "exit", 5, 1), step("ready"),
        step("signal", id="x", signal=signal.SIGUSR1, at_ns=2 * S), step("signal", id="y", signal=9, at_ns=2 * S),
        ending(9 * S),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    exits = {record["id"]: record for record in result.records("exit")}
    assert (exits["x"]["signal"], exits["x"]["killed"]) == (signal.SIGUSR1, False)
    assert (exits["y"]["status"], exits["y"]["signal"]) == (5, None)
    assert abs(result.end["t_ns"] - 2 * S) < MS


def test_a_killed_capture_process_fails_the_cell(kernel: Path, tmp_path: Path) -> None:
    script = "for p in /proc/[0-9]*; do read -r _ n _ < $p/stat; case $n in '(init)') kill -9 ${p#/proc/};; esac; done"
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), capture(0, "p1", 10, "a"),
        step("capture-start"), step("ready"),
        step("spawn", id="killer", ns=0, stdout="o", stderr="e", arg=["/bin/sh", "-c", script], at_ns=S), ending(9 * S),
    ]  # fmt: skip
    end = run_guest(kernel, tmp_path, steps).end
    assert end["reason"] == "failed"
    assert end["message"] in ("the capture process ended (signal 9)", "the capture process has gone")


def test_orphans_are_reaped_and_do_not_keep_the_guest(kernel: Path, tmp_path: Path) -> None:
    orphan = ["/bin/sh", "-c", "(sleep 1; exit 3) & sleep 500 & exit 0"]
    steps = [
        *opening(), *namespaces("a"), step("spawn", id="sh", ns=0, stdout="o", stderr="e", arg=orphan), step("ready"),
        ending(20 * S, early=False),
    ]  # fmt: skip
    result = run_guest(kernel, tmp_path, steps).completed()
    assert [record["id"] for record in result.records("exit")] == ["sh"]


UNKNOWN_NS = to_text([*opening(), step("netlink", ns=0, data="00")])
OTHER_SANDBOX = to_text([step("sandbox", kind="namespaces")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "steps.txt:1: the first line must be 'netwarp-steps 1'"),
        (UNKNOWN_NS, "steps.txt:5: netlink: key ns: no earlier step makes namespace 0"),
        (OTHER_SANDBOX, "steps.txt asks for kind=namespaces, but this is kind=guest"),
    ],
)
def test_steps_that_cannot_be_played(kernel: Path, tmp_path: Path, text: str, message: str) -> None:
    end = run_guest(kernel, tmp_path, text).end
    assert (end["reason"], end["message"]) == ("failed", message)
