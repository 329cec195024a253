"""The command netwarp as `python3 -m netwarp`. Before `make setup` bootstrap.py answers, with the standard library."""

import importlib.util
import sys


def main() -> int:
    """The exit status of the command line, or of bootstrap.py where Python is too old or packages are missing."""
    if sys.version_info >= (3, 11):
        if importlib.util.find_spec("msgspec"):  # the first of the packages in requirements.lock; imported where used
            from .cli import main as netwarp

            return netwarp()
    from .bootstrap import bootstrap

    return bootstrap(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
