"""A laboratory on one machine: User-Mode-Linux guests on the wall clock as machines, cabled in a namespace of ours.

Two end machines, a and b, with two interfaces for experiments each, and a router r with four; every machine has an
interface for management and an sshd. All of it, and the guests, end with one process: `lab.py down` kills that.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

from netwarp.core.checkout import CHECKOUT
from netwarp.core.errors import NetwarpError
from netwarp.doctor import laboratory, memory_dir
from netwarp.guestkernel import find_kernel
from netwarp.sandbox.guest_root import prepare_root

HERE = Path(__file__).resolve().parent
PLACE = Path(os.environ.get("NETWARP_LAB", CHECKOUT / "build" / "lab"))
PACKAGES = PLACE / "packages"
REPOSITORY = PLACE / "repository"
HOLDER = PLACE / "holder.pid"
READY = PLACE / "ready"
SOFTWARE = ("openssh-server", "sudo", "chrony")
NETWORK = "192.0.2"  # TEST-NET-1 (RFC 5737)
MACHINES = {"a": 2, "b": 2, "r": 4}
"""Name -> number of interfaces for experiments: vec1, vec2, ..."""
CABLES = (("a", 1, "r", 1), ("a", 2, "r", 2), ("b", 1, "r", 3), ("b", 2, "r", 4))
PROGRAMS = {"ssh": "openssh-client", "ip": "iproute2", "unshare": "util-linux", "dpkg": "dpkg"}
"""Of this machine: program -> its package."""
MEMORY_MIB = 384
BOOT_S = 90
DIES_S = 10
"""A machine that ends so soon after its boot would do so again."""
SIOCETHTOOL = 0x8946
OFFLOADS = (0x17, 0x19, 0x1F, 0x24, 0x2C)
"""ETHTOOL_STXCSUM, SSG, STSO, SGSO, SGRO (linux/ethtool.h)"""
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


class LabError(Exception):
    """Why there is no laboratory, and what to do."""


def address(machine: str) -> str:
    """The management address of a machine."""
    return f"{NETWORK}.{1 + list(MACHINES).index(machine)}"


def mac(machine: str, number: int) -> str:
    """Of interface vec<number>: 02:6c is a locally administered prefix."""
    return f"02:6c:00:00:{1 + list(MACHINES).index(machine):02x}:{number:02x}"


def run(*command: str | Path, **options: object) -> None:
    """Run a program; LabError with its last words where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise LabError(f"{' '.join(str(word) for word in command)}: {words[-1]}")


