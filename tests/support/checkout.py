"""The checkout under test, and its C programs."""

import fcntl
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def make_apps(*arguments: str) -> None:
    """Bring C programs up to date with `make -C apps`; one process at a time."""
    (BUILD / "test").mkdir(parents=True, exist_ok=True)
    with open(BUILD / "test" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", str(ROOT / "apps"), *arguments], check=True, stdout=subprocess.DEVNULL)
