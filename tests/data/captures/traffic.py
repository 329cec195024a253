"""The traffic of the recorded captures (README.md): `traffic.py receive|send`, told what by the file `settings`."""

import socket
import struct
import sys
import time
from pathlib import Path

PORT = 5001
SCTP, MPTCP = 132, 262
SCTP_BINDX_ADD, SCTP_CONNECTX, SCTP_NODELAY = 100, 110, 3
TCP_INFO, TCP_CONGESTION = 11, 13


def settings() -> dict[str, str]:
    """KEY="value" lines."""
    lines = Path("settings").read_text().splitlines()
    pairs = (line.strip().split("=", 1) for line in lines if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def addresses(hosts: list[str], port: int) -> bytes:
    """struct sockaddr_in, one after another, as bindx and connectx take them."""
    family = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
    return b"".join(family + socket.inet_aton(host) + bytes(8) for host in hosts)


def receive(sock: socket.socket, env: dict[str, str], paths: tuple[int, ...]) -> None:
    """Take one connection to its end."""
    if env["PROTO"] == "sctp":
        sock.setsockopt(SCTP, SCTP_BINDX_ADD, addresses([f"10.{path}.2.1" for path in paths], PORT))
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("0.0.0.0", PORT))
    sock.listen(1)
    connection, _ = sock.accept()
    got = 0
    while data := connection.recv(65536):
        got += len(data)
    print("received", got, time.time_ns())


def send(sock: socket.socket, env: dict[str, str], paths: tuple[int, ...]) -> None:
    """Send TOTAL bytes, SIZE at a time."""
    if env["PROTO"] == "sctp":
        sock.setsockopt(SCTP, SCTP_BINDX_ADD, addresses([f"10.{path}.1.1" for path in paths], 0))
        sock.setsockopt(SCTP, SCTP_CONNECTX, addresses([f"10.{path}.2.1" for path in paths], PORT))
        if env.get("NODELAY"):
            sock.setsockopt(SCTP, SCTP_NODELAY, struct.pack("i", 1))
    else:
        sock.bind(("10.1.1.1", 0))
        if env.get("CC"):
            sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, env["CC"].encode())
        sock.connect(("10.1.2.1", PORT))
    size, total = int(env["SIZE"]), int(env["TOTAL"])
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    sent = 0
    while sent < total:
        sent += sock.send(data)
    print("sent", sent)
    if env["PROTO"] == "tcp":
        print("tcp_info", sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256).hex())


def main() -> None:
    """Open the socket the settings ask for and play the role of the first argument."""
    env = settings()
    protocol = {"sctp": SCTP, "tcp": socket.IPPROTO_TCP, "mptcp": MPTCP}[env["PROTO"]]
    paths = (1, 2) if env.get("MULTI") == "1" else (1,)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as sock:
        if env.get("BUF"):
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, int(env["BUF"]))
        (receive if sys.argv[1] == "receive" else send)(sock, env, paths)


main()
