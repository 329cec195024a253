"""Kinds of figures, one subpackage each: data.py (its numbers), page.js (the web page), print.py (PDF and SVG).

A new kind is listed in ../figure_registry.py.
"""
