"""25 drawn studies, the same in every tree, each held number by number against an oracle.

New studies are `make fuzz`'s: some of those that nobody has seen are wrong, so a gate that drew them would be red by
chance. A study that fails here is run alone by
`make fuzz-studies ARGS='--seed 41 --first NUMBER --studies 1 --shrink'`.
"""

from __future__ import annotations

from pathlib import Path

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
