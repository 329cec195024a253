"""Compiles a Cell into Steps and decodes what the kernel said back. Pure: no kernel is touched here."""
