"""Runs, resumes, analyses and reports: plain functions behind the command line."""
