"""The engine: everything the command line can do, as functions with typed keyword arguments.

They report progress to a callback (events.py), return typed results, and never print, parse arguments or exit. `import
netwarp` offers all of them; inside the package each is imported from its own module.
"""
