"""Draw the testbeds of experiments for the documentation: docs/pictures/testbed-NAME.svg, as their reports have them.

    .venv/bin/python docs/testbed_pictures.py [--check]

--check: write nothing; exit status 1 where a picture is not what the plan gives.
"""

import sys
from pathlib import Path

from netwarp.engine.planning import plan_experiment
from netwarp.experiment import EXAMPLE_SPEC, parse_spec
from netwarp.present.setup import drawn_testbeds
from netwarp.present.testbed_picture import draw, svg

FOLDER = Path(__file__).with_name("pictures")
EXPERIMENTS = ("dual-stack", "many-flows")
EXAMPLE = "example"


def pictures() -> dict[str, str]:
    """The name of each file -> its text: of the commonest topology of the experiment."""
    example = parse_spec(EXAMPLE_SPEC.encode(), Path("spec.toml"), sets={})
    found = {}
    for name, spec in ((EXAMPLE, example), *((name, name) for name in EXPERIMENTS)):
        plan = plan_experiment(spec, backend=None)
        _, testbed = drawn_testbeds(plan, plan.cells)[0]
        found[f"testbed-{name}.svg"] = f"{svg(draw(testbed.nodes, testbed.links, testbed.flows), alone=True)}\n"
    return found


def main() -> None:
    """Write or check."""
    found = pictures()
    if "--check" not in sys.argv:
        for name, text in found.items():
            (FOLDER / name).write_text(text)
        return
    other = [
        name for name, text in found.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    if other:
        sys.exit(f"{', '.join(other)}: not what the plan gives; .venv/bin/python docs/testbed_pictures.py draws them")


if __name__ == "__main__":
    main()
