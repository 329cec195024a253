"""The guest kernel: built from source once, cached outside the checkout, found by everything that starts guests.

Standard library only, so that the system's Python can build it while the virtual environment does not exist yet.
"""

from .build import build_kernel
from .cache import KernelBuild, find_kernel, list_kernels
from .recipe import Recipe, load_recipe
from .transfer import export_kernel, import_kernel

__all__ = [
    "KernelBuild", "Recipe", "build_kernel", "export_kernel", "find_kernel", "import_kernel", "list_kernels",
    "load_recipe",
]  # fmt: skip
