"""netwarp's part on a machine: runs one cell's sandbox there, gives its interfaces back as they were.

Stands alone: its source is sent over the connection and run by the machine's Python (3.7 or newer) as root. Standard
input: commands, a JSON object a line (`put` is followed by its bytes); standard output: answers and events in the same
form. When standard input ends, or is silent for SILENCE_S, the sandbox is killed and everything is put back.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import platform
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from typing import Any, Iterator  # noqa: UP035 (Python 3.7 of a machine)

STATE = "/run/netwarp"
LEASE = STATE + "/lease"
CELL = STATE + "/cell"
RECORD = STATE + "/interfaces.json"
SILENCE_S = 60
BACK_S = 15
BUSY_S = 20
POLL_S = 0.05
PR_SET_PDEATHSIG = 1
SIOCETHTOOL = 0x8946
SSET_INFO, GET_FEATURES, SET_FEATURES = 0x37, 0x3A, 0x3B
ETH_SS_FEATURES = 4
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFMTU = 0x8913, 0x8914, 0x8922
IFF_UP = 1
IPPROTO_SCTP = 132


class Refused(Exception):
    """Why a command is not carried out, and what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.remedy = remedy


class Gone(Exception):
    """The controller has gone."""


def say(**message: Any) -> None:
    """One line to the controller."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


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


def set_up(name: str, up: bool) -> None:
    """Administratively up or down."""
    wanted = flags(name) & ~IFF_UP | (IFF_UP if up else 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), wanted))


def set_mtu(name: str, mtu: int) -> None:
    """Its MTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFMTU, struct.pack("16si12x", name.encode(), mtu))


def state_of(name: str) -> dict[str, Any]:
    """What a cell may change of an interface."""
    return {
        "mtu": int(read("/sys/class/net/" + name + "/mtu") or 0),
        "up": bool(flags(name) & IFF_UP),
        "features": features(name),
        "sysctls": sysctls(name),
    }


def restore(name: str, before: dict[str, Any]) -> str:
    """Put an interface back as it was; what cannot be, in a sentence."""
    try:
        set_mtu(name, before["mtu"])
        restore_features(name, before["features"])
        set_up(name, before["up"])
        for _ in range(2):  # some follow from others
            for path, value in before["sysctls"].items():
                if read("/proc/sys/net/" + path) != value:
                    with contextlib.suppress(OSError), open("/proc/sys/net/" + path, "w") as file:
                        file.write(value)
        after = state_of(name)
    except OSError as error:
        return "%s cannot be put back: %s" % (name, error)  # noqa: UP031
    wrong = [key for key in ("mtu", "up") if after[key] != before[key]]
    # what is available and active is the driver's to say: some learn it only when they are first set up
    asked = [(old[0] & old[1], old[0] & new[1]) for old, new in zip(before["features"], after["features"])]  # noqa: B905
    wrong += ["offloads"] if any(old != new for old, new in asked) else []
    wrong += [path for path, value in before["sysctls"].items() if after["sysctls"].get(path) != value]
    return name + " is not as it was: " + ", ".join(wrong) if wrong else ""


def put_back() -> list[str]:
    """Interfaces of a cell that has ended, or whose agent was killed: wait for them, restore them, forget them."""
    try:
        with open(RECORD) as file:
            record = json.load(file)
    except (OSError, ValueError):
        return []
    said = []
    until = time.monotonic() + BACK_S
    for name, before in record["interfaces"].items():
        while not os.path.isdir("/sys/class/net/" + name) and time.monotonic() < until:
            time.sleep(0.01)
        said.append(restore(name, before) if os.path.isdir("/sys/class/net/" + name) else name + " did not come back")
    shutil.rmtree(record["directory"], ignore_errors=True)
    os.unlink(RECORD)
    return [text for text in said if text]


def addresses(name: str) -> list[str]:
    """Its addresses, but for link-local ones of IPv6."""
    shown = subprocess.run(["ip", "-j", "address", "show", "dev", name], stdout=subprocess.PIPE, check=True).stdout
    every = [entry for link in json.loads(shown) for entry in link.get("addr_info", [])]
    return [entry["local"] for entry in every if entry.get("scope") != "link"]


def check_interface(name: str) -> Iterator[tuple[str, str]]:
    """Why an interface cannot be given to a cell, and what to do."""
    place = "/sys/class/net/" + name
    if not os.path.isdir(place):
        there = ", ".join(sorted(set(os.listdir("/sys/class/net")) - {"lo"}))
        yield "there is no interface " + name, "the machine has: %s; correct the inventory" % there  # noqa: UP031
        return
    shown = subprocess.run(["ip", "-j", "-d", "link", "show", "dev", name], stdout=subprocess.PIPE, check=True).stdout
    link = json.loads(shown)[0]
    kind = link.get("linkinfo", {}).get("info_kind")
    if kind:
        yield "%s is a %s, which a namespace destroys" % (name, kind), "use a real interface"  # noqa: UP031
    if link.get("master"):
        yield "%s belongs to %s" % (name, link["master"]), "ip link set dev %s nomaster" % name  # noqa: UP031
    own = addresses(name)
    if own:
        yield (
            "%s has the address %s: somebody uses it" % (name, own[0]),  # noqa: UP031
            "give netwarp an interface that nothing else uses, or `ip address flush dev %s`" % name,  # noqa: UP031
        )
    queues = subprocess.run(["tc", "-j", "qdisc", "show", "dev", name], stdout=subprocess.PIPE, check=True).stdout
    if any(entry.get("handle", "0:") != "0:" and entry.get("root") for entry in json.loads(queues or b"[]")):
        yield "%s has a qdisc of somebody's" % name, "tc qdisc del dev %s root" % name  # noqa: UP031


