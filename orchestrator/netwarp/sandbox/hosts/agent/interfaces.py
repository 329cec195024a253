"""The state of a machine's interfaces: what a cell may change of them, written down before, and put back.

Runs alone too, with --put-back: puts back what an agent left that was killed (ansible/teardown.yml).
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import shutil
import socket
import struct
import sys
import time
from typing import Any

STATE = "/run/netwarp"
LEASE = STATE + "/lease"
CELL = STATE + "/cell"
RECORD = STATE + "/interfaces.json"
BACK_S = 15
SIOCETHTOOL = 0x8946
SSET_INFO, GET_FEATURES, SET_FEATURES = 0x37, 0x3A, 0x3B
ETH_SS_FEATURES = 4
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFMTU = 0x8913, 0x8914, 0x8922
IFF_UP, IFF_NOARP, IFF_MULTICAST = 1, 0x80, 0x1000
NETLINK_ROUTE, RTMGRP_LINK = 0, 1


def ioctl_ethtool(name: str, buffer: array.array[int]) -> None:
    """One SIOCETHTOOL; the answer is in the buffer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCETHTOOL, struct.pack("16sP", name.encode(), buffer.buffer_info()[0]))


def features(name: str) -> list[list[int]]:
    """Blocks of (available, requested, active, never changed) bits of an interface's offloads."""
    count = array.array("I", [SSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0])
    ioctl_ethtool(name, count)
    blocks = (count[4] + 31) // 32
    got = array.array("I", [GET_FEATURES, blocks] + [0] * 4 * blocks)
    ioctl_ethtool(name, got)
    return [list(got[2 + 4 * i : 6 + 4 * i]) for i in range(blocks)]


def restore_features(name: str, blocks: list[list[int]]) -> None:
    """Ask for what was asked for then."""
    words = [word for available, requested, _, _ in blocks for word in (available, requested)]
    ioctl_ethtool(name, array.array("I", [SET_FEATURES, len(blocks), *words]))


def read(path: str) -> str | None:
    """The text of a file of the kernel's, None where it gives none."""
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return None


def sysctls(name: str) -> dict[str, str]:
    """Path below /proc/sys/net -> value, of every sysctl of an interface."""
    values = {}
    for group in ("ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"):
        folder = "/proc/sys/net/" + group + "/" + name
        for key in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            value = read(folder + "/" + key)
            if value is not None:
                values[group + "/" + name + "/" + key] = value
    return values


def flags(name: str) -> int:
    """IFF_UP and the like."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        answer = fcntl.ioctl(handle, SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
    return int(struct.unpack("16sH14x", answer)[1])


def set_flags(name: str, mask: int, values: int) -> None:
    """Set those of the mask: IFF_UP and the like."""
    wanted = flags(name) & ~mask | values & mask
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), wanted))


def set_mtu(name: str, mtu: int) -> None:
    """Its MTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFMTU, struct.pack("16si12x", name.encode(), mtu))


def state_of(name: str) -> dict[str, Any]:
    """The properties of an interface that a cell may change."""
    return {
        "mtu": int(read("/sys/class/net/" + name + "/mtu") or 0),
        "up": bool(flags(name) & IFF_UP),
        "asks": flags(name) & (IFF_NOARP | IFF_MULTICAST),
        "features": features(name),
        "sysctls": sysctls(name),
    }


def restore(name: str, before: dict[str, Any]) -> str:
    """Put an interface back as it was; what cannot be, in a sentence."""
    try:
        set_mtu(name, before["mtu"])
        restore_features(name, before["features"])
        set_flags(name, IFF_NOARP | IFF_MULTICAST, before["asks"])  # a cell of IPv6 changes them
        set_flags(name, IFF_UP, IFF_UP if before["up"] else 0)
        for _ in range(2):  # some follow from others
            for path, value in before["sysctls"].items():
                if read("/proc/sys/net/" + path) != value:
                    with contextlib.suppress(OSError), open("/proc/sys/net/" + path, "w") as file:
                        file.write(value)
        after = state_of(name)
    except OSError as error:
        return f"{name} cannot be put back: {error}"
    wrong = [key for key in ("mtu", "up", "asks") if after[key] != before[key]]
    # what is available and active is the driver's to say: some learn it only when they are first set up
    asked = [(old[0] & old[1], old[0] & new[1]) for old, new in zip(before["features"], after["features"])]  # noqa: B905
    wrong += ["offloads"] if any(old != new for old, new in asked) else []
    wrong += [path for path, value in before["sysctls"].items() if after["sysctls"].get(path) != value]
    return name + " is not as it was: " + ", ".join(wrong) if wrong else ""


def keep(directory: str, names: list[str]) -> None:
    """Write down the state of interfaces, and the directory of the cell that takes them, before it does."""
    write_record({"directory": directory, "interfaces": {name: state_of(name) for name in names}})


def write_record(record: dict[str, Any]) -> None:
    """Whole or not at all."""
    with open(RECORD + ".new", "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(RECORD + ".new", RECORD)


def await_interfaces(names: list[str], limit_s: float) -> None:
    """Until the kernel has given them back from a namespace that ends, or the time is over."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as links:
        links.bind((0, RTMGRP_LINK))
        until = time.monotonic() + limit_s
        while not all(os.path.isdir("/sys/class/net/" + name) for name in names):
            left = until - time.monotonic()
            if left <= 0 or not select.select([links], [], [], left)[0]:
                return
            with contextlib.suppress(OSError):  # more than the socket holds: then only look again
                links.recv(1 << 16)


def put_back() -> list[str]:
    """Interfaces of a cell that has ended, or whose agent was killed: wait for them, restore them, forget them."""
    try:
        with open(RECORD) as file:
            record = json.load(file)
    except (OSError, ValueError):
        return []
    await_interfaces(list(record["interfaces"]), BACK_S)
    said, away = [], {}
    for name, before in record["interfaces"].items():
        if os.path.isdir("/sys/class/net/" + name):
            said.append(restore(name, before))
        else:
            said.append(name + " did not come back: connections of the cell that were not closed hold it for minutes")
            away[name] = before
    shutil.rmtree(record["directory"], ignore_errors=True)
    if away:  # for the next that asks
        write_record({"directory": record["directory"], "interfaces": away})
    else:
        os.unlink(RECORD)
    return [text for text in said if text]


def recorded() -> list[str]:
    """The interfaces that a cell has taken."""
    try:
        with open(RECORD) as file:
            return list(json.load(file)["interfaces"])
    except (OSError, ValueError):
        return []


def put_back_left() -> int:
    """Removes what a killed agent left, where none lives; returns what it did."""
    if not os.path.exists(RECORD):
        return 0
    handle = os.open(LEASE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stdout.write(json.dumps({"refused": "a run uses this machine"}) + "\n")
        return 1
    left = put_back()
    sys.stdout.write(json.dumps({"put_back": not left, "left": left}) + "\n")
    for path in (LEASE, CELL):
        with contextlib.suppress(OSError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(STATE)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(put_back_left() if "--put-back" in sys.argv else 2)
