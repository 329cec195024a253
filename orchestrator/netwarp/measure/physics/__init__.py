"""Known physics of networks and transports, as numbers a measured flow can be held against (docs/physics.md)."""

from .cell import physics_metrics

__all__ = ["physics_metrics"]