class Agent:
    """The state of one connection."""

    def __init__(self) -> None:
        self.pending = b""
        self.heard = time.monotonic()
        self.locks: list[int] = []
        self.leases = False
        self.directory = ""
        self.sandbox: subprocess.Popen[bytes] | None = None
        self.records = b""
        self.offset = 0
        self.flows: set[str] = set()
        self.mark = ""

    def serve(self) -> None:
        """Until the controller goes."""
        try:
            say(event="hello", kernel=platform.release(), version=platform.version(), machine=platform.machine(),
                uid=os.geteuid())  # fmt: skip
            while True:
                line = self.line()
                message = json.loads(line)
                command = message.pop("command")
                if command == "alive":
                    continue
                try:
                    say(answer=command, **(getattr(self, "do_" + command)(**message) or {}))
                except Refused as refused:
                    say(answer=command, refused=str(refused), remedy=refused.remedy)
                except (OSError, subprocess.SubprocessError) as error:
                    say(answer=command, refused=str(error), remedy="")
        except (Gone, BrokenPipeError):
            pass
        finally:
            self.clean()

    def clean(self) -> list[str]:
        """Leave nothing."""
        if self.sandbox is not None:
            self.sandbox.kill()
            self.sandbox.wait()
            self.sandbox = None
        said = []
        if self.directory:
            said = put_back()
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = ""
        if self.leases:
            # the machine is given away when the agent of its last cell has put everything back
            handle = os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600)
            if self.lock(handle, BUSY_S):
                os.unlink(CELL)
            os.unlink(LEASE)
            self.leases = False
        while self.locks:
            os.close(self.locks.pop())
        with contextlib.suppress(OSError):
            os.rmdir(STATE)
        return said

    def receive(self, timeout_s: float) -> None:
        """More of standard input, if there is any within the time."""
        if select.select([0], [], [], timeout_s)[0]:
            data = os.read(0, 1 << 20)
            if not data:
                raise Gone
            self.pending += data
            self.heard = time.monotonic()
        elif time.monotonic() - self.heard > SILENCE_S:
            raise Gone

    def line(self) -> bytes:
        """The next command; events of the sandbox are told meanwhile."""
        while b"\n" not in self.pending:
            self.receive(1 if self.sandbox is None else POLL_S)
            self.look()
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def bytes(self, count: int) -> bytes:
        """What follows a command."""
        while len(self.pending) < count:
            self.receive(1)
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def look(self) -> None:
        """Tell what is new of the sandbox."""
        if self.sandbox is None:
            return
        status = self.sandbox.poll()
        with contextlib.suppress(OSError), open(self.directory + "/init.ndjson", "rb") as file:
            file.seek(self.offset)
            data = file.read()
            self.offset += len(data)
            self.records += data
        while b"\n" in self.records:
            line, _, self.records = self.records.partition(b"\n")
            if line.startswith(b'{"record":"waiting"'):
                say(event="waiting")
            elif line.startswith(b'{"record":"exit"') and self.flows:
                self.flows.discard(json.loads(line)["id"])
                if not self.flows:
                    say(event="flows over")
        with contextlib.suppress(OSError), open(self.directory + "/console.txt", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 200))
            marks = [line for line in file.read().split(b"\n")[:-1] if line.startswith(b"@")]
            if marks and marks[-1].decode() != self.mark:
                self.mark = marks[-1].decode()
                say(event="time", seconds=float(self.mark[1:]))
        if status is not None:
            self.sandbox = None
            say(event="ended", status=status)

    # commands

    def do_clock(self) -> dict[str, Any]:
        """CLOCK_REALTIME now."""
        return {"t_ns": time.time_ns()}

    def do_lease(self, token: str, who: str) -> dict[str, Any]:
        """Take the machine for a run; puts back what a killed agent left."""
        if os.geteuid() != 0:
            raise Refused("is not root there", "ansible_become: true, with sudo that asks for no password")
        os.makedirs(STATE, mode=0o755, exist_ok=True)
        handle = os.open(LEASE, os.O_RDWR | os.O_CREAT, 0o600)
        if not self.lock(handle, 0):
            holder = os.read(handle, 4000).decode(errors="replace").partition("\n")[2].strip()
            os.close(handle)
            raise Refused("another run uses this machine: " + (holder or "just begun"), "wait until it has ended")
        os.ftruncate(handle, 0)
        os.write(handle, (token + "\n" + who + "\n").encode())
        self.leases = True
        cell = os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600)
        if not self.lock(cell, BUSY_S):
            raise Refused("the cell of a run that has gone does not end", "end the netns-exec there")
        os.close(self.locks.pop())
        return {"left": put_back()}

    def lock(self, handle: int, wait_s: float) -> bool:
        """Whether this connection has the lock now."""
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.locks.append(handle)
                return True
            except BlockingIOError:
                if time.monotonic() >= until:
                    return False
                time.sleep(0.05)

    def do_check(self, interfaces: list[str], directory: str, room_bytes: int) -> dict[str, Any]:
        """Problems, and what is known of the interfaces. Changes nothing (but for modules that a socket loads)."""
        problems = []
        for tool in ("ip", "tc"):
            if shutil.which(tool) is None:
                raise Refused("there is no `%s`" % tool, "apt-get install iproute2")  # noqa: UP031
        for name in interfaces:
            problems += list(check_interface(name))
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SCTP).close()
        except OSError:
            problems.append(("SCTP is not in its kernel", "modprobe sctp; a cloud kernel may not have it at all"))
        if not os.path.isdir(directory):
            problems.append(("there is no directory " + directory, "set netwarp_directory in the inventory"))
        else:
            free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize
            if free < room_bytes:
                text = "%s has room for %d MB only" % (directory, free // 1_000_000)  # noqa: UP031
                problems.append((text, "make room, or set netwarp_directory in the inventory"))
        known = {}
        for name in interfaces:
            if os.path.isdir("/sys/class/net/" + name):
                place = "/sys/class/net/" + name
                known[name] = {
                    "mac": read(place + "/address"),
                    "driver": os.path.basename(os.path.realpath(place + "/device/driver")),
                    "speed_mbit_s": read(place + "/speed"),
                }
        return {"problems": problems, "interfaces": known}

    def do_cell(self, token: str, directory: str) -> None:
        """A new directory for a cell, on a machine that is leased by this token."""
        lease = os.open(LEASE, os.O_RDWR)
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise Refused("nobody holds this machine for the run any more")
        except BlockingIOError:
            if os.read(lease, 4000).decode().partition("\n")[0] != token:
                raise Refused("another run uses this machine") from None
        finally:
            os.close(lease)
        if not self.lock(os.open(CELL, os.O_RDWR | os.O_CREAT, 0o600), BUSY_S):
            raise Refused("the cell before does not end")
        self.directory = directory + "/netwarp-" + token
        shutil.rmtree(self.directory, ignore_errors=True)
        for name in ("bin", "apps", "capture"):
            os.makedirs(self.directory + "/" + name)

    def do_put(self, path: str, size: int, executable: bool = False) -> None:
        """A file of the cell's; its bytes follow, compressed (zlib)."""
        data = zlib.decompress(self.bytes(size))
        name = self.directory + "/" + path
        with open(name + ".new", "wb") as file:
            file.write(data)
        os.chmod(name + ".new", 0o755 if executable else 0o644)
        os.replace(name + ".new", name)

    def do_start(self, interfaces: list[str], flows: list[str]) -> None:
        """The sandbox; its record of the interfaces first."""
        record = {"directory": self.directory, "interfaces": {name: state_of(name) for name in interfaces}}
        with open(RECORD + ".new", "w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(RECORD + ".new", RECORD)
        self.flows, self.records, self.offset, self.mark = set(flows), b"", 0, ""
        words = [self.directory + "/bin/netns-exec", "--dir", self.directory, "--parent", str(os.getpid()), "--root"]
        words += [word for name in interfaces for word in ("--interface", name)]
        with open(self.directory + "/log.txt", "wb") as log:
            self.sandbox = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def do_files(self) -> dict[str, Any]:
        """What the sandbox left: path -> bytes."""
        sizes = {}
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(folder, name)
                if not path.startswith((self.directory + "/bin/", self.directory + "/init.reserve")):
                    sizes[os.path.relpath(path, self.directory)] = os.path.getsize(path)
        sizes.pop("init", None)
        return {"sizes": sizes}

    def do_get(self, path: str) -> None:
        """A file: an event with its size, its bytes, then the answer."""
        with open(self.directory + "/" + path, "rb") as file:
            size = os.path.getsize(file.name)
            say(event="file", path=path, size=size)
            while size:
                data = file.read(min(1 << 16, size))
                if not data:
                    raise Gone
                size -= len(data)
                while data:
                    data = data[os.write(1, data) :]

    def do_finish(self) -> dict[str, Any]:
        """The end of the cell: what could not be put back."""
        return {"left": self.clean()}


def main() -> None:
    """As long as the controller lives."""
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"

    def leave(number: int, _: object) -> None:
        raise Gone

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
    Agent().serve()


def put_back_left() -> int:
    """What a killed agent left, where none lives: says what it did (ansible/teardown.yml)."""
    if not os.path.exists(RECORD):
        return 0
    handle = os.open(LEASE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(refused="a run uses this machine")
        return 1
    left = put_back()
    say(put_back=not left, left=left)
    for path in (LEASE, CELL):
        with contextlib.suppress(OSError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(STATE)
    return 1 if left else 0


if __name__ == "__main__":
    if "--put-back" in sys.argv:
        sys.exit(put_back_left())
    main()
