"""The network namespaces of a cell, held so that its interfaces can be taken out of them at its end.

A namespace lives as long as a connection in it that has not been closed by both ends: minutes, where a path is down.
The kernel gives its interfaces back only then.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
RTM_NEWLINK, NLM_F_REQUEST, NLM_F_ACK, IFLA_NET_NS_PID = 16, 1, 4, 19
NETLINK_ROUTE = 0
IFF_UP = 1


class Namespaces:
    """Those that are held."""

    def __init__(self) -> None:
        self.handles: dict[str, int] = {}

    def hold(self, parent: int) -> None:
        """Those that the children of a process have open."""
        for process in os.listdir("/proc"):
            if not process.isdigit() or parent_of(process) != parent:
                continue
            folder = f"/proc/{process}/fd"
            numbers: list[str] = []
            with contextlib.suppress(OSError):  # it has ended meanwhile
                numbers = os.listdir(folder)
            for number in numbers:
                with contextlib.suppress(OSError):  # closed meanwhile
                    name = os.readlink(f"{folder}/{number}")
                    if name.startswith("net:[") and name not in self.handles:
                        self.handles[name] = os.open(f"{folder}/{number}", os.O_RDONLY | os.O_CLOEXEC)

    def take_back(self, names: list[str]) -> None:
        """Bring these interfaces into this process's own namespace, and hold nothing any more."""
        for handle in self.handles.values() if names else ():
            child = os.fork()
            if not child:
                status = 1
                with contextlib.suppress(Exception):
                    bring(handle, names, os.getppid())
                    status = 0
                os._exit(status)
            os.waitpid(child, 0)
        self.close()

    def close(self) -> None:
        """Hold nothing any more."""
        while self.handles:
            os.close(self.handles.popitem()[1])


def parent_of(process: str) -> int:
    """Of a process; 0 where it has gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def bring(namespace: int, names: list[str], process: int) -> None:
    """In the namespace (for the rest of this process's life): its interfaces of these names go to the process's."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
        for index, name in socket.if_nameindex():
            if name in names:
                link = struct.pack("=BxHiII", 0, 0, index, 0, IFF_UP)
                attribute = struct.pack("=HHI", 8, IFLA_NET_NS_PID, process)
                length = 16 + len(link) + len(attribute)
                head = struct.pack("=IHHII", length, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0)
                kernel.send(head + link + attribute)
                kernel.recv(4096)
