"""netwarp's part on a machine: runs one cell's sandbox there, gives its interfaces back as they were.

The modules need the machine's Python alone (3.7 or newer) and import only each other: their source is sent over the
connection (`..connection`) and run there, as the package netwarp_agent. Nothing is installed.
"""

MODULES = ("controller", "interfaces", "fitness", "namespaces", "sandbox", "serve")
"""In the order in which they are run."""
