"""`python -m orchestrator` is `netwarp`; before `make setup` it is the doctor, on nothing but the system's Python."""

import sys


def main() -> int:
    """Of the command line, or the words that come before it."""
    if sys.version_info >= (3, 11):
        try:
            import msgspec  # noqa: F401  the first of the packages in requirements.lock
        except ModuleNotFoundError:
            pass
        else:
            from .cli import main as netwarp

            return netwarp()
    from .bootstrap import bootstrap

    return bootstrap(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
