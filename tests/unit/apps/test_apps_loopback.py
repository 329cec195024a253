"""sender and receiver, sanitised, over the host's own TCP; and receivers whose peer sends wrong data."""

from __future__ import annotations

import contextlib
import errno
import signal
import socket
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.apps_kit import Receiver, Record, flow_pattern, free_port, records, run, sanitised, summary_of, with_token


def send(port: int, *arguments: str, protocol: str = "tcp", host: str = "127.0.0.1") -> tuple[int, list[Record]]:
    """A sender to this machine; asserts that the sanitisers kept silent."""
    done = run("sender", "--protocol", protocol, "--to", host, "--port", str(port), *arguments)
    assert done.stderr == "", done.stderr
    return done.returncode, records(done.stdout)


LATER = (1, 5, 50)
"""Times as late a flow ends, where a busy machine did not come to the point before."""


def timed(point: str, *arguments: str) -> tuple[int, list[Record], list[Record]]:
    """A flow to its stop, as late as one of its ends needs to come to such a record before. The stop is in the first
    record.
    """
    for times in LATER:
        with Receiver("tcp") as receiver:
            status, sent = send(receiver.port, "--message-bytes=1000", f"--stop-ns={times * 10**9}", *arguments)
            if not any(record["record"] == "connected" for record in sent):
                receiver.stop()
            got_status, got = receiver.wait()
        if any(record["record"] == point for record in (*sent, *got)):
            break
    assert (status, got_status) == (0, 0)
    return times * 10**9, sent, got


