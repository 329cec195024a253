"""The back end `hosts`: cells on machines that an Ansible inventory names."""

from .backend import HostsBackend, cannot_run
from .held_machines import ask_machines
from .inventory import Inventory, read_inventory
from .placement import InventoryFit, in_words, lacking, needs_of, place

__all__ = [
    "HostsBackend",
    "Inventory",
    "InventoryFit",
    "ask_machines",
    "cannot_run",
    "in_words",
    "lacking",
    "needs_of",
    "place",
    "read_inventory",
]
