"""`python3 -m netwarp.guestkernel build|list`: what `netwarp kernel` does, before there is a virtual environment."""

import argparse
import sys

from ..core.errors import KernelError
from .command import add_verbs, run


def main() -> int:
    """Parse, run, and turn errors into a message and a status."""
    parser = argparse.ArgumentParser(prog="python3 -m netwarp.guestkernel", description=__doc__)
    add_verbs(parser)
    try:
        return run(parser.parse_args())
    except KernelError as error:
        print(f"netwarp: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("netwarp: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
