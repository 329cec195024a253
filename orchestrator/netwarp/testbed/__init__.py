"""Compiles a Cell into Steps, and decodes the kernel's answers. Makes no system call."""
