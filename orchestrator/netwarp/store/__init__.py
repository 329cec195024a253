"""Reads and writes every file of a run directory as a type."""
