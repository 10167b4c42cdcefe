"""Definitions made from what exists elsewhere, and given back to it."""