@pytest.mark.parametrize("protocol", ["tcp", "mptcp"])
@pytest.mark.parametrize(
    ("message", "total"), [(1, 1), (1460, 1_000_001), (16_777_216, 20_000_000), (300_000, 40_000_000)]
)
def test_every_byte_arrives_once(protocol: str, message: int, total: int) -> None:
    with Receiver(protocol) as receiver:
        status, sent = send(receiver.port, f"--message-bytes={message}", f"--total-bytes={total}", protocol=protocol)
        got_status, got = receiver.wait()
    assert (status, got_status) == (0, 0)
    summary, there = summary_of(sent), summary_of(got)
    assert (summary["sent_bytes"], summary["reason"], summary["status"]) == (total, "total", 0)
    assert summary["messages"] == -(-total // message)
    assert (there["unique_bytes"], there["corrupt_bytes"], there["reason"]) == (total, 0, "closed")
    assert there["first_t_ns"] <= there["last_t_ns"]
    assert [record["record"] for record in got] == [
        "options", "listening", "connected", "in_force", "first_byte", "summary",
    ]  # fmt: skip


@pytest.mark.parametrize(("message", "total"), [(7, 100_003), (2048, 3_000_001), (300_000, 4_000_000)])
def test_every_byte_arrives_once_also_in_separate_sends(message: int, total: int) -> None:
    """Through a small buffer, so that the kernel takes some messages in parts."""
    with Receiver("tcp") as receiver:
        arguments = [f"--message-bytes={message}", f"--total-bytes={total}", "--sndbuf-bytes=5000", "--separate-sends"]
        status, sent = send(receiver.port, *arguments)
        got_status, got = receiver.wait()
    assert (status, got_status) == (0, 0)
    assert (summary_of(sent)["sent_bytes"], summary_of(sent)["messages"]) == (total, -(-total // message))
    assert (summary_of(got)["unique_bytes"], summary_of(got)["corrupt_bytes"]) == (total, 0)


def test_a_timed_flow_ends_at_stop_by_an_abort() -> None:
    stop_ns, sent, got = timed("first_byte", "--start-ns=20000000")
    start = next(record for record in sent if record["record"] == "start")
    assert 0 <= start["late_ns"] < stop_ns
    assert start["t_ns"] - start["late_ns"] == start["t0_monotonic_ns"] + 20_000_000 + 1_000
    assert summary_of(sent)["reason"] == "stop"
    assert summary_of(sent)["t_ns"] >= start["t0_monotonic_ns"] + stop_ns
    assert summary_of(got)["reason"] == "peer_aborted"
    assert 0 < summary_of(got)["unique_bytes"] <= summary_of(sent)["sent_bytes"]


def ends_with(sender: subprocess.Popen[str], receiver: Receiver) -> str:
    """Stop the receiver when the sender ends; what that printed."""
    sent, _ = sender.communicate(timeout=300)
    receiver.stop()
    return sent


@pytest.mark.parametrize("protocol", ["tcp", "mptcp"])
@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGHUP])
def test_a_sender_connects_again_to_a_receiver_that_was_down(protocol: str, how: signal.Signals) -> None:
    command = [str(sanitised() / "sender"), "--protocol", protocol, "--to", "127.0.0.1", "--message-bytes=1000"]
    command += ["--interval-ns=1000000", "--reconnect-ns=20000000"]
    for times in LATER:
        with Receiver(protocol, "--again") as receiver, ThreadPoolExecutor(1) as beside:
            port, stop = f"--port={receiver.port}", f"--stop-ns={times * 2_500_000_000}"
            sender = subprocess.Popen([*command, port, stop], stdout=subprocess.PIPE, text=True)
            ended = beside.submit(ends_with, sender, receiver)
            again = receiver.comes_to("first_byte")
            receiver.process.send_signal(how)
            again = again and receiver.comes_to("down")
            receiver.process.send_signal(signal.SIGUSR2)
            again = again and receiver.comes_to("connected")
            sent = ended.result()
            status, got = receiver.wait()
        if again:
            break
    summary, there, names = summary_of(records(sent)), summary_of(got), [each["record"] for each in got]
    assert (sender.returncode, status, summary["reason"], there["corrupt_bytes"]) == (0, 0, "stop", 0)
    assert names[2:-1] == ["connected", "in_force", "first_byte", "down", "listening", "connected", "in_force"]
    lost = [record["reason"] for record in records(sent) if record["record"] == "lost"]
    assert lost[0] in ("peer_aborted", "peer_closed") and set(lost[1:]) <= {"failed"}  # refused while it is down
    first = next(record["sent_bytes"] for record in records(sent) if record["record"] == "lost")
    assert first < there["unique_bytes"] + 300_000 and first < summary["sent_bytes"]
    assert there["unique_bytes"] <= summary["sent_bytes"]


def test_a_new_connection_takes_the_place_of_the_one_there_is() -> None:
    with Receiver("tcp", "--again") as receiver, socket.create_connection(("127.0.0.1", receiver.port)) as old:
        old.sendall(flow_pattern(0, 5000))
        receiver.until("first_byte")
        arguments = ["--message-bytes=1000", "--total-bytes=7000", f"--local-port={free_port()}"]
        status, sent = send(receiver.port, *arguments)
        receiver.stop()
        got_status, got = receiver.wait()
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    assert (status, got_status, summary_of(sent)["reason"], summary_of(got)["unique_bytes"]) == (0, 0, "total", 12000)


def test_samples_come_on_their_grid() -> None:
    _, sent, _ = timed("sample", "--sample-interval-ns=10000000")
    origin = next(record for record in sent if record["record"] == "start")["t0_monotonic_ns"] + 1000
    samples = [record for record in sent if record["record"] == "sample"]
    assert samples
    for sample in samples:
        (path,) = sample["paths"]
        assert path["address"] == "127.0.0.1"
        assert path["cwnd_bytes"] == path["tcp_info"]["snd_cwnd_packets"] * path["tcp_info"]["snd_mss_bytes"]
        assert path["srtt_ns"] == path["tcp_info"]["rtt_us"] * 1000
    ticks = [(sample["t_ns"] - origin) // 10_000_000 for sample in samples]
    assert ticks == sorted(set(ticks))


def raw_sender(receiver: Receiver, payload: bytes, *, reset: bool = False) -> None:
    """A peer that sends what it likes."""
    with socket.create_connection(("127.0.0.1", receiver.port)) as peer:
        peer.sendall(payload)
        if reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def refused(got: list[Record]) -> list[Record]:
    """Who was turned away."""
    return [record for record in got if record["record"] == "refused"]


def stranger(receiver: Receiver, payload: bytes = b"", host: str = "127.0.0.1") -> None:
    """Somebody who says something; may be reset before, while or after doing so."""
    with (
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
        socket.create_connection((host, receiver.port), timeout=10) as peer,
    ):
        peer.sendall(payload)
        peer.recv(1)


@pytest.mark.parametrize("protocol", ["tcp", "mptcp"])
def test_a_stranger_is_refused_and_the_peer_is_not(protocol: str) -> None:
    """Two who are not the peer come first, one says something; neither delays nor harms the flow."""
    with Receiver(protocol, "--peer", "127.0.0.9", "--peer", "127.0.0.8") as receiver:
        stranger(receiver)
        stranger(receiver, flow_pattern(0, 5000))
        status, _ = send(
            receiver.port, "--message-bytes=1000", "--total-bytes=100000", "--bind=127.0.0.9", protocol=protocol
        )
        got_status, got = receiver.wait()
    assert (status, got_status) == (0, 0)
    assert [record["peer"] for record in refused(got)] == [["127.0.0.1"], ["127.0.0.1"]]
    assert (summary_of(got)["unique_bytes"], summary_of(got)["refused"]) == (100_000, 2)
    assert summary_of(got)["corrupt_bytes"] == 0


def test_a_stranger_over_ipv6_is_refused_and_a_mapped_address_is_known() -> None:
    """A receiver on any IPv6 address sees an IPv4 peer as ::ffff:127.0.0.1."""
    with Receiver("tcp", "--peer", "127.0.0.1", host="::") as receiver:
        stranger(receiver, host="::1")
        status, _ = send(receiver.port, "--message-bytes=1000", "--total-bytes=1000")
        got_status, got = receiver.wait()
    assert (status, got_status, len(refused(got))) == (0, 0, 1)
    assert refused(got)[0]["peer"] == ["::1"]


def test_a_stranger_is_reset_at_once() -> None:
    with Receiver("tcp", "--peer", "127.0.0.9") as receiver:
        with socket.create_connection(("127.0.0.1", receiver.port)) as peer, pytest.raises(ConnectionResetError):
            peer.settimeout(10)
            peer.recv(1)
        receiver.stop()
        status, got = receiver.wait()
    assert (status, summary_of(got)["reason"], summary_of(got)["refused"]) == (0, "terminated", 1)


def test_many_strangers_are_reported_sixteen_times() -> None:
    with Receiver("tcp", "--peer", "127.0.0.9") as receiver:
        for _ in range(100):
            stranger(receiver)
        status, _ = send(receiver.port, "--message-bytes=10", "--total-bytes=10", "--bind=127.0.0.9")
        got_status, got = receiver.wait()
    assert (status, got_status) == (0, 0)
    assert (len(refused(got)), summary_of(got)["refused"]) == (16, 100)


TOKEN = 0x0123456789ABCDEF


def test_a_flow_with_its_token_arrives() -> None:
    with Receiver("tcp", f"--token={TOKEN}") as receiver:
        status, _ = send(receiver.port, "--message-bytes=1460", "--total-bytes=1000001", f"--token={TOKEN}")
        got_status, got = receiver.wait()
    assert (status, got_status) == (0, 0)
    assert (summary_of(got)["unique_bytes"], summary_of(got)["corrupt_bytes"]) == (1_000_001, 0)


@pytest.mark.parametrize(
    "payload",
    [flow_pattern(0, 50_000), with_token(flow_pattern(0, 50_000), TOKEN + 1), b"GET / HTTP/1.1\r\n\r\n", b"\0", b"x"],
    ids=["without", "another", "a browser", "one byte of zero", "one byte"],
)
def test_payload_without_the_token_is_refused_at_its_first_bytes(payload: bytes) -> None:
    with Receiver("tcp", f"--token={TOKEN}") as receiver:
        stranger(receiver, payload)
        status, got = receiver.wait()
    assert status == 1
    error = next(record for record in got if record["record"] == "error")
    assert (error["what"], error["message"]) == ("token", "token: the payload begins as none of this run does: refused")
    assert (summary_of(got)["unique_bytes"], summary_of(got)["reason"]) == (0, "failed")


@pytest.mark.parametrize("place", [0, 5, 255, 256, 70_000])
def test_a_wrong_byte_fails_the_run_and_is_reported(place: int) -> None:
    payload = bytearray(flow_pattern(0, 80_000))
    payload[place] ^= 0x10
    with Receiver("tcp") as receiver:
        raw_sender(receiver, bytes(payload))
        status, got = receiver.wait()
    assert status == 1
    (corrupt,) = [record for record in got if record["record"] == "corrupt"]
    assert (corrupt["offset"], corrupt["bytes"]) == (place, 1)
    assert corrupt["found"] ^ corrupt["expected"] == 0x10
    assert summary_of(got)["corrupt_bytes"] == 1


def test_a_lost_block_is_not_overlooked() -> None:
    whole = flow_pattern(0, 30_000)
    with Receiver("tcp") as receiver:
        raw_sender(receiver, whole[:5120] + whole[5120 + 256 :])
        status, got = receiver.wait()
    assert status == 1
    assert summary_of(got)["corrupt_bytes"] > 90


def test_garbage_is_reported_a_bounded_number_of_times() -> None:
    with Receiver("tcp") as receiver:
        raw_sender(receiver, b"\xee" * 30_000_000)
        status, got = receiver.wait()
    assert status == 1
    assert 0 < len([record for record in got if record["record"] == "corrupt"]) <= 16
    assert summary_of(got)["unique_bytes"] == 30_000_000


def test_bytes_before_a_reset_count() -> None:
    with Receiver("tcp") as receiver:
        raw_sender(receiver, flow_pattern(0, 50_000), reset=True)
        status, got = receiver.wait()
    assert status == 0
    assert (summary_of(got)["reason"], summary_of(got)["unique_bytes"]) == ("peer_aborted", 50_000)


def test_sigterm_ends_a_receiver_with_its_summary() -> None:
    with Receiver("tcp") as receiver:
        receiver.stop()
        status, got = receiver.wait()
    assert status == 0
    assert summary_of(got)["reason"] == "terminated"
    assert summary_of(got)["first_t_ns"] is None


def test_sigterm_in_the_middle_of_a_flow() -> None:
    with Receiver("tcp") as receiver, socket.create_connection(("127.0.0.1", receiver.port)) as peer:
        peer.sendall(flow_pattern(0, 1000))
        assert receiver.process.stdout is not None
        while '"first_byte"' not in receiver.lines[-1]:
            receiver.lines.append(receiver.process.stdout.readline())
        receiver.stop()
        status, got = receiver.wait()
    assert status == 0
    assert (summary_of(got)["reason"], summary_of(got)["unique_bytes"]) == ("terminated", 1000)


def test_nobody_connects_within_the_deadline() -> None:
    with Receiver("tcp", "--connect-deadline-ns", "30000000") as receiver:
        status, got = receiver.wait()
    assert status == 1
    error = next(record for record in got if record["record"] == "error")
    assert error["errno"] == errno.ETIMEDOUT
    assert "--connect-deadline-ns" in error["message"]


def test_a_receiver_gives_up_when_nothing_comes() -> None:
    for times in LATER:
        with (
            Receiver("tcp", "--stall-deadline-ns", f"{times * 30_000_000}") as receiver,
            contextlib.suppress(ConnectionError),  # given up before anything could be sent
            socket.create_connection(("127.0.0.1", receiver.port)) as peer,
        ):
            peer.sendall(flow_pattern(0, 10))
            status, got = receiver.wait()
            if summary_of(got)["unique_bytes"]:
                break
    assert status == 1
    assert "--stall-deadline-ns" in next(record for record in got if record["record"] == "error")["message"]
    assert summary_of(got)["unique_bytes"] == 10


def test_a_sender_gives_up_when_nothing_is_acknowledged() -> None:
    """A peer that never reads: its window closes, and nothing moves any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        status, sent = send(port, "--message-bytes=1000", "--total-bytes=100000000", "--stall-deadline-ns=200000000")
    assert status == 1
    assert summary_of(sent)["reason"] == "stalled"


def test_a_sender_whose_peer_leaves_early_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [str(sanitised() / "sender"), "--protocol=tcp", "--to=127.0.0.1", "--message-bytes=1000"]
        process = subprocess.Popen(
            [*command, f"--port={server.getsockname()[1]}", "--total-bytes=100000000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        server.accept()[0].close()
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert summary_of(records(out))["reason"] in ("peer_closed", "peer_aborted")


def test_a_sender_does_not_talk_to_just_anybody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [str(sanitised() / "sender"), "--protocol=tcp", "--to=127.0.0.1", "--message-bytes=1000"]
        process = subprocess.Popen(
            [*command, f"--port={server.getsockname()[1]}", "--stop-ns=200000000000"], stdout=subprocess.PIPE, text=True
        )
        with server.accept()[0] as peer:
            peer.sendall(b"220 welcome")
            out, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "no receiver" in next(r for r in records(out) if r["record"] == "error")["message"]


def test_ipv6() -> None:
    with Receiver("tcp", host="::1") as receiver:
        status, sent = send(receiver.port, "--bind=::1", "--message-bytes=9", "--total-bytes=1000", host="::1")
        _, got = receiver.wait()
    assert status == 0
    assert next(r for r in sent if r["record"] == "connected")["peer"] == ["::1"]
    assert summary_of(got)["unique_bytes"] == 1000


def test_connection_refused_is_reported() -> None:
    status, sent = send(free_port(), "--message-bytes=1000", "--total-bytes=1000")
    assert status == 1
    error = next(record for record in sent if record["record"] == "error")
    assert (error["what"], error["errno"]) == ("connect", errno.ECONNREFUSED)
    assert (summary_of(sent)["reason"], summary_of(sent)["status"]) == ("failed", 1)


def test_an_occupied_port_is_reported() -> None:
    with Receiver("tcp") as receiver:
        done = run("receiver", "--protocol", "tcp", "--bind", "127.0.0.1", "--port", str(receiver.port))
    assert done.returncode == 1
    assert next(r for r in records(done.stdout) if r["record"] == "error")["errno"] == errno.EADDRINUSE


def test_a_congestion_control_the_kernel_lacks_is_77() -> None:
    done = run("receiver", "--protocol=tcp", "--port=1", "--bind=127.0.0.1", "--congestion=nosuch")
    assert done.returncode == 77
    assert "nosuch" in next(r for r in records(done.stdout) if r["record"] == "error")["message"]


def test_sctp_without_sctp_in_the_kernel_is_77() -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).close()
    except OSError as error:
        assert error.errno in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
    else:
        pytest.skip("this kernel has SCTP")
    status, sent = send(free_port(), "--message-bytes=1000", "--total-bytes=1000", protocol="sctp")
    assert status == 77
    assert (summary_of(sent)["status"], summary_of(sent)["kernel"]) == (77, {})


def test_a_full_disk_fails_the_run() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(sanitised() / "receiver"), "--protocol=tcp", "--port=1", "--connect-deadline-ns=1"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left" in done.stderr
