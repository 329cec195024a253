"""Schedules that are found by coverage: what a kernel counted of its own lines, mutations of a spec, what is wrong with
a cell. engine/explore.py puts them together.
"""
