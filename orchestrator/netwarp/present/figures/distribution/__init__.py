"""Distributions: CDFs and boxes."""
