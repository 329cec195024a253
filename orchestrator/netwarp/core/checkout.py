"""The files that netwarp reads beside its package: of the checkout that it runs from, or of its wheel. Standard library
only.
"""

from pathlib import Path

_IN_WHEEL = Path(__file__).resolve().parents[1] / "files"
INSTALLED = _IN_WHEEL.is_dir()
"""True if netwarp was installed from a wheel (setup/pack_wheels.py): there is no checkout then."""
CHECKOUT = _IN_WHEEL if INSTALLED else Path(__file__).resolve().parents[3]
"""The directory that holds experiments/, kernel/ and build/."""
