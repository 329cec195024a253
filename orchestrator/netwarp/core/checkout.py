"""The checkout that netwarp runs from. Standard library only."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
"""The directory that holds apps/, experiments/, kernel/ and build/."""
