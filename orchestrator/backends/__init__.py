"""Back ends: sandboxes that own a private network and run one cell in it."""

from .base import Backend, Interrupted
from .virtual import VirtualBackend

__all__ = ["Backend", "Interrupted", "VirtualBackend"]
