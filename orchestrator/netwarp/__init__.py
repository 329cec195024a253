"""netwarp: transport-protocol experiments on unmodified Linux kernels."""

__version__ = "0.1.0"
