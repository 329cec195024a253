"""Kinds of figures: data for the page's script, and the sheet for print."""
