"""The back end `hosts`: cells on machines that an Ansible inventory names."""

from .backend import HostsBackend
from .inventory import Inventory, read_inventory
from .placement import place

__all__ = ["HostsBackend", "Inventory", "place", "read_inventory"]
