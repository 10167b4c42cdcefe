"""Checks that records and pages are still valid for the files that they describe."""
