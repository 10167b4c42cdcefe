"""This machine: its device, its load, its clocks, and the provenance of measurements on it."""
