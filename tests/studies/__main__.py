"""`make fuzz-studies ARGS='--studies 1000 --seed N'`: draws studies, runs each and holds every number.

A study that shows something wrong is kept, with what is wrong and, with --shrink, made small: DIR/found/<number>.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from netwarp.experiment.toml_writer import toml_text

from .keys import every_key, keys_of
from .run_study import Verdict, smallest, tried
from .study import drawn, seed_of_tree

TWICE_EVERY, REPORT_EVERY = 10, 20
LEAST_OF_A_KEY, KEYS_FROM = 0.02, 1000
"""Of the studies that ran, that use each key; said of at least that many studies."""


class Account:
    """What came of all studies so far."""

    def __init__(self) -> None:
        self.studies = self.cells = self.held = self.counters = self.twice = 0
        self.refused: list[tuple[int, str]] = []
        self.unsupported: list[tuple[int, str]] = []
        self.failed = 0
        self.wrong: Counter[str] = Counter()
        self.first: dict[str, tuple[int, str]] = {}
        self.keys: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        self.by_metric: Counter[str] = Counter()

    def add(self, verdict: Verdict, document: dict[str, object]) -> None:
        """Add a study."""
        self.studies += 1
        self.cells += verdict.cells
        if verdict.refused:
            self.refused.append((verdict.number, verdict.refused))
            return
        if verdict.unsupported:
            self.unsupported.append((verdict.number, verdict.unsupported))
        self.failed += verdict.failed
        self.keys += keys_of(document)
        self.held += verdict.judged.held
        self.counters += verdict.judged.counters
        self.twice += verdict.twice
        self.by_metric.update(verdict.judged.by_metric)
        self.unjudged.update(text.split(": ", 1)[1] for text in verdict.judged.unjudged)
        for mark in dict.fromkeys(mark for mark, _ in verdict.wrong):
            self.wrong[mark] += 1
            self.first.setdefault(mark, (verdict.number, next(text for each, text in verdict.wrong if each == mark)))

    def text(self) -> str:
        """The table."""
        ran = self.studies - len(self.refused)
        missed = sorted((self.keys[key], key) for key in every_key() if self.keys[key] < LEAST_OF_A_KEY * ran)
        lines = [
            f"studies {self.studies}, cells {self.cells}, refused by plan {len(self.refused)}, "
            f"unsupported {len(self.unsupported)}, run twice {self.twice}, "
            f"cells that the network failed {self.failed}",
            f"numbers held {self.held} ({len(self.by_metric)} metrics), kernel's counters held {self.counters}, "
            f"flows not judged {dict(self.unjudged)}",
            f"keys of the grammar {len(every_key())}, below {LEAST_OF_A_KEY:.0%} of the studies {len(missed)}",
            *(f"  {count} {key}" for count, key in missed if ran >= KEYS_FROM),
            *(f"refused: study {number}: {text.splitlines()[0][:300]}" for number, text in self.refused),
            *(f"wrong in {count}: {mark} | study {self.first[mark][0]}: {self.first[mark][1][:400]}"
              for mark, count in self.wrong.most_common()),
        ]  # fmt: skip
        return "\n".join(lines)


def main() -> int:
    """Status 1 if anything is wrong, or if too many studies are refused."""
    parser = argparse.ArgumentParser(prog="fuzz-studies", description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=seed_of_tree(), help="default: of the committed tree")
    parser.add_argument("--first", type=int, default=0, help="number of the first study")
    parser.add_argument("--out", type=Path, help="where findings and the account go (default: results/fuzz-studies)")
    parser.add_argument("--shrink", action="store_true", help="make the first study of each finding small and print it")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="draw no study after that long")
    parser.add_argument("--keep", action="store_true", help="keep the runs of studies that show something wrong")
    options = parser.parse_args()
    out: Path = options.out or Path("results/fuzz-studies")
    (out / "found").mkdir(parents=True, exist_ok=True)
    account, begun = Account(), time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="fuzz-studies-"))
    try:
        for number in range(options.first, options.first + options.studies):
            if time.monotonic() - begun > options.seconds:
                break
            study = drawn(options.seed, number)
            verdict = tried(study.experiment, number, place / "run", twice=number % TWICE_EVERY == 0,
                            report=number % REPORT_EVERY == 0)  # fmt: skip
            new = [mark for mark, _ in verdict.wrong if mark not in account.first]
            account.add(verdict, study.document)
            if verdict.wrong:
                kept = out / "found" / f"{options.seed}-{number}.toml"
                said = "".join(f"# {text}\n" for _, text in verdict.wrong[:20])
                kept.write_text(said + toml_text(study.document))
                if options.keep and (place / "run").exists():
                    shutil.copytree(place / "run", out / "found" / f"{options.seed}-{number}", dirs_exist_ok=True)
                for mark in dict.fromkeys(new) if options.shrink else ():
                    small = smallest(study.document, mark, place / "small")
                    kept.with_suffix(f".{len(account.first)}.small.toml").write_text(small)
                    print(small, file=sys.stderr, flush=True)
            if number % 10 == 9 or verdict.wrong:
                words = "; ".join(f"{mark}: {text[:200]}" for mark, text in verdict.wrong[:3])
                print(f"{number}: {time.monotonic() - begun:.0f} s, cpu {sum(os.times()[:4]):.0f} s {words}",
                      file=sys.stderr, flush=True)  # fmt: skip
            (out / "account.txt").write_text(f"seed {options.seed}\n{account.text()}\n")
            (out / "keys.json").write_text(json.dumps(dict(account.keys), indent=1, sort_keys=True))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(account.text())
    return 1 if account.wrong or len(account.refused) > 0.05 * account.studies else 0


if __name__ == "__main__":
    sys.exit(main())
