"""25 drawn studies that are the same in every tree and 25 that the committed tree draws, each held number by number
against an oracle. A failure names the command that runs the study alone, and prints the smallest study that shows it.
"""

from __future__ import annotations

from pathlib import Path

import netwarp
import pytest
from studies.run_study import smallest, tried
from studies.study import drawn, seed_of_tree

SEEDS = (41, seed_of_tree())
STUDIES, STUDIES_OF_A_TEST = 25, 5


@pytest.mark.parametrize("first", range(0, STUDIES, STUDIES_OF_A_TEST))
@pytest.mark.parametrize("seed", SEEDS, ids=("fixed", "of-the-tree"))
def test_numbers_of_drawn_studies_are_those_of_the_oracle(seed: int, first: int, kernel: Path, tmp_path: Path) -> None:
    wrong: list[str] = []
    for number in range(first, first + STUDIES_OF_A_TEST):
        study = drawn(seed, number)
        verdict = tried(study.experiment, number, tmp_path / str(number))
        if verdict.wrong:
            wrong.append(f"make fuzz-studies ARGS='--seed {seed} --first {number} --studies 1'")
            wrong += [text for _, text in verdict.wrong[:5]]
            wrong.append(smallest(study.document, verdict.wrong[0][0], tmp_path / "small"))
    assert not wrong, "\n".join(wrong)


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
