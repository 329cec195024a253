"""The distribution's User-Mode-Linux kernel: the modules loaded, in their order, and the kernel's refusals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Cell
from netwarp.guestkernel import KernelBuild
from netwarp.guestkernel import packaged as packaged
from netwarp.sandbox import DistributionBackend
from netwarp.testbed.compile import Clock, compile_cell
from support.cells import two_path_cell

DEP = """\
kernel/net/sctp/sctp.ko: kernel/net/ipv6/ipv6.ko kernel/lib/crc.ko kernel/net/ipv4/udp_tunnel.ko
kernel/net/ipv6/ipv6.ko: kernel/lib/crc.ko
kernel/lib/crc.ko:
kernel/net/ipv4/udp_tunnel.ko:
kernel/net/ipv4/tcp_yeah.ko.xz: kernel/net/ipv4/tcp_vegas.ko.xz
kernel/net/ipv4/tcp_vegas.ko.xz:
kernel/drivers/net/veth.ko:
kernel/drivers/net/tun.ko:
kernel/drivers/s390/tcp_none.ko:
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "6.1.0").mkdir()
    (tmp_path / "6.1.0" / "modules.dep").write_text(DEP)
    return tmp_path


def test_dependencies_come_first_and_each_once(modules: Path) -> None:
    names = [path.name.partition(".")[0] for path in packaged.modules_of("6.1.0", modules)]
    assert sorted(names) == ["crc", "ipv6", "sctp", "tcp_vegas", "tcp_yeah", "udp_tunnel", "veth"]
    for first, second in (("crc", "ipv6"), ("ipv6", "sctp"), ("udp_tunnel", "sctp"), ("tcp_vegas", "tcp_yeah")):
        assert names.index(first) < names.index(second)


def test_modules_are_loaded_before_the_network_is_made() -> None:
    compiled = compile_cell(two_path_cell(), Clock(t0_after_ready_ns=10**9, modules=("/a/b.ko", "/a/c.ko")))
    verbs = [step.verb for step in compiled.steps]
    assert verbs.index("module") < verbs.index("ns")
    assert [step.command for step in compiled.steps if step.verb == "module"] == ["insmod /a/b.ko", "insmod /a/c.ko"]


def test_a_virtual_clock_shows_in_the_binary(tmp_path: Path) -> None:
    (tmp_path / "with").write_bytes(b"\x7fELF...time-travel=%s...")
    (tmp_path / "without").write_bytes(b"\x7fELF...")
    assert packaged.time_travels(tmp_path / "with")
    assert not packaged.time_travels(tmp_path / "without")


def cell_with(protocol: str, **options: object) -> Cell:
    flow = two_path_cell().flows[0]
    changed = msgspec.structs.replace(flow, protocol=protocol, sender_options=options)
    return two_path_cell(flows=(changed,))


def test_cells_that_need_missing_features_are_unsupported(
    modules: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packaged, "MODULES", modules)
    monkeypatch.setattr("netwarp.sandbox.virtual.modules_of", lambda release: ())
    kernel = KernelBuild("", tmp_path / "linux.uml", None, "6.1.0", "00", "package", packaged.KIND, "", "", "", "")
    backend = DistributionBackend(kernel, tmp_path)
    assert backend.name == "guest"
    assert "no MPTCP" in backend.refuses(cell_with("mptcp"))
    assert "no tracepoints" in backend.refuses(cell_with("sctp", tracepoints=True))
    assert "no stream scheduler wfq" in backend.refuses(cell_with("sctp", scheduler="wfq"))
    assert backend.refuses(cell_with("sctp", scheduler="rr")) == ""
    assert backend.refuses(cell_with("tcp")) == ""