def holder() -> int | None:
    """The process that holds the laboratory, if it lives."""
    try:
        pid = int(HOLDER.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if str(HERE).encode() in command else None


def problems() -> list[str]:
    """What keeps a laboratory from being made here, each with its remedy."""
    lacking = []
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            lacking.append(f"there is no {program}: apt-get install {package}")
    taps = laboratory()
    if taps.state != "ok":
        lacking.append(f"{taps.detail}: {taps.remedy}")
    elif not lacking:
        try:
            run(*unshare(), "true")
        except LabError as error:
            lacking.append(f"no namespaces ({error}): `netwarp doctor` says how to allow them; or use root")
    if find_kernel() is None:
        lacking.append("the guest kernel is not built: make kernel")
    if memory_dir() is None:
        lacking.append("there is no room for the guests' memory: `netwarp doctor` says where it looks")
    return lacking


def unshare() -> list[str]:
    """The words before a program that is to be root in namespaces of its own, and to take all in them with it."""
    return [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--pid",
        "--mount",
        "--mount-proc",
        "--fork",
        "--kill-child",
    ]


def unpack() -> None:
    """Software for the guests that this machine has not: unpacked, not installed."""
    stamp = PLACE / "packages.done"
    if stamp.exists():
        return
    shutil.rmtree(PACKAGES, ignore_errors=True)
    downloads = PLACE / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    PACKAGES.mkdir(parents=True)
    wanted = subprocess.run(
        ["apt-get", "--print-uris", "-y", "--no-install-recommends", "install", *SOFTWARE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if wanted.returncode:
        raise LabError(f"apt-get knows no {', '.join(SOFTWARE)} ({wanted.stderr.strip()}): apt-get update")
    files = [line.split()[1] for line in wanted.stdout.splitlines() if line.startswith("'")]
    packages = ["=".join(unquote(file).split("_")[:2]) for file in files]
    if packages:
        run("apt-get", "download", *packages, cwd=downloads)
    for package in sorted(downloads.glob("*.deb")):
        run("dpkg", "-x", package, PACKAGES)
    for name in ("bin", "sbin", "lib", "lib64"):  # links into usr on a system of today
        if (PACKAGES / name).is_dir():
            shutil.copytree(PACKAGES / name, PACKAGES / "usr" / name, dirs_exist_ok=True, symlinks=True)
            shutil.rmtree(PACKAGES / name)
    shutil.rmtree(downloads)
    stamp.touch()


def make_repository() -> None:
    """A repository of one package, to try installing from."""
    shutil.rmtree(REPOSITORY, ignore_errors=True)
    tree = PLACE / "trial"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("DEBIAN", "usr/share/doc/netwarp-trial"):
        (tree / name).mkdir(parents=True)
    (tree / "usr" / "share" / "doc" / "netwarp-trial" / "README").write_text("netwarp trial\n")
    control = (
        "Package: netwarp-trial\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\n"
        "Description: a package to install and to purge\n"
    )
    (tree / "DEBIAN" / "control").write_text(control)
    REPOSITORY.mkdir(parents=True)
    package = REPOSITORY / "netwarp-trial_1_all.deb"
    run("dpkg-deb", "--build", "--root-owner-group", tree, package)
    shutil.rmtree(tree)
    data = package.read_bytes()
    entry = f"Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    (REPOSITORY / "Packages").write_text(control + entry)


def make_files() -> None:
    """Keys, each machine's directory, the ssh that finds its way into the namespace."""
    for machine in MACHINES:
        place = PLACE / machine
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", machine, "-f", place / "ssh_host_key")
    for name in ("key", "key.pub"):
        (PLACE / name).unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "laboratory", "-f", PLACE / "key")
    hosts = []
    for machine in MACHINES:
        place = PLACE / machine
        hosts.append(f"{address(machine)} {(place / 'ssh_host_key.pub').read_text()}")
        shutil.copyfile(PLACE / "key.pub", place / "authorized_keys")
        settings = {"NAME": machine, "ADDRESS": address(machine), "REPOSITORY": str(REPOSITORY)}
        prepare_root(place, PACKAGES, HERE / "guest.sh", settings)
    (PLACE / "known_hosts").write_text("".join(hosts))


def inventory() -> str:
    """The inventory of the laboratory: docs/physical-hosts.md explains one."""
    lines = [
        "# Made by `make lab`. What each key means: docs/physical-hosts.md",
        "netwarp:",
        "  vars:",
        "    ansible_user: lab",
        "    ansible_become: true",
        f"    ansible_ssh_private_key_file: {PLACE / 'key'}",
        f"    ansible_ssh_executable: {PLACE / 'ssh'}",
        f"    ansible_ssh_common_args: -o UserKnownHostsFile={PLACE / 'known_hosts'} -o StrictHostKeyChecking=yes",
        "    # a connection that is kept would outlive the laboratory, and lead nowhere in the next one",
        "    ansible_ssh_args: -o ControlMaster=no",
        "    # sftp and scp know no way into the namespace",
        "    ansible_pipelining: true",
        "    ansible_ssh_transfer_method: piped",
        "    ansible_python_interpreter: /usr/bin/python3",
        "  hosts:",
    ]
    cabled: dict[str, dict[str, str]] = {machine: {} for machine in MACHINES}
    for near, near_number, far, far_number in CABLES:
        cabled[near][f"vec{near_number}"] = f"{far}:vec{far_number}"
        cabled[far][f"vec{far_number}"] = f"{near}:vec{near_number}"
    for machine in MACHINES:
        lines += [f"    {machine}:", f"      ansible_host: {address(machine)}"]
        lines += [f"      netwarp_role: {'bottleneck' if machine == 'r' else 'endpoint'}", "      netwarp_cables:"]
        lines += [f"        {own}: {other}" for own, other in cabled[machine].items()]
    return "\n".join(lines) + "\n"


def packets_of_a_wire(interface: str) -> None:
    """No segment larger than the MTU and no missing checksum leaves it: a guest drops such packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for feature in OFFLOADS:
            value = array.array("I", [feature, 0])
            with contextlib.suppress(OSError):  # not every device has every one of them
                fcntl.ioctl(handle, SIOCETHTOOL, struct.pack("16sP", interface.encode(), value.buffer_info()[0]))


def hold() -> None:
    """In the namespaces, as their first process: the cables, then the machines, until this process is killed."""
    kernel = find_kernel()
    memory = memory_dir()
    if kernel is None or memory is None:
        raise LabError("; ".join(problems()))
    run("ip", "link", "set", "dev", "lo", "up")
    run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    run("ip", "link", "add", "manage", "type", "bridge")
    run("ip", "address", "add", f"{NETWORK}.254/24", "dev", "manage")
    run("ip", "link", "set", "dev", "manage", "up")
    packets_of_a_wire("manage")
    for machine, number in MACHINES.items():
        for index in range(number + 1):
            run("ip", "tuntap", "add", f"{machine}{index}", "mode", "tap")
            packets_of_a_wire(f"{machine}{index}")
        run("ip", "link", "set", "dev", f"{machine}0", "master", "manage", "up")
    for near, near_number, far, far_number in CABLES:
        cable = f"cable-{near}{near_number}"
        run("ip", "link", "add", cable, "type", "bridge", "mcast_snooping", "0")
        run("ip", "link", "set", "dev", cable, "up")
        for end in (f"{near}{near_number}", f"{far}{far_number}"):
            run("ip", "link", "set", "dev", end, "master", cable, "up")
    guests = {boot(machine, kernel.binary, memory): (machine, time.monotonic()) for machine in MACHINES}
    READY.touch()
    while True:  # a machine that is switched off is switched on again
        pid, status = os.wait()
        if pid not in guests:
            continue
        machine, booted = guests.pop(pid)
        if time.monotonic() - booted < DIES_S:
            said = (PLACE / machine / "console.txt").read_text(errors="replace")[-1000:]
            raise LabError(f"machine {machine} ended within {DIES_S} s of its boot (status {status}):\n{said}")
        guests[boot(machine, kernel.binary, memory)] = (machine, time.monotonic())


def boot(machine: str, kernel: Path, memory: Path) -> int:
    """Switch a machine on; returns its process. Its console goes on where that of the boot before ended."""
    vectors = [f"vec{i}:transport=tap,ifname={machine}{i},mac={mac(machine, i)}" for i in range(MACHINES[machine] + 1)]
    with open(PLACE / machine / "console.txt", "ab") as console:
        return subprocess.Popen(
            [
                str(kernel), f"mem={MEMORY_MIB}M", "rootfstype=hostfs", "rootflags=/", "ro",
                "init=/proc/self/cwd/init", "con0=null,fd:1", "con=null", "fb_tunnels=none", "quiet", *vectors,
            ],
            cwd=PLACE / machine, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            env={"HOME": "/proc/self/cwd", "TMPDIR": str(memory), "PATH": os.environ["PATH"]},
        ).pid  # fmt: skip


def up() -> None:
    """Make the laboratory, and wait until every machine answers."""
    if holder() is not None:
        print(f"The laboratory is up: {PLACE / 'inventory.yml'}")
        return
    if lacking := problems():
        raise LabError("\n  ".join(["there can be no laboratory here:", *lacking]))
    PLACE.mkdir(parents=True, exist_ok=True)
    unpack()
    make_repository()
    make_files()
    READY.unlink(missing_ok=True)
    with open(PLACE / "holder.txt", "wb") as log:
        process = subprocess.Popen(
            [*unshare(), sys.executable, str(HERE / "lab.py"), "hold"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    HOLDER.write_text(str(process.pid))
    script = PLACE / "ssh"
    inside = f"nsenter --target {process.pid} --user --net --preserve-credentials"
    script.write_text(f'#!/bin/sh\nexec {inside} ssh -F none "$@"\n')
    script.chmod(0o755)
    (PLACE / "inventory.yml").write_text(inventory())
    try:
        deadline = time.monotonic() + BOOT_S
        for machine in MACHINES:
            while not answers(machine):
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (PLACE / "holder.txt").read_text() or (PLACE / machine / "console.txt").read_text()
                    raise LabError(f"machine {machine} does not answer; its last words:\n{said[-1000:]}")
                time.sleep(0.2)
    except BaseException:
        down()
        raise
    print(f"The laboratory is up: {PLACE / 'inventory.yml'}")


def answers(machine: str) -> bool:
    """Whether its sshd lets us in."""
    return subprocess.run(
        [
            PLACE / "ssh", "-i", PLACE / "key", "-o", f"UserKnownHostsFile={PLACE / 'known_hosts'}",
            "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", f"lab@{address(machine)}", "sudo", "-n", "true",
        ],
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    ).returncode == 0  # fmt: skip


def down() -> None:
    """End the laboratory: its machines, its cables, its keys."""
    pid = holder()
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        while holder() is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05)
    for name in ("holder.pid", "inventory.yml", "ssh", "key", "key.pub", "known_hosts", "ready"):
        (PLACE / name).unlink(missing_ok=True)


def main() -> int:
    """`up`, `down`, or (inside) `hold`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("up", "down", "hold", "problems"))
    command = parser.parse_args().command
    os.environ["PATH"] += f":{SBIN}"
    try:
        if command == "problems":
            print("".join(f"{problem}\n" for problem in problems()), end="")
        else:
            {"up": up, "down": down, "hold": hold}[command]()
    except (LabError, NetwarpError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
