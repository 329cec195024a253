"""The sender for a phone: an arm64 program whose packets are those of this machine's, under qemu in a guest."""

from __future__ import annotations

import fcntl
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from netwarp.core.executables import find_executable
from netwarp.core.types import Outcome
from support.cell_init_kit import read_pcap
from support.chain_kit import Checkout, copy_checkout
from support.checkout import BUILD, ROOT
from support.run_files import RunFiles, load_run

TOOLS = ("aarch64-linux-gnu-gcc", "qemu-aarch64-static")
MISSING = [name for name in TOOLS if find_executable(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no {' and no '.join(MISSING)}: `make android` installs them")
SPEC = ROOT / "experiments" / "android" / "spec.toml"
AARCH64 = 183
"""EM_AARCH64 of elf(5)."""
PT_INTERP = 3


@pytest.fixture(scope="session")
def arm64() -> Path:
    """build/android/bin, made up to date."""
    (BUILD / "android").mkdir(parents=True, exist_ok=True)
    with open(BUILD / "android" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        link = BUILD / "android" / "kernel-headers"
        made = [sys.executable, "-m", "netwarp.cli.kernel", "headers", "--arch", "arm64", "--link", str(link)]
        subprocess.run(made, cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["make", "-s", "-C", str(ROOT / "apps"), "android"], check=True, capture_output=True)
    return BUILD / "android" / "bin"


@pytest.fixture(scope="session")
def phone(arm64: Path, kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with these programs in it."""
    return copy_checkout(tmp_path_factory.mktemp("phone"), kernel)


def run(checkout: Checkout, place: Path, *arguments: str) -> RunFiles:
    """A small part of experiments/android."""
    done = checkout.run(
        "run", SPEC, "--set", "transfer=300 kB", *arguments, "--no-report", "--jobs", "1", "--out", place / "run",
        cwd=place,
    )  # fmt: skip
    assert done.status in (0, 1), done
    return load_run(place / "run")


@pytest.mark.parametrize("name", ["sender", "receiver"])
def test_they_are_static_programs_for_arm64(arm64: Path, name: str) -> None:
    raw = (arm64 / name).read_bytes()
    assert raw[:6] == b"\x7fELF\x02\x01"
    assert struct.unpack_from("<H", raw, 18) == (AARCH64,)
    (table,) = struct.unpack_from("<Q", raw, 32)
    size, count = struct.unpack_from("<HH", raw, 54)
    kinds = {struct.unpack_from("<I", raw, table + size * number)[0] for number in range(count)}
    assert kinds and PT_INTERP not in kinds, "no loader, no libc of the phone's is asked for"


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        ("sender", ["--to", "10.0.1.1", "--message-bytes", "10", "--total-bytes", "100"], "--bare: has to be given"),
        ("receiver", ["--peer", "10.0.1.1"], "--peer: needs libsctp"),
    ],
)
def test_without_libsctp_they_refuse_what_needs_it(arm64: Path, program: str, arguments: list[str], said: str) -> None:
    command = ["qemu-aarch64-static", str(arm64 / program), "--protocol", "sctp", "--port", "5001", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2, done
    assert said in done.stderr and "built without" in done.stderr


def test_sctp_from_arm64_arrives_byte_for_byte(phone: Checkout, tmp_path: Path) -> None:
    made = run(phone, tmp_path, "--where", "protocol=sctp", "--where", "loss=1 %", "--repetitions", "1")
    cell = made.completed().cell(build="arm64")
    summary = cell.summary("upload.receiver")
    assert (summary["unique_bytes"], summary["corrupt_bytes"], summary["gap_bytes"]) == (300_000, 0, 0)
    assert summary["status"] == 0
    used = cell.environment["programs"]
    assert used["qemu-aarch64-static"]["version"].startswith("qemu-aarch64 version")
    assert set(used["sender-arm64"]) == {"sha256"}
    # the emulator and the other machine's program are on the wire what this machine's is: to some clock reads
    packets = {}
    for name in ("arm64", "x86-64"):
        (capture,) = made.cell(build=name).captures("phone")
        plain = tmp_path / f"{name}.pcap"
        with open(capture, "rb") as source, open(plain, "wb") as sink:
            zstandard.ZstdDecompressor().copy_stream(source, sink)
        packets[name] = read_pcap(plain)
    ours, theirs = packets["x86-64"], packets["arm64"]
    assert [packet.length for packet in theirs] == [packet.length for packet in ours]
    assert max(abs(a.t_ns - b.t_ns) for a, b in zip(ours, theirs, strict=True)) < 50_000


def test_tcp_from_arm64_arrives_byte_for_byte(phone: Checkout, tmp_path: Path) -> None:
    made = run(phone, tmp_path, "--where", "protocol=tcp", "--where", "build=arm64", "--where", "loss=0 %")
    summary = made.completed().cell().summary("upload.receiver")
    assert (summary["unique_bytes"], summary["corrupt_bytes"]) == (300_000, 0)


def test_a_socket_option_that_qemu_does_not_pass_on_is_reported(phone: Checkout, tmp_path: Path) -> None:
    made = run(
        phone, tmp_path, "--where", "protocol=sctp", "--where", "build=arm64", "--where", "loss=0 %",
        "--set", "flow.upload.sender.rto_min=200 ms",
    )  # fmt: skip
    outcome = made.cell().outcome
    assert outcome.outcome is Outcome.UNSUPPORTED
    assert "SCTP_RTOINFO: Protocol not available" in outcome.reason


STRUCTS = """\
#include <linux/mptcp.h>
#include <netinet/in.h>
#include <linux/sctp.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdio.h>
#define SIZE(type) printf(#type " %zu\\n", sizeof(struct type))
#define AT(type, member) printf(#type "." #member " %zu\\n", offsetof(struct type, member))
int main(void)
{
	SIZE(sctp_initmsg); SIZE(sctp_sndinfo); SIZE(sctp_rcvinfo); SIZE(sctp_prinfo); SIZE(sctp_event);
	SIZE(sctp_rtoinfo); SIZE(sctp_assocparams); SIZE(sctp_sack_info); SIZE(sctp_assoc_value);
	SIZE(sctp_stream_value); SIZE(sctp_prim); SIZE(sctp_paddrparams); SIZE(sctp_paddrthlds_v2);
	SIZE(sctp_paddrinfo); SIZE(sctp_status); SIZE(sctp_assoc_stats); SIZE(sctp_getaddrs); SIZE(tcp_info);
	SIZE(mptcp_info); SIZE(mptcp_full_info);
	AT(sctp_paddrparams, spp_hbinterval); AT(sctp_paddrparams, spp_pathmtu); AT(sctp_paddrparams, spp_flags);
	AT(sctp_paddrthlds_v2, spt_pathmaxrxt); AT(sctp_paddrthlds_v2, spt_pathcpthld);
	AT(sctp_paddrinfo, spinfo_state); AT(sctp_paddrinfo, spinfo_mtu); AT(sctp_prim, ssp_addr);
	AT(sctp_status, sstat_primary); AT(sctp_assoc_stats, sas_maxrto); AT(sctp_assoc_stats, sas_idupchunks);
	AT(sctp_event, se_on); AT(sctp_getaddrs, addrs); AT(tcp_info, tcpi_rcv_wnd);
	return 0;
}
"""
"""The bytes that the options hand to the kernel and get from it."""


def test_socket_option_structures_are_equal_on_both_machines(arm64: Path, tmp_path: Path) -> None:
    """The structures of the socket options are the same on both machines: what an option means here it means there."""
    (tmp_path / "structs.c").write_text(STRUCTS)
    said = {}
    for compiler, headers, runner in (
        ("cc", BUILD / "kernel-headers", []),
        ("aarch64-linux-gnu-gcc", BUILD / "android" / "kernel-headers", ["qemu-aarch64-static"]),
    ):
        program = tmp_path / compiler
        command = [compiler, "-static", "-isystem", str(headers), "-o", str(program), str(tmp_path / "structs.c")]
        subprocess.run(command, check=True)
        said[compiler] = subprocess.run([*runner, program], check=True, capture_output=True, text=True).stdout
    assert len(said["cc"].splitlines()) == STRUCTS.count("SIZE(") + STRUCTS.count("AT(") - 2
    assert said["cc"] == said["aarch64-linux-gnu-gcc"]
