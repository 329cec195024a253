"""Back ends: sandboxes that own a private network and run one cell in it."""

from .base import Backend, Interrupted
from .netns import netns_backend
from .sandbox import Progress, SandboxBackend
from .virtual import DistributionBackend, GuestBackend, VirtualBackend

__all__ = [
    "Backend", "DistributionBackend", "GuestBackend", "Interrupted", "Progress", "SandboxBackend", "VirtualBackend",
    "netns_backend",
]  # fmt: skip
