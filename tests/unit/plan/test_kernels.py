"""Kernels as a factor: which kernel a cell has, and that a cell without one is what it was."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from netwarp.core.frozen import to_json
from netwarp.core.types import Cell, GuestKernel
from netwarp.engine.planning import plan_experiment
from netwarp.guestkernel import build_kernel
from netwarp.plan import make_plan
from netwarp.plan.sysctls import KernelSysctls
from netwarp.sandbox.netns import NetnsBackend
from netwarp.sandbox.virtual import VirtualBackend, lacks
from support.checkout import BUILD
from support.kernel_tree import make_tree
from support.specs import BASE, plan_of, problems_of, replaced, spec_of

FACTOR = '[factor.kernel]\nlevels = ["6.1", "6.10"]\n'
OLD, NEW = GuestKernel("6.1.192", "a" * 64), GuestKernel("6.12.117", "b" * 64)


def builds(name: str) -> GuestKernel:
    return GuestKernel(f"{name}.5", f"{name.replace('.', ''):0>64}")


def test_a_cell_without_a_kernel_has_the_json_that_it_had() -> None:
    """A new field would change every id; this one is there only where a spec asks."""
    (cell,) = plan_of(BASE).cells
    assert b"kernel" not in to_json(cell)
    assert cell.kernel is msgspec.UNSET
    assert cell.id == "main_r0_0ffc8afe0a"  # as without a field for the kernel


def test_levels_are_texts_and_the_build_belongs_to_the_id() -> None:
    spec = spec_of(BASE + FACTOR)
    first, second = make_plan(spec, builds=builds).cells
    assert (first.kernel, second.kernel) == (builds("6.1"), builds("6.10"))
    assert first.factors == {"kernel": "6.1"}
    assert first.id.startswith("6.1_r0_")
    other = make_plan(spec, builds=lambda name: GuestKernel(f"{name}.6", "c" * 64)).cells[0]
    assert other.id != first.id


def test_a_level_can_have_a_name_of_its_own_and_a_spec_one_kernel_for_all() -> None:
    named = """
[factor.kernel]
levels = ["old", "new"]
[factor.kernel.level.old]
kernel = "6.1"
[factor.kernel.level.new]
kernel = "./tree"
"""
    assert [cell.kernel for cell in plan_of(BASE + named).cells] == [GuestKernel("6.1", ""), GuestKernel("./tree", "")]
    other = named.replace("factor.kernel", "factor.stack")
    assert [cell.kernel for cell in plan_of(BASE + other).cells] == [GuestKernel("6.1", ""), GuestKernel("./tree", "")]
    (cell,) = plan_of(BASE, {"kernel": "6.10"}).cells
    assert cell.kernel == GuestKernel("6.10", "")


def test_a_number_is_no_kernel() -> None:
    """6.10 would be 6.1."""
    assert any(
        "kernel: must be text" in line for line in problems_of(replaced('name = "test"', 'name = "test"\nkernel = 6.1'))
    )


def test_sysctls_are_asked_of_the_kernel_of_the_cell() -> None:
    asked: list[GuestKernel | None] = []

    def ask(kernel: GuestKernel | None) -> KernelSysctls | None:
        asked.append(kernel)
        return None

    text = replaced("[node.b]\n", '[node.b]\nsysctl = { "net.ipv4.tcp_sack" = "1" }\n') + FACTOR
    make_plan(spec_of(text), kernel=ask, builds=builds)
    assert asked == [builds("6.1"), builds("6.10")]


def test_a_plan_has_the_kernels_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    old = build_kernel(make_tree(tmp_path, release="6.1.192"))
    tree = make_tree(tmp_path, release="6.18.2")
    new = build_kernel(tree)
    spec = tmp_path / "spec.toml"
    spec.write_text(BASE + f'[factor.kernel]\nlevels = ["6.1", "6.12", "./{tree.name}"]\n')
    assert [cell.kernel for cell in plan_experiment(spec).cells] == [
        GuestKernel(old.release, old.sha256), GuestKernel("6.12", ""), GuestKernel(new.release, new.sha256),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("impairment", "named"),
    [('loss = "1 %"', "loss"), ('jitter = "5 ms"', "jitter"), ('duplicate = "1 %"', "duplicate")],
)
def test_what_netem_draws_without_a_seed_is_unsupported(impairment: str, named: str) -> None:
    (cell,) = plan_of(replaced('queue = "50 packets"', f'queue = "50 packets"\n{impairment}')).cells
    assert lacks(cell, OLD).startswith(f"{named}: netem of Linux 6.1.192 has no seed")
    assert lacks(cell, NEW) == ""
    own = msgspec.structs.replace(cell, kernel=OLD)
    assert VirtualBackend(Path("linux"), BUILD).refuses(own) == lacks(cell, OLD)
    assert VirtualBackend(Path("linux"), BUILD).refuses(cell) == ""


@pytest.mark.parametrize("impairment", ['bit_errors = "1e-5"', "drop = [3, 7]", "duplicate = [5]"])
def test_what_has_a_generator_of_its_own_or_none_runs_on_every_kernel(impairment: str) -> None:
    (cell,) = plan_of(replaced('queue = "50 packets"', f'queue = "50 packets"\n{impairment}')).cells
    assert lacks(cell, OLD) == ""


def test_a_stream_scheduler_that_a_kernel_does_not_know() -> None:
    text = replaced('protocol = "tcp"', 'protocol = "sctp"\nsender = { scheduler = "wfq" }')
    (cell,) = plan_of(text).cells
    assert lacks(cell, OLD) == "flow f: Linux 6.1.192 has no stream scheduler wfq"
    assert lacks(cell, NEW) == ""


def test_this_machines_kernel_is_no_other(tmp_path: Path) -> None:
    (cell,) = make_plan(spec_of(BASE, sets={"kernel": "6.1"}), builds=builds).cells
    assert NetnsBackend(BUILD).refuses(cell) == "its kernel is a guest's, Linux 6.1.5: use --backend virtual or guest"


def test_json_of_a_cell_with_a_kernel_comes_back() -> None:
    (cell,) = make_plan(spec_of(BASE, sets={"kernel": "6.1"}), builds=builds).cells
    assert msgspec.json.decode(to_json(cell), type=Cell) == cell
