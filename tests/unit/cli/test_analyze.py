"""`netwarp analyze CAPTURE...`: its output, its files and its refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.cli.analyze import JSON_INDENTED
from netwarp.cli.stop_reading import stop_reading_on_interrupt, waiting_bytes
from netwarp.engine.captures import analyze_captures
from support.captures import DATA, T, pcap, recorded, segment, tcp_transfer
from support.checkout import ROOT
from support.run_files import rows


def run(*arguments: object, columns: int = 100) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "netwarp", "analyze", *(str(one) for one in arguments)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": str(columns)},
    )  # fmt: skip


def capinfos(path: Path) -> dict[str, float]:
    """Packets, bytes and seconds as capinfos counts them."""
    done = subprocess.run(["capinfos", "-M", "-T", "-r", "-c", "-d", "-u", str(path)], check=True, capture_output=True,
                          text=True)  # fmt: skip
    _, packets, size, seconds = done.stdout.strip().split("\t")
    return {"packets": int(packets), "frame_bytes": int(size), "duration_s": float(seconds)}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.zst")), ids=lambda path: path.name)
def test_totals_are_capinfos(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (file,) = found["files"]
    oracle = capinfos(path)
    assert {name: file[name] for name in ("packets", "frame_bytes")} == {
        name: oracle[name] for name in ("packets", "frame_bytes")
    }
    assert file["duration_s"] == pytest.approx(oracle["duration_s"], abs=1e-6)
    for flow in file["flows"]:
        assert flow["ip_bytes"] == sum(one["ip_bytes"] for one in flow["directions"])
        for direction, counts in enumerate(flow["directions"]):
            assert counts["packets"] == sum(path["packets"][direction] for path in flow["paths"])


def test_ctrl_c_on_a_pipe_prints_the_summary_of_what_was_read(tmp_path: Path) -> None:
    """The status says so: 130. The pipe's writer is still there."""
    fifo = tmp_path / "live"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "netwarp", "analyze", str(fifo), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    with fifo.open("wb", buffering=0) as pipe:  # opens when netwarp does: it waits for Ctrl-C by then
        pipe.write(pcap(tcp_transfer()))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert json.loads(out)["files"][0]["packets"] == len(tcp_transfer())
    assert "stopped by Ctrl-C" in errors and "Traceback" not in errors


def test_ctrl_c_before_anything_came(tmp_path: Path) -> None:
    fifo = tmp_path / "live"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "netwarp", "analyze", str(fifo)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    with fifo.open("wb"):
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert not out
    assert errors.startswith("netwarp: stopped by Ctrl-C before there was anything to analyse")


def test_a_second_ctrl_c_while_the_reader_takes_the_rest_along(tmp_path: Path) -> None:
    """Python runs a handler once for both: they came during one call of the reader."""
    fifo = tmp_path / "live"
    os.mkfifo(fifo)
    done = threading.Event()

    def interrupt_twice(fd: int) -> None:
        with fifo.open("wb", buffering=0) as pipe:
            pipe.write(pcap(tcp_transfer()))
            for number in (1, 2):
                os.kill(os.getpid(), signal.SIGINT)
                while waiting_bytes(fd) < number:
                    pass
            done.wait()

    with pytest.raises(KeyboardInterrupt), stop_reading_on_interrupt() as stop:
        thread = threading.Thread(target=interrupt_twice, args=(stop.fd,))
        thread.start()
        try:
            analyze_captures([fifo], stop_fd=stop.fd)
        finally:
            done.set()
            thread.join()


