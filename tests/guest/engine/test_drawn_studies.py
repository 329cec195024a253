"""25 drawn studies, the same in every tree, each held number by number against an oracle.

New studies are `make fuzz`'s: some of those that nobody has seen are wrong, so a gate that drew them would be red by
chance. A study that fails here is run alone by
`make fuzz-studies ARGS='--seed 41 --first NUMBER --studies 1 --shrink'`.
"""

from __future__ import annotations

from pathlib import Path

import netwarp
import pytest
from studies.run_study import tried
from studies.study import drawn

SEED, STUDIES, STUDIES_OF_A_TEST = 41, 25, 5


@pytest.mark.parametrize("first", range(0, STUDIES, STUDIES_OF_A_TEST))
def test_numbers_of_drawn_studies_are_those_of_the_oracle(first: int, kernel: Path, tmp_path: Path) -> None:
    wrong: dict[int, str] = {}
    for number in range(first, first + STUDIES_OF_A_TEST):
        verdict = tried(drawn(SEED, number).experiment, number, tmp_path / str(number))
        if verdict.wrong:
            command = f"make fuzz-studies ARGS='--seed {SEED} --first {number} --studies 1 --shrink'"
            wrong[number] = f"{command}: {'; '.join(text for _, text in verdict.wrong[:5])}"
    assert not wrong


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_sctp_drops_what_a_link_alters_behind_a_firewall(family: str, kernel: Path, tmp_path: Path) -> None:
    """The kernel's own count of wrong CRC32c is that of the packets at its host, which the oracle holds."""
    study = netwarp.Experiment("altered", seed=3, duration="1 s")
    study.node("a")
    study.node("b")
    study.link("p1", "a", "b", family=family, rate="10 Mbit/s", one_way_delay="10 ms", queue="100 packets",
               firewall="drop", corrupt="5 %")  # fmt: skip
    study.flow("f", "a", "b", protocol="sctp", paths=["p1"])
    verdict = tried(study, 0, tmp_path / "run")
    assert not verdict.wrong
    assert verdict.judged.counters >= 2
