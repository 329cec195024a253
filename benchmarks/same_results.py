"""Two runs of the same experiment: are their captures the same bytes and their tables the same numbers?

    .venv/bin/python benchmarks/same_results.py RUN_A RUN_B [--renamed OLD=NEW]... [--except COLUMN]...

For changes of the code that must change no result: run an experiment before and after, with the same guest kernel and
seeds. Is `netwarp compare RUN_A RUN_B --exact`, whatever netwarp is installed.
Exit status: 0 the same, 1 something differs, 2 the arguments are wrong.
"""

from __future__ import annotations

import sys

from netwarp.cli import main

if __name__ == "__main__":
    sys.exit(main(["compare", "--exact", *("--renamed" if word == "--table" else word for word in sys.argv[1:])]))
