"""Sysctls that the kernel of the run does not have are errors of the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import GuestKernel
from netwarp.guestkernel import KernelBuild
from netwarp.plan import make_plan
from netwarp.plan.sysctls import KernelSysctls
from netwarp.sandbox import kernel_sysctls as sysctls
from netwarp.sandbox.virtual import GuestBackend
from support.specs import BASE, line_of, replaced, spec_of

KNOWN = KernelSysctls(
    "Linux 6.12",
    {
        "net.ipv4.tcp_sack": True,
        "net.ipv4.tcp_available_congestion_control": False,
        "net.ipv4.conf.all.rp_filter": True,
        "net.ipv4.conf.lo.rp_filter": True,
    },
)


def planned(text: str, known: KernelSysctls | None = KNOWN) -> list[str]:
    """[how often the kernel was asked for its sysctls, then one error per line]."""
    asked: list[int] = []

    def ask(kernel: GuestKernel | None) -> KernelSysctls | None:
        assert kernel is None
        asked.append(1)
        return known

    try:
        make_plan(spec_of(text), kernel=ask)
        found = []
    except SpecError as error:
        found = str(error).splitlines()
    return [str(len(asked)), *found]


def with_sysctl(name: str) -> str:
    return replaced("[node.b]\n", f'[node.b]\nsysctl = {{ "{name}" = "1" }}\n')


def test_an_unknown_sysctl_is_named_with_the_nearest() -> None:
    text = with_sysctl("net.ipv4.tcp_sak")
    _, found = planned(text)
    assert found.startswith(f'nowhere/spec.toml:{line_of(text, "sysctl")}: node.b.sysctl."net.ipv4.tcp_sak": ')
    assert 'Linux 6.12 has no sysctl "net.ipv4.tcp_sak", did you mean "net.ipv4.tcp_sack"?' in found


@pytest.mark.parametrize("name", ["net.ipv4.tcp_sack", "net.ipv4.conf.p1.rp_filter", "net.ipv4.conf.all.rp_filter"])
def test_sysctls_of_the_kernel_are_no_error(name: str) -> None:
    """Also those of the node's interfaces; an interface has the name of its link."""
    assert planned(with_sysctl(name)) == ["1"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("net.ipv4.conf.p2.rp_filter", 'did you mean "net.ipv4.conf.p1.rp_filter"?'),
        ("net.ipv4.tcp_available_congestion_control", "lets nobody write this one"),
        ("net.nothing.like.it", 'for example { "net.ipv4.tcp_sack" = "1" }'),
    ],
)
def test_other_links_and_what_can_only_be_read(name: str, says: str) -> None:
    _, found = planned(with_sysctl(name))
    assert says in found


def test_the_kernel_is_asked_once_and_only_if_there_is_something_to_ask() -> None:
    assert planned(BASE) == ["0"]
    assert planned(with_sysctl("net.ipv4.tcp_sak"), None) == ["1"]
    assert planned(with_sysctl("net.ipv4.tcp_sack") + '[factor.x]\nlevels = ["1", "2", "3"]\n') == ["1"]


def test_the_host_has_what_proc_sys_has() -> None:
    found = sysctls.host_sysctls()
    assert found.sysctls["net.ipv4.tcp_sack"] is True
    assert found.sysctls["net.ipv4.tcp_available_congestion_control"] is False
    assert "net.ipv4.conf.lo.rp_filter" in found.sysctls


def test_each_guest_kernel_is_asked_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache keeps the answer under the kernel's hash; a damaged answer is asked for again."""
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    asked: list[object] = []

    def ask(backend: object) -> str:
        asked.append(backend)
        return "644 ipv4/tcp_sack\n444 ipv4/tcp_available_congestion_control\n"

    monkeypatch.setattr(sysctls, "_ask", ask)
    kernel = KernelBuild(
        key="", binary=tmp_path / "linux", include=None, release="6.12.1", sha256="ab" * 32, source="", kind="",
        compiler="", recipe="", config_sha256="", built_at="",
    )  # fmt: skip
    backend = GuestBackend(tmp_path / "linux", tmp_path)
    first = sysctls.guest_sysctls(kernel, backend)
    assert first.sysctls == {"net.ipv4.tcp_sack": True, "net.ipv4.tcp_available_congestion_control": False}
    assert sysctls.guest_sysctls(kernel, backend) == first
    assert len(asked) == 1
    kept = tmp_path / "sysctls" / f"{'ab' * 32}.json"
    assert json.loads(kept.read_text())["kernel"] == "6.12.1"
    kept.write_text("{")
    assert sysctls.guest_sysctls(kernel, backend) == first
    assert len(asked) == 2