def test_of_many_connections_each_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same object as the library's; the largest connections are indented, the others a line each."""
    connections = 1200  # more than are made text at once
    frame = bytearray(segment(1, flags="S"))
    packets = []
    for number in range(connections):
        frame[34:36] = (2000 + number).to_bytes(2, "big")
        packets.append((T + number, bytes(frame)))
    path = tmp_path / "syns.pcap"
    path.write_bytes(pcap(packets + tcp_transfer()))
    assert main(["analyze", str(path), "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out) == json.loads(json.dumps(analyze_captures([path]).as_json()))
    lines = out.splitlines()
    assert lines.count("        {") == JSON_INDENTED
    assert sum(line.startswith('        {"flow":') for line in lines) == connections + 1 - JSON_INDENTED


def test_flow_takes_one_capture(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in recorded("sctp", "a", ["p1", "p2"])]
    assert main(["analyze", "--flow", "1", *files]) == 2
    assert "--merge" in capsys.readouterr().err
    assert main(["analyze", "--merge", "--flow", "1", "--json", *files]) == 0
    assert [flow["flow"] for flow in json.loads(capsys.readouterr().out)["files"][0]["flows"]] == [1]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_wider_than_asked_and_no_colour_is_piped(columns: int) -> None:
    done = run(*recorded("tcp", "a", ["p1"]), *recorded("bundle", "a", ["p1"]), columns=columns)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= columns
    assert "10.1.1.1:47503" in done.stdout
    assert not any(line != line.rstrip() for line in done.stdout.splitlines())


def test_interfaces_of_one_node_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--merge", "--json", *map(str, recorded("sctp", "a", ["p1", "p2"]))]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (flow,) = file["flows"]
    assert len(file["files"]) == len(flow["paths"]) == 2
    assert flow["directions"][0]["new_bytes"] == 1_201_200


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    files = [*recorded("tcp", "a", ["p1"]), *recorded("tcp", "b", ["p1"])]
    assert main(["analyze", *map(str, files), "--join", "--csv", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    flows = rows(out / "flows.csv")
    assert [row["file"] for row in flows] == ["tcp-a-p1", "tcp-a-p1", "tcp-b-p1", "tcp-b-p1"]
    assert int(flows[0]["new_bytes"]) == found["files"][0]["flows"][0]["directions"][0]["new_bytes"] == 507_904
    again = rows(out / "retransmissions.csv")
    sent = [row for row in again if row["file"] == "tcp-a-p1"]
    assert len(sent) == found["files"][0]["flows"][0]["directions"][0]["retransmitted_packets"] > 0
    hops = rows(out / "hops.csv")
    packets = rows(out / "hop_packets.csv")
    for hop in hops:
        mine = [row for row in packets if row["hop"] == hop["hop"]]
        assert len(mine) == int(hop["packets"])
        assert sum(row["one_way_delay_s"] == "" for row in mine) == int(hop["lost_packets"])
    goodput = [float(row["value"]) for row in rows(out / "series.csv")
               if row["series"] == "goodput_forward_bit_s" and row["file"] == "tcp-a-p1"]  # fmt: skip
    width = found["files"][0]["bin_s"]
    assert sum(goodput) * width / 8 == pytest.approx(507_904)
    # without --join the tables of hops are of other captures: they go
    assert main(["analyze", str(files[0]), "--csv", str(out)]) == 0
    assert not (out / "hops.csv").exists()


def test_tables_do_not_overwrite_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(recorded("tcp", "a", ["p1"])[0])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "flows.csv").write_text("my own")
    assert main(["analyze", path, "--csv", str(tmp_path / "mine")]) == 1
    assert "did not write (flows.csv)" in capsys.readouterr().err
    assert (tmp_path / "mine" / "flows.csv").read_text() == "my own"
    assert main(["analyze", path, "--csv", str(tmp_path / "ours")]) == 0
    (tmp_path / "ours" / "notes.txt").write_text("mine, among theirs")
    assert main(["analyze", path, "--csv", str(tmp_path / "ours")]) == 1
    assert "(notes.txt)" in capsys.readouterr().err
    assert main(["analyze", path, "--csv", str(tmp_path / "mine" / "flows.csv")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_files_that_are_no_capture_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, only words, but long enough for a header")
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path in (text, empty, tmp_path / "missing.pcap", tmp_path / "folder"):
        assert main(["analyze", str(path)]) == 1
        error = capsys.readouterr().err
        assert str(path) in error, error
        assert "Traceback" not in error


def test_a_capture_without_packets_and_one_that_was_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.pcap"
    bare.write_bytes(pcap([]))
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(pcap(tcp_transfer())[:-1])
    assert main(["analyze", str(bare), str(cut)]) == 0
    out = capsys.readouterr().out
    assert "no packet in it" in out
    assert "cut off" in out


def test_a_large_capture_is_read_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers that do not need every row are the same, whether the rows are in memory or not."""
    path = tmp_path / "x.pcap"
    start = 1_700_000_000_000_000_000
    path.write_bytes(pcap([(start + i * 1_000_000, segment(1000 + 100 * (i - i // 50), 100)) for i in range(1000)]))
    assert main(["analyze", str(path), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)["files"][0]
    monkeypatch.setattr("netwarp.captures.summary.PACKETS_IN_MEMORY", 128)
    assert main(["analyze", str(path), "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["files"][0]
    assert parts["notes"] == ["more than 128 packets: totals and binned series only (--full: everything)"]
    assert parts["flows"][0]["directions"] == whole["flows"][0]["directions"]
    assert parts["findings"] == whole["findings"]
    assert whole["flows"][0]["directions"][0]["retransmitted_packets"] == 19
    assert main(["analyze", str(path), "--json", "--full"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["notes"] == []


def test_mptcp_is_one_connection_of_subflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in recorded("mptcp", "a", ["p1", "p2"])]
    assert main(["analyze", "--merge", "--json", *files, "--csv", str(tmp_path / "out")]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (connection,) = file["mptcp"]
    assert sorted(connection["flows"]) == [1, 2]
    assert connection["totals"]["new_bytes"] == 507_904
    assert sum(flow["directions"][0]["new_bytes"] for flow in file["flows"]) == 507_904
    assert {int(row["flow"]) for row in rows(tmp_path / "out" / "mptcp_subflows.csv")} == {1, 2}
    assert main(["analyze", "--merge", *files]) == 0
    out = capsys.readouterr().out
    assert "MPTCP connection (version 1) of flows 1 and 2" in out


def test_arguments_that_contradict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(recorded("tcp", "a", ["p1"])[0])
    assert main(["analyze", "--one-clock", path]) == 2
    assert "--join" in capsys.readouterr().err
    assert main(["analyze", "--join", path]) == 1
    assert "two captures" in capsys.readouterr().err


def test_a_page_replaces_only_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The capture itself, say, where a file name was forgotten."""
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(tcp_transfer()))
    assert main(["analyze", str(path), "--html", str(path)]) == 1
    assert "no HTML page" in capsys.readouterr().err
    assert path.read_bytes() == pcap(tcp_transfer())
    assert main(["analyze", str(path), "--html", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    for _ in range(2):  # a page may be written anew
        assert main(["analyze", str(path), "--html", str(tmp_path / "x.html")]) == 0


def test_a_capture_out_of_order_lasts_as_long_as_capinfos_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.pcap"
    first, *rest = tcp_transfer()
    for packets in ([*rest, first], [*reversed(rest), first], [rest[-1], first, *rest[:-1]]):
        path.write_bytes(pcap(packets))
        assert main(["analyze", str(path), "--json"]) == 0
        (file,) = json.loads(capsys.readouterr().out)["files"]
        assert file["duration_s"] == pytest.approx(capinfos(path)["duration_s"], abs=1e-9) == 0.009
        assert file["backwards"] > 0
        assert all(flow["duration_s"] >= 0 for flow in file["flows"])


def test_one_file_merged_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(recorded("tcp", "a", ["p1"])[0])
    assert main(["analyze", "--merge", path, path]) == 1
    assert "given twice" in capsys.readouterr().err


def piped(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "netwarp", "analyze", *arguments], input=data, cwd=ROOT,
                          capture_output=True)  # fmt: skip


def test_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What takes more than one reading says so instead of calling the pipe empty."""
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(tcp_transfer()))
    data = path.read_bytes()
    found = json.loads(piped(data, "-", "--json").stdout)
    assert main(["analyze", str(path), "--json"]) == 0
    assert found["files"][0]["flows"] == json.loads(capsys.readouterr().out)["files"][0]["flows"]
    refused = piped(data, "--join", "-", str(path))
    assert refused.returncode == 1
    assert b"twice" in refused.stderr


def test_unknown_causes_of_retransmissions_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.pcap"
    path.write_bytes(pcap([(time, packet[:54], len(packet)) for time, packet in tcp_transfer()]))
    assert main(["analyze", str(path)]) == 0
    assert "why is not known here" in capsys.readouterr().out
    assert main(["analyze", str(recorded("tcp", "a", ["p1"])[0])]) == 0
    assert "why is not known here" not in capsys.readouterr().out


def test_a_file_that_cannot_be_read_leaves_the_others_their_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.pcap").write_bytes(pcap(tcp_transfer()))
    (tmp_path / "bad.pcap").write_bytes(b"no capture at all, whatever its name says")
    (tmp_path / "other.pcap").write_bytes(pcap([(1, b"x" * 60)], link_type=147))
    assert main(["analyze", str(tmp_path), str(tmp_path / "gone.pcap"), "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [Path(file["files"][0]).name for file in found["files"]] == ["good.pcap"]
    reasons = ("bad.pcap: not a pcap", "other.pcap: link type 147", "gone.pcap: No such file")
    for reason, line, said in zip(reasons, err.splitlines(), found["refused"], strict=True):
        assert reason in line
        assert reason in said
    # nothing can be read: the reasons alone, and of one file as before
    assert main(["analyze", str(tmp_path / "bad.pcap"), str(tmp_path / "gone.pcap")]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "bad.pcap" in err
    assert "gone.pcap" in err
    assert main(["analyze", "--merge", str(tmp_path)]) == 1
    assert not capsys.readouterr().out
