"""summary.py RUN [REFERENCE [--allow-programs]]: a run as Markdown, for the page of a CI job: outcomes, claims, and
captures against those of a reference.

REFERENCE: a run or a bundle; cells that it alone has are not counted. Exit status 1 if a cell did not complete, a claim
does not hold, or a capture differs.
"""

import sys
from collections import Counter

import netwarp
from netwarp.core.outside_text import markdown
from netwarp.engine.bundles import opened


def main(path: str, reference: str = "", allow: str = "") -> int:
    """Print; the exit status."""
    run = netwarp.open_run(path)
    outcomes = Counter(str(row["outcome"]) for row in run.table("cells"))
    claims = [row for row in run.table("claims") if not row["condition"]]
    verdicts = Counter(str(row["verdict"]) for row in claims)
    broken = [row for row in claims if row["verdict"] == "does not hold"]
    print(f"## {markdown(run.plan.name)}\n\n| | |\n| --- | --- |")
    print(f"| kernel | {markdown(run.manifest.kernel_release)} |")
    print(f"| cells | {', '.join(f'{count} {outcome}' for outcome, count in sorted(outcomes.items()))} |")
    print(f"| claims | {', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items())) or 'none'} |")
    for row in broken:
        said = f"does not hold: {row['measured']} {row['unit']}, expected {row['expected']}"
        print(f"| claim {markdown(str(row['claim']))} | {markdown(said)} |")
    differing, changed = [], False
    if reference:
        with opened(reference) as golden:
            verified = netwarp.verify(path, golden, allow_programs=allow == "--allow-programs")
            changed = verified.stored is not None and verified.stored.differs
            pairs = [pair for pair in verified.cells if pair.status != "only in A"]
        differing = [pair for pair in pairs if pair.status != "equal"]
        equal = len(pairs) - len(differing)
        print(f"| captures | of {len(pairs)} cells {equal} equal those of the reference byte for byte |")
    if changed:
        print("| reference | is not what its run wrote: `netwarp archive verify` names what differs |")
    for pair in differing:
        print(f"| {markdown(pair.id)} | {markdown(pair.words)} |")
    return 1 if set(outcomes) - {"COMPLETED", "UNSUPPORTED"} or broken or differing or changed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except netwarp.NetwarpError as error:
        print(f"| failed | {markdown(str(error))} |")
        sys.exit(1)
