"""The command netwarp as `python3 -m netwarp`. Before `make setup` bootstrap.py answers, with the standard library."""

import sys


def main() -> int:
    """The exit status of the command line, or of bootstrap.py where Python is too old or packages are missing."""
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
